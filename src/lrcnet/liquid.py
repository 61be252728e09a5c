"""The liquid equation, written once: dh/dt = eps(w) * (-F(f) * h + U(u) * e_l).

LTC, STC and LRC are this right-hand side with three switches: saturation on or off, and no, an asymmetric or a
symmetric elastance. Above, the equation as pure functions of a `Circuit`, the values a network computes with; below,
the learnable parameters behind a circuit.

Axes: B batch, m hidden units (states), n inputs, J = m + n presynaptic rows, the m states first, then the n inputs.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor, nn

from lrcnet.constraints import CONSTRAINTS, Constrained, nonnegative, raw_from_value
from lrcnet.errors import one_of, positive_size

Elastance = Literal["none", "asymmetric", "symmetric"]
ELASTANCES: tuple[str, ...] = get_args(Elastance)
Parametrisation = Literal["ab", "sigma-mu"]
PARAMETRISATIONS: tuple[str, ...] = get_args(Parametrisation)


class Circuit(NamedTuple):
    """What a liquid network computes with, constraints applied, in the paper's letters.

    a, b, g, k, o have shape (J, m); g_l, e_l, p, k_eps (m); the input map (n); the output map (m). None where a model
    has no such thing.
    """

    a: Tensor
    b: Tensor
    g: Tensor
    k: Tensor
    g_l: Tensor
    e_l: Tensor
    o: Tensor | None = None
    p: Tensor | None = None
    k_eps: Tensor | None = None
    input_scale: Tensor | None = None
    input_shift: Tensor | None = None
    output_scale: Tensor | None = None
    output_shift: Tensor | None = None


class Currents(NamedTuple):
    """The arguments f, u, w of the three gates, each (..., m); w is None without elastance."""

    f: Tensor
    u: Tensor
    w: Tensor | None


class Gates(NamedTuple):
    """Forget gate F(f), update gate U(u) and elastance eps(w), each (..., m); elastance is None where it is 1."""

    forget: Tensor
    update: Tensor
    elastance: Tensor | None


def synapses(y: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Open probability of every synaptic channel, sigma(a_ji y_j + b_ji), Eq. 1: y (..., J) -> (..., J, m)."""
    return torch.sigmoid(torch.addcmul(b, y.unsqueeze(-1), a))


def forget_gate(f: Tensor, saturated: bool) -> Tensor:
    """sigma(f) of Eq. 2, or f itself in the unsaturated LTC of Eq. 1."""
    return torch.sigmoid(f) if saturated else f


def update_gate(u: Tensor, saturated: bool) -> Tensor:
    """tau(u) of Eq. 2, or u itself in the unsaturated LTC of Eq. 1."""
    return torch.tanh(u) if saturated else u


def elastance_gate(w: Tensor, k_eps: Tensor | None) -> Tensor:
    """sigma(w), Eq. 4, or with k_eps the symmetric sigma(w + k) - sigma(w - k), Eq. 5."""
    return torch.sigmoid(w) if k_eps is None else torch.sigmoid(w + k_eps) - torch.sigmoid(w - k_eps)


def affine(values: Tensor, scale: Tensor | None, shift: Tensor | None) -> Tensor:
    """The input or output map, scale * values + shift per channel; values themselves where there is no map."""
    return values if scale is None or shift is None else values * scale + shift


def input_currents(circuit: Circuit, x: Tensor) -> Currents:
    """What the held input (..., n) and the leak give to f, u, w: the same in every unfolding of a step."""
    m = circuit.g_l.shape[0]
    x = affine(x, circuit.input_scale, circuit.input_shift)
    s = synapses(x, circuit.a[m:], circuit.b[m:])
    f = (circuit.g[m:] * s).sum(-2) + circuit.g_l
    u = (circuit.k[m:] * s).sum(-2) + circuit.g_l
    if circuit.o is None:
        return Currents(f, u, None)
    w = x @ circuit.o[m:]
    return Currents(f, u, w if circuit.p is None else w + circuit.p)


def currents(circuit: Circuit, held: Currents, h: Tensor) -> Currents:
    """f, u, w of Eqs. 1 and 3 for states h (..., m), given what the held input contributes."""
    m = circuit.g_l.shape[0]
    s = synapses(h, circuit.a[:m], circuit.b[:m])
    f = held.f + (circuit.g[:m] * s).sum(-2)
    u = held.u + (circuit.k[:m] * s).sum(-2)
    if held.w is None or circuit.o is None:
        return Currents(f, u, None)
    w = torch.addmm(held.w, h, circuit.o[:m]) if h.dim() == 2 else held.w + h @ circuit.o[:m]
    return Currents(f, u, w)


