"""The arguments of the compiled functions: what their shapes must be, and where they lie.

Axes: T time, B batch, n inputs, m hidden units, K unfoldings. x is (T, B, n), or (B, T, n) if batch_first.
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

ELASTANCES = ("none", "asymmetric", "symmetric")
SOLVERS = ("euler", "hybrid", "exponential")


class Sizes(NamedTuple):
    """What the shapes of a call say."""

    steps: int
    batch: int
    inputs: int
    units: int

    @classmethod
    def of(cls, x: Tensor, g_l: Tensor, batch_first: bool) -> "Sizes":
        batch, steps = (x.shape[0], x.shape[1]) if batch_first else (x.shape[1], x.shape[0])
        return cls(steps, batch, x.shape[2], g_l.shape[0])

    def states(self, batch_first: bool) -> tuple[int, int, int]:
        return (self.batch, self.steps, self.units) if batch_first else (self.steps, self.batch, self.units)

    def saved(self, elastance: str, unfolds: int) -> tuple[int, ...]:
        """F, U, then w with an elastance, then the state before each unfolding where there are several."""
        planes = 2 + (elastance != "none") + (unfolds > 1)
        return (self.steps, unfolds, self.batch, planes, self.units)


def address(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.data_ptr()


def time_and_batch(tensor: Tensor | None, batch_first: bool) -> tuple[int, int]:
    """Strides along time and batch."""
    if tensor is None:
        return 0, 0
    return (tensor.stride(1), tensor.stride(0)) if batch_first else (tensor.stride(0), tensor.stride(1))


class Call:
    """The arguments of the compiled functions; keeps what they point to alive."""

    def __init__(
        self,
        x: Tensor,
        h0: Tensor | None,
        dt: Tensor | None,
        *parameters: Tensor | None,
        dt_value: float,
        saturated: bool,
        elastance: str,
        solver: str,
        unfolds: int,
        batch_first: bool,
    ) -> None:
        # Addresses are handed to C from here on: a wrong size must not get further than this.
        if not _sound(x, h0, dt, parameters, elastance, batch_first):
            check(x, h0, dt, *parameters, elastance=elastance, batch_first=batch_first)
        self.sizes = sizes = Sizes.of(x, parameters[4], batch_first)  # type: ignore[arg-type]
        self.batch_first = batch_first
        self.x, self.dt, self.dt_value = x, dt, dt_value
        self.h0 = None if h0 is None else h0.contiguous()
        self.parameters = [None if p is None else p.contiguous() for p in parameters]
        self.is_double = x.dtype == torch.float64
        self.model = (
            saturated,
            ELASTANCES.index(elastance),
            SOLVERS.index(solver),
            unfolds,
            sizes.inputs,
            sizes.units,
            *(address(p) for p in self.parameters),
        )

    def sequence(self, states: Tensor, saved: Tensor) -> tuple[Any, ...]:
        return (
            torch.get_num_threads(),
            self.sizes.steps,
            self.sizes.batch,
            self.x.data_ptr(),
            *time_and_batch(self.x, self.batch_first),
            self.x.stride(2),
            address(self.h0),
            address(self.dt),
            *time_and_batch(self.dt, self.batch_first),
            self.dt_value,
            states.data_ptr(),
            *time_and_batch(states, self.batch_first),
            address(saved) if saved.numel() else 0,
        )


def _sound(
    x: Tensor,
    h0: Tensor | None,
    dt: Tensor | None,
    parameters: tuple[Tensor | None, ...],
    elastance: str,
    batch_first: bool,
) -> bool:
    """Whether `check` would find nothing, in a tenth of its time; False leaves it to `check` to say what is wrong."""
    a, b, g, k, g_l, e_l, o, p, k_eps, scale, shift = parameters
    if a is None or b is None or g is None or k is None or g_l is None or e_l is None:
        return False
    if (o is None and elastance != "none") or (k_eps is None and elastance == "symmetric"):
        return False
    shape = x.shape
    if len(shape) != 3 or g_l.dim() != 1:
        return False
    units, matrix, vector, channels = g_l.shape[0], a.shape, g_l.shape, shape[2:]
    if matrix != (shape[2] + units, units) or not matrix == b.shape == g.shape == k.shape or e_l.shape != vector:
        return False
    dtype, device = x.dtype, x.device
    for tensor in (a, b, g, k, g_l, e_l):
        if tensor.dtype is not dtype or tensor.device != device:
            return False
    start = (shape[0] if batch_first else shape[1], units)
    optional = (
        (o, matrix),
        (p, vector),
        (k_eps, vector),
        (scale, channels),
        (shift, channels),
        (h0, start),
        (dt, shape[:2]),
    )
    for given, expected in optional:
        if given is not None and (given.shape != expected or given.dtype is not dtype or given.device != device):
            return False
    return True


def check(
    x: Tensor, h0: Tensor | None, dt: Tensor | None, *parameters: Tensor | None, elastance: str, batch_first: bool
) -> None:
    """Raise unless every tensor has the shape, dtype and device that x and g_l imply."""
    names = ("a", "b", "g", "k", "g_l", "e_l", "o", "p", "k_eps", "input_scale", "input_shift")
    given = dict(zip(names, parameters, strict=True))
    g_l = given["g_l"]
    if x.dim() != 3 or g_l is None or g_l.dim() != 1:
        raise ValueError(f"x must have 3 dimensions and g_l one, but x has {x.dim()}; add the batch and time axes")
    sizes = Sizes.of(x, g_l, batch_first)
    rows, m = sizes.inputs + sizes.units, sizes.units
    shapes: dict[str, tuple[int, ...]] = dict.fromkeys(("a", "b", "g", "k", "o"), (rows, m))
    shapes |= dict.fromkeys(("g_l", "e_l", "p", "k_eps"), (m,))
    shapes |= dict.fromkeys(("input_scale", "input_shift"), (sizes.inputs,))
    shapes |= {"h0": (sizes.batch, m), "dt": (x.shape[0], x.shape[1])}
    needed = {"a", "b", "g", "k", "g_l", "e_l"}
    if elastance != "none":
        needed.add("o")
    if elastance == "symmetric":
        needed.add("k_eps")
    for name, tensor in {**given, "h0": h0, "dt": dt}.items():
        if tensor is None:
            if name in needed:
                raise ValueError(f"{name} must be given with elastance={elastance!r}, but is None")
            continue
        if tensor.shape != shapes[name]:
            raise ValueError(f"{name} must have shape {shapes[name]}, but has {tuple(tensor.shape)}")
        if tensor.dtype != x.dtype or tensor.device != x.device:
            raise ValueError(
                f"{name} must be {x.dtype} on {x.device} as x is, but is {tensor.dtype} on {tensor.device}; convert one"
            )
