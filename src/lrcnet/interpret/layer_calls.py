"""The one recurrent layer of a model, and a record of its inputs and outputs while the model runs as usual."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import get_ident
from typing import Any

from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from lrcnet.layers import RecurrentLayer

Layer = RecurrentLayer | nn.LSTM | nn.GRU


@dataclass
class LayerCall:
    """The arguments and the output of one call of a recurrent layer; tensors in the caller's layout."""

    x: Tensor
    hx: Any
    dt: Any = None
    output: Tensor | None = field(default=None)


def find_recurrent_layer(model: nn.Module) -> Layer:
    """Return the only recurrent layer of a model, or the model itself if it is one.

    Raises:
        ValueError: if there is none, or more than one.
    """
    layers = [module for module in model.modules() if isinstance(module, RecurrentLayer | nn.LSTM | nn.GRU)]
    if len(layers) != 1:
        names = ", ".join(type(layer).__name__ for layer in layers) or "none"
        raise ValueError(
            f"the model must have one recurrent layer (a layer of lrcnet, an nn.LSTM or an nn.GRU), but has {names}; "
            "pass the layer and its input"
        )
    return layers[0]


@contextmanager
def record_calls(layer: Layer, change: Callable[[Tensor], Tensor] | None = None) -> Iterator[list[LayerCall]]:
    """Record the calls of a layer by this thread; `change`, if given, is applied to its input first."""
    calls: list[LayerCall] = []
    me = get_ident()

    def before(_: nn.Module, given: tuple[Any, ...], options: dict[str, Any]) -> tuple[Any, Any] | None:
        if get_ident() != me:
            return None
        x = given[0] if given else options["input"]
        if isinstance(x, PackedSequence):
            raise ValueError("packed sequences cannot be looked into; pass a padded tensor")
        x = x if change is None else change(x)
        calls.append(LayerCall(x, given[1] if len(given) > 1 else options.get("hx"), options.get("dt")))
        rest = {name: value for name, value in options.items() if name != "input"}
        return (x, *given[1:]), rest

    def after(_: nn.Module, given: tuple[Any, ...], answer: tuple[Tensor, Any]) -> None:
        if get_ident() == me:
            calls[-1].output = answer[0]

    handles = [layer.register_forward_pre_hook(before, with_kwargs=True), layer.register_forward_hook(after)]
    try:
        yield calls
    finally:
        for handle in handles:
            handle.remove()


def compute_output(model: nn.Module, x: Tensor, dt: Any = None, hx: Any = None) -> Tensor:
    """Run a model or a layer and return its output without the state."""
    given = (x,) if hx is None else (x, hx)
    answer = model(*given) if dt is None else model(*given, dt=dt)
    output: Tensor = answer[0] if isinstance(answer, tuple) else answer
    return output


def only_call(calls: list[LayerCall]) -> LayerCall:
    """Return the one recorded call.

    Raises:
        ValueError: if there were none, or several.
    """
    if len(calls) != 1:
        raise ValueError(f"the model must run its recurrent layer once over the whole sequence, not {len(calls)} times")
    return calls[0]
