"""The fused scan as torch.library operators: schema, CPU implementation, fake, autograd.

Axes: T time, B batch, n inputs, m hidden units, K unfoldings. x is (T, B, n), or (B, T, n) if batch_first.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from lrcnet.errors import DivergenceWarning
from lrcnet.kernels import native
from lrcnet.kernels.arguments import Call, Sizes, address, time_and_batch

DTYPES = (torch.float32, torch.float64)
NEGATIVE_ADVICE = "sort the readings by time, or pass negative_dt='clamp' or 'allow' to the layer"
ONCE = (
    "the fused kernel is differentiable once, but a second derivative was asked for; use "
    'backend="reference" for this layer'
)

_TENSORS = (
    "Tensor x, Tensor? h0, Tensor? dt, Tensor a, Tensor b, Tensor g, Tensor k, Tensor g_l, Tensor e_l, Tensor? o, "
    "Tensor? p, Tensor? k_eps, Tensor? input_scale, Tensor? input_shift"
)
_SWITCHES = "float dt_value, bool saturated, str elastance, str solver, int unfolds, bool batch_first"
_PLAIN = (Tensor, torch.nn.Parameter)
_GRADIENTS = 14  # as many as _TENSORS names, in its order

torch.library.define("lrcnet::scan", f"({_TENSORS}, {_SWITCHES}, bool check_dt, bool keep) -> (Tensor, Tensor)")
torch.library.define(
    "lrcnet::scan_backward",
    f"(Tensor? grad, {_TENSORS}, {_SWITCHES}, Tensor states, Tensor saved, bool want_x, bool want_dt) -> "
    f"({', '.join(['Tensor'] * _GRADIENTS)})",
)


def scan_on_cpu(
    x: Tensor,
    h0: Tensor | None,
    dt: Tensor | None,
    a: Tensor,
    b: Tensor,
    g: Tensor,
    k: Tensor,
    g_l: Tensor,
    e_l: Tensor,
    o: Tensor | None,
    p: Tensor | None,
    k_eps: Tensor | None,
    input_scale: Tensor | None,
    input_shift: Tensor | None,
    dt_value: float,
    saturated: bool,
    elastance: str,
    solver: str,
    unfolds: int,
    batch_first: bool,
    check_dt: bool,
    keep: bool,
) -> tuple[Tensor, Tensor]:
    parameters = (a, b, g, k, g_l, e_l, o, p, k_eps, input_scale, input_shift)
    call = Call(
        x,
        h0,
        dt,
        *parameters,
        dt_value=dt_value,
        saturated=saturated,
        elastance=elastance,
        solver=solver,
        unfolds=unfolds,
        batch_first=batch_first,
    )
    if check_dt and dt is None and dt_value < 0:
        raise ValueError(f"dt must be >= 0, but is {dt_value:g}; {NEGATIVE_ADVICE}")
    states = x.new_empty(call.sizes.states(batch_first))
    saved = x.new_empty(call.sizes.saved(elastance, unfolds) if keep else (0,))
    found = native.call("scan")(call.is_double, check_dt, *call.model, *call.sequence(states, saved))
    if found is not None:
        _tell(found)
    return states, saved


def _tell(found: tuple[Any, ...]) -> None:
    """Raise for a negative dt, warn of a state that stopped being finite."""
    kind, t, sample, *value = found
    if kind == "dt":
        raise ValueError(f"dt must be >= 0, but dt[t={t}, sample={sample}] is {value[0]:g}; {NEGATIVE_ADVICE}")
    warnings.warn(
        f"the state stopped being finite at step {t} of sample {sample} although the input is finite; use a stable "
        "solver ('hybrid' or 'exponential'), more unfolds or a smaller dt",
        DivergenceWarning,
        stacklevel=2,
    )


def _scan_fake(
    x: Tensor,
    h0: Tensor | None,
    dt: Tensor | None,
    a: Tensor,
    b: Tensor,
    g: Tensor,
    k: Tensor,
    g_l: Tensor,
    e_l: Tensor,
    o: Tensor | None,
    p: Tensor | None,
    k_eps: Tensor | None,
    input_scale: Tensor | None,
    input_shift: Tensor | None,
    dt_value: float,
    saturated: bool,
    elastance: str,
    solver: str,
    unfolds: int,
    batch_first: bool,
    check_dt: bool,
    keep: bool,
) -> tuple[Tensor, Tensor]:
    sizes = Sizes.of(x, g_l, batch_first)
    return (
        x.new_empty(sizes.states(batch_first)),
        x.new_empty(sizes.saved(elastance, unfolds) if keep else (0,)),
    )


def _new_gradients(
    x: Tensor, parameters: Sequence[Tensor | None], want_x: bool, want_dt: bool, sizes: Sizes
) -> list[Tensor | None]:
    """Room for each gradient, None where none is wanted. The first state always gets one."""
    return [
        x.new_empty(x.shape) if want_x else None,
        x.new_empty((sizes.batch, sizes.units)),
        x.new_empty(x.shape[:2]) if want_dt else None,
        *(None if p is None else torch.empty_like(p, memory_format=torch.contiguous_format) for p in parameters),
    ]


def scan_backward_on_cpu(grad: Tensor | None, *arguments: Any) -> tuple[Tensor, ...]:
    gradients = _fill_gradients(grad, *arguments)
    x = arguments[0]
    return tuple(x.new_empty(0) if gradient is None else gradient for gradient in gradients)


def _fill_gradients(grad: Tensor | None, *arguments: Any) -> list[Tensor | None]:
    """What lrcnet::scan_backward returns, with None for a gradient that nobody wants."""
    inputs, (dt_value, saturated, elastance, solver, unfolds, batch_first) = arguments[:14], arguments[14:20]
    states, saved, want_x, want_dt = arguments[20:]
    call = Call(
        *inputs,
        dt_value=dt_value,
        saturated=saturated,
        elastance=elastance,
        solver=solver,
        unfolds=unfolds,
        batch_first=batch_first,
    )
    gradients = _new_gradients(call.x, call.parameters, want_x, want_dt, call.sizes)
    into = [0 if gradient is None or not gradient.numel() else gradient.data_ptr() for gradient in gradients]
    x, h0, dt, *parameters = into
    native.call("scan_backward")(
        call.is_double,
        *call.model,
        *call.sequence(states, saved),
        address(grad),
        *time_and_batch(grad, batch_first),
        0 if grad is None else grad.stride(2),
        x,
        *(time_and_batch(gradients[0], batch_first) if x else (0, 0)),
        h0,
        dt,
        *(time_and_batch(gradients[2], batch_first) if dt else (0, 0)),
        *parameters,
    )
    return gradients


def _scan_backward_fake(grad: Tensor | None, *arguments: Any) -> tuple[Tensor, ...]:
    inputs, batch_first, (want_x, want_dt) = arguments[:14], arguments[19], arguments[22:]
    x, sizes = inputs[0], Sizes.of(inputs[0], inputs[7], batch_first)
    gradients = _new_gradients(x, inputs[3:], want_x, want_dt, sizes)
    return tuple(x.new_empty(0) if gradient is None else gradient for gradient in gradients)


def run(*arguments: Any) -> tuple[Tensor, Tensor]:
    """lrcnet::scan, past torch's dispatcher where nobody is there to see the operator."""
    if not _unseen(*arguments[:14]):
        return torch.ops.lrcnet.scan.default(*arguments)  # type: ignore[no-any-return]
    return _Scan.apply(*arguments) if arguments[-1] else scan_on_cpu(*arguments)  # type: ignore[no-untyped-call]


