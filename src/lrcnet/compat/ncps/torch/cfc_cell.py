"""ncps' CfCCell and WiredCfCCell: their parameters and signatures on this library's CfC.

Axes: T time, B batch, m units, n inputs.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lrcnet.cells import cfc_sequence
from lrcnet.cells.cfc_equation import ACTIVATIONS, MODES, Form, Weights, next_state
from lrcnet.cells.gated_sequence import serves
from lrcnet.compat.ncps.torch.wiring_sizes import WiringSizes
from lrcnet.errors import one_of
from lrcnet.wirings import Wiring


class CfCCell(nn.Module):
    """A CfC cell with ncps' arguments: `forward(input, hx, ts) -> (output, state)`, both the new state.

    Args:
        input_size: number of inputs n.
        hidden_size: number of units m.
        mode: "default", "pure" or "no_gate".
        backbone_activation: "lecun_tanh", "tanh", "relu", "silu" or "gelu".
        backbone_units, backbone_layers: size of the backbone.
        backbone_dropout: share of the units dropped after each backbone layer in training.
        sparsity_mask: (n + m, m), 0 where the candidates do not see an input or a state.
    """

    sparsity_mask: nn.Parameter | None

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        mode: str = "default",
        backbone_activation: str = "lecun_tanh",
        backbone_units: int = 128,
        backbone_layers: int = 1,
        backbone_dropout: float = 0.0,
        sparsity_mask: Any = None,
    ) -> None:
        super().__init__()
        self.input_size, self.hidden_size = input_size, hidden_size
        self.mode = one_of("mode", mode, MODES)
        self.backbone_activation = one_of("backbone_activation", backbone_activation, ACTIVATIONS)
        self.backbone_layers, self.backbone_dropout = backbone_layers, backbone_dropout
        mask = None if sparsity_mask is None else torch.as_tensor(np.abs(sparsity_mask).T, dtype=torch.float32)
        self.register_parameter("sparsity_mask", None if mask is None else nn.Parameter(mask, requires_grad=False))
        self.backbone: nn.ModuleList | None = None
        features = input_size + hidden_size
        if backbone_layers:
            widths = [features, *[backbone_units] * backbone_layers]
            # Places between the layers belong to activations and dropout in ncps, which have no parameters.
            places = _places_of_layers(backbone_layers, backbone_dropout > 0)
            self.backbone = nn.ModuleList(nn.Identity() for _ in range(places[-1] + 1))
            for place, before, after in zip(places, widths[:-1], widths[1:], strict=True):
                self.backbone[place] = nn.Linear(before, after)
            features = backbone_units
        self.ff1 = nn.Linear(features, hidden_size)
        if mode == "pure":
            self.w_tau = nn.Parameter(torch.zeros(1, hidden_size))
            self.A = nn.Parameter(torch.ones(1, hidden_size))
        else:
            self.ff2 = nn.Linear(features, hidden_size)
            self.time_a = nn.Linear(features, hidden_size)
            self.time_b = nn.Linear(features, hidden_size)
        self.init_weights()

    def init_weights(self) -> None:
        """Draw Glorot weights, as ncps does."""
        for parameter in self.parameters():
            if parameter.dim() == 2 and parameter.requires_grad:
                nn.init.xavier_uniform_(parameter)

    def weights(self) -> Weights:
        """Return the values that the equation of a CfC computes with."""
        heads = self._join_heads()
        layers = [(layer.weight, layer.bias) for layer in self.backbone or () if isinstance(layer, nn.Linear)]
        (weight, bias), *deeper = [*layers, heads]
        n = self.input_size
        pure = self.mode == "pure"
        return Weights(
            (weight[:, :n], weight[:, n:], bias),
            tuple(deeper),
            self.w_tau[0].abs() if pure else None,
            self.A[0] if pure else None,
        )

    def _join_heads(self) -> tuple[Tensor, Tensor]:
        mask = self.sparsity_mask
        masked = [self.ff1] if self.mode == "pure" else [self.ff1, self.ff2]
        free = [] if self.mode == "pure" else [self.time_b, self.time_a]
        rows = [head.weight if mask is None else head.weight * mask for head in masked]
        return torch.cat([*rows, *(head.weight for head in free)]), torch.cat([head.bias for head in [*masked, *free]])

    def form(self) -> Form:
        """Return the choices of the equation."""
        dropout = self.backbone_dropout if self.training else 0.0
        return Form(self.mode, ACTIVATIONS[self.backbone_activation], dropout)

    def forward(self, input: Tensor, hx: Tensor, ts: float | Tensor) -> tuple[Tensor, Tensor]:
        """Advance states (B, m) by inputs (B, n) after a time, a number or one per sample."""
        state = self.advance(self.weights(), input, hx, ts)
        return state, state

    def advance(self, weights: Weights, x: Tensor, h: Tensor, dt: float | Tensor) -> Tensor:
        """Return the state (B, m) after h, given the cell's weights."""
        gaps = dt.reshape(-1, 1) if isinstance(dt, Tensor) else dt
        return next_state(self.form(), weights, nn.functional.linear(x, weights.first[0], weights.first[2]), h, gaps)

    def scan(self, x: Tensor, h: Tensor, dt: float | Tensor) -> Tensor:
        """Return all states (T, B, m) of a sequence x (T, B, n) from h (B, m); dt is a number or (T, B)."""
        weights, form = self.weights(), self.form()
        if len(x) and not form.dropout and serves(x, h, dt if isinstance(dt, Tensor) else None, *self.parameters()):
            return cfc_sequence.scan(form, x, h, dt, weights)
        states = []
        for t, reading in enumerate(x.unbind()):
            h = self.advance(weights, reading, h, dt[t] if isinstance(dt, Tensor) else dt)
            states.append(h)
        return torch.stack(states)


