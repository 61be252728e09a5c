"""The fused scan as torch.library operators: schema, implementation by device, fake, autograd.

The operators take a `Problem` as flat arguments, in the order of `TENSORS` and `Switches`; the schemas are made from
these.
"""

from collections.abc import Callable
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lrcnet.circuit import LETTERS, STEP_LETTERS, Switches, describe_mismatch
from lrcnet.kernels.problem import TENSORS, Problem, import_once
from lrcnet.tracing import are_ordinary, below_autograd, dispatcher_needed, is_batch_of_gradients, resolve

ONCE = (
    "the fused kernel is differentiable once, but a second derivative was asked for; use "
    'backend="reference" for this layer'
)
NOT_KEPT = "lrcnet::scan was called with keep=False, so nothing was kept for its gradient; pass keep=True"

IMPLEMENTATIONS = {"cpu": "lrcnet.kernels.native_scan", "cuda": "lrcnet.kernels.triton.launch"}
"""Device type -> the module with its `scan` and `scan_backward`, imported when it is first used."""

_TENSORS = len(TENSORS)
# The tensors, dt_value, the switches, keep and the mask; instead of keep the states, what was saved, and two wishes.
SCAN_ARGUMENTS = _TENSORS + 1 + len(Switches._fields) + 2
_BACKWARD_ARGUMENTS = SCAN_ARGUMENTS + 3


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
    tensors, mask = problem.tensors(), problem.circuit.mask
    if dispatcher_needed() or not are_ordinary(*tensors, mask):
        return torch.ops.lrcnet.scan.default(*tensors, *problem.numbers(), keep, mask)  # type: ignore[no-any-return]
    if not gradient:
        return _scan(problem, keep)
    return _Scan.apply(_Call(problem, problem.numbers(), keep), mask, *tensors)  # type: ignore[no-any-return, no-untyped-call]


def _scan(problem: Problem, keep: bool) -> tuple[Tensor, Tensor]:
    """Run the forward pass by the implementation for the input's device."""
    return _implementation(problem.x).scan(problem, keep)  # type: ignore[no-any-return]


def _scan_backward(
    problem: Problem, grad: Tensor | None, states: Tensor, saved: Tensor, want_x: bool, want_dt: bool
) -> list[Tensor | None]:
    """Return the gradient of each of `TENSORS`, None for those that are absent or not wanted."""
    problem.check_input()
    problem.check_kept(grad, states, saved)
    # A hook on saved tensors may return equal numbers with other strides.
    states, saved = resolve(states).contiguous(), resolve(saved).contiguous()
    grad = None if grad is None else resolve(grad)
    implementation = _implementation(problem.x)
    return implementation.scan_backward(problem, grad, states, saved, want_x, want_dt)  # type: ignore[no-any-return]


def _implementation(x: Tensor) -> ModuleType:
    # Not by the device of a tensor on the CPU: to make that object would be seen in a short sequence.
    return import_once(IMPLEMENTATIONS.get("cpu" if x.is_cpu else x.device.type, IMPLEMENTATIONS["cpu"]))


def _fill_missing(x: Tensor, gradients: list[Tensor | None]) -> tuple[Tensor, ...]:
    """Return an empty tensor instead of each None: an operator cannot return optional tensors."""
    return tuple(x.new_empty(0) if gradient is None else gradient for gradient in gradients)


def _scan_on_device(*flat: Any) -> tuple[Tensor, Tensor]:
    *problem, keep, mask = with_mask(flat, SCAN_ARGUMENTS)
    return _scan(Problem.unpack(problem, mask), keep)


def _scan_fake(*flat: Any) -> tuple[Tensor, Tensor]:
    *arguments, keep, mask = with_mask(flat, SCAN_ARGUMENTS)
    problem = Problem.unpack(arguments, mask)
    # torch sends a call to the fake if only one of its tensors is on the meta device.
    for name, tensor in (*zip(TENSORS, flat, strict=False), ("mask", mask)):
        if tensor is not None and tensor.device != problem.x.device:
            raise ValueError(describe_mismatch(name, tensor, tuple(tensor.shape), problem.x))
    new_empty = problem.x.new_empty
    return new_empty(problem.states_shape()), new_empty(problem.saved_shape() if keep else (0,))


