"""What goes into and comes out of the recurrent layer of a model while the model runs as it always does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from lrcnet.layers import RecurrentLayer

Layer = RecurrentLayer | nn.LSTM | nn.GRU


@dataclass
class Call:
    """One call of a recurrent layer, as it was made: tensors in the caller's layout."""

    x: Tensor
    hx: Any
    output: Tensor | None = field(default=None)


def recurrent_layer_of(model: nn.Module) -> Layer:
    """The only recurrent layer of a model, or the model itself if it is one.

    Raises:
        ValueError: if there is none, or more than one.
    """
    found = [module for module in model.modules() if isinstance(module, RecurrentLayer | nn.LSTM | nn.GRU)]
    if len(found) != 1:
        names = ", ".join(type(module).__name__ for module in found) or "none"
        raise ValueError(
            f"the model must have one recurrent layer (a layer of lrcnet, an nn.LSTM or an nn.GRU), but has {names}; "
            "pass the layer and its input"
        )
    return found[0]


@contextmanager
def watched(layer: Layer, change: Callable[[Tensor], Tensor] | None = None) -> Iterator[list[Call]]:
    """Records the calls of a layer in a list; `change`, if given, is applied to its input first."""
    calls: list[Call] = []

    def before(_: nn.Module, given: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, Any]:
        x = given[0] if given else options["input"]
        if isinstance(x, PackedSequence):
            raise ValueError("packed sequences cannot be looked into; pass a padded tensor")
        x = x if change is None else change(x)
        calls.append(Call(x, given[1] if len(given) > 1 else options.get("hx")))
        rest = {name: value for name, value in options.items() if name != "input"}
        return (x, *given[1:]), rest

    def after(_: nn.Module, given: tuple[Any, ...], answer: tuple[Tensor, Any]) -> None:
        calls[-1].output = answer[0]

    handles = [layer.register_forward_pre_hook(before, with_kwargs=True), layer.register_forward_hook(after)]
    try:
        yield calls
    finally:
        for handle in handles:
            handle.remove()


def answer_of(model: nn.Module, x: Tensor, dt: Any = None, hx: Any = None) -> Tensor:
    """The output of a model, or of a layer without its state."""
    given = (x,) if hx is None else (x, hx)
    answer = model(*given) if dt is None else model(*given, dt=dt)
    output: Tensor = answer[0] if isinstance(answer, tuple) else answer
    return output


def only(calls: list[Call]) -> Call:
    """The one call there was.

    Raises:
        ValueError: if there were none, or several.
    """
    if len(calls) != 1:
        raise ValueError(f"the model must run its recurrent layer once over the whole sequence, not {len(calls)} times")
    return calls[0]
