"""The fused scan as torch.library operators: schema, CPU implementation, fake, autograd.

The operators take a `Problem` as flat arguments, in the order of `TENSORS` and `Switches`; the schemas are made from
these.
"""

import warnings
from typing import Any

import torch
from torch import Tensor

from lrcnet.circuit import LETTERS, STEP_LETTERS, Switches, describe_mismatch
from lrcnet.errors import DivergenceWarning, describe_bad_dt, describe_divergence, is_bad_dt
from lrcnet.kernels import native
from lrcnet.kernels.problem import TENSORS, Arguments, Problem, address, check_optional
from lrcnet.tracing import are_ordinary, below_autograd, dispatcher_needed, is_batch_of_gradients, resolve

ONCE = (
    "the fused kernel is differentiable once, but a second derivative was asked for; use "
    'backend="reference" for this layer'
)
NOT_KEPT = "lrcnet::scan was called with keep=False, so nothing was kept for its gradient; pass keep=True"

_TENSORS = len(TENSORS)
# The tensors, dt_value, the switches, keep and the mask; instead of keep the states, what was saved, and two wishes.
_SCAN_ARGUMENTS = _TENSORS + 1 + len(Switches._fields) + 2
_BACKWARD_ARGUMENTS = _SCAN_ARGUMENTS + 3


def _schema_of_a_problem() -> str:
    """Return the arguments that both operators share, from the table of letters and the fields of `Switches`."""
    tensors = ["Tensor x", "Tensor? h0", "Tensor? dt"]
    tensors += [f"Tensor{'' if LETTERS[name].always_there else '?'} {name}" for name in STEP_LETTERS]
    switches = [f"{kind.__name__} {name}" for name, kind in Switches.__annotations__.items()]
    return ", ".join([*tensors, "float dt_value", *switches])


# The mask comes last and has a default, so that programs which were exported before there was one still load.
_MASK = "Tensor? mask=None"
torch.library.define("lrcnet::scan", f"({_schema_of_a_problem()}, bool keep, {_MASK}) -> (Tensor, Tensor)")
torch.library.define(
    "lrcnet::scan_backward",
    f"(Tensor? grad, {_schema_of_a_problem()}, Tensor states, Tensor saved, bool want_x, bool want_dt, {_MASK}) -> "
    f"({', '.join(['Tensor'] * len(TENSORS))})",
)


def run(problem: Problem, *, gradient: bool, keep: bool) -> tuple[Tensor, Tensor]:
    """Run lrcnet::scan, without torch's dispatcher if no tracer, transform or dispatch mode is active.

    The way through the dispatcher, from Python to C++ and back for the gradient and again for the operator, takes half
    of a tiny layer's time.

    Args:
        gradient: whether a gradient will be taken; then the gates are kept in any case.
        keep: whether to return what the gradient needs: F, U, w of every unfolding.

    Returns:
        The states, laid out as x, and what was kept, see `Problem.saved_shape`; empty if nothing was.
    """
    keep = keep or gradient
    flat, mask = problem.pack(), problem.circuit.mask
    if dispatcher_needed() or not are_ordinary(*flat[:_TENSORS], mask):
        return torch.ops.lrcnet.scan.default(*flat, keep, mask)  # type: ignore[no-any-return]
    return _Scan.apply(*flat, keep, mask) if gradient else _scan(problem, keep)  # type: ignore[no-untyped-call]


def _scan(problem: Problem, keep: bool) -> tuple[Tensor, Tensor]:
    arguments, switches = Arguments(problem), problem.switches
    if problem.dt is None and is_bad_dt(problem.dt_value, switches.check_dt):
        raise ValueError(describe_bad_dt("", problem.dt_value))
    states = problem.x.new_empty(problem.states_shape())
    saved = problem.x.new_empty(problem.saved_shape() if keep else (0,))
    trouble = native.call("scan")(
        arguments.is_double, switches.check_dt, *arguments.model, *arguments.sequence(states, saved)
    )
    if trouble is not None:
        _report(*trouble)
    return states, saved


