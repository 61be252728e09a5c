"""The letters of the liquid equation: one row for each tensor that a network computes with, and a model's switches.

The table `LETTERS` is the only list of the letters. The checks of a kernel's arguments and their messages, the
operator's schema, and the registration of the learnable parameters are all made from it. A new letter is a field of
`Circuit` and a row of `LETTERS`, its place in the equation (`lrcnet.liquid`) and in the kernels.

Axes: m hidden units (states), n inputs, J = m + n presynaptic rows, the m states first, then the n inputs.
"""

from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor

Elastance = Literal["none", "asymmetric", "symmetric"]

SLOPE = "slope"
"""Stands for a solver's name in `Switches` where the right-hand side itself, dh/dt, is wanted instead of a step."""


class Circuit(NamedTuple):
    """The values that a liquid network computes with, constraints applied, in the paper's letters.

    a, b, g, k, o have shape (J, m); g_l, e_l, p, k_eps (m); the input map (n); the output map (m). A letter that the
    model does not have is None. The mask of a wiring is no letter: it says which synapses exist, bool (J, m), and None
    means all of them. Where a synapse is missing, a, b, g, k and o count as 0 whatever they hold.
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
    mask: Tensor | None = None

    @property
    def units(self) -> int:
        """m; 0 if g_l, which every network has, was left out."""
        return 0 if self.g_l is None else self.g_l.numel()


class Switches(NamedTuple):
    """The choices that make a model of the equation, and how a backend is to run it; the default is an LRCU.

    Attributes:
        saturated: F, U = sigmoid, tanh instead of the identity.
        elastance: a name in `ELASTANCES`.
        solver: a name in `lrcnet.solvers.SOLVERS`, or `SLOPE`.
        unfolds: K, solver steps per input.
        batch_first: whether the samples of the answer lie together in memory; (B, T, n) instead of (T, B, n) for the
            operators.
        check_dt: whether a negative dt is an error; a NaN always is.
        scaled: whether the letters that come along are stored values, which the backend multiplies by the units of
            `LETTERS`; their gradients are those of the stored values.
    """

    saturated: bool = True
    elastance: str = "symmetric"
    solver: str = "euler"
    unfolds: int = 1
    batch_first: bool = False
    check_dt: bool = True
    scaled: bool = False


class ElastanceForm(NamedTuple):
    """One form of the elastance.

    Attributes:
        gate: eps as a function of w and of the form's own letters, in the order of `letters`.
        letters: names of the form's own letters.
        inverse: w as a function of eps and of the same letters; None where eps does not depend on w.
    """

    gate: Callable[..., Tensor]
    letters: tuple[str, ...] = ()
    inverse: Callable[..., Tensor] | None = None


def _no_elastance(w: Tensor) -> Tensor:
    return torch.ones_like(w)


def _asymmetric(w: Tensor) -> Tensor:
    """sigma(w), Eq. 4."""
    return torch.sigmoid(w)


def _symmetric(w: Tensor, k_eps: Tensor) -> Tensor:
    """sigma(w + k) - sigma(w - k), Eq. 5."""
    return torch.sigmoid(w + k_eps) - torch.sigmoid(w - k_eps)


def _symmetric_inverse(eps: Tensor, k_eps: Tensor) -> Tensor:
    """Return the w >= 0 of an elastance, or 0 if even the largest one, tanh(k / 2), is smaller.

    sigma(w + k) - sigma(w - k) = sinh(k) / (cosh(k) + cosh(w)).
    """
    return torch.acosh((torch.sinh(k_eps) / eps - torch.cosh(k_eps)).clamp(min=1))


ELASTANCES: dict[str, ElastanceForm] = {
    "none": ElastanceForm(_no_elastance),
    "asymmetric": ElastanceForm(_asymmetric, (), torch.logit),
    "symmetric": ElastanceForm(_symmetric, ("k_eps",), _symmetric_inverse),
}
"""name -> its equation and its own letters; any elastance but "none" also needs o, and may have p, which make w."""


def _always(switches: Switches) -> bool:
    return True


def _with_elastance(switches: Switches) -> bool:
    return switches.elastance != "none"


def _with_width(switches: Switches) -> bool:
    return "k_eps" in ELASTANCES[switches.elastance].letters


class Letter(NamedTuple):
    """One row of `LETTERS`.

    Attributes:
        axes: the shape, in the symbols of the head of this file.
        used: whether the equation has this letter under given switches.
        option: the option of `LiquidParameters` that adds the letter; None if a network cannot do without it.
        nonnegative: whether the value is constrained to be >= 0.
        start: the initial value, unless `LiquidParameters.reset_parameters` draws one.
        reads_out: whether the letter only maps the output, so that no step needs it.
        unit: the value that is stored as 1 by parametrisation="scaled", about the size of the letter's changes in
            training; a power of two, so that no conversion rounds.
    """

    axes: str
    used: Callable[[Switches], bool] = _always
    option: str | None = None
    nonnegative: bool = False
    start: float = 0.0
    reads_out: bool = False
    unit: float = 1.0

    @property
    def always_there(self) -> bool:
        """Whether every network has this letter."""
        return self.used is _always and self.option is None

    def shape(self, inputs: int, units: int) -> tuple[int, ...]:
        """Return the shape for n inputs and m units."""
        sizes = {"J": inputs + units, "m": units, "n": inputs}
        return tuple(sizes[axis] for axis in self.axes.split())

    def needed(self, switches: Switches) -> bool:
        """Return whether a network with these switches cannot do without this letter."""
        return self.option is None and self.used(switches)


LETTERS: dict[str, Letter] = {
    "a": Letter("J m", unit=2),
    "b": Letter("J m", unit=4),
    "g": Letter("J m", nonnegative=True, unit=2),
    "k": Letter("J m"),
    "g_l": Letter("m", nonnegative=True, unit=2),
    "e_l": Letter("m"),
    "o": Letter("J m", _with_elastance, unit=2),
    "p": Letter("m", _with_elastance, option="bias", unit=2),
    "k_eps": Letter("m", _with_width, nonnegative=True, start=1.0, unit=2),
    "input_scale": Letter("n", option="input_map", start=1.0, unit=0.5),
    "input_shift": Letter("n", option="input_map", unit=0.5),
    "output_scale": Letter("m", option="output_map", start=1.0, reads_out=True),
    "output_shift": Letter("m", option="output_map", reads_out=True),
}
"""name -> row, in the order of the fields of `Circuit`, which ends with the mask, and of the operators' schema."""

