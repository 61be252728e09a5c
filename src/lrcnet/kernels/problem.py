"""One call of the compiled functions: from the operators' flat arguments to checked shapes, addresses and strides.

Axes: T time, B batch, n inputs, m hidden units, K unfoldings. x is (T, B, n), or (B, T, n) if batch_first.
"""

import importlib
from array import array
from collections.abc import Callable, Sequence
from functools import cache
from operator import itemgetter
from typing import Any, NamedTuple

import torch
from torch import Tensor

from lrcnet.circuit import LETTERS, SLOPE, STEP_LETTERS, Circuit, Switches, check_letters, describe_mismatch
from lrcnet.kernels.backend import Network
from lrcnet.tracing import resolve
from lrcnet.value_checks import refuse_freed

FUSED_SOLVERS = ("euler", "hybrid", "exponential")
IS_DOUBLE = {torch.float32: False, torch.float64: True}
# In the order of the enumerations in csrc/api.h.
ELASTANCE_CODES = {name: code for code, name in enumerate(("none", "asymmetric", "symmetric"))}
SOLVER_CODES = {name: code for code, name in enumerate((*FUSED_SOLVERS, SLOPE))}

TENSORS = ("x", "h0", "dt", *STEP_LETTERS)
"""The tensors of a problem that have a gradient, in the operators' order; its numbers follow: dt_value, then the
switches. The mask of a wiring is the operators' last argument."""
_LETTERS, _TENSORS = len(STEP_LETTERS), len(TENSORS)
# A circuit has the step letters, the letters that map the output, and the mask.
_NO_OUTPUT_MAP = (None,) * (len(LETTERS) - _LETTERS)

import_once = cache(importlib.import_module)
"""The module of a name; importlib alone takes microseconds for one that is there."""

# Called by `map`: in a step of one sample a loop would be seen.
_address, _size = Tensor.data_ptr, Tensor.numel

# scaled -> the unit of each step letter. C++ reads them from this memory as a `Letters<double>`: one address costs a
# step less than eleven numbers.
_UNITS = {
    False: array("d", [1.0] * _LETTERS),
    True: array("d", [LETTERS[name].unit for name in STEP_LETTERS]),
}


class Problem(NamedTuple):
    """The arguments of one scan.

    Attributes:
        x: (T, B, n), or (B, T, n) if batch_first; any strides.
        h0: (B, m); zeros if None.
        dt: laid out as x without channels; None if all steps take dt_value.
    """

    x: Tensor
    h0: Tensor | None
    dt: Tensor | None
    circuit: Circuit
    dt_value: float
    switches: Switches

    def tensors(self) -> tuple[Tensor | None, ...]:
        """Return the operators' tensors, in the order of `TENSORS`."""
        return (self.x, self.h0, self.dt, *self.circuit[:_LETTERS])

    def numbers(self) -> tuple[Any, ...]:
        """Return the operators' arguments after the tensors."""
        return (self.dt_value, *self.switches)

    @classmethod
    def unpack(cls, flat: Sequence[Any], mask: Tensor | None) -> "Problem":
        """Read a problem from the operators' flat arguments, first the tensors, then the numbers, and the mask."""
        x, h0, dt = flat[:3]
        circuit = Circuit._make((*flat[3:_TENSORS], *_NO_OUTPUT_MAP, mask))
        return cls(x, h0, dt, circuit, flat[_TENSORS], Switches._make(flat[_TENSORS + 1 :]))

    @property
    def time_and_batch(self) -> tuple[int, int]:
        """T and B."""
        first, second = self.x.shape[:2]
        return (second, first) if self.switches.batch_first else (first, second)

    def states_shape(self) -> tuple[int, int, int]:
        """Return the shape of the states, laid out as x."""
        return (*self.x.shape[:2], self.circuit.units)

    def saved_shape(self) -> tuple[int, ...]:
        """Return (T, K, B, planes, m): F, U, then w with an elastance, then the states before several unfoldings."""
        (steps, batch), switches = self.time_and_batch, self.switches
        planes = 2 + (switches.elastance != "none") + (switches.unfolds > 1)
        return (steps, switches.unfolds, batch, planes, self.circuit.units)

    def new_gradients(self, want_x: bool, want_dt: bool) -> list[Tensor | None]:
        """Return room for the gradient of each of `TENSORS`, None if not wanted; the first state always gets one."""
        x, (_, batch) = self.x, self.time_and_batch
        letters = self.circuit[:_LETTERS]
        return [
            x.new_empty(x.shape) if want_x else None,
            x.new_empty((batch, self.circuit.units)),
            x.new_empty(x.shape[:2]) if want_dt else None,
            *[None if p is None else torch.empty_like(p, memory_format=torch.contiguous_format) for p in letters],
        ]

    def check_input(self) -> None:
        """Raise a ValueError unless the input has the axes and a dtype that a kernel reads."""
        x = self.x
        if x.dim() != 3:
            raise ValueError(f"x must have 3 dimensions, but has {x.dim()}; add the batch and time axes")
        if x.dtype not in IS_DOUBLE:
            raise ValueError(f"x must be float32 or float64, but is {x.dtype}; convert x and the network")

    def check_start_and_gaps(self) -> None:
        """Raise a ValueError unless the first states and dt fit the input and the letters."""
        check_optional("h0", self.h0, (self.time_and_batch[1], self.circuit.units), self.x)
        check_optional("dt", self.dt, self.x.shape[:2], self.x)

    def check_kept(self, grad: Tensor | None, states: Tensor, saved: Tensor) -> None:
        """Raise a ValueError unless the tensors of a backward pass have the shapes and dtype of its forward pass."""
        for name, kept, shape in (
            ("the kept states", states, self.states_shape()),
            ("the kept gates", saved, self.saved_shape()),
            ("the gradient", grad, self.states_shape()),
        ):
            check_optional(name, kept, shape, self.x)


