"""The closed-form continuous-time cell, CfC: the parameters behind the equation of `cfc_equation`."""

import math
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from lrcnet.cells import cfc_sequence
from lrcnet.cells.base import NEGATIVE_DT, Cell, GatesByName, states_before
from lrcnet.cells.cfc_equation import (
    ACTIVATIONS,
    GATED_HEADS,
    MODES,
    Form,
    Weights,
    heads,
    next_state,
    time_gate,
)
from lrcnet.cells.checks import read_number
from lrcnet.cells.gated_sequence import serves
from lrcnet.errors import one_of, positive_size
from lrcnet.value_checks import warn_if_diverged


class CfCCell(Cell):
    """Closed-form continuous-time unit: a network whose output depends on the elapsed time in closed form.

    A backbone sees the input and the state, and linear heads on it give two candidates and a gate of time; see
    `lrcnet.cells.cfc_equation`. There is no solver, and a step of dt = 0 changes the state too.

    Args:
        input_size: n, may be 0.
        hidden_size: m.
        bias: whether the backbone and the heads have biases.
        mode: "default", "no_gate" (the candidates are added instead of mixed) or "pure" (one head, and an exponential
            decay in place of the gate).
        backbone_units: width of each backbone layer.
        backbone_layers: number of backbone layers; with 0 the heads see the input and the state themselves.
        backbone_dropout: share of the units dropped after each backbone layer in training; the plain loop runs then.
        activation: activation of the backbone: "lecun_tanh", "tanh", "relu", "silu" or "gelu".
        negative_dt: "error", "clamp" to 0, or "allow".

    >>> cell = lrcnet.CfCCell(3, 5, mode="no_gate")
    >>> h = cell(torch.randn(2, 3), dt=torch.tensor([0.5, 1.5]))
    """

    input_mask: Tensor | None
    w_tau: nn.Parameter | None
    asymptote: nn.Parameter | None

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        mode: str = "default",
        backbone_units: int = 128,
        backbone_layers: int = 1,
        backbone_dropout: float = 0.0,
        activation: str = "lecun_tanh",
        negative_dt: str = "error",
    ) -> None:
        super().__init__()
        self.input_size = positive_size("input_size", input_size, least=0)
        self.hidden_size = positive_size("hidden_size", hidden_size)
        self.mode = one_of("mode", mode, MODES)
        self.backbone_layers = positive_size("backbone_layers", backbone_layers, least=0)
        self.backbone_units = positive_size("backbone_units", backbone_units, least=1 if backbone_layers else 0)
        self.backbone_dropout = _check_dropout(backbone_dropout)
        self.activation = one_of("activation", activation, ACTIVATIONS)
        self.negative_dt = one_of("negative_dt", negative_dt, NEGATIVE_DT)
        rows = hidden_size * (1 if mode == "pure" else GATED_HEADS)
        widths = [*[backbone_units] * backbone_layers, rows]
        self.weight_ih = nn.Parameter(torch.empty(widths[0], input_size, device=device, dtype=dtype))
        self.weight_hh = nn.Parameter(torch.empty(widths[0], hidden_size, device=device, dtype=dtype))
        self.bias = nn.Parameter(torch.empty(widths[0], device=device, dtype=dtype)) if bias else None
        # The last one gives the heads; without a backbone there is none.
        self.deeper = nn.ModuleList(nn.Linear(before, after, bias, device, dtype) for before, after in pairwise(widths))
        for name in ("w_tau", "asymptote"):
            value = nn.Parameter(torch.empty(hidden_size, device=device, dtype=dtype)) if mode == "pure" else None
            self.register_parameter(name, value)
        self.register_buffer("input_mask", None)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw Glorot weights, each head on its own, and zero biases; w_tau and A of "pure" as a row of weights."""
        m, inner = self.hidden_size, self.backbone_units
        sources = [self.input_size + m, *[inner] * self.backbone_layers]
        targets = [*[inner] * self.backbone_layers, m]
        layers: list[Any] = [((self.weight_ih, self.weight_hh), self.bias)]
        layers += [((layer.weight,), layer.bias) for layer in self.deeper]
        for source, target, (weights, bias) in zip(sources, targets, layers, strict=True):
            for weight in weights:
                _draw_glorot(weight, source + target)
            if bias is not None:
                nn.init.zeros_(bias)
        for row in (self.w_tau, self.asymptote):
            if row is not None:
                _draw_glorot(row, 1 + m)

    def mask_inputs(self, mask: Tensor) -> None:
        """Cut off the inputs from the rows of `weight_ih` where a mask of its shape is 0; needs backbone_layers=0."""
        self.input_mask = mask.to(self.weight_ih)

    def values(self) -> Weights:
        weight_ih = self.weight_ih if self.input_mask is None else self.weight_ih * self.input_mask
        deeper = tuple((layer.weight, layer.bias) for layer in self.deeper)
        leak = None if self.w_tau is None else self.w_tau.abs()
        return Weights((weight_ih, self.weight_hh, self.bias), deeper, leak, self.asymptote)  # type: ignore[arg-type]

    def form(self) -> Form:
        """Return the choices of the equation, with the dropout that applies now."""
        return Form(self.mode, ACTIVATIONS[self.activation], self.backbone_dropout if self.training else 0.0)

    def input_terms(self, values: Weights, x: Tensor) -> Tensor:
        weight_ih, _, bias = values.first
        return nn.functional.linear(x, weight_ih, bias)

    def advance(self, values: Weights, terms: Tensor, h: Tensor, dt: float | Tensor) -> Tensor:
        return next_state(self.form(), values, terms, h, dt)

    def _scan(self, x: Tensor, h: Tensor, dt: float | Tensor, batch_major: bool) -> Tensor:
        values, form = self.values(), self.form()
        if (
            not x.shape[0]
            or form.dropout
            or not serves(x, h, dt if isinstance(dt, Tensor) else None, *self.parameters())
        ):
            return super()._scan(x, h, dt, batch_major)
        states = cfc_sequence.scan(form, x, h, dt, values, batch_major=batch_major)
        warn_if_diverged(x, h, dt, states)
        return states

    def _scan_with_gates(
        self, x: Tensor, h: Tensor, dt: float | Tensor, batch_major: bool
    ) -> tuple[Tensor, GatesByName]:
        states = self._scan(x, h, dt, batch_major)
        with torch.no_grad():
            return states, self._gates_over_time(x, states_before(h, states), dt)

    def _gates_over_time(self, x: Tensor, before: Tensor, dt: float | Tensor) -> GatesByName:
        """Return the gates of every step; unlike those of other cells they depend on dt."""
        values, m = self.values(), self.hidden_size
        form = self.form()._replace(dropout=0.0)
        z = heads(form, values, self.input_terms(values, x).flatten(0, 1), before.flatten(0, 1))
        z = z.view(*x.shape[:2], z.shape[-1])
        if self.mode == "pure":
            assert values.leak is not None
            return {"head": z, "time_constant": 1 / (values.leak + z.abs())}
        gate = time_gate(z, dt.unsqueeze(-1) if isinstance(dt, Tensor) else dt, m)
        start, end = torch.tanh(z[..., : 2 * m]).chunk(2, -1)
        # The time in which the argument of the gate changes by 1.
        return {"update": gate, "start": start, "end": end, "time_constant": 1 / z[..., 3 * m :].abs()}

    def extra_repr(self) -> str:
        parts = f"{self.input_size}, {self.hidden_size}, mode={self.mode!r}, backbone_layers={self.backbone_layers}"
        if not self.backbone_layers:
            return parts
        return f"{parts}, backbone_units={self.backbone_units}, activation={self.activation!r}"


def _draw_glorot(weight: Tensor, fans: int) -> None:
    """Fill a weight with Glorot's uniform values for a given sum of fan-in and fan-out."""
    bound = math.sqrt(6 / fans)
    nn.init.uniform_(weight, -bound, bound)


def _check_dropout(given: float) -> float:
    share = read_number(given)
    if share is None or not 0 <= share < 1:
        raise ValueError(f"backbone_dropout must be at least 0 and below 1, but is {given!r}; pass the share to drop")
    return share