SYNAPTIC_LETTERS: tuple[str, ...] = tuple(name for name, letter in LETTERS.items() if letter.axes == "J m")
"""The letters with a value for every synapse, which the mask of a wiring covers."""

STEP_LETTERS: tuple[str, ...] = tuple(name for name, letter in LETTERS.items() if not letter.reads_out)
"""The letters that a step computes with: the first fields of a `Circuit`, and the tensors of a kernel."""


def check_letters(letters: Sequence[Tensor | None], switches: Switches, like: Tensor, *, contiguous: bool) -> None:
    """Raise unless every letter of a call is as the input and g_l imply.

    Args:
        letters: a `Circuit`, or its step letters alone.
        like: the input; n is its last dimension, and all letters must have its dtype and device.
        contiguous: whether the letters must lie in memory without gaps.

    Raises:
        ValueError: for the first letter that is missing, has another shape, dtype or device, or is not contiguous; and
            for such a mask.
    """
    given = dict(zip(STEP_LETTERS, letters, strict=False))
    g_l = given["g_l"]
    if g_l is None:
        raise ValueError("g_l must be given, but is None; every network has it")
    for name, tensor in given.items():
        shape = LETTERS[name].shape(like.shape[-1], g_l.numel())
        if tensor is None:
            if LETTERS[name].needed(switches):
                raise ValueError(f"{name} must be given with elastance={switches.elastance!r}, but is None")
        elif (
            tensor.shape != shape
            or (tensor.dtype, tensor.device) != (like.dtype, like.device)
            or (contiguous and not tensor.is_contiguous())
        ):
            raise ValueError(describe_mismatch(name, tensor, shape, like))
    if isinstance(letters, Circuit) and letters.mask is not None:
        check_mask(letters.mask, LETTERS["a"].shape(like.shape[-1], g_l.numel()), like, contiguous=contiguous)


def check_mask(mask: Tensor, shape: tuple[int, ...], like: Tensor, *, contiguous: bool) -> None:
    """Raise unless the mask of a wiring has a bool for every synapse, on the input's device.

    Raises:
        ValueError: for another shape, dtype or device, or a gap in memory if it must be contiguous.
    """
    if mask.dtype is not torch.bool:
        raise ValueError(f"mask must be torch.bool, True where a synapse exists, but is {mask.dtype}; convert it")
    if mask.shape != shape or mask.device != like.device or (contiguous and not mask.is_contiguous()):
        raise ValueError(describe_mismatch("mask", mask, shape, like))


def describe_mismatch(name: str, tensor: Tensor, shape: tuple[int, ...], like: Tensor) -> str:
    """Return the sentence for a tensor that is not what a kernel call needs."""
    if tensor.shape != shape:
        return f"{name} must have shape {shape}, but has {tuple(tensor.shape)}"
    is_mask = tensor.dtype is torch.bool
    if tensor.device != like.device or not (is_mask or tensor.dtype == like.dtype):
        place = "the CPU" if like.is_cpu else str(like.device)
        return (
            f"{name} must be {like.dtype} on {place}, as x is, but is {tensor.dtype} on {tensor.device}; convert one "
            "of them"
        )
    return f"{name} must be contiguous in memory, but has strides {tensor.stride()}; call contiguous() on it"


NO_LETTERS = Circuit._make([None] * len(Circuit._fields))
"""A circuit without any letter, to be filled by `_replace`."""


def constrain(circuit: Circuit, scaled: bool) -> Circuit:
    """Return the step letters that a backend computes with: in their units, clamped at 0, and 0 without a synapse."""
    values: dict[str, Tensor] = {}
    for name in STEP_LETTERS:
        value = getattr(circuit, name)
        if value is not None:
            value = value * LETTERS[name].unit if scaled else value
            value = value.clamp(min=0) if LETTERS[name].nonnegative else value
            if circuit.mask is not None and name in SYNAPTIC_LETTERS:
                value = torch.where(circuit.mask, value, 0.0)
            values[name] = value
    return NO_LETTERS._replace(**values)
