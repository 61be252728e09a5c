"""The only file that uses torch's private functions: they tell whether a tracer, a transform or a mode is active.

Every use of a name that torch does not document stands here, with a test in tests/test_tracing.py, so that a change in
a new version of torch is noticed and fixed in one place.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

_ORDINARY = frozenset({Tensor, nn.Parameter, type(None)})
# Looked up once: these are asked at every step of a stream.
compiling = torch.compiler.is_compiling
# torch 2.6 does not tell torch.export from torch.compile; there, a loop of unknown length is not exported.
_exporting: Callable[[], bool] = getattr(torch.compiler, "is_exporting", lambda: False)
_forward_ad = torch.autograd.forward_ad
_innermost_transform = torch._C._functorch.peek_interpreter_stack
_jit_state = torch._C._get_tracing_state
_count_dispatch_modes = torch._C._len_torch_dispatch_stack
# Whether autocast is enabled for any type of device; torch.is_autocast_enabled, which asks for one, takes longer.
autocast_active: Callable[[], bool] = getattr(
    torch._C, "_is_any_autocast_enabled", lambda: torch.is_autocast_enabled("cpu")
)


class Unscriptable:
    """A module that torch.jit.script cannot compile, and says so in a sentence instead of a compiler's trace."""

    def __prepare_scriptable__(self) -> Any:
        """Raise; torch.jit.script calls this on every module of a model before it compiles."""
        raise NotImplementedError(
            f"torch.jit.script cannot compile {type(self).__name__}, whose step is chosen at run time; use "
            "torch.compile or torch.export instead, which torch recommends in its place"
        )


def is_unknown(size: int) -> bool:
    """Return whether torch.export traces with a size of an axis that it does not know."""
    return not isinstance(size, int) and _exporting()


def scan_operator(
    step: Callable[..., Tensor], h: Tensor, sequences: Sequence[Tensor], constants: Sequence[Tensor]
) -> Tensor:
    """Run h <- step(h, *elements, *constants) along the first axis of some sequences; return all h (T, ...).

    This is torch's higher-order operator: a tracer sees one node with the step as its body, whatever T is.
    """

    def body(h: Tensor, *others: Tensor) -> tuple[Tensor, Tensor]:
        new = step(h, *others)
        # The body of the operator must not return the same tensor twice.
        return new, new.clone()

    _, states = torch.ops.higher_order.scan(body, [h], list(sequences), additional_inputs=tuple(constants))
    return states  # type: ignore[no-any-return]


def register_decomposition(operator: Any, function: Callable[..., Any]) -> None:
    """Tell exporters how to express an operator by others; torch.onnx.export looks here, torch.export does not.

    Fake tensors would take the decomposition too, to find out shapes, unless the operator is listed as one that has a
    function for that; its own one (torch.library.register_fake) then serves.
    """
    torch._decomp.register_decomposition([operator])(function)
    torch._decomp.meta_table[operator] = function


def transform_active() -> bool:
    """Return whether a torch.func transform (grad, vmap, jacrev ...) is running."""
    return _innermost_transform() is not None


def forward_mode_active() -> bool:
    """Return whether a forward-mode derivative (torch.autograd.forward_ad) is being taken."""
    return _forward_ad._current_level >= 0


def jit_tracing() -> bool:
    """Return whether torch.jit.trace, or an exporter built on it, is recording."""
    return _jit_state() is not None


def dispatch_mode_active() -> bool:
    """Return whether a TorchDispatchMode sees every operator that runs."""
    return _count_dispatch_modes() > 0


def is_batch_of_gradients(gradient: Tensor | None) -> bool:
    """Return whether a gradient stands for several at once, as in torch.autograd.grad(is_grads_batched=True)."""
    return gradient is not None and bool(torch._C._functorch.is_legacy_batchedtensor(gradient))


def below_autograd() -> Any:
    """Return a context in which operators skip their autograd kernels: the caller provides the gradient itself."""
    return torch._C._AutoDispatchBelowAutograd()


def dispatcher_needed() -> bool:
    """Return whether an operator has to go through torch's dispatcher because a tracer, transform or mode is active."""
    return compiling() or jit_tracing() or dispatch_mode_active() or transform_active()


def are_ordinary(*tensors: Tensor | None) -> bool:
    """Return whether all are plain tensors or parameters (or None), not subclasses with a behaviour of their own."""
    return _ORDINARY.issuperset(map(type, tensors))


def resolve(tensor: Tensor) -> Tensor:
    """Return a tensor whose memory holds its numbers, without a pending negation and not merely known to be zero.

    torch negates lazily (the imaginary part of a conjugate) and keeps gradients of zero without memory. Its own
    operators never see either, but they do not stop anyone who reads the memory.
    """
    if tensor.is_neg():
        return tensor.resolve_neg()
    return tensor.clone() if tensor._is_zerotensor() else tensor


def is_freed(tensor: Tensor) -> bool:
    """Return whether the storage of a tensor on the CPU was freed; zeros that torch has not written do not count."""
    if not tensor.is_cpu or tensor.layout is not torch.strided or compiling() or transform_active():
        return False
    if not are_ordinary(tensor) or tensor.untyped_storage().nbytes():
        return False
    return tensor.numel() > 0 and not tensor._is_zerotensor()


def values_are_readable(*tensors: Tensor) -> bool:
    """Return whether Python may look at numbers now: not while torch.compile, torch.export or torch.func trace."""
    if compiling() or transform_active():
        return False
    return not any(tensor.is_meta for tensor in tensors)
