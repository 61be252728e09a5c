"""Networks for sequences of unequal lengths, beyond the paper: equal numbers of parameters, and the uses of a gap.

Liquid layers start from the library's default values here, not from the paper's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from lrcnet.cfc_layers import CfC
from lrcnet.diagonal import DiagonalLRC
from lrcnet.errors import one_of, positive_size
from lrcnet.lrc_ssm import LrcSSMLayer
from lrcnet.models import dense
from lrcnet_paper.models.gru_d import GRUD
from lrcnet_paper.models.recurrent import RECURRENT, parse_solver

if TYPE_CHECKING:
    from lrcnet_paper.models.builders import TaskShape

GAPS = ("step", "feature", "both", "none")
"""How a network knows the gaps: as the step of its equation, as one more input, as both, or not at all (every step is
1)."""
MOST_UNITS = 1024


@dataclass(frozen=True)
class PaddedModel:
    """The layer of a model name.

    Attributes:
        layer: class of the layer.
        gaps: its own use of gaps, one of `GAPS`; see `choose_gaps` for GRU-D.
        solver: solver and unfoldings; "" if it has none.
        options: further arguments of the layer.
        pooling: whether the label is read from the last output or from the mean of all outputs.
    """

    layer: Callable[..., nn.Module]
    gaps: str
    solver: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    pooling: str = "last"


def _from_paper(name: str, gaps: str, solver: str = "") -> PaddedModel:
    entry = RECURRENT[name]
    return PaddedModel(entry.layer, gaps, solver or entry.solver, entry.options)


PADDED: Mapping[str, PaddedModel] = MappingProxyType(
    {
        # docs/time.md: LRCU takes gaps best as a feature, LRC as the step of its exponential solver.
        "lrcu-s": _from_paper("lrcu-s", "feature"),
        "lrcu-a": _from_paper("lrcu-a", "feature"),
        "lrc-s": _from_paper("lrc-s", "step", "exponential-1"),
        "diagonal-lrc": PaddedModel(DiagonalLRC, "step", "exponential-1", {"num_layers": 2}),
        "lrc-ssm": PaddedModel(LrcSSMLayer, "step", "exponential-1", {"blocks": 2}, pooling="mean"),
        "ltc": _from_paper("ltc", "step"),
        "cfc": PaddedModel(CfC, "step"),
        "torch-gru": _from_paper("torch-gru", "feature"),
        "gru": _from_paper("gru", "feature"),
        "lstm": _from_paper("lstm", "feature"),
        "gru-d": PaddedModel(GRUD, "step"),
        "gru-ode": _from_paper("gru-ode", "step", "exponential-1"),
    }
)
"""Every model name that serves sequences of unequal lengths."""
_GATED = ("torch-gru", "gru", "lstm")


class PaddedClassifier(nn.Module):
    """A recurrent layer and a linear read-out of its last output, or of the mean of its outputs.

    Gaps are divided by a typical one, the median of the first training batch, whatever the layer; a first gap of 0
    counts as one such unit. The median is a buffer, part of the state dict.

    Args:
        layer: called as layer(x) or layer(x, dt=dt) -> (output, state), batch first.
        outputs: number of logits.
        pooling: "last" or "mean".
        knows_gaps: whether the layer is given the gaps.
    """

    time_unit: Tensor

    def __init__(self, layer: nn.Module, outputs: int, *, pooling: str, knows_gaps: bool) -> None:
        super().__init__()
        self.layer = layer
        self.head = dense(layer.hidden_size, outputs)  # type: ignore[arg-type]
        self.pooling = one_of("pooling", pooling, ("last", "mean"))
        self.knows_gaps = knows_gaps
        self.register_buffer("time_unit", torch.tensor(0.0))

    def forward(self, x: Tensor, dt: Tensor | None = None) -> Tensor:
        """Return logits (B, outputs).

        Args:
            x: (B, T, n + 1); the last channel is 1 at readings and 0 at the padding after them.
            dt: the time of each reading, (B, T), or None.
        """
        readings, valid = x[..., :-1], x[..., -1:]
        if dt is None or not self.knows_gaps:
            output, _ = self.layer(readings)
        else:
            output, _ = self.layer(readings, dt=self._in_units(dt))
        if self.pooling == "mean":
            features = (valid * output).sum(1) / valid.sum(1)
        else:
            last = valid.sum(1, dtype=torch.long) - 1
            features = output.gather(1, last.unsqueeze(-1).expand(-1, -1, output.shape[-1])).squeeze(1)
        logits: Tensor = self.head(features)
        return logits

    @torch.no_grad()
    def _in_units(self, dt: Tensor) -> Tensor:
        if self.training and not self.time_unit:
            gaps = dt[dt > 0]
            self.time_unit.copy_(gaps.median() if len(gaps) else torch.ones(()))
        size = dt / self.time_unit if self.time_unit else dt.clone()
        size[:, 0] = torch.where(size[:, 0] > 0, size[:, 0], torch.ones_like(size[:, 0]))
        return size


def build_padded(
    model: str,
    task: TaskShape,
    *,
    solver: str = "",
    units: int | None = None,
    parameters: int | None = None,
    gaps: str = "",
    **options: Any,
) -> PaddedClassifier:
    """Build the network of a model name for sequences of unequal lengths.

    Args:
        model: a key of `PADDED`.
        task: a task, or any object with the properties of `TaskShape`.
        solver: solver and unfoldings, such as "hybrid-6"; "" for the model's own.
        units: number of hidden units.
        parameters: number of parameters to come near to, in place of `units`; 20,000 if neither is given.
        gaps: one of `GAPS`; "" for the model's own.
        options: further arguments of the layer.

    Raises:
        ValueError: for an unknown model or use of gaps, a solver for a model that has none, or both units and
            parameters.
    """
    entry = PADDED[one_of(f"model of a {task.kind} task", model, PADDED)]
    if units is not None and parameters is not None:
        raise ValueError(f"give units or parameters, but both were given: {units} and {parameters}; leave one out")
    if solver and not entry.solver:
        raise ValueError(f"{model} solves no ODE, so it takes no solver, but {solver!r} was given; leave it out")
    use = choose_gaps(model, task, gaps)

    def build(width: int) -> PaddedClassifier:
        layer = _build_layer(model, task, width, solver or entry.solver, use, options)
        return PaddedClassifier(layer, task.output_size, pooling=entry.pooling, knows_gaps=use != "none")

    return build(units or _matching_width(build, 20_000 if parameters is None else parameters))


def choose_gaps(model: str, task: TaskShape, gaps: str = "") -> str:
    """Return how a network knows the gaps of a task, one of `GAPS`; "none" where time is regular.

    GRU-D takes them as its step, in the time since each masked variable was measured. Where no variable is masked, as
    in a stream of events, it takes them as an input too: a step alone cannot show it the first one.

    Args:
        model: a key of `PADDED`.
        task: a task, or any object with the properties of `TaskShape`.
        gaps: one of `GAPS`; "" for the model's own.

    Raises:
        ValueError: for an unknown use of gaps, or one that the model does not have.
    """
    own = "both" if model == "gru-d" and not task.masked else PADDED[model].gaps
    use = one_of("gaps", gaps or own, GAPS) if task.irregular else "none"
    if model in _GATED and use in ("step", "both"):
        raise ValueError(f"{model} takes no step of time, but gaps={use!r} was given; use 'feature' or 'none'")
    if model in ("gru-d", "lrc-ssm") and use == "feature":
        raise ValueError(f"{model} takes gaps as its step, but gaps='feature' was given; use 'step' or 'none'")
    if model != "gru-d" and use == "both":
        raise ValueError(f"only gru-d takes gaps as both, but gaps='both' was given to {model}; use one of the others")
    return use


def _build_layer(
    model: str, task: TaskShape, width: int, solver: str, use: str, options: Mapping[str, Any]
) -> nn.Module:
    entry = PADDED[model]
    arguments: dict[str, Any] = {**entry.options, **options}
    if solver:
        arguments["solver"], arguments["unfolds"] = parse_solver(solver)
    if model == "gru-d":
        return entry.layer(task.input_size, width, masked=task.masked, time_feature=use == "both", **arguments)
    if model == "cfc":
        # Its backbone is as wide as its state, so that a small network is not all backbone.
        arguments.setdefault("backbone_units", width)
    if model == "lrc-ssm":
        arguments.setdefault("states", max(1, width // 4))
        return entry.layer(task.input_size, width, time_warnings=False, **arguments)
    if model not in _GATED:
        # Gaps have long tails, and a first gap of 0 is filled by the network.
        arguments["time_warnings"] = False
    return entry.layer(task.input_size, width, batch_first=True, time_feature=use == "feature", **arguments)


def _matching_width(build: Callable[[int], nn.Module], parameters: int) -> int:
    """Return the number of units whose network comes nearest to a number of parameters."""
    positive_size("parameters", parameters)

    def count(width: int) -> int:
        return sum(parameter.numel() for parameter in build(width).parameters() if parameter.requires_grad)

    # The networks that are only counted must not change the initial values of the one that is used.
    with torch.random.fork_rng(devices=[]):
        low, high = 1, 2
        while high < MOST_UNITS and count(high) < parameters:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if count(middle) < parameters else (low, middle)
        return min((low, high), key=lambda width: abs(count(width) - parameters))