def _report(kind: str, t: int, sample: int, value: float = 0.0) -> None:
    """Raise for a dt that is NaN or negative, warn of a state that stopped being finite."""
    if kind == "dt":
        raise ValueError(describe_bad_dt(f"[t={t}, sample={sample}]", value))
    warnings.warn(describe_divergence(t, sample), DivergenceWarning, stacklevel=2)


def _scan_backward(
    problem: Problem, grad: Tensor | None, states: Tensor, saved: Tensor, want_x: bool, want_dt: bool
) -> list[Tensor | None]:
    """Return the gradient of each of `TENSORS`, None for those that are absent or not wanted."""
    arguments, gradients = Arguments(problem), _new_gradients(problem, want_x, want_dt)
    for name, kept, shape in (
        ("the kept states", states, problem.states_shape()),
        ("the kept gates", saved, problem.saved_shape()),
        ("the gradient", grad, problem.states_shape()),
    ):
        check_optional(name, kept, shape, problem.x)
    # A hook on saved tensors may return equal numbers with other strides.
    states, saved = resolve(states).contiguous(), resolve(saved).contiguous()
    grad = None if grad is None else resolve(grad)
    x, h0, dt, *letters = gradients
    native.call("scan_backward")(
        arguments.is_double,
        *arguments.model,
        *arguments.sequence(states, saved),
        address(grad),
        *arguments.strides(grad),
        0 if grad is None else grad.stride(2),
        address(x),
        *arguments.strides(x),
        address(h0),
        address(dt),
        *arguments.strides(dt),
        *map(address, letters),
    )
    return gradients


def _new_gradients(problem: Problem, want_x: bool, want_dt: bool) -> list[Tensor | None]:
    """Return room for each gradient, None if it is not wanted; the first state always gets one."""
    x, (_, batch) = problem.x, problem.time_and_batch
    letters = problem.circuit[: len(STEP_LETTERS)]
    return [
        x.new_empty(x.shape) if want_x else None,
        x.new_empty((batch, problem.circuit.units)),
        x.new_empty(x.shape[:2]) if want_dt else None,
        *(None if p is None else torch.empty_like(p, memory_format=torch.contiguous_format) for p in letters),
    ]


def _fill_missing(x: Tensor, gradients: list[Tensor | None]) -> tuple[Tensor, ...]:
    """Return an empty tensor instead of each None: an operator cannot return optional tensors."""
    return tuple(x.new_empty(0) if gradient is None else gradient for gradient in gradients)


def _scan_on_cpu(*flat: Any) -> tuple[Tensor, Tensor]:
    *problem, keep, mask = _with_mask(flat, _SCAN_ARGUMENTS)
    return _scan(Problem.unpack(problem, mask), keep)


def _scan_fake(*flat: Any) -> tuple[Tensor, Tensor]:
    *arguments, keep, mask = _with_mask(flat, _SCAN_ARGUMENTS)
    problem = Problem.unpack(arguments, mask)
    # torch sends a call to the fake if only one of its tensors is on the meta device.
    for name, tensor in (*zip(TENSORS, flat, strict=False), ("mask", mask)):
        if tensor is not None and tensor.device != problem.x.device:
            raise ValueError(describe_mismatch(name, tensor, tuple(tensor.shape), problem.x))
    new_empty = problem.x.new_empty
    return new_empty(problem.states_shape()), new_empty(problem.saved_shape() if keep else (0,))


def _scan_backward_on_cpu(grad: Tensor | None, *flat: Any) -> tuple[Tensor, ...]:
    *arguments, states, saved, want_x, want_dt, mask = _with_mask(flat, _BACKWARD_ARGUMENTS)
    problem = Problem.unpack(arguments, mask)
    return _fill_missing(problem.x, _scan_backward(problem, grad, states, saved, want_x, want_dt))