def _scan_backward_on_device(grad: Tensor | None, *flat: Any) -> tuple[Tensor, ...]:
    *arguments, states, saved, want_x, want_dt, mask = with_mask(flat, _BACKWARD_ARGUMENTS)
    problem = Problem.unpack(arguments, mask)
    return _fill_missing(problem.x, _scan_backward(problem, grad, states, saved, want_x, want_dt))


def _scan_backward_fake(grad: Tensor | None, *flat: Any) -> tuple[Tensor, ...]:
    *arguments, _, _, want_x, want_dt, mask = with_mask(flat, _BACKWARD_ARGUMENTS)
    problem = Problem.unpack(arguments, mask)
    return _fill_missing(problem.x, problem.new_gradients(want_x, want_dt))


class _Call(NamedTuple):
    """What a call of `_Scan` takes besides tensors; one argument, because autograd looks at every one of them.

    Attributes:
        problem: the same call as a problem; None if it must go through torch's dispatcher.
    """

    problem: Problem | None
    numbers: tuple[Any, ...]
    keep: bool


class _Scan(torch.autograd.Function):
    """The gradient of lrcnet::scan, which is lrcnet::scan_backward."""

    @staticmethod
    def forward(ctx: Any, call: _Call, mask: Tensor | None, *tensors: Tensor | None) -> tuple[Tensor, Tensor]:
        problem, numbers, keep = call
        if problem is None:
            with below_autograd():
                states, saved = torch.ops.lrcnet.scan.default(*tensors, *numbers, keep, mask)
        else:
            states, saved = _scan(problem, keep)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors, mask, states, saved)
        # Not the problem: autograd must know of every tensor that is kept.
        ctx.numbers, ctx.kept = numbers, keep
        return states, saved

    @classmethod
    def apply_to_flat(cls, *flat: Any) -> tuple[Tensor, Tensor]:
        """Apply to the operator's arguments, below a tracer or a transform."""
        *arguments, keep, mask = flat
        call = _Call(None, tuple(arguments[_TENSORS:]), keep)
        return cls.apply(call, mask, *arguments[:_TENSORS])  # type: ignore[no-any-return, no-untyped-call]

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        if not ctx.kept:
            raise RuntimeError(NOT_KEPT)
        *tensors, mask, states, saved = ctx.saved_tensors
        grad, needs = grads[0], ctx.needs_input_grad[2:]
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
        return (None, None, *[gradient if need else None for gradient, need in zip(gradients, needs, strict=True)])


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


def with_mask(flat: tuple[Any, ...], count: int) -> tuple[Any, ...]:
    """Return the arguments of an operator with the mask: torch leaves a last argument out if it has its default."""
    return flat if len(flat) == count else (*flat, None)


def _with_gradient(apply: Callable[..., Any], operator: Any, count: int) -> Any:
    """Return the operator's autograd kernel.

    torch.library.register_autograd would do, but it reads the operator's schema on every call, which takes longer than
    a small layer's whole forward pass.
    """

    def call(*arguments: Any) -> Any:
        arguments = with_mask(arguments, count)
        tracked = torch.is_grad_enabled() and any(isinstance(a, Tensor) and a.requires_grad for a in arguments)
        if tracked:
            return apply(*arguments)
        with below_autograd():
            return operator(*arguments)

    return call


for _name, _apply, _on_device, _fake, _count in (
    ("scan", _Scan.apply_to_flat, _scan_on_device, _scan_fake, SCAN_ARGUMENTS),
    ("scan_backward", _ScanBackward.apply, _scan_backward_on_device, _scan_backward_fake, _BACKWARD_ARGUMENTS + 1),
):
    # ROCm's tensors have the key CUDA too.
    for _key in ("CPU", "CUDA"):
        torch.library.impl(f"lrcnet::{_name}", _key, _on_device)
    torch.library.register_fake(f"lrcnet::{_name}", _fake)
    _operator = getattr(torch.ops.lrcnet, _name).default
    torch.library.impl(f"lrcnet::{_name}", "Autograd", _with_gradient(_apply, _operator, _count))
