"""The liquid equation, written once: dh/dt = eps(w) * (-F(f) * h + U(u) * e_l).

LTC, STC and LRC are this right-hand side with three switches: saturation on or off, and no, an asymmetric or a
symmetric elastance. The first half is the equation as pure functions of a `Circuit`, the values a network computes
with; the second half is the learnable parameters behind a circuit.

Axes: B batch, m hidden units (states), n inputs, J = m + n presynaptic rows, the m states first, then the n inputs.
"""

from collections.abc import Mapping
from operator import itemgetter
from typing import Any, ClassVar, Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from lrcnet.circuit import ELASTANCES, LETTERS, SYNAPTIC_LETTERS, Circuit, Elastance, Switches
from lrcnet.constraints import CONSTRAINTS, Constrained, nonnegative, raw_from_value
from lrcnet.errors import check_flag, check_placement, one_of, positive_size
from lrcnet.initial_values import INITS, Draw, wire_values
from lrcnet.masks import apply_mask, check_saved_mask, count_units, read_mask
from lrcnet.reversal import with_reversal_potentials, without_reversal_potentials
from lrcnet.tracing import compiling
from lrcnet.units import convert_units
from lrcnet.value_checks import to_real_tensor
from lrcnet.wirings import Wiring

__all__ = [
    "ELASTANCES",
    "PARAMETRISATIONS",
    "Circuit",
    "Currents",
    "Elastance",
    "Gates",
    "LiquidParameters",
    "Parametrisation",
    "Switches",
    "affine",
    "centre_of",
    "currents",
    "elastance_gate",
    "elastance_of",
    "forget_gate",
    "gates",
    "input_currents",
    "split",
    "synapses",
    "update_gate",
]

Parametrisation = Literal["scaled", "ab", "sigma-mu"]
PARAMETRISATIONS: tuple[str, ...] = get_args(Parametrisation)
"""The values of the option `parametrisation`; the first one is the default."""

_LETTERS_AFTER_B = tuple(LETTERS)[2:]
# The fastest way to read them, but torch.compile cannot trace it.
_all_letters = itemgetter(*LETTERS)


class Currents(NamedTuple):
    """The arguments f, u, w of the three gates, each (..., m); w is None without elastance."""

    f: Tensor
    u: Tensor
    w: Tensor | None


class Gates(NamedTuple):
    """Forget gate F(f), update gate U(u) and elastance eps(w), each (..., m); elastance is None if it is 1."""

    forget: Tensor
    update: Tensor
    elastance: Tensor | None


