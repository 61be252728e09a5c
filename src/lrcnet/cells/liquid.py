"""The liquid cells LTC, STC, LRC and LRCU: one equation, thin names."""

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor

from lrcnet import kernels, liquid
from lrcnet.cells.base import GatesByName, ODECell, states_before
from lrcnet.circuit import ELASTANCES, SLOPE, Switches
from lrcnet.decomposition import scan_plainly
from lrcnet.errors import one_of
from lrcnet.kernels import Backend, Network
from lrcnet.liquid import PARAMETRISATIONS, Circuit, Currents, LiquidParameters
from lrcnet.solvers import SOLVERS, STAGED, ExplicitRungeKutta
from lrcnet.tracing import is_unknown, register_decomposition, values_are_readable
from lrcnet.wirings import Wiring

# With gradients, an operator of its own costs more than plain operations for fewer samples than this.
_FEWEST_SAMPLES = 64
# The same for a stage of a Runge-Kutta step with fewer synapses, over all samples, than this.
_FEWEST_SYNAPSES = 16_384
# Synapses that the plain gates look at together: one number for each pair of neurons takes memory.
_SYNAPSES_TOGETHER = 1 << 18


# Exporters that know no fused operator find its decomposition here.
register_decomposition(torch.ops.lrcnet.scan.default, scan_plainly)


