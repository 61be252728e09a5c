"""A backend whose sequences run as the operator lrcnet::scan, whatever implements it on the input's device.

Axes: T time, B batch, n inputs, m hidden units.
"""

import torch
from torch import Tensor

from lrcnet.circuit import SLOPE, STEP_LETTERS, Circuit, Switches
from lrcnet.kernels import diagonal, diagonal_inputs
from lrcnet.kernels.backend import Backend, KeptGates
from lrcnet.kernels.operators import run
from lrcnet.kernels.problem import ELASTANCE_CODES, FUSED_SOLVERS, IS_DOUBLE, SOLVER_CODES, Problem
from lrcnet.tracing import compiling, forward_mode_active, jit_tracing, transform_active
from lrcnet.value_checks import refuse_bad_gaps

_LETTERS = len(STEP_LETTERS)


class OperatorBackend(Backend):
    """Sequences, steps and derivatives as calls of the operator; a backend with a faster step overrides it."""

    def scan(
        self,
        circuit: Circuit,
        switches: Switches,
        x: Tensor,
        h: Tensor | None,
        dt: float | Tensor,
        *,
        keep_gates: bool = False,
    ) -> tuple[Tensor, KeptGates | None]:
        steps, dt_value = None, 1.0
        if isinstance(dt, Tensor):
            steps = dt if dt.dim() else dt.detach().expand(x.shape[:2])
        else:
            dt_value = float(dt)
        if switches.batch_first:
            x, steps = x.transpose(0, 1), None if steps is None else steps.transpose(0, 1)
        tensors = (x, h, steps, *circuit[:_LETTERS])
        # A trace is one program for both modes; torch.jit.trace records it again without gradients, and compares.
        enabled = torch.is_grad_enabled() or jit_tracing()
        gradient = enabled and any(tensor is not None and tensor.requires_grad for tensor in tensors)
        problem = Problem(x, h, steps, circuit, dt_value, switches)
        states, saved = run(problem, gradient=gradient, keep=keep_gates)
        states = states.transpose(0, 1) if switches.batch_first else states
        if not keep_gates:
            return states, None
        # (T, unfolding, B, plane, m): F, U, then w with an elastance.
        planes = saved.detach()[:, 0].unbind(2)
        return states, KeptGates(planes[0], planes[1], None if switches.elastance == "none" else planes[2])

    def step(self, circuit: Circuit, switches: Switches, x: Tensor, h: Tensor, dt: float | Tensor) -> Tensor:
        batch = x.shape[0]
        if isinstance(dt, Tensor):
            refuse_bad_gaps(dt, check_sign=switches.check_dt)
            dt = dt.expand(batch).unsqueeze(0)
        switches = switches._replace(batch_first=False)
        with torch.no_grad():
            states, _ = self.scan(circuit, switches, x.unsqueeze(0), h.reshape(batch, -1), dt)
        return states.view(h.shape)

    def derivative(self, circuit: Circuit, switches: Switches, x: Tensor, h: Tensor) -> Tensor:
        slopes, _ = self.scan(circuit, slope_switches(switches), x.unsqueeze(0), h, 1.0)
        return slopes[0]

    def diagonal_reasons(self, x: Tensor, switches: Switches, units: int) -> list[str]:
        # Units that do not see each other are no matter of size.
        reasons = self.reasons(x, switches, 1)
        if switches.unfolds > diagonal.MOST_UNFOLDS:
            reasons.append(f"it takes at most {diagonal.MOST_UNFOLDS} unfoldings, but there are {switches.unfolds}")
        return reasons

    def scan_diagonal(
        self, letters: Tensor, switches: Switches, terms: Tensor, h: Tensor, dt: float | Tensor, *, mixed: bool
    ) -> Tensor:
        return diagonal.scan(terms, h, dt, letters, switches, mixed=mixed)

    def scan_diagonal_inputs(
        self,
        letters: Tensor,
        switches: Switches,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        h: Tensor,
        dt: float | Tensor,
        *,
        mixed: bool,
    ) -> Tensor:
        terms = diagonal_inputs.apply_map(x, weight, bias, switches.batch_first)
        return self.scan_diagonal(letters, switches, terms, h, dt, mixed=mixed)


def slope_switches(switches: Switches) -> Switches:
    """Return the switches for dh/dt of the same equation."""
    return Switches(switches.saturated, switches.elastance, SLOPE, scaled=switches.scaled)


def limits_of_the_operator(x: Tensor, switches: Switches) -> list[str]:
    """Return why the operator cannot serve a call on any device, one clause each."""
    reasons: list[str] = []
    if x.dtype not in IS_DOUBLE:
        reasons.append(f"it computes in float32 or float64, but x is {x.dtype}")
    if switches.solver not in SOLVER_CODES:
        reasons.append(f"it knows the solvers {', '.join(FUSED_SOLVERS)}, but the solver is {switches.solver}")
    if switches.elastance not in ELASTANCE_CODES:
        reasons.append(f"it knows the elastances {', '.join(ELASTANCE_CODES)}, but it is {switches.elastance}")
    # While torch.compile traces, neither of these can be asked, and the operator is opaque to it anyway.
    if not compiling():
        if transform_active():
            reasons.append("torch.func transforms need the plain loop")
        if forward_mode_active():
            reasons.append("forward-mode derivatives need the plain loop")
    return reasons
