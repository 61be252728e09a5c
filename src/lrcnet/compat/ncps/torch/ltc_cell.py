"""ncps' LTCCell: its parameters and signatures, computed as a liquid circuit.

With C the capacitance, w the conductances and e the reversal potentials, ncps integrates

    C dh/dt = gleak (vleak - h) + sum_j w_j sigma(s_j (y_j - mu_j)) (e_j - h)

by the hybrid step, with a small number epsilon beside the conductances. In the letters of `lrcnet.circuit`:

    a = s, b = -s mu, g = w / C, g_l = (gleak + epsilon) / C, k = g e / e_l

Here e_l = 1, so that no potential is divided by, and one more synapse that is always open adds the rest of the leak's
drive, (gleak vleak) / C - g_l. `lrcnet.compat.ncps.convert` writes e_l = gleak vleak / (gleak + epsilon) instead, which
needs no further synapse.

Axes: T time, B batch, m units, n inputs.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from lrcnet import kernels, liquid
from lrcnet.circuit import Circuit, Switches
from lrcnet.compat.ncps.torch.wiring_sizes import WiringSizes
from lrcnet.errors import one_of, positive_size
from lrcnet.solvers import advance
from lrcnet.wirings import Wiring

MAPPINGS = ("affine", "linear", "None")
# The argument of a synapse that is always open: its sigmoid is 1 in float32, and 1 - 1e-26 in float64.
_OPEN = 60.0
_RANGES = {
    "gleak": (0.001, 1.0),
    "vleak": (-0.2, 0.2),
    "cm": (0.4, 0.6),
    "sigma": (3.0, 8.0),
    "mu": (0.3, 0.8),
    "w": (0.001, 1.0),
    "erev": None,
    "sensory_sigma": (3.0, 8.0),
    "sensory_mu": (0.3, 0.8),
    "sensory_w": (0.001, 1.0),
    "sensory_erev": None,
}


class LTCCell(WiringSizes, nn.Module):
    """A liquid time-constant cell with ncps' arguments: `forward(inputs, states, elapsed_time=1.0) -> (output, state)`.

    Args:
        wiring: a wiring of `lrcnet.wirings`; the cell builds it for its inputs, as ncps does.
        in_features: number of inputs; may be left out if the wiring is built.
        input_mapping, output_mapping: "affine", "linear" or None.
        ode_unfolds: solver steps per input.
        epsilon: number added to the sum of a unit's conductances.
        implicit_param_constraints: whether a softplus keeps conductances and capacitance above 0; otherwise they are
            clamped in the forward pass, and `apply_weight_constraints` clamps the parameters.
    """

    gleak: nn.Parameter
    vleak: nn.Parameter
    cm: nn.Parameter
    sigma: nn.Parameter
    mu: nn.Parameter
    w: nn.Parameter
    erev: nn.Parameter
    sensory_sigma: nn.Parameter
    sensory_mu: nn.Parameter
    sensory_w: nn.Parameter
    sensory_erev: nn.Parameter
    sparsity_mask: nn.Parameter
    sensory_sparsity_mask: nn.Parameter

    def __init__(
        self,
        wiring: Wiring,
        in_features: int | None = None,
        input_mapping: str | None = "affine",
        output_mapping: str | None = "affine",
        ode_unfolds: int = 6,
        epsilon: float = 1e-8,
        implicit_param_constraints: bool = False,
    ) -> None:
        super().__init__()
        if in_features is not None:
            wiring.build(in_features)
        if not wiring.is_built():
            raise ValueError(
                "the wiring must be built for a number of inputs, but is not; pass in_features or call wiring.build()"
            )
        self._wiring = wiring
        self._input_mapping = one_of("input_mapping", str(input_mapping), MAPPINGS)
        self._output_mapping = one_of("output_mapping", str(output_mapping), MAPPINGS)
        self._ode_unfolds = positive_size("ode_unfolds", ode_unfolds)
        self._epsilon = epsilon
        self._implicit_param_constraints = implicit_param_constraints
        self._is_dense = bool(wiring.polarities().all())
        self._allocate_parameters()

    def _allocate_parameters(self) -> None:
        """Draw the initial values as ncps does, in its order."""
        wiring, m, n = self._wiring, self.state_size, self.sensory_size
        erevs = {"erev": wiring.erev_initializer(), "sensory_erev": wiring.sensory_erev_initializer()}
        for name, limits in _RANGES.items():
            if limits is None:
                value = torch.as_tensor(erevs[name], dtype=torch.get_default_dtype())
            else:
                shape = (n, m) if name.startswith("sensory") else (m,) if name in ("gleak", "vleak", "cm") else (m, m)
                value = torch.rand(*shape) * (limits[1] - limits[0]) + limits[0]
            self.register_parameter(name, nn.Parameter(value))
        for name, matrix in (("sparsity_mask", erevs["erev"]), ("sensory_sparsity_mask", erevs["sensory_erev"])):
            mask = torch.as_tensor(np.abs(matrix), dtype=torch.get_default_dtype())
            self.register_parameter(name, nn.Parameter(mask, requires_grad=False))
        maps = (("input", self._input_mapping, n), ("output", self._output_mapping, self.motor_size))
        for name, mapping, size in maps:
            for letter, start, wanted in (("w", 1.0, mapping != "None"), ("b", 0.0, mapping == "affine")):
                parameter = nn.Parameter(torch.full((size,), start)) if wanted else None
                self.register_parameter(f"{name}_{letter}", parameter)

    def forward(self, inputs: Tensor, states: Tensor, elapsed_time: float | Tensor = 1.0) -> tuple[Tensor, Tensor]:
        """Advance states (B, m) by inputs (B, n) held for a time, a number or one per sample."""
        gaps = elapsed_time
        if isinstance(gaps, Tensor) and gaps.numel() > 1:
            gaps = gaps.reshape(1, len(inputs))
        elif isinstance(gaps, Tensor):
            gaps = gaps.reshape(1, 1).expand(1, len(inputs))
        state = self.scan(inputs.unsqueeze(0), states, gaps)[0]
        return self.map_outputs(state), state

    def positive(self, parameter: Tensor) -> Tensor:
        """Return a conductance or capacitance as the cell computes with it."""
        return nn.functional.softplus(parameter) if self._implicit_param_constraints else parameter.clamp(min=0)

    def circuit(self) -> Circuit:
        """Return the circuit over one more input, the last one, which is constant."""
        sigma, mu = torch.cat([self.sigma, self.sensory_sigma]), torch.cat([self.mu, self.sensory_mu])
        mask = torch.cat([self.sparsity_mask, self.sensory_sparsity_mask])
        capacitance, leak = self.positive(self.cm), self.positive(self.gleak)
        g = self.positive(torch.cat([self.w, self.sensory_w])) * mask / capacitance
        g_l = (leak + self._epsilon) / capacitance
        k = g * torch.cat([self.erev, self.sensory_erev])
        row = torch.zeros_like(g_l)
        constant = (row, row + _OPEN, row, leak * self.vleak / capacitance - g_l)
        a, b, g, k = (
            torch.cat([values, last.unsqueeze(0)])
            for values, last in zip((sigma, -sigma * mu, g, k), constant, strict=True)
        )
        exists = torch.cat([mask != 0, torch.ones_like(row, dtype=torch.bool).unsqueeze(0)])
        return Circuit(a, b, g, k, g_l, row + 1, mask=None if self._is_dense else exists)

    def scan(self, x: Tensor, h: Tensor, dt: float | Tensor, circuit: Circuit | None = None) -> Tensor:
        """Return all states (T, B, m) of a sequence x (T, B, n) from h (B, m); dt is a number or (T, B)."""
        circuit = self.circuit() if circuit is None else circuit
        x = liquid.affine(x, self.input_w, _zeros_like(self.input_b, self.input_w))  # type: ignore[arg-type]
        x = nn.functional.pad(x, (0, 1))
        switches = Switches(saturated=False, elastance="none", solver="hybrid", unfolds=self._ode_unfolds)
        backend = kernels.select("auto", x, switches, circuit.units, type(self).__name__)
        if backend is not None:
            return backend.scan(circuit, switches, x, h, dt)[0]
        states = []
        for t, reading in enumerate(x.unbind()):
            from_input = liquid.input_currents(circuit, reading)
            gap = dt[t].unsqueeze(-1) if isinstance(dt, Tensor) else dt

            def split(state: Tensor, own: liquid.Currents = from_input) -> tuple[Tensor, Tensor]:
                return liquid.split(circuit, own, state, switches)

            h = advance("hybrid", split, h, gap, self._ode_unfolds)
            states.append(h)
        return torch.stack(states)

    def map_outputs(self, states: Tensor) -> Tensor:
        """Return the output (..., motors) of states (..., m)."""
        motors = states[..., : self.motor_size]
        return liquid.affine(motors, self.output_w, _zeros_like(self.output_b, self.output_w))  # type: ignore[arg-type]

    def apply_weight_constraints(self) -> None:
        """Clamp conductances and capacitances at 0, unless a softplus keeps them there."""
        if not self._implicit_param_constraints:
            for parameter in (self.w, self.sensory_w, self.cm, self.gleak):
                parameter.data.clamp_(min=0)


def _zeros_like(shift: Any, scale: Any) -> Any:
    """Return the shift of a map; one without a shift has zeros, and no map has None."""
    return torch.zeros_like(scale) if shift is None and scale is not None else shift
