"""The liquid cells LTC, STC, LRC and LRCU: one equation, thin names."""

import logging
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from lrcnet import kernels, liquid
from lrcnet.cells.base import ODECell, values_are_readable
from lrcnet.errors import one_of
from lrcnet.liquid import Circuit, Currents, LiquidParameters
from lrcnet.solvers import SOLVERS, STAGED, ExplicitRungeKutta

BACKENDS = ("auto", "fused", "reference")

_log = logging.getLogger("lrcnet")
_told: set[str] = set()
_STRIDE = 1024.0
# With gradients, an operator of its own costs more than plain operations for fewer states than this.
_MANY = 64
# And for a stage of a step with fewer synapses, over all samples, than this.
_MANY_SYNAPSES = 16_384


class LiquidCell(LiquidParameters, ODECell):
    """dh/dt = eps(w) * (-F(f) h + U(u) e_l), Eqs. 1-5; a named model is this with some switches fixed.

    Args:
        input_size: n, may be 0.
        hidden_size: m.
        elastance: the model's own if None; "asymmetric" or "symmetric" for LRC and LRCU.
        solver, unfolds: the model's own if None.
        negative_dt: "error", "clamp" to 0, or "allow" (explicit Euler only).
        backend: "auto" takes the fused kernel where it serves the call, "fused" insists on it, "reference" is the
            plain loop.
        bias, input_map, output_map, parametrisation, constraint: see `LiquidParameters`.

    The output map does not touch the state that `forward` returns; layers apply it to what they put out.
    """

    holds_sequence = False
    saturated: ClassVar[bool]
    # The first of each is the default.
    elastances: ClassVar[tuple[str, ...]]
    solvers: ClassVar[tuple[str, ...]]
    default_unfolds: ClassVar[int]

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        elastance: str | None = None,
        solver: str | None = None,
        unfolds: int | None = None,
        negative_dt: str = "error",
        input_map: bool = True,
        output_map: bool = False,
        parametrisation: str = "ab",
        constraint: str = "clamp",
        backend: str = "auto",
    ) -> None:
        name = type(self).__name__
        super().__init__(
            input_size,
            hidden_size,
            elastance=one_of(f"elastance of {name}", elastance or self.elastances[0], self.elastances),
            bias=bias,
            input_map=input_map,
            output_map=output_map,
            parametrisation=parametrisation,
            constraint=constraint,
            device=device,
            dtype=dtype,
        )
        self.maps_output = output_map
        solver = one_of(f"solver of {name}", solver or self.solvers[0], self.solvers)
        self.set_solver(solver, self.default_unfolds if unfolds is None else unfolds, negative_dt)
        self.backend = one_of("backend", backend, BACKENDS)

    def hold(self, values: Circuit, x: Tensor) -> Currents:
        return liquid.input_currents(values, x)

    def split(self, values: Circuit, held: Currents, h: Tensor) -> tuple[Tensor, Tensor]:
        return liquid.split(values, held, h, self.saturated)

    def read_out(self, h: Tensor) -> Tensor:
        return liquid.affine(h, self.output_scale, self.output_shift) if self.maps_output else h

    def scan(self, x: Tensor, h: Tensor, dt: float | Tensor, *, batch_major: bool = False) -> Tensor:
        if self._fuses_stages(x) or not self._fuses(x):
            return super().scan(x, h, dt, batch_major=batch_major)
        if not batch_major:
            return kernels.scan(x, h, dt, batch_first=False, **self._kernel_arguments())
        dt = dt.transpose(0, 1) if isinstance(dt, Tensor) else dt
        states = kernels.scan(x.transpose(0, 1), h, dt, batch_first=True, **self._kernel_arguments())
        return states.transpose(0, 1)

    def stepper(self, x: Tensor) -> Callable[[int, Tensor, float | Tensor], Tensor]:
        if not self._fuses_stages(x):
            return super().stepper(x)
        method = SOLVERS[self.solver]
        assert isinstance(method, ExplicitRungeKutta)  # by _fuses_stages
        arguments = self._kernel_arguments(self.values()) | {"solver": "euler", "unfolds": 1}
        readings = x.unsqueeze(1).unbind()

        def step(t: int, h: Tensor, dt: float | Tensor) -> Tensor:
            def slope(_: Any, state: Tensor) -> Tensor:
                moved = kernels.scan(readings[t], state, _STRIDE, batch_first=False, **arguments)[0]
                return _slope(state, moved)

            for _ in range(self.unfolds):
                h = method.field_step(slope, 0.0, h, dt / self.unfolds)
            return h

        return step

    def _one_step(self, x: Tensor, h: Tensor, dt: float | Tensor) -> Tensor:
        if self._fuses_stages(x.unsqueeze(0)):
            return self.stepper(x.unsqueeze(0))(0, h, dt)
        if not self._fuses(x):
            return super()._one_step(x, h, dt)
        arguments = self._kernel_arguments()
        if isinstance(dt, Tensor):
            dt = dt.expand(x.shape[0], 1).transpose(0, 1)
        return kernels.scan(x.unsqueeze(0), h, dt, batch_first=False, **arguments)[0]

    def bind_derivative(self) -> Callable[[Tensor], Tensor]:
        """dh/dt as a function of states h (B, m) alone, for a cell of no inputs, its parameters prepared once."""
        if self.input_size:
            raise ValueError(f"bind_derivative needs a cell of no inputs, but this one has {self.input_size}")
        nothing = self.k.new_empty(1, 1, 0)
        fuses = self._fuses(nothing)
        arguments = self._kernel_arguments() | {"solver": "euler", "unfolds": 1} if fuses else {}

        # Constraining costs as much as a small batch's slopes. What was prepared without gradients has none to give.
        prepared: dict[bool, tuple[Circuit, Currents]] = {}

        def plain(h: Tensor) -> Tensor:
            with_gradients = torch.is_grad_enabled()
            if with_gradients not in prepared:
                values = self.values()
                prepared[with_gradients] = values, self.hold(values, nothing[0])
            decay, drive = self.split(*prepared[with_gradients], h)
            return torch.addcmul(drive, decay, h, value=-1)

        def derivative(h: Tensor) -> Tensor:
            if fuses and not torch.is_grad_enabled():
                moved = kernels.step(nothing[0].expand(h.shape[0], 0), h.contiguous(), _STRIDE, **arguments)
            elif self.backend == "fused" or (fuses and h.shape[0] >= _MANY and values_are_readable(h)):
                moved = kernels.scan(nothing.expand(1, h.shape[0], 0), h, _STRIDE, batch_first=False, **arguments)[0]
            else:
                return plain(h)
            return _slope(h, moved)

        return derivative

    def stream(self, x: Tensor, h: Tensor, dt: float) -> Tensor | None:
        """One step of x (B, n) and h of B * m numbers, past torch's dispatcher and without gradient; shaped like h.

        None where the kernel cannot serve.
        """
        if self.backend == "reference" or not h.is_contiguous() or kernels.reasons(x, solver=self.solver):
            return None
        return kernels.step(x, h, dt, **self._kernel_arguments())

    def _kernel_arguments(self, values: Circuit | None = None) -> dict[str, Any]:
        """The kernel clamps and maps by itself, so it gets the stored values where they are the circuit's own."""
        # nn.Module's attribute look-up is slow enough to be seen in a single step.
        stored: Mapping[str, Tensor | None] = self._parameters
        if values is not None:
            stored = values._asdict()
        elif self.constraint != "clamp" or "parametrizations" in self._modules:
            stored = self.values()._asdict()
        elif self.parametrisation != "ab":
            a, b = self.slopes_and_offsets()
            stored = {**stored, "a": a, "b": b}
        return {
            "a": stored["a"],
            "b": stored["b"],
            "g": stored["g"],
            "k": stored["k"],
            "g_l": stored["g_l"],
            "e_l": stored["e_l"],
            "o": stored["o"],
            "p": stored["p"],
            "k_eps": stored["k_eps"],
            "input_scale": stored["input_scale"],
            "input_shift": stored["input_shift"],
            "saturated": self.saturated,
            "elastance": self.elastance,
            "solver": self.solver,
            "unfolds": self.unfolds,
            "negative_dt": "allow" if self.negative_dt == "allow" else "error",
        }

    def _fuses_stages(self, x: Tensor) -> bool:
        """Whether each stage of a Runge-Kutta step over x (T, B, n) is to be an operator of its own."""
        if self.backend != "auto" or self.solver not in STAGED or kernels.reasons(x, solver="euler"):
            return False
        return x.shape[1] * (self.input_size + self.hidden_size) * self.hidden_size >= _MANY_SYNAPSES

    def _fuses(self, x: Tensor) -> bool:
        """Whether the fused kernel serves this call.

        Raises:
            RuntimeError: if it must (backend="fused") but cannot, with every reason.
        """
        if self.backend == "reference":
            return False
        reasons = kernels.reasons(x, solver=self.solver)
        if not reasons:
            return True
        why = "; ".join(reasons)
        if self.backend == "fused":
            raise RuntimeError(f"backend='fused' cannot serve this call: {why}; use backend='auto' or 'reference'")
        if why not in _told:
            _told.add(why)
            _log.warning("the fused kernel cannot serve %s, so the plain loop runs: %s", type(self).__name__, why)
        return False

    def extra_repr(self) -> str:
        return (
            f"{self.input_size}, {self.hidden_size}, elastance={self.elastance!r}, solver={self.solver!r}, "
            f"unfolds={self.unfolds}, backend={self.backend!r}"
        )