def gates(circuit: Circuit, held: Currents, h: Tensor, saturated: bool) -> Gates:
    """The three gates for states h (..., m)."""
    f, u, w = currents(circuit, held, h)
    eps = None if w is None else elastance_gate(w, circuit.k_eps)
    return Gates(forget_gate(f, saturated), update_gate(u, saturated), eps)


def split(circuit: Circuit, held: Currents, h: Tensor, saturated: bool) -> tuple[Tensor, Tensor]:
    """The right-hand side as (decay, drive), so that dh/dt = drive - decay * h: what every solver is built on."""
    forget, update, eps = gates(circuit, held, h, saturated)
    drive = update * circuit.e_l
    return (forget, drive) if eps is None else (eps * forget, eps * drive)


def centre_of(a: Tensor, b: Tensor) -> Tensor:
    """mu of sigma (y - mu) = a y + b, which is -b / a; a channel with a = b = 0 gets mu = 0.

    Raises:
        ValueError: where a = 0 and b != 0, which no mu expresses.
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
    """The learnable tensors behind a `Circuit`, with the paper's initial values.

    Args:
        input_size: n, may be 0.
        hidden_size: m.
        elastance: "none", "asymmetric" or "symmetric".
        bias: whether the elastance has its bias p.
        input_map, output_map: whether to have the per-channel affine maps.
        parametrisation: "ab" learns a and b, "sigma-mu" learns sigma = a and mu = -b / a: same functions, other
            gradients.
        constraint: "clamp" or "softplus", how g, g_l and k_eps are kept >= 0.
    """

    k: nn.Parameter
    e_l: nn.Parameter
    o: nn.Parameter | None
    p: nn.Parameter | None
    input_scale: nn.Parameter | None
    input_shift: nn.Parameter | None
    output_scale: nn.Parameter | None
    output_shift: nn.Parameter | None

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        elastance: str = "symmetric",
        bias: bool = True,
        input_map: bool = True,
        output_map: bool = False,
        parametrisation: str = "ab",
        constraint: str = "clamp",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.input_size = positive_size("input_size", input_size, least=0)
        self.hidden_size = positive_size("hidden_size", hidden_size)
        self.elastance = one_of("elastance", elastance, ELASTANCES)
        self.parametrisation = one_of("parametrisation", parametrisation, PARAMETRISATIONS)
        self.constraint = one_of("constraint", constraint, CONSTRAINTS)
        m, n = hidden_size, input_size

        def learn(name: str, *shape: int, when: bool = True) -> None:
            tensor = torch.empty(shape, device=device, dtype=dtype)
            self.register_parameter(name, nn.Parameter(tensor) if when else None)

        # A raw softplus value must not be mistaken for a conductance when a state_dict is carried over: other names.
        raw = "_raw" if constraint == "softplus" else ""
        self._slope, self._offset = ("a", "b") if parametrisation == "ab" else ("sigma", "mu")
        learn(self._slope, m + n, m)
        learn(self._offset, m + n, m)
        learn("g" + raw, m + n, m)
        learn("k", m + n, m)
        learn("g_l" + raw, m)
        learn("e_l", m)
        learn("o", m + n, m, when=elastance != "none")
        learn("p", m, when=elastance != "none" and bias)
        learn("k_eps" + raw, m, when=elastance == "symmetric")
        for name, size, when in (("input", n, input_map), ("output", m, output_map)):
            learn(f"{name}_scale", size, when=when)
            learn(f"{name}_shift", size, when=when)
        names = ["g", "g_l", "k_eps"] if elastance == "symmetric" else ["g", "g_l"]
        self.nonnegative_parameters = tuple(name + raw for name in names)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw the initial values of the authors' release, from torch's global generator."""
        m, n = self.hidden_size, self.input_size
        like = getattr(self, self._slope)
        if like.is_meta:
            return

        def uniform(low: float, high: float, *shape: int) -> Tensor:
            return torch.empty(shape, device=like.device, dtype=like.dtype).uniform_(low, high)

        def orthogonal(rows: int) -> Tensor:
            block = torch.empty(rows, m, device=like.device, dtype=like.dtype)
            return nn.init.orthogonal_(block) if rows else block

        a = uniform(3, 8, m + n, m)
        values: dict[str, Tensor | None] = {
            "a": a,
            "b": -a * uniform(0.3, 0.8, m + n, m),
            "g": uniform(0.001, 1, m + n, m),
            "k": torch.cat([orthogonal(m), orthogonal(n)]),
            "g_l": uniform(0.001, 1, m),
            "e_l": uniform(-0.2, 0.2, m),
        }
        if self.elastance != "none":
            glorot = (6 / (m + n + m)) ** 0.5
            values["o"] = uniform(-glorot, glorot, m + n, m)
        for name in self._present() - values.keys():
            size = n if name.startswith("input") else m
            start = 1.0 if name == "k_eps" or name.endswith("_scale") else 0.0
            values[name] = torch.full((size,), start, device=like.device, dtype=like.dtype)
        self.load_circuit(values)

    def _present(self) -> set[str]:
        """The letters of the circuit that this network has."""
        return {name for name, value in self.values()._asdict().items() if value is not None}

    def slopes_and_offsets(self) -> tuple[Tensor, Tensor]:
        """a and b, whichever parametrisation they are stored in."""
        slope, offset = getattr(self, self._slope), getattr(self, self._offset)
        return slope, offset if self.parametrisation == "ab" else -slope * offset

    def values(self) -> Circuit:
        """The circuit as differentiable tensors: what forward computes with."""
        a, b = self.slopes_and_offsets()
        raw = "_raw" if self.constraint == "softplus" else ""
        k_eps = getattr(self, "k_eps" + raw)
        return Circuit(
            a=a,
            b=b,
            g=nonnegative(getattr(self, "g" + raw), self.constraint),
            k=self.k,
            g_l=nonnegative(getattr(self, "g_l" + raw), self.constraint),
            e_l=self.e_l,
            o=self.o,
            p=self.p,
            k_eps=None if k_eps is None else nonnegative(k_eps, self.constraint),
            input_scale=self.input_scale,
            input_shift=self.input_shift,
            output_scale=self.output_scale,
            output_shift=self.output_shift,
        )

    @torch.no_grad()
    def circuit(self) -> dict[str, Tensor | None]:
        """The circuit as a dictionary of detached copies, in the paper's letters; see `Circuit`."""
        return {name: None if v is None else v.detach().clone() for name, v in self.values()._asdict().items()}

    @torch.no_grad()
    def load_circuit(self, circuit: Mapping[str, Tensor | None]) -> None:
        """Take over a circuit, whatever parametrisation and constraint either side uses; the inverse of `circuit`.

        Raises:
            ValueError: for a missing, unknown or superfluous letter, a wrong shape, or a negative g, g_l or k_eps.
                Nothing is changed then.
        """
        expected = {name: value.shape for name, value in self.values()._asdict().items() if value is not None}
        given = {name: value for name, value in circuit.items() if value is not None}
        if given.keys() != expected.keys():
            raise ValueError(
                f"the circuit must have exactly {', '.join(sorted(expected))}, but was given "
                f"{', '.join(sorted(given)) or 'nothing'}; leave out or set to None what this network does not have"
            )
        like = getattr(self, self._slope)
        new: dict[str, Tensor] = {}
        for name, value in given.items():
            value = torch.as_tensor(value).detach().to(device=like.device, dtype=like.dtype)
            if value.shape != expected[name]:
                raise ValueError(
                    f"{name} must have shape {tuple(expected[name])}, but has {tuple(value.shape)}; rows are the "
                    f"{self.hidden_size} states first, then the {self.input_size} inputs"
                )
            if name in ("g", "g_l", "k_eps"):
                if bool((value < 0).any()):
                    raise ValueError(
                        f"{name} must be >= 0, but its smallest value is {value.min().item():g}; clamp it first"
                    )
                name, value = (
                    (f"{name}_raw" if self.constraint == "softplus" else name),
                    raw_from_value(value, self.constraint),
                )
            new[name] = value
        if self.parametrisation == "sigma-mu":
            new["sigma"] = new.pop("a")
            new["mu"] = centre_of(new["sigma"], new.pop("b"))
        for name, value in new.items():
            getattr(self, name).copy_(value)