class LiquidCell(LiquidParameters, ODECell):
    """dh/dt = eps(w) * (-F(f) h + U(u) e_l), Eqs. 1-5; a named model is this with some switches fixed.

    A fused kernel is used in one way only: `_select` returns the backend that serves a call, or None for the plain
    loop, and the backend gets `values_for_kernel` and `switches(for_kernel=True)`.

    Args:
        input_size: n, may be 0.
        hidden_size: m; the units of the wiring if None.
        elastance: the model's own if None; "asymmetric" or "symmetric" for LRC and LRCU.
        solver, unfolds: the model's own if None.
        negative_dt: "error", "clamp" to 0, or "allow" (explicit Euler only).
        backend: "auto" uses a fused kernel if one serves the call, "fused" insists on it, "reference" is the plain
            loop.
        bias, input_map, output_map, parametrisation, constraint, init, wiring: see `LiquidParameters`.

    The state that `forward` returns has all units, untouched by the output map; a layer's output has that of the motor
    neurons alone, with the map applied.
    """

    terms_of_all_steps = False
    saturated: ClassVar[bool]
    # The first of each is the default.
    elastances: ClassVar[tuple[str, ...]]
    solvers: ClassVar[tuple[str, ...]]
    default_unfolds: ClassVar[int]

    def __init__(
        self,
        input_size: int,
        hidden_size: int | None = None,
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
        parametrisation: str = "scaled",
        constraint: str = "clamp",
        init: str = "balanced",
        wiring: Wiring | None = None,
        backend: str = "auto",
    ) -> None:
        name = type(self).__name__
        super().__init__(
            input_size,
            hidden_size,
            elastance=one_of(
                f"elastance of {name}", self.elastances[0] if elastance is None else elastance, self.elastances
            ),
            bias=bias,
            input_map=input_map,
            output_map=output_map,
            parametrisation=parametrisation,
            constraint=constraint,
            init=init,
            wiring=wiring,
            device=device,
            dtype=dtype,
        )
        self.maps_output = output_map
        self._motors = self.hidden_size if self.wiring is None else self.wiring.output_size
        solver = one_of(f"solver of {name}", self.solvers[0] if solver is None else solver, self.solvers)
        self.set_solver(solver, self.default_unfolds if unfolds is None else unfolds, negative_dt)
        self.backend = one_of("backend", backend, kernels.CHOICES)

    @property
    def output_size(self) -> int:
        return self._motors

    def switches(self, *, solver: str | None = None, batch_first: bool = False, for_kernel: bool = False) -> Switches:
        """Return the switches of this model, with another solver if one is given.

        They belong to the circuit `values()`, or to `values_for_kernel(switches.scaled)` if `for_kernel`.
        """
        # By position and without nn.Module's look-up: this runs at every step of a stream.
        own = self.__dict__
        return Switches(
            self.saturated,
            own["elastance"],
            solver or own["solver"],
            own["unfolds"] if solver is None else 1,
            batch_first,
            own["negative_dt"] != "allow",
            for_kernel and self.kernel_scales(),
        )

    def fastest_decay(self) -> float:
        if self.saturated:
            return 1.0
        # All channels of a unit may be open.
        with torch.no_grad():
            return float((self.letter("g").sum(0) + self.letter("g_l")).max())

    def input_terms(self, values: Circuit, x: Tensor) -> Currents:
        return liquid.input_currents(values, x)

    def split(self, values: Circuit, terms: Currents, h: Tensor) -> tuple[Tensor, Tensor]:
        return liquid.split(values, terms, h, self.switches())

    def read_out(self, h: Tensor) -> Tensor:
        motors = self.output_size
        # The motor neurons come first.
        h = h if motors == self.hidden_size else h[..., :motors]
        if not self.maps_output:
            return h
        return liquid.affine(h, self.letter("output_scale")[:motors], self.letter("output_shift")[:motors])

    def gates(self, x: Tensor, h: Tensor, states: Tensor, batch_major: bool) -> GatesByName:
        circuit, before = self.values(), states_before(h, states)
        rows = max(1, _SYNAPSES_TOGETHER // circuit.a.numel())
        parts = [
            liquid.gates(circuit, liquid.input_currents(circuit, readings), some, self.switches())
            for readings, some in zip(
                torch.split(x.flatten(0, 1), rows), torch.split(before.flatten(0, 1), rows), strict=True
            )
        ]
        forget, update, *eps = (
            torch.cat(values).view_as(before) for values in zip(*parts, strict=True) if values[0] is not None
        )
        return _name_gates(forget, update, eps[0] if eps else None)

    def _select(self, x: Tensor, switches: Switches) -> Backend | None:
        """Return the backend that serves a call, or None for the plain loop.

        Raises:
            RuntimeError: if backend="fused" and none serves, with every reason.
        """
        return kernels.select(self.backend, x, switches, self.hidden_size, type(self).__name__)

    def _select_for_stages(self, x: Tensor) -> Backend | None:
        """Return the backend that computes each stage of a Runge-Kutta step over x (T, B, n), or None."""
        if self.backend != "auto" or self.solver not in STAGED or is_unknown(x.shape[1]):
            return None
        synapses = x.shape[1] * (self.input_size + self.hidden_size) * self.hidden_size
        if synapses < _FEWEST_SYNAPSES:
            return None
        return kernels.find(x, self.switches(solver=SLOPE), self.hidden_size)

    def _select_for_scan(self, x: Tensor, switches: Switches) -> Backend | None:
        """Return the backend that runs whole sequences x (T, B, n), or None if the plain loop does."""
        return self._select(x, switches) if self._select_for_stages(x) is None else None

    def _scan(self, x: Tensor, h: Tensor, dt: float | Tensor, batch_major: bool) -> Tensor:
        switches = self.switches(batch_first=batch_major, for_kernel=True)
        backend = self._select_for_scan(x, switches)
        if backend is None:
            return super()._scan(x, h, dt, batch_major)
        states, _ = backend.scan(self.values_for_kernel(switches.scaled), switches, x, h, dt)
        return states

    def _scan_with_gates(
        self, x: Tensor, h: Tensor, dt: float | Tensor, batch_major: bool
    ) -> tuple[Tensor, GatesByName]:
        switches = self.switches(batch_first=batch_major, for_kernel=True)
        backend = self._select_for_scan(x, switches)
        if backend is None:
            return super()._scan_with_gates(x, h, dt, batch_major)
        states, kept = backend.scan(self.values_for_kernel(switches.scaled), switches, x, h, dt, keep_gates=True)
        assert kept is not None
        forget, update, w = kept
        with torch.no_grad():
            letters = [self.letter(name) for name in ELASTANCES[self.elastance].letters]
            eps = None if w is None else liquid.elastance_gate(self.elastance, w, *letters)
            return states, _name_gates(forget, update, eps)

    def stepper(self, x: Tensor) -> Callable[[int, Tensor, float | Tensor], Tensor]:
        # A fused kernel takes single steps too, faster than the plain loop does.
        if self._select_for_scan(x, self.switches(for_kernel=True)) is None:
            return self._stepper(x)
        readings = x.unbind()
        return lambda t, h, dt: self._step(readings[t], h, dt)

    def _stepper(self, x: Tensor) -> Callable[[int, Tensor, float | Tensor], Tensor]:
        backend = self._select_for_stages(x)
        if backend is None:
            return super()._stepper(x)
        method, circuit, switches = SOLVERS[self.solver], self.values(), self.switches(solver=SLOPE)
        assert isinstance(method, ExplicitRungeKutta)  # by STAGED
        readings = x.unbind()

        def step(t: int, h: Tensor, dt: float | Tensor) -> Tensor:
            def slope(_: Any, state: Tensor) -> Tensor:
                return backend.derivative(circuit, switches, readings[t], state)

            for _ in range(self.unfolds):
                h = method.field_step(slope, 0.0, h, dt / self.unfolds)
            return h

        return step

    def _step(self, x: Tensor, h: Tensor, dt: float | Tensor) -> Tensor:
        sequence = x.unsqueeze(0)
        if self._select_for_stages(sequence) is not None:
            return self._stepper(sequence)(0, h, dt)
        switches = self.switches(for_kernel=True)
        backend = self._select(x, switches)
        if backend is None:
            return super()._step(x, h, dt)
        if isinstance(dt, Tensor):
            dt = dt.expand(x.shape[0], 1).transpose(0, 1)
        states, _ = backend.scan(self.values_for_kernel(switches.scaled), switches, sequence, h, dt)
        return states[0]

    def bind_derivative(self) -> Callable[[Tensor], Tensor]:
        """Return dh/dt as a function of states h (B, m) alone, its parameters prepared once.

        Raises:
            ValueError: if the cell has inputs.
        """
        if self.input_size:
            raise ValueError(f"bind_derivative needs a cell of no inputs, but this one has {self.input_size}")
        self._recompute_parameters()
        nothing, switches = self.k.new_empty(1, 0), self.switches(solver=SLOPE, for_kernel=True)
        backend = self._select(nothing, switches)
        circuit = None if backend is None else self.values_for_kernel(switches.scaled)

        # Constraining costs as much as a small batch's slopes. Values prepared without gradients have none to give.
        prepared: dict[bool, tuple[Circuit, Currents]] = {}

        def plain(h: Tensor) -> Tensor:
            with_gradients = torch.is_grad_enabled()
            if with_gradients not in prepared:
                values = self.values()
                prepared[with_gradients] = values, self.input_terms(values, nothing)
            decay, drive = self.split(*prepared[with_gradients], h)
            return torch.addcmul(drive, decay, h, value=-1)

        def derivative(h: Tensor) -> Tensor:
            if backend is None or circuit is None:
                return plain(h)
            fused = self.backend == "fused" or not torch.is_grad_enabled()
            if fused or (h.shape[0] >= _FEWEST_SAMPLES and values_are_readable(h)):
                return backend.derivative(circuit, switches, nothing.expand(h.shape[0], 0), h)
            return plain(h)

        return derivative

    def stream_network(self) -> Network | None:
        """Return this layer for `Backend.step_stack`; None if `forward` must run, e.g. for a hook on a parameter."""
        own = self.__dict__
        if own["backend"] == "reference" or own["_forward_pre_hooks"]:
            return None
        settings = (
            own["elastance"],
            own["solver"],
            own["unfolds"],
            own["negative_dt"],
            own["parametrisation"],
            own["constraint"],
            "parametrizations" in own["_modules"],
        )
        memory = own.get("_checked")
        if memory is None or memory["settings"] != settings:
            memory = own["_checked"] = {"settings": settings, "switches": self.switches(for_kernel=True)}
        switches = memory["switches"]
        # Stored letters are the same tensors at every step.
        network = (self.values_for_kernel(switches.scaled), switches, memory if switches.scaled else None)
        return tuple.__new__(Network, network)  # Network's own constructor would be seen in a single step.

    def __getstate__(self) -> dict[str, Any]:
        """Leave the memory of `stream_network` out of copies and files: it is about these tensors alone."""
        return {name: value for name, value in self.__dict__.items() if name != "_checked"}

    def extra_repr(self) -> str:
        stored = "" if self.parametrisation == PARAMETRISATIONS[0] else f"parametrisation={self.parametrisation!r}, "
        stored += "" if self.wiring is None else f"wiring={self.wiring!r}, "
        return (
            f"{self.input_size}, {self.hidden_size}, elastance={self.elastance!r}, solver={self.solver!r}, "
            f"unfolds={self.unfolds}, {stored}backend={self.backend!r}"
        )


def _name_gates(forget: Tensor, update: Tensor, eps: Tensor | None) -> GatesByName:
    if eps is None:
        return {"forget": forget, "update": update, "time_constant": 1 / forget}
    return {"forget": forget, "update": update, "elastance": eps, "time_constant": 1 / (eps * forget)}


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
