"""The diagonal LRC: a unit sees its own state and all inputs, so that the Jacobian of the states is diagonal.

    dh_i/dt = eps(w_i) (-sigmoid(f_i) h_i + tanh(z_i) e_l_i)
    f_i = g^x_i s^x_i + g^u_i s^u_i + g_l_i,   z_i = k^x_i s^x_i + k^u_i s^u_i + g_l_i
    w_i = w^x_i h_i + w^u_i . u + v_i
    s^x_i = sigmoid(a^x_i h_i + b^x_i),        s^u_i = sigmoid(a^u_i . u + b^u_i)

This is the LrcSSM of Farsang and Grosu, 2025. A step costs four or five sigmoids per unit instead of one per synapse.

Axes: T time, B batch, m hidden units, n inputs.
"""

from typing import Any, Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

from lrcnet import kernels
from lrcnet.cells.base import GatesByName, ODECell, states_before
from lrcnet.cells.checks import read_number
from lrcnet.circuit import ELASTANCES, Switches
from lrcnet.constraints import Constrained, nonnegative
from lrcnet.contraction import (
    CONTRACTING_SOLVERS,
    FASTEST,
    LONGEST_EXPLICIT_STEP,
    limit_elastance,
    limit_feedback,
    limit_magnitude,
)
from lrcnet.errors import check_flag, check_placement, one_of, positive_size
from lrcnet.initial_values import Draw
from lrcnet.kernels.diagonal import ROWS
from lrcnet.liquid import elastance_gate, forget_gate, update_gate
from lrcnet.solvers import advance
from lrcnet.tracing import is_unknown, register_decomposition, scan_operator
from lrcnet.value_checks import warn_if_diverged

Synapses = Literal["mixed", "per-channel"]
SYNAPSES: tuple[str, ...] = get_args(Synapses)

LONGEST_MEMORY = 1000.0
"""The longest initial time constant, in steps of dt = 1; they are log-uniform from 2 on."""


class DiagonalValues(NamedTuple):
    """The values that a diagonal network computes with, constraints applied; None for a letter that it does not have.

    Attributes:
        unit: the letters of a unit by name, each (m,); see `lrcnet.kernels.diagonal.ROWS`.
        weight: (2 m, n), from the inputs, or their synapses, to the two terms of each unit.
        bias: (2 m,).
        slope, offset: (n,), the synapse of each channel if synapses="per-channel".
        widest: (m,), the largest inputs' part of w that the option `contraction` allows.
    """

    unit: dict[str, Tensor]
    weight: Tensor
    bias: Tensor
    slope: Tensor | None
    offset: Tensor | None
    widest: Tensor | None


def _apply_synapses(values: DiagonalValues, x: Tensor) -> Tensor:
    """Return what the units mix: the inputs, or the synapse of each channel."""
    if values.slope is None or values.offset is None:
        return x
    return torch.sigmoid(x * values.slope + values.offset)