def _scan_backward_fake(grad: Tensor | None, *flat: Any) -> tuple[Tensor, ...]:
    *arguments, _, _, want_x, want_dt, mask = _with_mask(flat, _BACKWARD_ARGUMENTS)
    problem = Problem.unpack(arguments, mask)
    return _fill_missing(problem.x, _new_gradients(problem, want_x, want_dt))


class _Scan(torch.autograd.Function):
    """The gradient of lrcnet::scan, which is lrcnet::scan_backward."""

    @staticmethod
    def forward(ctx: Any, *flat: Any) -> tuple[Tensor, Tensor]:
        *arguments, keep, mask = flat
        tensors = arguments[:_TENSORS]
        if dispatcher_needed() or not are_ordinary(*tensors, mask):
            with below_autograd():
                states, saved = torch.ops.lrcnet.scan.default(*flat)
        else:
            states, saved = _scan(Problem.unpack(arguments, mask), keep)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors, mask, states, saved)
        ctx.numbers, ctx.kept = tuple(arguments[_TENSORS:]), keep
        return states, saved

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        if not ctx.kept:
            raise RuntimeError(NOT_KEPT)
        *tensors, mask, states, saved = ctx.saved_tensors
        grad, needs = grads[0], ctx.needs_input_grad[:_TENSORS]
        want_x, _, want_dt, *_ = needs
        # If the gradient is differentiated in turn, the operator must be seen, to say that it cannot be.
        visible = torch.is_grad_enabled() or dispatcher_needed() or is_batch_of_gradients(grad)
        gradients: Any
        if visible or not are_ordinary(grad, *tensors, mask):
            operator = torch.ops.lrcnet.scan_backward.default
            gradients = operator(grad, *tensors, *ctx.numbers, states, saved, want_x, want_dt, mask)
        else:
            problem = Problem.unpack((*tensors, *ctx.numbers), mask)
            gradients = _scan_backward(problem, grad, states, saved, want_x, want_dt)
        wanted = [gradient if need else None for gradient, need in zip(gradients, needs, strict=True)]
        return (*wanted, *[None] * (len(ctx.numbers) + 2))


class _ScanBackward(torch.autograd.Function):
    """The missing second derivative: asking for it raises an error that names the alternative."""

    @staticmethod
    def forward(ctx: Any, *flat: Any) -> tuple[Tensor, ...]:
        with below_autograd():
            gradients: tuple[Tensor, ...] = torch.ops.lrcnet.scan_backward.default(*flat)
        return gradients

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> None:
        raise RuntimeError(ONCE)


def _with_mask(flat: tuple[Any, ...], count: int) -> tuple[Any, ...]:
    """Return the arguments of an operator with the mask: torch leaves a last argument out if it has its default."""
    return flat if len(flat) == count else (*flat, None)


def _with_gradient(function: type[torch.autograd.Function], operator: Any, count: int) -> Any:
    """Return the operator's autograd kernel.

    torch.library.register_autograd would do, but it reads the operator's schema on every call, which takes longer than
    a small layer's whole forward pass.
    """

    def call(*arguments: Any) -> Any:
        arguments = _with_mask(arguments, count)
        tracked = torch.is_grad_enabled() and any(isinstance(a, Tensor) and a.requires_grad for a in arguments)
        if tracked:
            return function.apply(*arguments)  # type: ignore[no-untyped-call]
        with below_autograd():
            return operator(*arguments)

    return call


for _name, _function, _on_cpu, _fake, _count in (
    ("scan", _Scan, _scan_on_cpu, _scan_fake, _SCAN_ARGUMENTS),
    ("scan_backward", _ScanBackward, _scan_backward_on_cpu, _scan_backward_fake, _BACKWARD_ARGUMENTS + 1),
):
    torch.library.impl(f"lrcnet::{_name}", "CPU", _on_cpu)
    torch.library.register_fake(f"lrcnet::{_name}", _fake)
    _operator = getattr(torch.ops.lrcnet, _name).default
    torch.library.impl(f"lrcnet::{_name}", "Autograd", _with_gradient(_function, _operator, _count))