def _unseen(*tensors: Tensor | None) -> bool:
    """Whether plain tensors on the CPU go straight through: no tracing, no transform, no dispatch mode, no subclass.

    The way through the dispatcher, from Python to C++ and back for the gradient and again for the operator, takes half
    of a tiny layer's time.
    """
    if torch.compiler.is_compiling() or torch._C._get_tracing_state() is not None:
        return False
    if torch._C._len_torch_dispatch_stack() or torch._C._functorch.peek_interpreter_stack() is not None:
        return False
    return all(tensor is None or (type(tensor) in _PLAIN and tensor.is_cpu) for tensor in tensors)


class _Scan(torch.autograd.Function):
    """The gradient of lrcnet::scan, which is lrcnet::scan_backward."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> tuple[Tensor, Tensor]:
        if _unseen(*arguments[:14]):
            states, saved = scan_on_cpu(*arguments)
        else:
            with torch._C._AutoDispatchBelowAutograd():
                states, saved = torch.ops.lrcnet.scan.default(*arguments)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*arguments[:14], states, saved)
        ctx.switches, ctx.kept = arguments[14:20], arguments[21]
        return states, saved

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        if not ctx.kept:
            raise RuntimeError(
                "lrcnet::scan was called with keep=False, so nothing was kept for its gradient; pass keep=True"
            )
        *inputs, states, saved = ctx.saved_tensors
        needs, grad = ctx.needs_input_grad, grads[0]
        # Where the gradient is differentiated in turn the operator must be seen, to say that it cannot be.
        direct = not torch.is_grad_enabled() and _unseen(grad, *inputs) and not _is_batch(grad)
        backward = _fill_gradients if direct else torch.ops.lrcnet.scan_backward.default
        gradients = backward(grad, *inputs, *ctx.switches, states, saved, needs[0], needs[2])
        wanted = [gradient if need else None for gradient, need in zip(gradients, needs[:14], strict=True)]
        return (*wanted, *[None] * 8)


def _is_batch(grad: Tensor | None) -> bool:
    """Whether this stands for several gradients at once, as in torch.autograd.grad(is_grads_batched=True)."""
    return grad is not None and bool(torch._C._functorch.is_legacy_batchedtensor(grad))


class _ScanBackward(torch.autograd.Function):
    """There is no second derivative; asking for it says what to use instead."""

    @staticmethod
    def forward(ctx: Any, *arguments: Any) -> tuple[Tensor, ...]:
        with torch._C._AutoDispatchBelowAutograd():
            gradients: tuple[Tensor, ...] = torch.ops.lrcnet.scan_backward.default(*arguments)
        return gradients

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> None:
        raise RuntimeError(ONCE)


def _with_gradient(function: type[torch.autograd.Function], operator: Any) -> Any:
    """The operator's autograd kernel.

    torch.library.register_autograd would do, but it reads the operator's schema on every call, which takes longer than
    a small layer's whole forward pass.
    """

    def call(*arguments: Any) -> Any:
        tracked = torch.is_grad_enabled() and any(isinstance(a, Tensor) and a.requires_grad for a in arguments)
        if tracked:
            return function.apply(*arguments)  # type: ignore[no-untyped-call]
        with torch._C._AutoDispatchBelowAutograd():
            return operator(*arguments)

    return call


torch.library.impl("lrcnet::scan", "CPU", scan_on_cpu)
torch.library.impl("lrcnet::scan_backward", "CPU", scan_backward_on_cpu)
torch.library.register_fake("lrcnet::scan", _scan_fake)
torch.library.register_fake("lrcnet::scan_backward", _scan_backward_fake)
torch.library.impl("lrcnet::scan", "Autograd", _with_gradient(_Scan, torch.ops.lrcnet.scan.default))
torch.library.impl(
    "lrcnet::scan_backward", "Autograd", _with_gradient(_ScanBackward, torch.ops.lrcnet.scan_backward.default)
)