class WiredCfCCell(WiringSizes, nn.Module):
    """A CfC cell for each layer of a wiring: `forward(input, hx, timespans) -> (motor neurons, state)`.

    Args:
        input_size: number of inputs n; None if the wiring is built.
        wiring: a wiring of `lrcnet.wirings`; the cell builds it for its inputs, as ncps does.
        mode: "default", "pure" or "no_gate".
    """

    def __init__(self, input_size: int | None, wiring: Wiring, mode: str = "default") -> None:
        super().__init__()
        if input_size is not None:
            wiring.build(input_size)
        if wiring.input_dim is None or wiring.sensory_adjacency_matrix is None:
            raise ValueError(
                "the wiring must be built for a number of inputs, but is not; pass input_size or call wiring.build()"
            )
        self._wiring = wiring
        self.mode = mode
        size, sources = wiring.input_dim, wiring.sensory_adjacency_matrix
        for number in range(wiring.num_layers):
            neurons = wiring.get_neurons_of_layer(number)
            own = np.ones((len(neurons), len(neurons)))
            mask = np.concatenate([sources[:, neurons], own])
            cell = CfCCell(size, len(neurons), mode, backbone_units=0, backbone_layers=0, sparsity_mask=mask)
            self.register_module(f"layer_{number}", cell)
            size, sources = len(neurons), wiring.adjacency_matrix[neurons]

    @property
    def layer_sizes(self) -> list[int]:
        """The number of units of each layer."""
        return [len(self._wiring.get_neurons_of_layer(layer)) for layer in range(self._wiring.num_layers)]

    @property
    def num_layers(self) -> int:
        """The number of layers."""
        return self._wiring.num_layers

    def layers(self) -> Sequence[CfCCell]:
        """Return the cells from the first layer to the motor neurons."""
        return [cell for cell in self.children() if isinstance(cell, CfCCell)]

    def forward(self, input: Tensor, hx: Tensor, timespans: float | Tensor) -> tuple[Tensor, Tensor]:
        """Advance states (B, m) by inputs (B, n) after a time, a number or one per sample."""
        states, x = [], input
        for cell, h in zip(self.layers(), torch.split(hx, self.layer_sizes, -1), strict=True):
            x, _ = cell(x, h, timespans)
            states.append(x)
        return x, torch.cat(states, -1)

    def scan(self, x: Tensor, h: Tensor, dt: float | Tensor) -> Tensor:
        """Return all states (T, B, m), layer after layer, of a sequence x (T, B, n) from h (B, m)."""
        states = []
        for cell, start in zip(self.layers(), torch.split(h, self.layer_sizes, -1), strict=True):
            x = cell.scan(x, start, dt)
            states.append(x)
        return torch.cat(states, -1)


def _places_of_layers(count: int, dropout: bool) -> list[int]:
    """Return the places of linear layers in ncps' backbone: activations follow them, and dropout all but the first."""
    places = [0]
    for layer in range(1, count):
        places.append(places[-1] + (2 if layer == 1 or not dropout else 3))
    return places