def _slope(h: Tensor, moved: Tensor) -> Tensor:
    """dh/dt out of one explicit step of size _STRIDE.

    That step is h + d slope: with d a large power of two the division is exact and h, which is subtracted again, costs
    the slope no digits.
    """
    return (moved - h) / _STRIDE


class LTCCell(LiquidCell):
    """Liquid time-constant cell, Eq. 1: unsaturated, capacitance 1; hybrid solver with 6 unfoldings by default.

    >>> cell = lrcnet.LTCCell(3, 5)
    >>> cell(torch.randn(2, 3)).shape
    torch.Size([2, 5])
    """

    saturated = False
    elastances = ("none",)
    # One explicit Euler step makes an LTC diverge; the paper's is the hybrid one.
    solvers = ("hybrid", *(name for name in SOLVERS if name != "hybrid"))
    default_unfolds = 6


class STCCell(LiquidCell):
    """Saturated liquid time-constant cell, Eq. 2: gates within (0, 1) and (-1, 1), capacitance 1."""

    saturated = True
    elastances = ("none",)
    solvers = LTCCell.solvers
    default_unfolds = 6


class LRCCell(LiquidCell):
    """Liquid-resistance liquid-capacitance cell, Eqs. 3-5, with any solver."""

    saturated = True
    elastances = ("symmetric", "asymmetric")
    solvers = LTCCell.solvers
    default_unfolds = 1


class LRCUCell(LiquidCell):
    """LRC unit: one explicit Euler step of LRC per input.

    >>> cell = lrcnet.LRCUCell(3, 5, elastance="asymmetric")
    >>> h = cell(torch.randn(2, 3), dt=torch.tensor([0.5, 1.5]))
    """

    saturated = True
    elastances = ("symmetric", "asymmetric")
    solvers = ("euler",)
    default_unfolds = 1