class Arguments:
    """The arguments of the compiled functions for a checked problem; keeps the memory they point to alive.

    Raises:
        ValueError: for a wrong shape, dtype or device.
    """

    def __init__(self, problem: Problem) -> None:
        x, h0, dt, circuit, dt_value, switches = problem
        problem.check_input()
        inputs, units = x.shape[2], circuit.units
        model = model_arguments(circuit, switches, x, inputs, units)
        if model is None:
            circuit, model = rewrite_model(circuit, switches, x, inputs, units)
        problem.check_start_and_gaps()
        steps, batch = problem.time_and_batch
        x = resolve(x)
        h0 = None if h0 is None else resolve(h0).contiguous()
        dt = None if dt is None else resolve(dt)
        self._memory = (x, h0, dt, circuit)
        self.batch_first, self.is_double = switches.batch_first, IS_DOUBLE[x.dtype]
        self.model = model
        self._sequence = (
            torch.get_num_threads(),
            steps,
            batch,
            x.data_ptr(),
            *self.strides(x),
            x.stride(2),
            address("h0", h0),
            address("dt", dt),
            *self.strides(dt),
            dt_value,
        )

    def sequence(self, states: Tensor, saved: Tensor) -> tuple[Any, ...]:
        """Return the part of the arguments that describes the sequences and the memory for the answer."""
        kept = saved.data_ptr() if saved.numel() else 0
        return (*self._sequence, states.data_ptr(), *self.strides(states), kept)

    def strides(self, tensor: Tensor | None) -> tuple[int, int]:
        """Return the strides along time and batch; 0 for no tensor."""
        if tensor is None:
            return 0, 0
        first, second = tensor.stride()[:2]
        return (second, first) if self.batch_first else (first, second)


def model_arguments(circuit: Circuit, switches: Switches, x: Tensor, inputs: int, units: int) -> tuple[int, ...] | None:
    """Return the arguments that describe the network: switches, units, sizes, addresses of its letters and mask.

    C reads from these addresses: a wrong size must not get any further than this. None if a letter is not as it must
    be; `rewrite_model` then has the answer or the reason.
    """
    codes, read_addresses = _plan(switches)
    addresses = read_addresses(circuit, x.dtype, (inputs + units, units), (units,), (inputs,))
    return None if addresses is None else (*codes, inputs, units, *addresses)


def recall_model(network: Network, x: Tensor, inputs: int, units: int) -> "array[int] | None":
    """Return `model_arguments` as C++ reads them, from memory as long as the tensors lie where they were checked.

    The memory holds on to the checked tensors, so that no other tensor can have their addresses: one with the same
    address and as many numbers has the same memory.
    """
    circuit, switches, memory = network
    about = (switches, x.dtype, inputs, units)
    if memory is not None and (known := memory.get("model")) is not None and known[0] == about:
        _, present, absent, nothing, places, packed, _ = known
        letters = present(circuit)
        try:
            if [*map(_address, letters), *map(_size, letters)] == places and absent(circuit) == nothing:
                return packed  # type: ignore[no-any-return]
        except TypeError:  # A letter was removed.
            pass
    model = model_arguments(circuit, switches, x, inputs, units)
    if model is None:
        return None
    packed = array("q", model)
    if memory is not None:
        _remember(memory, about, circuit, packed)
    return packed