def synapses(y: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Return the open probability of every synaptic channel, sigma(a_ji y_j + b_ji), Eq. 1: (..., J) -> (..., J, m)."""
    return torch.sigmoid(torch.addcmul(b, y.unsqueeze(-1), a))


def forget_gate(f: Tensor, saturated: bool) -> Tensor:
    """Return sigma(f) of Eq. 2, or f itself in the unsaturated LTC of Eq. 1."""
    return torch.sigmoid(f) if saturated else f


def update_gate(u: Tensor, saturated: bool) -> Tensor:
    """Return tau(u) of Eq. 2, or u itself in the unsaturated LTC of Eq. 1."""
    return torch.tanh(u) if saturated else u


def elastance_gate(elastance: str, w: Tensor, *letters: Tensor) -> Tensor:
    """Return eps(w) of a named elastance, Eqs. 4 and 5; its own letters come in the order of `ELASTANCES`."""
    return ELASTANCES[elastance].gate(w, *letters)


def affine(values: Tensor, scale: Tensor | None, shift: Tensor | None) -> Tensor:
    """Apply the input or output map, scale * values + shift per channel, if there is one."""
    return values if scale is None or shift is None else values * scale + shift


def input_currents(circuit: Circuit, x: Tensor) -> Currents:
    """Return the part of f, u, w due to an input (..., n) and the leak: the same in every unfolding of a step."""
    m = circuit.g_l.shape[0]
    x = affine(x, circuit.input_scale, circuit.input_shift)
    s = synapses(x, circuit.a[m:], circuit.b[m:])
    f = (circuit.g[m:] * s).sum(-2) + circuit.g_l
    u = (circuit.k[m:] * s).sum(-2) + circuit.g_l
    if circuit.o is None:
        return Currents(f, u, None)
    w = x @ circuit.o[m:]
    return Currents(f, u, w if circuit.p is None else w + circuit.p)


def currents(circuit: Circuit, from_input: Currents, h: Tensor) -> Currents:
    """Return f, u, w of Eqs. 1 and 3 for states h (..., m), given the input's part."""
    m = circuit.g_l.shape[0]
    s = synapses(h, circuit.a[:m], circuit.b[:m])
    f = from_input.f + (circuit.g[:m] * s).sum(-2)
    u = from_input.u + (circuit.k[:m] * s).sum(-2)
    if from_input.w is None or circuit.o is None:
        return Currents(f, u, None)
    w = torch.addmm(from_input.w, h, circuit.o[:m]) if h.dim() == 2 else from_input.w + h @ circuit.o[:m]
    return Currents(f, u, w)


def elastance_of(circuit: Circuit, switches: Switches, w: Tensor | None) -> Tensor | None:
    """Return eps(w) with a circuit's own letters; None without elastance, which means 1."""
    if w is None:
        return None
    name = switches.elastance
    return elastance_gate(name, w, *(getattr(circuit, letter) for letter in ELASTANCES[name].letters))


def gates(circuit: Circuit, from_input: Currents, h: Tensor, switches: Switches) -> Gates:
    """Return the three gates for states h (..., m)."""
    f, u, w = currents(circuit, from_input, h)
    saturated = switches.saturated
    return Gates(forget_gate(f, saturated), update_gate(u, saturated), elastance_of(circuit, switches, w))


def split(circuit: Circuit, from_input: Currents, h: Tensor, switches: Switches) -> tuple[Tensor, Tensor]:
    """Return (decay, drive) of dh/dt = drive - decay * h: the form that every solver is built on."""
    forget, update, eps = gates(circuit, from_input, h, switches)
    drive = update * circuit.e_l
    return (forget, drive) if eps is None else (eps * forget, eps * drive)


def centre_of(a: Tensor, b: Tensor) -> Tensor:
    """Return mu of sigma (y - mu) = a y + b, which is -b / a; a channel with a = b = 0 gets mu = 0.

    Raises:
        ValueError: if a = 0 and b != 0 somewhere, which no mu expresses.
    """
    flat = a == 0
    if bool((flat & (b != 0)).any()):
        j, i = (int(v) for v in (flat & (b != 0)).nonzero()[0])
        raise ValueError(
            f"a synapse with a = 0 must have b = 0 to be written as sigma (y - mu), but a[{j}, {i}] = 0 and "
            f"b[{j}, {i}] = {b[j, i].item():g}; use parametrisation='ab' for this network"
        )
    return torch.where(flat, torch.zeros_like(b), -b / torch.where(flat, torch.ones_like(a), a))


class LiquidParameters(Constrained):
    """The learnable tensors behind a `Circuit`.

    Args:
        input_size: n, may be 0.
        hidden_size: m.
        elastance: "none", "asymmetric" or "symmetric".
        bias: whether the elastance has its bias p.
        input_map, output_map: whether there are the per-channel affine maps.
        parametrisation: the same functions, but different gradients. "ab" learns the letters themselves, and
            "sigma-mu" sigma = a and mu = -b / a. "scaled" learns each letter in its unit (`LETTERS`), so that an
            optimiser such as Adam, which moves all parameters by the same amount, moves them by a similar share.
        constraint: "clamp" or "softplus", how g, g_l and k_eps are kept >= 0.
        init: a name in `INITS`; "paper" gives the values of the paper's authors.
        wiring: the synapses that exist, and the initial signs of k * e_l; all synapses if None. The network works on a
            copy that is built for its inputs, `self.wiring`. hidden_size may then be None. A wiring with missing
            synapses adds the buffer `mask` to the state dict.

    State dicts of "scaled" and "ab" can be loaded into each other: the former has an entry `units`, see
    `lrcnet.units`.
    """

    saturated: ClassVar[bool] = True
    k: nn.Parameter
    output_scale: nn.Parameter | None
    output_shift: nn.Parameter | None
    units: Tensor
    mask: Tensor | None

    def __init__(
        self,
        input_size: int,
        hidden_size: int | None = None,
        *,
        elastance: str = "symmetric",
        bias: bool = True,
        input_map: bool = True,
        output_map: bool = False,
        parametrisation: str = "scaled",
        constraint: str = "clamp",
        init: str = "balanced",
        wiring: Wiring | None = None,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.input_size = positive_size("input_size", input_size, least=0)
        self.hidden_size = hidden_size = count_units(hidden_size, wiring)
        self.wiring = None if wiring is None else wiring.build_copy(input_size)
        self.elastance = one_of("elastance", elastance, ELASTANCES)
        self.parametrisation = one_of("parametrisation", parametrisation, PARAMETRISATIONS)
        self.constraint = one_of("constraint", constraint, CONSTRAINTS)
        self.init = one_of("init", init, INITS)
        options = {"bias": bias, "input_map": input_map, "output_map": output_map}
        for name, flag in options.items():
            check_flag(name, flag)
        check_placement(device, dtype)
        switches = Switches(elastance=elastance)
        # A raw softplus value must not be mistaken for a conductance when a state_dict is carried over, nor sigma and
        # mu for a and b: they have names of their own.
        self._names = {name: name for name in LETTERS}
        if constraint == "softplus":
            self._names |= {name: f"{name}_raw" for name, letter in LETTERS.items() if letter.nonnegative}
        if parametrisation == "sigma-mu":
            self._names |= {"a": "sigma", "b": "mu"}
        for name, letter in LETTERS.items():
            present = letter.used(switches) and (letter.option is None or options[letter.option])
            tensor = torch.empty(letter.shape(input_size, hidden_size), device=device, dtype=dtype)
            self.register_parameter(self._names[name], nn.Parameter(tensor) if present else None)
        self.nonnegative_parameters = tuple(self._names[name] for name in self._present() if LETTERS[name].nonnegative)
        if parametrisation == "scaled":
            # For state dicts only: the computation takes the units from the table.
            self.register_buffer("units", torch.empty(len(LETTERS), device=device, dtype=dtype))
        complete = self.wiring is None or bool(self.wiring.polarities().all())
        mask = None if complete else torch.empty(input_size + hidden_size, hidden_size, device=device, dtype=torch.bool)
        self.register_buffer("mask", mask)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw new initial values from torch's global generator, as the option `init` says."""
        like = getattr(self, self._names["a"])
        if like.is_meta:
            return
        draw = Draw(self.input_size, self.hidden_size, like)
        drawn = INITS[self.init](draw, Switches(self.saturated, self.elastance))
        if self.wiring is not None:
            polarities = torch.as_tensor(self.wiring.polarities(), dtype=like.dtype, device=like.device)
            drawn = wire_values(self.init, drawn, polarities)
        values = {name: drawn[name] if name in drawn else draw.constant(name) for name in self._present()}
        self.load_circuit(values)

    def _present(self) -> list[str]:
        """Return the letters that this network has."""
        return [name for name, stored in self._names.items() if getattr(self, stored) is not None]

    def _unit(self, name: str) -> float:
        """Return the value of a letter that this network stores as 1."""
        letter = LETTERS[name]
        # Under softplus the stored value of a conductance is no conductance.
        raw = letter.nonnegative and self.constraint == "softplus"
        return 1.0 if raw or self.parametrisation != "scaled" else letter.unit

    def _own_units(self) -> dict[str, float]:
        return {name: self._unit(name) for name in LETTERS}

    def slopes_and_offsets(self) -> tuple[Tensor, Tensor]:
        """Return a and b, whichever parametrisation they are stored in."""
        slope, offset = self.letter("a"), self.letter("b")
        return slope, -slope * offset if self.parametrisation == "sigma-mu" else offset

    def values(self) -> Circuit:
        """Return the circuit as differentiable tensors, constraints applied: the values that forward computes with."""
        a, b = self.slopes_and_offsets()
        return Circuit._make([a, b, *[self.letter(name) for name in _LETTERS_AFTER_B], self.mask])

    def letter(self, name: str) -> Any:
        """Return one letter, constraints, unit and mask applied; None if this network does not have it.

        For a and b, call `slopes_and_offsets`: here they are sigma and mu if that is how they are stored.
        """
        stored, unit = getattr(self, self._names[name]), self._unit(name)
        if stored is None:
            return None
        value = nonnegative(stored, self.constraint) if LETTERS[name].nonnegative else stored
        value = value if unit == 1 else value * unit
        # Not a product: a stored NaN or infinity of a missing synapse must not come through.
        return value if self.mask is None or name not in SYNAPTIC_LETTERS else torch.where(self.mask, value, 0.0)

    def kernel_scales(self) -> bool:
        """Return whether a backend can multiply by the units: it does so before it clamps."""
        own = self.__dict__  # By attributes, nn.Module's look-up would be seen in a single step.
        plain = "parametrizations" not in own["_modules"]
        return plain and own["parametrisation"] == "scaled" and own["constraint"] == "clamp"

    def values_for_kernel(self, scaled: bool) -> Circuit:
        """Return the circuit as a backend takes it: unclamped if a clamp is the constraint, which a backend applies.

        Args:
            scaled: whether the backend multiplies by the units too; only if `kernel_scales()`.
        """
        if not scaled and (
            self.constraint != "clamp" or self.parametrisation == "scaled" or "parametrizations" in self._modules
        ):
            return self.values()
        # Not by attributes, as above.
        stored: Mapping[str, Any] = self._parameters
        mask = self._buffers["mask"]
        if scaled or self.parametrisation == "ab":
            try:
                if not compiling():  # Circuit's own constructor would be seen in a single step.
                    return tuple.__new__(Circuit, (*_all_letters(stored), mask))
                letters = [stored[name] for name in LETTERS]
            except KeyError:  # A parameter was replaced by a tensor, as pruning and MAML do.
                letters = [getattr(self, name) for name in LETTERS]
            return Circuit._make([*letters, mask])
        return Circuit._make([*self.slopes_and_offsets(), *[getattr(self, name) for name in _LETTERS_AFTER_B], mask])

    @torch.no_grad()
    def circuit(self, *, reversal_potentials: bool = False) -> dict[str, Tensor | None]:
        """Return the circuit as a dictionary of detached copies, in the paper's letters; see `Circuit`.

        Args:
            reversal_potentials: whether to return e = k e_l / g in place of k; see `lrcnet.reversal`.
        """
        values = self.values()._asdict()
        letters = {name: None if values[name] is None else values[name].detach().clone() for name in LETTERS}
        return with_reversal_potentials(letters) if reversal_potentials else letters

    @torch.no_grad()
    def load_circuit(self, circuit: Mapping[str, Tensor | None]) -> None:
        """Take over a circuit, whatever parametrisation and constraint either side uses; the inverse of `circuit`.

        Reversal potentials e may take the place of k.

        Raises:
            ValueError: for a missing, unknown or superfluous letter, a wrong shape, NaN, a negative g, g_l or k_eps, or
                a value other than 0 of g, k or o where the wiring has no synapse. Nothing is changed then.
        """
        expected = {name: LETTERS[name].shape(self.input_size, self.hidden_size) for name in self._present()}
        circuit = without_reversal_potentials(circuit)
        given = {name: value for name, value in circuit.items() if value is not None}
        if given.keys() != expected.keys():
            raise ValueError(
                f"the circuit must have exactly {', '.join(sorted(expected))}, but was given "
                f"{', '.join(sorted(given)) or 'nothing'}; leave out the others or set them to None"
            )
        like = getattr(self, self._names["a"])
        mask = read_mask(self.wiring, self.mask)
        new: dict[str, Tensor] = {}
        for name, value in given.items():
            value = to_real_tensor(name, value, like)
            if value.shape != expected[name]:
                raise ValueError(
                    f"{name} must have shape {expected[name]}, but has {tuple(value.shape)}; rows are the "
                    f"{self.hidden_size} states first, then the {self.input_size} inputs"
                )
            if bool(value.isnan().any()):
                raise ValueError(f"{name} must be a number everywhere, but is NaN somewhere; load another circuit")
            if mask is not None and name in SYNAPTIC_LETTERS:
                value = apply_mask(name, value, mask)
            if LETTERS[name].nonnegative:
                if bool((value < 0).any()):
                    raise ValueError(
                        f"{name} must be >= 0, but its smallest value is {value.min().item():g}; clamp it first"
                    )
                value = raw_from_value(value, self.constraint)
            new[name] = value
        if self.parametrisation == "sigma-mu":
            new["b"] = centre_of(new["a"], new["b"])
        if self.mask is not None and mask is not None:
            self.mask.copy_(mask)
        for name, value in new.items():
            getattr(self, self._names[name]).copy_(value / self._unit(name))
        if self.parametrisation == "scaled":
            # Here, because after to_empty() they are as arbitrary as the parameters.
            self.units.copy_(self.units.new_tensor(list(self._own_units().values())))

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        """Load values in any units, converted to this network's own; its `units` do not change."""
        scaled, error_messages = self.parametrisation == "scaled", rest[-1]
        refusal = check_saved_mask(state_dict, f"{prefix}mask", read_mask(self.wiring, self.mask))
        if refusal is not None:
            error_messages.append(refusal)
            return
        try:
            convert_units(state_dict, prefix, self._names, self._own_units(), has_entry=scaled)
        except ValueError as error:
            error_messages.append(str(error))
            return
        super()._load_from_state_dict(state_dict, prefix, *rest)