def _gates(
    unit: dict[str, Tensor], terms: Tensor, h: Tensor, elastance: str, mixed: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the forget gate, the update gate and the elastance at states h (..., m)."""
    own = torch.sigmoid(torch.addcmul(unit["b"], unit["a"], h))
    first, second = terms.chunk(2, -1)
    if mixed:
        from_inputs = torch.sigmoid(first)
        f, z = unit["g_l"] + unit["g_in"] * from_inputs, unit["g_l"] + unit["k_in"] * from_inputs
        w = second + unit["o"] * h
    else:
        f, z, w = first, second, unit["w_in"] + unit["o"] * h
    letters = [unit[name] for name in ELASTANCES[elastance].letters]
    return (
        forget_gate(f + unit["g"] * own, True),
        update_gate(z + unit["k"] * own, True),
        elastance_gate(elastance, w, *letters),
    )


def _split(unit: dict[str, Tensor], terms: Tensor, h: Tensor, elastance: str, mixed: bool) -> tuple[Tensor, Tensor]:
    """Return (decay, drive) of dh/dt = drive - decay * h."""
    forget, update, eps = _gates(unit, terms, h, elastance, mixed)
    return eps * forget, eps * update * unit["e_l"]


def _scan_plainly(
    terms: Tensor,
    h: Tensor,
    dt: Tensor | None,
    letters: Tensor,
    dt_value: float,
    mixed: bool,
    elastance: str,
    solver: str,
    unfolds: int,
    batch_first: bool,
) -> Tensor:
    """Compute the states of lrcnet::diagonal_scan by torch's own operators."""

    def step(h: Tensor, terms: Tensor, *others: Tensor) -> Tensor:
        gap = dt_value if dt is None else others[0].unsqueeze(-1)
        unit = dict(zip(ROWS, others[-1].unbind(), strict=True))
        return advance(solver, lambda state: _split(unit, terms, state, elastance, mixed), h, gap, unfolds)

    sequences = [terms] if dt is None else [terms, dt]
    if isinstance(terms.shape[0], int) and terms.shape[0] == 1:  # a stream needs no loop
        return step(h, *(values[0] for values in sequences), letters).unsqueeze(0)
    return scan_operator(step, h, sequences, [letters])


def _scan_inputs_plainly(x: Tensor, weight: Tensor, bias: Tensor, *rest: Any) -> Tensor:
    """Compute the states of lrcnet::diagonal_scan_inputs by torch's own operators."""
    return _scan_plainly(functional.linear(x, weight, bias), *rest)


# Exporters that know no fused operator find its decomposition here.
register_decomposition(torch.ops.lrcnet.diagonal_scan.default, _scan_plainly)
register_decomposition(torch.ops.lrcnet.diagonal_scan_inputs.default, _scan_inputs_plainly)


class DiagonalLRCCell(Constrained, ODECell):
    """One step of a diagonal LRC.

    Args:
        input_size: n, may be 0.
        hidden_size: m.
        bias: whether the elastance has its bias v.
        elastance: "symmetric" or "asymmetric".
        synapses: "mixed", the paper's form: a unit mixes the inputs and has one synapse for the mixture. "per-channel",
            the form of the authors' code: every channel has one synapse, units mix the synapses, and the elastance
            depends on the state only (w^u = 0).
        solver, unfolds, negative_dt: see `ODECell`; one explicit Euler step by default.
        contraction: c > 0 makes every step a contraction: two states of a unit under the same inputs approach each
            other at least as fast as `lrcnet.theory.contraction_factor` says, 1 - c dt for an explicit step of at most
            4/3. It holds for states within |h| <= 2 |e_l|, where a run from zero always stays; from outside, |h| does
            not grow, but nothing else is promised. At most 0.05, with solver "euler", "hybrid" or "exponential" and dt
            >= 0; None does not limit the parameters.
        backend: "auto", "fused" or "reference".

    >>> cell = lrcnet.DiagonalLRCCell(3, 5)
    >>> h = cell(torch.randn(2, 3), dt=torch.tensor([0.5, 1.5]))
    """

    elastances = ("symmetric", "asymmetric")
    a_x: nn.Parameter
    b_x: nn.Parameter
    g_x: nn.Parameter
    k_x: nn.Parameter
    w_x: nn.Parameter
    g_l: nn.Parameter
    e_l: nn.Parameter
    k_eps: nn.Parameter | None
    v: nn.Parameter | None
    a_u: nn.Parameter
    b_u: nn.Parameter
    g_u: nn.Parameter
    k_u: nn.Parameter
    w_u: nn.Parameter | None

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        *,
        elastance: str = "symmetric",
        synapses: str = "mixed",
        solver: str = "euler",
        unfolds: int = 1,
        negative_dt: str = "error",
        contraction: float | None = None,
        backend: str = "auto",
    ) -> None:
        super().__init__()
        self.input_size = n = positive_size("input_size", input_size, least=0)
        self.hidden_size = m = positive_size("hidden_size", hidden_size)
        check_flag("bias", bias)
        check_placement(device, dtype)
        self.elastance = one_of("elastance", elastance, self.elastances)
        self.synapses = one_of("synapses", synapses, SYNAPSES)
        self.set_solver(solver, unfolds, negative_dt)
        self.contraction = _check_contraction(contraction, solver, negative_dt)
        self.backend = one_of("backend", backend, kernels.CHOICES)
        mixed = self.synapses == "mixed"
        shapes: dict[str, tuple[int, ...] | None] = {
            **dict.fromkeys(("a_x", "b_x", "g_x", "k_x", "w_x", "g_l", "e_l"), (m,)),
            "k_eps": (m,) if "k_eps" in ELASTANCES[elastance].letters else None,
            "v": (m,) if bias else None,
            "a_u": (m, n) if mixed else (n,),
            "b_u": (m,) if mixed else (n,),
            "g_u": (m,) if mixed else (m, n),
            "k_u": (m,) if mixed else (m, n),
            "w_u": (m, n) if mixed else None,
        }
        for name, shape in shapes.items():
            tensor = None if shape is None else nn.Parameter(torch.empty(shape, device=device, dtype=dtype))
            self.register_parameter(name, tensor)
        self.nonnegative_parameters = tuple(
            name for name in ("g_x", "g_u", "g_l", "k_eps") if getattr(self, name) is not None
        )
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw initial values with states of order 1 and memories from 2 to 1000 steps of dt = 1."""
        n, m = self.input_size, self.hidden_size
        if self.e_l.is_meta:
            return
        draw = Draw(n, m, self.e_l)
        self.a_x.copy_(draw.uniform(1, 3, m))
        self.b_x.copy_(draw.uniform(-1, 1, m))
        self.g_x.copy_(draw.uniform(0, 1, m))
        self.k_x.copy_(draw.uniform(-0.5, 0.5, m))
        self.w_x.copy_(draw.uniform(-0.1, 0.1, m))
        self.g_l.copy_(draw.uniform(0, 1, m))
        self.e_l.copy_(draw.sign() * draw.uniform(0.5, 1, m))
        if self.k_eps is not None:
            nn.init.ones_(self.k_eps)
        if self.v is not None:
            form = ELASTANCES[self.elastance]
            assert form.inverse is not None
            # F(f) is between 1/2 and 1, so the elastance alone is about the rate at which a unit forgets.
            letters = [] if self.k_eps is None else [self.k_eps]
            self.v.copy_(form.inverse(draw.rates(longest=LONGEST_MEMORY), *letters))
        # Standardised inputs then move an argument by 2, and the elastance's by 1.
        bound = (3 / max(n, 1)) ** 0.5
        if self.synapses == "mixed":
            self.a_u.copy_(draw.uniform(-2 * bound, 2 * bound, m, n))
            self.b_u.copy_(draw.uniform(-1, 1, m))
            self.g_u.copy_(draw.uniform(0, 1, m))
            self.k_u.copy_(draw.sign() * draw.uniform(1, 3, m))
            assert self.w_u is not None
            self.w_u.copy_(draw.uniform(-bound, bound, m, n))
        else:
            self.a_u.copy_(draw.uniform(1, 3, n))
            self.b_u.copy_(draw.uniform(-1, 1, n))
            self.g_u.copy_(draw.uniform(0, 1 / max(n, 1), m, n))
            self.k_u.copy_(draw.uniform(-4 * bound, 4 * bound, m, n))

    def values(self) -> DiagonalValues:
        positive = {name: nonnegative(getattr(self, name), "clamp") for name in self.nonnegative_parameters}
        g_x, g_u, g_l, k_eps = (positive.get(name) for name in ("g_x", "g_u", "g_l", "k_eps"))
        assert g_x is not None
        assert g_u is not None
        assert g_l is not None
        k_x: Tensor = self.k_x
        w_x: Tensor = self.w_x
        v: Tensor = torch.zeros_like(g_l) if self.v is None else self.v
        widest = None
        mixed = self.synapses == "mixed"
        if self.contraction is not None:
            # A narrower elastance could not reach the rate that is asked for.
            k_eps = None if k_eps is None else 1 + k_eps
            g_x, k_x = limit_feedback(self.a_x, g_x, k_x, self.e_l)
            w_x, widest = limit_elastance(self.elastance, self.contraction, w_x, self.e_l, k_eps)
            v = v if mixed else limit_magnitude(v, widest)
        zero = torch.zeros_like(g_l)
        unit = dict(zip(ROWS, (self.a_x, self.b_x, g_x, k_x, w_x, self.e_l), strict=False))
        unit["k_eps"] = zero if k_eps is None else k_eps
        if self.w_u is not None:
            unit |= {"g_in": g_u, "k_in": self.k_u, "g_l": g_l, "w_in": zero}
            weight, bias = torch.cat([self.a_u, self.w_u]), torch.cat([self.b_u, v])
            return DiagonalValues(unit, weight, bias, None, None, widest)
        unit |= {"g_in": zero, "k_in": zero, "g_l": zero, "w_in": v}
        weight, bias = torch.cat([g_u, self.k_u]), torch.cat([g_l, g_l])
        return DiagonalValues(unit, weight, bias, self.a_u, self.b_u, None)

    def input_terms(self, values: DiagonalValues, x: Tensor) -> Tensor:
        """Return (..., 2 m): the arguments of the inputs' synapses and their part of w, or their parts of f and z."""
        terms = functional.linear(_apply_synapses(values, x), values.weight, values.bias)
        if values.widest is None:
            return terms
        argument, w = terms.chunk(2, -1)
        return torch.cat([argument, limit_magnitude(w, values.widest)], -1)

    def split(self, values: DiagonalValues, terms: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        return _split(values.unit, terms, h, self.elastance, self.synapses == "mixed")

    def fastest_decay(self) -> float:
        return 1.0

    def longest_certified_step(self) -> float:
        return super().longest_certified_step() if self.contraction is None else LONGEST_EXPLICIT_STEP

    def gates(self, x: Tensor, h: Tensor, states: Tensor, batch_major: bool) -> GatesByName:
        values = self.values()
        terms, mixed = self.input_terms(values, x), self.synapses == "mixed"
        forget, update, eps = _gates(values.unit, terms, states_before(h, states), self.elastance, mixed)
        return {"forget": forget, "update": update, "elastance": eps, "time_constant": 1 / (eps * forget)}

    def circuit(self) -> dict[str, Tensor]:
        """Return detached copies of the letters that the network computes with, constraints and limits applied."""
        with torch.no_grad():
            values, m = self.values(), self.hidden_size
        names = ("a_x", "b_x", "g_x", "k_x", "w_x", "e_l")
        letters = {name: values.unit[row] for name, row in zip(names, ROWS, strict=False)}
        if self.k_eps is not None:
            letters["k_eps"] = values.unit["k_eps"]
        if self.synapses == "mixed":
            letters |= {"g_u": values.unit["g_in"], "k_u": values.unit["k_in"], "g_l": values.unit["g_l"]}
            letters |= {"a_u": values.weight[:m], "w_u": values.weight[m:]}
            letters |= {"b_u": values.bias[:m], "v": values.bias[m:]}
        else:
            letters |= {"g_u": values.weight[:m], "k_u": values.weight[m:], "g_l": values.bias[:m]}
            letters |= {"a_u": self.a_u, "b_u": self.b_u, "v": values.unit["w_in"]}
        return {name: letter.detach().clone() for name, letter in letters.items()}

    def switches(self, *, batch_first: bool = False) -> Switches:
        """Return the switches that a backend needs."""
        check = self.negative_dt != "allow"
        return Switches(True, self.elastance, self.solver, self.unfolds, batch_first, check)

    def _scan(self, x: Tensor, h: Tensor, dt: float | Tensor, batch_major: bool) -> Tensor:
        switches = self.switches(batch_first=batch_major)
        # An exported program works for every length only if its loop is torch's own operator.
        if is_unknown(x.shape[0]) or not len(x):
            return super()._scan(x, h, dt, batch_major)
        backend = kernels.select(self.backend, x, switches, self.hidden_size, type(self).__name__, diagonal=True)
        if backend is None:
            return super()._scan(x, h, dt, batch_major)
        values = self.values()
        letters = torch.stack([values.unit[row] for row in ROWS])
        mixed = self.synapses == "mixed"
        # In the caller's layout, or torch's operators would copy the inputs and their gradients.
        major = x.transpose(0, 1) if batch_major else x
        if values.widest is None:
            inputs = _apply_synapses(values, major)
            inputs = inputs.transpose(0, 1) if batch_major else inputs
            linear = (inputs, values.weight, values.bias)
            states = backend.scan_diagonal_inputs(letters, switches, *linear, h, dt, mixed=mixed)
        else:
            terms = self.input_terms(values, major)
            terms = terms.transpose(0, 1) if batch_major else terms
            states = backend.scan_diagonal(letters, switches, terms, h, dt, mixed=mixed)
        warn_if_diverged(x, h, dt, states)
        return states

    def extra_repr(self) -> str:
        parts = f"{self.input_size}, {self.hidden_size}, elastance={self.elastance!r}, synapses={self.synapses!r}"
        parts += f", solver={self.solver!r}, unfolds={self.unfolds}"
        return parts if self.contraction is None else f"{parts}, contraction={self.contraction:g}"


def _check_contraction(given: Any, solver: str, negative_dt: str) -> float | None:
    """Return the option `contraction` if it is a rate that the steps of this solver can have."""
    if given is None:
        return None
    rate = read_number(given)
    if rate is None or not 0 < rate <= FASTEST:
        raise ValueError(f"contraction must be None or above 0 and at most {FASTEST}, but is {given!r}")
    if solver not in CONTRACTING_SOLVERS:
        raise ValueError(
            f"contraction needs a solver whose steps are proved to contract, {', '.join(CONTRACTING_SOLVERS)}, but the "
            f"solver is {solver!r}; choose one of these, or leave contraction out"
        )
    if negative_dt == "allow":
        raise ValueError(
            "contraction holds for dt >= 0 only, but negative_dt is 'allow', and a step back in time drives states "
            "apart; pass negative_dt='error' or 'clamp', or leave contraction out"
        )
    return rate
