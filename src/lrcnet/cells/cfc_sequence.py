"""A CfC over a whole sequence as one function with its gradient, in few operations per step.

`cfc_equation.next_state` is the specification; this is the same computation, written to be fast.
Axes: T time, B batch, n inputs, m hidden units, W outputs of the first layer.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lrcnet.cells import cfc_kernel
from lrcnet.cells.cfc_equation import Form, Weights, fold_activation, fold_time, next_state, scale
from lrcnet.tracing import is_batch_of_gradients, transform_active
from lrcnet.value_checks import forms_of, refuse_changed

# Numbers per (steps, B, width) array of the backward pass: the arrays then stay in the cache between operations.
_BLOCK = 1 << 17
# x, h, dt, leak, asymptote, weight_ih, weight_hh, bias come first; weight and bias of each further layer follow.
_FIRST_DEEPER = 8


class _Sequence(NamedTuple):
    """The tensors of one call by name; dt is (T, B), or None if the weights contain it."""

    x: Tensor
    h: Tensor
    dt: Tensor | None
    weights: Weights


def scan(
    form: Form, x: Tensor, h: Tensor, dt: float | Tensor, weights: Weights, *, batch_major: bool = False
) -> Tensor:
    """Return all states (T, B, m) of a sequence x (T, B, n) with T >= 1, from h (B, m); dt is a number or (T, B).

    `form.dropout` must be 0. `batch_major` says whether the samples of the answer lie together in memory.
    """
    weights = fold_activation(form.activation, weights)
    gaps = dt if isinstance(dt, Tensor) else None
    if not isinstance(dt, Tensor):
        if form.mode == "pure":
            gaps = x.new_full((), dt).expand(x.shape[:2])
        else:
            weights = fold_time(weights, dt)
    form = form._replace(activation=form.activation._replace(height=1.0, slope=1.0))
    tensors = [*weights.first, *(tensor for layer in weights.deeper for tensor in layer)]
    states: Tensor = _Scan.apply(  # type: ignore[no-untyped-call]
        form, batch_major, x, h, gaps, weights.leak, weights.asymptote, *tensors
    )
    return states


def _name_tensors(tensors: tuple[Any, ...]) -> _Sequence:
    x, h, dt, leak, asymptote, *rest = tensors
    first, deeper = tuple(rest[:3]), rest[3:]
    layers = tuple(zip(deeper[::2], deeper[1::2], strict=True))
    return _Sequence(x, h, dt, Weights(first, layers, leak, asymptote))


class _Scan(torch.autograd.Function):
    """States forward, one backward sweep; where the gradient itself is differentiated, the plain loop runs again."""

    @staticmethod
    def forward(ctx: Any, form: Form, batch_major: bool, *tensors: Any) -> Tensor:
        call = _name_tensors(tensors)
        steps, batch, m = call.x.shape[0], *call.h.shape
        kept = _run(form, call)
        shape = (batch, steps, m) if batch_major else (steps, batch, m)
        states = call.x.new_empty(shape).transpose(0, 1) if batch_major else call.x.new_empty(shape)
        ctx.form, ctx.inputs, ctx.layers = form, len(tensors), len(kept.sums)
        saved = (*tensors, kept.half_states, *kept.sums, *kept.activations)
        ctx.save_for_backward(*saved)
        ctx.forms = forms_of(saved)
        return torch.mul(kept.half_states[1:], 2, out=states)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        saved, needs = ctx.saved_tensors, ctx.needs_input_grad[2:]
        refuse_changed(saved, ctx.forms)
        tensors, half_states = saved[: ctx.inputs], saved[ctx.inputs]
        if torch.is_grad_enabled() or transform_active() or is_batch_of_gradients(grads[0]):
            return (None, None, *_differentiable_gradients(ctx.form, tensors, needs, grads[0]))
        others = saved[ctx.inputs + 1 :]
        kept = _Kept(half_states, others[: ctx.layers], others[ctx.layers :])
        return (None, None, *_Sweep(ctx.form, _name_tensors(tensors), kept, needs).run(grads[0]))


class _Kept(NamedTuple):
    """What the backward pass needs of the forward pass.

    Attributes:
        half_states: h / 2 before the first step and after every step, (T + 1, B, m).
        sums: each layer's sums (T, B, width). Those of a hidden layer are overwritten with tanh(z) / 2 or with relu(z);
            those of the heads with sigma(2 z_1), sigma(2 z_2) and s, unless the mode is "pure".
        activations: those of the hidden layers if they do not take the place of the sums.
    """

    half_states: Tensor
    sums: Sequence[Tensor]
    activations: Sequence[Tensor]


def _run(form: Form, call: _Sequence) -> _Kept:
    """Run through the sequence.

    tanh(z) = 2 (sigma(2 z) - 1/2), and torch computes a sigmoid five times as fast as a tanh. The factors of 2 go into
    the weights, which they do not round.
    """
    (weight_ih, weight_hh, bias), *deeper = _double_around_tanh(form, call)
    steps, batch, n = call.x.shape
    readings = call.x.reshape(steps * batch, n)
    first = readings @ weight_ih.t() if bias is None else torch.addmm(bias, readings, weight_ih.t())
    sums = [
        first.view(steps, batch, len(weight_ih)),
        *(first.new_empty(steps, batch, len(weight)) for weight, _ in deeper),
    ]
    separate, function = form.activation.by_argument, form.activation.function
    activations = [torch.empty_like(values) for values in sums[:-1]] if separate else []
    half_states = call.h.new_empty(steps + 1, *call.h.shape)
    torch.mul(call.h, 0.5, out=half_states[0])
    if cfc_kernel.serves(form, sums, call.h):
        weights, offsets = [weight_hh, *(weight for weight, _ in deeper)], [bias, *(offset for _, offset in deeper)]
        cfc_kernel.run_forward(form, weights, offsets, sums, half_states, call.dt)
        return _Kept(half_states, sums, activations)
    # Views of single steps are made once, for they cost about as much as the arithmetic of a small layer.
    layers = [
        (weight.t(), offset, z.unbind(), a.unbind(), result.unbind())
        for (weight, offset), z, a, result in zip(deeper, sums, activations or sums, sums[1:], strict=False)
    ]
    write, into, inputs, states = _writer(form, call, sums[-1]), weight_hh.t(), sums[0].unbind(), half_states.unbind()
    for t in range(steps):
        inputs[t].addmm_(states[t], into)
        for weight, offset, z, a, result in layers:
            if separate:
                a[t].copy_(function(z[t]))
            elif function is torch.relu:
                z[t].relu_()
            else:
                z[t].sigmoid_().sub_(0.5)
            if offset is None:
                torch.mm(a[t], weight, out=result[t])
            else:
                torch.addmm(offset, a[t], weight, out=result[t])
        write(t, states[t + 1])
    return _Kept(half_states, sums, activations)


def _double_around_tanh(form: Form, call: _Sequence) -> list[Any]:
    """Return the weights of all layers, those of rows before a tanh and of columns after one multiplied by 2.

    The columns of the state count as well: its halves are kept.
    """
    (weight_ih, weight_hh, bias), m = call.weights.first, call.h.shape[1]
    layers: list[list[Any]] = [[weight_ih, weight_hh * 2, bias], *([*layer] for layer in call.weights.deeper)]
    if form.activation.function is torch.tanh:
        for before, after in pairwise(layers):
            before[:] = [scale(tensor, 2) for tensor in before]
            after[0] = after[0] * 2
    if form.mode != "pure":
        last = layers[-1]
        last[:] = [None if tensor is None else torch.cat([tensor[: 2 * m] * 2, tensor[2 * m :]]) for tensor in last]
    return layers


def _writer(form: Form, call: _Sequence, heads: Tensor) -> Any:
    """Return the function (t, out) that turns the heads of step t into half its state."""
    m = call.h.shape[1]
    gaps = None if call.dt is None else call.dt.unsqueeze(-1).unbind()
    if form.mode == "pure":
        leak, asymptote, z = call.weights.leak, call.weights.asymptote, heads.unbind()
        assert leak is not None
        assert asymptote is not None
        half = asymptote / 2

        def write_pure(t: int, out: Tensor) -> None:
            assert gaps is not None
            decay = z[t].abs().add_(leak).mul_(gaps[t]).neg_().exp_()
            torch.addcmul(half, half, decay.mul_(z[t]), value=-1, out=out)

        return write_pure
    parts = ((0, 3), (0, 1), (1, 2), (2, 3))
    gates, start, end, gate = (heads[..., low * m : high * m].unbind() for low, high in parts)
    slope = None if gaps is None else heads[..., 3 * m :].unbind()
    mixed = form.mode == "default"

    def write(t: int, out: Tensor) -> None:
        if slope is not None and gaps is not None:
            gate[t].addcmul_(slope[t], gaps[t])
        gates[t].sigmoid_()
        if mixed:
            torch.lerp(start[t], end[t], gate[t], out=out)
            out.sub_(0.5)
        else:
            torch.addcmul(start[t], gate[t], end[t], out=out)
            out.sub_(gate[t], alpha=0.5).sub_(0.5)

    return write


class _Sweep:
    """The backward pass over one sequence.

    With g the gradient of h', every head's gradient is g times a factor that is known beforehand, and so are the
    derivatives of the activations: both are computed for a block of steps at once. A step is left with one product
    per layer and one multiplication per layer; the gradients of weights are one product per block.
    """

    def __init__(self, form: Form, call: _Sequence, kept: _Kept, needs: tuple[bool, ...]) -> None:
        self.form, self.call, self.kept, self.needs = form, call, kept, needs
        tensors = [call.x, call.h, call.dt, call.weights.leak, call.weights.asymptote, *call.weights.first]
        tensors += [tensor for layer in call.weights.deeper for tensor in layer]
        # The gradient of h needs no array: it is what the sweep ends with.
        self.grads = [
            tensor.new_zeros(tensor.shape) if need and tensor is not None and i != 1 else None
            for i, (tensor, need) in enumerate(zip(tensors, needs, strict=True))
        ]

    def run(self, grad: Tensor) -> list[Tensor | None]:
        """Return the gradients of all tensors, those that are needed."""
        steps, (batch, m), widths = len(grad), self.call.h.shape, [values.shape[2] for values in self.kept.sums]
        fused = cfc_kernel.serves(self.form, self.kept.sums, self.call.h)
        length = min(steps, max(1, _BLOCK // max(1, batch * max(widths))))
        # Gradients of each layer's sums, from the first layer to the heads, and of the states of a block.
        of_sums = [grad.new_empty(length, batch, width) for width in widths]
        of_states = grad.new_empty(length, batch, m) if self.form.mode == "pure" else None
        g = torch.zeros_like(self.call.h, memory_format=torch.contiguous_format)
        for stop in range(steps, 0, -length):
            block = slice(max(0, stop - length), stop)
            own = [values[: block.stop - block.start] for values in of_sums]
            if fused:
                weights = [self.call.weights.first[1], *(weight for weight, _ in self.call.weights.deeper)]
                sums = [values[block] for values in self.kept.sums]
                dt = None if self.call.dt is None else self.call.dt[block]
                cfc_kernel.run_backward(self.form, weights, sums, dt, grad[block], own, g)
            else:
                self._sweep_block(block, grad[block], own, of_states, g)
            self._add_products(block, own)
            if of_states is not None:
                self._add_pure(block, of_states[: len(own[0])])
        self.grads[1] = g if self.needs[1] else None
        return self.grads

    def _sweep_block(
        self, block: slice, grad: Tensor, of_sums: list[Tensor], of_states: Tensor | None, g: Tensor
    ) -> None:
        """Fill the gradients of a block's sums and states, and take g (B, m) to the state before the block."""
        (batch, m), heads, size = self.call.h.shape, of_sums[-1], len(grad)
        factors = torch.empty_like(heads)
        self._fill_factors(factors, block)
        by_head = (size, batch, heads.shape[2] // m, m)
        factors_by_head, grads_by_head = factors.view(by_head).unbind(), heads.view(by_head).unbind()
        views = [values.unbind() for values in of_sums]
        layers = [
            (weight, self._derivative(layer, block).unbind(), views[layer], views[layer + 1])
            for layer, (weight, _) in enumerate(self.call.weights.deeper)
        ][::-1]
        weight_hh, given, g_of_heads = self.call.weights.first[1], grad.unbind(), g.unsqueeze(1)
        for t in range(size - 1, -1, -1):
            g.add_(given[t])
            if of_states is not None:
                of_states[t] = g
            torch.mul(factors_by_head[t], g_of_heads, out=grads_by_head[t])
            for weight, derivative, of_arguments, of_results in layers:
                torch.mm(of_results[t], weight, out=of_arguments[t])
                of_arguments[t].mul_(derivative[t])
            torch.mm(views[0][t], weight_hh, out=g)

    def _derivative(self, layer: int, block: slice) -> Tensor:
        """Return the derivative of a hidden layer's activation at every step of a block."""
        kept = self.kept.sums[layer][block]
        if self.form.activation.function is torch.tanh:
            # 1 - tanh(z)^2 with half of it kept.
            return torch.mul(kept, kept).mul_(-4).add_(1)
        return self.form.activation.derivative(kept)

    def _fill_factors(self, factors: Tensor, block: slice) -> None:
        """Write the derivative of h' with respect to each head."""
        kept, m = self.kept.sums[-1][block], self.call.h.shape[1]
        dt = None if self.call.dt is None else self.call.dt[block].unsqueeze(-1)
        if self.form.mode == "pure":
            decay, size = self._pure_decay(block)
            assert dt is not None
            assert self.call.weights.asymptote is not None
            torch.mul(decay, dt * size - 1, out=factors).mul_(self.call.weights.asymptote)
            return
        # Not p - p^2, which would lose the digits of a gate that is nearly open.
        slopes = torch.sub(1, kept[..., : 3 * m], out=factors[..., : 3 * m])
        shut = slopes[..., 2 * m :].clone()
        slopes.mul_(kept[..., : 3 * m])
        into_start, into_end, into_gate = (slopes[..., i * m : (i + 1) * m] for i in range(3))
        start, end, gate = (kept[..., i * m : (i + 1) * m] for i in range(3))
        # With p = sigma(2 z), tanh(z) = 2 p - 1 has the slope 4 p (1 - p).
        if self.form.mode == "default":
            into_start.mul_(shut.mul_(4))
            into_gate.mul_((end - start).mul_(2))
        else:
            into_start.mul_(4)
            into_gate.mul_((end - 0.5).mul_(2))
        into_end.mul_(torch.mul(gate, 4, out=shut))
        if dt is not None:
            torch.mul(into_gate, dt, out=factors[..., 3 * m :])

    def _pure_decay(self, block: slice) -> tuple[Tensor, Tensor]:
        """Return exp(-dt (|w_tau| + |z|)) and |z| of a block of steps."""
        leak, dt = self.call.weights.leak, self.call.dt
        assert leak is not None
        assert dt is not None
        size = self.kept.sums[-1][block].abs()
        return torch.exp(-dt[block].unsqueeze(-1) * (leak + size)), size

    def _add_pure(self, block: slice, g: Tensor) -> None:
        """Add a block's gradients of dt, |w_tau| and A, given those of its states."""
        leak, asymptote, dt = (self.call.weights.leak, self.call.weights.asymptote, self.call.dt)
        assert leak is not None
        assert asymptote is not None
        assert dt is not None
        decay, size = self._pure_decay(block)
        moved = decay * self.kept.sums[-1][block]
        of_dt, of_leak, of_asymptote = self.grads[2:5]
        if of_asymptote is not None:
            of_asymptote.add_((g * (1 - moved)).sum((0, 1)))
        of_rate = g * asymptote * moved
        if of_leak is not None:
            of_leak.add_((of_rate * dt[block].unsqueeze(-1)).sum((0, 1)))
        if of_dt is not None:
            of_dt[block] = (of_rate * (leak + size)).sum(-1)

    def _add_products(self, block: slice, of_sums: list[Tensor]) -> None:
        """Add a block's gradients of weights and biases, and write those of x and, unless "pure", of dt."""
        of_dt, m = self.grads[2], self.call.h.shape[1]
        if of_dt is not None and self.form.mode != "pure":
            slope = self.kept.sums[-1][block][..., 3 * m :]
            of_dt[block] = (of_sums[-1][..., 2 * m : 3 * m] * slope).sum(-1)
        rows = [values.flatten(0, 1) for values in of_sums]
        of_x, (of_ih, of_hh, of_bias) = self.grads[0], self.grads[5:_FIRST_DEEPER]
        if of_x is not None:
            of_x[block] = torch.mm(rows[0], self.call.weights.first[0]).view(of_x[block].shape)
        if of_ih is not None or of_hh is not None:
            # One product for both: that of a few inputs alone would take as long as that of all states.
            readings, before = (values[block].flatten(0, 1) for values in (self.call.x, self.kept.half_states))
            n, together = readings.shape[1], rows[0].t() @ torch.cat([readings, before], 1)
            if of_ih is not None:
                of_ih.add_(together[:, :n])
            if of_hh is not None:
                of_hh.add_(together[:, n:], alpha=2)
        if of_bias is not None:
            of_bias.add_(rows[0].sum(0))
        halved = 2 if self.form.activation.function is torch.tanh else 1
        for layer, a in zip(range(len(rows) - 1), self.kept.activations or self.kept.sums, strict=False):
            of_weight, of_offset = self.grads[_FIRST_DEEPER + 2 * layer :][:2]
            if of_weight is not None:
                of_weight.addmm_(rows[layer + 1].t(), a[block].flatten(0, 1), alpha=halved)
            if of_offset is not None:
                of_offset.add_(rows[layer + 1].sum(0))


def _differentiable_gradients(
    form: Form, tensors: tuple[Tensor | None, ...], needs: tuple[bool, ...], grad: Tensor
) -> list[Tensor | None]:
    """Return the same gradients through the plain loop, for second derivatives and for a batch of gradients."""
    again = torch.is_grad_enabled()
    with torch.enable_grad():
        # Aliases cut the graph: one input may have been computed from another.
        aliases = tuple(None if value is None else value.view_as(value) for value in tensors)
        call = _name_tensors(aliases)
        weight_ih, _, bias = call.weights.first
        gaps = None if call.dt is None else call.dt.unsqueeze(-1)
        h, states = call.h, []
        for t, terms in enumerate(torch.nn.functional.linear(call.x, weight_ih, bias).unbind()):
            h = next_state(form, call.weights, terms, h, 1.0 if gaps is None else gaps[t])
            states.append(h)
        wanted = [alias for alias, need in zip(aliases, needs, strict=True) if need and alias is not None]
        gradients = iter(torch.autograd.grad(torch.stack(states), wanted, grad, create_graph=again))
    return [next(gradients) if need and alias is not None else None for alias, need in zip(aliases, needs, strict=True)]
