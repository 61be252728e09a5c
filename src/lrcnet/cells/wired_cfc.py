"""CfC cells along the layers of a wiring: one CfC without backbone per layer, each driven by the layer before.

Within a step the layers run one after the other, so over a sequence they are a stack of CfC layers. The state has the
units of the first layer first and the motor neurons last.

Axes: T time, B batch, n inputs, m units of all layers together.
"""

from typing import Any

import torch
from torch import Tensor, nn

from lrcnet.cells.base import NEGATIVE_DT, Cell, GatesByName
from lrcnet.cells.cfc import CfCCell
from lrcnet.cells.cfc_equation import GATED_HEADS, MODES, Weights
from lrcnet.errors import check_flag, one_of, positive_size
from lrcnet.masks import count_units
from lrcnet.wirings import Wiring


class WiredCfCCell(Cell):
    """A CfC cell for each layer of a wiring, with the synapses between layers that the wiring has.

    Synapses within a layer are not looked at: each unit sees all states of its own layer.

    Args:
        input_size: n.
        hidden_size: m; the units of the wiring if None.
        bias: whether the heads have biases.
        wiring: the layers and the synapses between them; the cell works on a copy that is built for its inputs.
        mode: as of `CfCCell`.
        dense_gates: whether the gate of time sees all units of the layer before, as in ncps, instead of those that the
            wiring connects.
        negative_dt: "error", "clamp" to 0, or "allow".

    >>> cell = lrcnet.WiredCfCCell(3, wiring=lrcnet.wirings.AutoNCP(12, 2))
    >>> h = cell(torch.randn(2, 3), dt=0.5)
    >>> cell.read_out(h).shape
    torch.Size([2, 2])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int | None = None,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        wiring: Wiring,
        mode: str = "default",
        dense_gates: bool = False,
        negative_dt: str = "error",
    ) -> None:
        super().__init__()
        self.input_size = positive_size("input_size", input_size)
        self.hidden_size = count_units(hidden_size, wiring)
        self.wiring = wiring.build_copy(input_size)
        self.mode = one_of("mode", mode, MODES)
        self.dense_gates = check_flag("dense_gates", dense_gates)
        self.negative_dt = one_of("negative_dt", negative_dt, NEGATIVE_DT)
        layers = [self.wiring.get_neurons_of_layer(layer) for layer in range(self.wiring.num_layers)]
        self.sizes = [len(layer) for layer in layers]
        self.parts = nn.ModuleList()
        size = input_size
        for number, neurons in enumerate(layers):
            part = CfCCell(size, len(neurons), bias, device, dtype, mode=mode, backbone_layers=0)
            part.mask_inputs(self._mask_between(layers[number - 1] if number else None, neurons))
            self.parts.append(part)
            size = len(neurons)

    def _mask_between(self, sources: list[int] | None, targets: list[int]) -> Tensor:
        """Return 1 where a row of a part's `weight_ih` has a synapse, for its sources or, if None, for the inputs."""
        if sources is None:
            assert self.wiring.sensory_adjacency_matrix is not None
            matrix = self.wiring.sensory_adjacency_matrix[:, targets]
        else:
            matrix = self.wiring.adjacency_matrix[sources][:, targets]
        mask = torch.from_numpy(matrix != 0).t()
        if self.mode == "pure":
            return mask
        gates = torch.ones_like(mask) if self.dense_gates else mask
        return torch.cat([mask, mask, *[gates] * (GATED_HEADS - 2)])

    @property
    def output_size(self) -> int:
        return self.sizes[-1]

    def reset_parameters(self) -> None:
        """Draw new initial values for every layer."""
        for part in self._parts():
            part.reset_parameters()

    def _parts(self) -> list[CfCCell]:
        return [part for part in self.parts if isinstance(part, CfCCell)]

    def values(self) -> list[Weights]:
        return [part.values() for part in self._parts()]

    def input_terms(self, values: list[Weights], x: Tensor) -> Tensor:
        return self._parts()[0].input_terms(values[0], x)

    def advance(self, values: list[Weights], terms: Tensor, h: Tensor, dt: float | Tensor) -> Tensor:
        states: list[Tensor] = []
        for part, own, before in zip(self._parts(), values, torch.split(h, self.sizes, -1), strict=True):
            terms = part.input_terms(own, states[-1]) if states else terms
            states.append(part.advance(own, terms, before, dt))
        return torch.cat(states, -1)

    def read_out(self, h: Tensor) -> Tensor:
        return h[..., self.hidden_size - self.output_size :]

    def _scan(self, x: Tensor, h: Tensor, dt: float | Tensor, batch_major: bool) -> Tensor:
        states = []
        for part, start in zip(self._parts(), torch.split(h, self.sizes, -1), strict=True):
            x = part.scan(x, start, dt, batch_major=batch_major)
            states.append(x)
        return torch.cat(states, -1)

    def _scan_with_gates(
        self, x: Tensor, h: Tensor, dt: float | Tensor, batch_major: bool
    ) -> tuple[Tensor, GatesByName]:
        runs: list[tuple[Tensor, GatesByName]] = []
        for part, start in zip(self._parts(), torch.split(h, self.sizes, -1), strict=True):
            runs.append(part.scan_with_gates(runs[-1][0] if runs else x, start, dt, batch_major=batch_major))
        names = runs[0][1].keys()
        gates: dict[str, Any] = {name: torch.cat([own[name] for _, own in runs], -1) for name in names}
        return torch.cat([states for states, _ in runs], -1), gates

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}, wiring={self.wiring!r}, mode={self.mode!r}"