def _remember(memory: dict[str, Any], about: tuple[Any, ...], circuit: Circuit, packed: "array[int]") -> None:
    """Keep checked arguments in the memory of a network, with the places of its tensors; see `recall_model`."""
    tensors = tuple(None if letter is None else letter.detach() for letter in circuit)
    present = itemgetter(*[i for i, tensor in enumerate(tensors) if tensor is not None])
    missing: list[Any] = [i for i, tensor in enumerate(tensors) if tensor is None]
    absent = itemgetter(*missing or [slice(0)])
    letters = present(tensors)
    places = [*map(_address, letters), *map(_size, letters)]
    memory["model"] = about, present, absent, absent(tensors), places, packed, tensors


def rewrite_model(
    circuit: Circuit, switches: Switches, x: Tensor, inputs: int, units: int
) -> tuple[Circuit, tuple[int, ...]]:
    """Return a circuit that a kernel can read, with gaps closed and pending negations done, and its arguments.

    Raises:
        ValueError: for a letter that is missing or has another shape, dtype or device, or no memory.
    """
    check_letters(circuit, switches, x, contiguous=False)
    circuit = Circuit._make([None if letter is None else resolve(letter).contiguous() for letter in circuit])
    model = model_arguments(circuit, switches, x, inputs, units)
    if model is None:
        empty = [name for name, letter in circuit._asdict().items() if letter is not None and not letter.data_ptr()]
        raise ValueError(
            f"every letter must have its numbers in the CPU's memory, but x is on {x.device} and {', '.join(empty)} "
            "have no memory; was the storage of a parameter freed?"
        )
    return circuit, model


def check_switches(switches: Switches) -> None:
    """Raise a ValueError for switches that no kernel knows."""
    if switches.solver not in SOLVER_CODES or switches.elastance not in ELASTANCE_CODES or switches.unfolds < 1:
        raise ValueError(
            f"a kernel needs a solver in {', '.join(SOLVER_CODES)}, an elastance in {', '.join(ELASTANCE_CODES)} and "
            f"unfolds of at least 1, but was given {switches.solver!r}, {switches.elastance!r} and {switches.unfolds}; "
            "pass such values"
        )


@cache
def _plan(switches: Switches) -> tuple[tuple[int, ...], Callable[..., tuple[int, ...] | None]]:
    """Return the codes of the switches with the units' address, and the function that checks and locates the letters.

    That function takes a circuit, the dtype and a shape for each of "J m", "m" and "n". It returns None if a letter or
    the mask is not as it must be on the CPU, and address 0 for one that is absent or that the switches do not use. It
    is written out from the table and compiled: the loop of `check_letters` would make a step of one sample a tenth
    slower.
    """
    check_switches(switches)
    shapes = {"J m": "matrix", "m": "vector", "n": "channels"}
    checks, addresses = [], []
    for name in STEP_LETTERS:
        letter, at = LETTERS[name], f"at_{name}"
        shape, needed = shapes[letter.axes], letter.needed(switches)
        # Address 0 is a tensor of zeros that torch has not written, or a parameter whose storage was freed.
        check = (
            f"{name}.shape == {shape} and {name}.dtype is dtype and {name}.is_cpu and {name}.is_contiguous() "
            f"and not {name}.is_neg() and (({at} := {name}.data_ptr()) or {shape} == (0,))"
        )
        checks.append(f"{name} is not None and {check}" if needed else f"({name} is None or {check})")
        addresses.append("0" if not letter.used(switches) else at if needed else f"0 if {name} is None else {at}")
    checks.append(
        "(mask is None or mask.shape == matrix and mask.dtype is bools and mask.is_cpu and mask.is_contiguous() "
        "and (at_mask := mask.data_ptr()))"
    )
    addresses.append("0 if mask is None else at_mask")
    source = f"""
def read_addresses(circuit, dtype, {", ".join(shapes.values())}):
    {", ".join(Circuit._fields)} = circuit
    return ({", ".join(addresses)}) if {" and ".join(checks)} else None
"""
    namespace: dict[str, Any] = {"bools": torch.bool}
    exec(source, namespace)
    codes = (
        int(switches.saturated),
        ELASTANCE_CODES[switches.elastance],
        SOLVER_CODES[switches.solver],
        switches.unfolds,
        _UNITS[switches.scaled].buffer_info()[0],
    )
    return codes, namespace["read_addresses"]


def address(name: str, tensor: Tensor | None) -> int:
    """Return where a tensor's memory starts; 0 for no tensor, so that one whose storage was freed must not pass."""
    if tensor is None:
        return 0
    at = tensor.data_ptr()
    if not at:
        refuse_freed(name, tensor)
    return at


def check_optional(name: str, tensor: Tensor | None, shape: tuple[int, ...], like: Tensor) -> None:
    """Raise unless a tensor is absent or has a shape, and the dtype and device of another."""
    if tensor is None:
        return
    if tensor.shape != shape or tensor.dtype is not like.dtype or tensor.device != like.device:
        raise ValueError(describe_mismatch(name, tensor, tuple(shape), like))
