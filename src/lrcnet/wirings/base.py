"""The contract of a wiring: two matrices of synapses, how they are built, copied, saved and loaded."""

from __future__ import annotations

import copy
import json
import warnings
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np

from lrcnet.errors import UnreachableNeuronWarning, check_seed, describe_kind, positive_size

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Not numpy.typing.NDArray: importing it would load more of NumPy than a layer needs.
Matrix: TypeAlias = np.ndarray[Any, np.dtype[np.int32]]


class Wiring:
    """The synapses of a network; a plain `Wiring` starts without any, and `add_synapse` adds one.

    A kind of wiring that draws its synapses at random derives from this class and overrides `arguments` and
    `draw_synapses`.

    Args:
        units: number of neurons m, without the inputs.

    Attributes:
        units: m.
        input_dim: number of inputs n; None before `build`.
        output_dim: number of motor neurons, which are the first neurons; None counts as all units.
        adjacency_matrix: (m, m), the polarity of the synapse from row to column; 0 where there is none.
        sensory_adjacency_matrix: (n, m), the same from inputs to neurons; None before `build`.

    >>> wiring = lrcnet.wirings.Wiring(2)
    >>> wiring.build(3)
    >>> wiring.add_sensory_synapse(0, 1, polarity=1)
    >>> wiring.add_synapse(1, 0, polarity=-1)
    >>> wiring.synapse_count, wiring.sensory_synapse_count
    (1, 1)
    """

    kinds: ClassVar[dict[str, type[Wiring]]] = {}
    """name -> class, of all kinds that `from_json` can restore."""
    _warned: bool = False

    def __init__(self, units: int) -> None:
        self.units = positive_size("units", _to_int(units))
        self.input_dim: int | None = None
        self.output_dim: int | None = None
        self.adjacency_matrix: Matrix = np.zeros((self.units, self.units), dtype=np.int32)
        self.sensory_adjacency_matrix: Matrix | None = None

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        Wiring.kinds[_name_kind(cls)] = cls

    def arguments(self) -> dict[str, Any] | None:
        """Return the arguments of the constructor that would make this wiring again; None if none would."""
        return None

    def draw_synapses(self) -> None:
        """Draw the synapses that need the number of inputs; called by the first `build`. A hook for subclasses."""

    @property
    def num_layers(self) -> int:
        """The number of layers of neurons, without the inputs."""
        return 1

    def get_neurons_of_layer(self, layer_id: int) -> list[int]:
        """Return the neurons of a layer; the last layer has the motor neurons."""
        self._check_index("layer_id", layer_id, self.num_layers)
        return list(range(self.units))

    def get_type_of_neuron(self, neuron_id: int) -> str:
        """Return "motor", "command" or "inter"."""
        self._check_index("neuron_id", neuron_id, self.units)
        return "motor" if self.output_dim is None or neuron_id < self.output_dim else "inter"

    def is_built(self) -> bool:
        """Return whether the number of inputs is known."""
        return self.input_dim is not None

    def build(self, input_size: int) -> None:
        """Set the number of inputs and draw the synapses that depend on it; a second call changes nothing.

        Raises:
            ValueError: if the wiring was built for another number of inputs.
        """
        input_size = positive_size("input_size", _to_int(input_size), least=0)
        if self.input_dim is not None:
            if self.input_dim != input_size:
                raise ValueError(
                    f"this wiring was built for {self.input_dim} inputs, but there are {input_size}; make a new one, "
                    "or pass one that is not built yet"
                )
            return
        self.set_input_dim(input_size)
        self.draw_synapses()
        if type(self).draw_synapses is not Wiring.draw_synapses:
            self._warn_of_unreachable_neurons()

    def build_copy(self, input_size: int) -> Wiring:
        """Return a copy built for a number of inputs; this wiring stays as it is. Layers call it.

        Raises:
            ValueError: if this wiring was built for another number of inputs.
        """
        other = copy.deepcopy(self)
        drawn_before = other.is_built() or type(self).draw_synapses is Wiring.draw_synapses
        other.build(input_size)
        if drawn_before:
            other._warn_of_unreachable_neurons()
        return other

    def rebuild(self, input_size: int) -> Wiring:
        """Return a wiring of the same kind, built for any number of inputs.

        Raises:
            ValueError: if this wiring is built and was not drawn by its class, so that it cannot be drawn again.
        """
        if not self.is_built() or self.input_dim == input_size:
            return self.build_copy(input_size)
        arguments = self.arguments()
        if arguments is not None:
            original = type(self)(**arguments)
            again = copy.deepcopy(original)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UnreachableNeuronWarning)
                again.build(self.input_dim or 0)
            if again == self:
                return original.build_copy(input_size)
        raise ValueError(
            f"a wiring must be drawn by its class to be built for {input_size} inputs too, but this one was built for "
            f"{self.input_dim} and has synapses set by hand; use one layer and one direction, or stack layers with a "
            "wiring each"
        )

    def set_input_dim(self, input_dim: int) -> None:
        """Set the number of inputs, without synapses from them."""
        self.input_dim = input_dim
        self.sensory_adjacency_matrix = np.zeros((input_dim, self.units), dtype=np.int32)

    def set_output_dim(self, output_dim: int) -> None:
        """Set the number of motor neurons.

        Raises:
            ValueError: if there are more of them than units.
        """
        output_dim = positive_size("output_dim", _to_int(output_dim))
        if output_dim > self.units:
            raise ValueError(
                f"output_dim must be at most the number of units, {self.units}, but is {output_dim}; use more units or "
                "fewer outputs"
            )
        self.output_dim = output_dim

    @property
    def output_size(self) -> int:
        """The number of motor neurons."""
        return self.units if self.output_dim is None else self.output_dim

    def add_synapse(self, src: int, dest: int, polarity: int) -> None:
        """Add a synapse between two neurons, or change its polarity.

        Raises:
            ValueError: for an unknown neuron or a polarity other than -1 and 1.
        """
        self._check_index("src", src, self.units)
        self._add(self.adjacency_matrix, src, dest, polarity)

    def add_sensory_synapse(self, src: int, dest: int, polarity: int) -> None:
        """Add a synapse from an input to a neuron, or change its polarity.

        Raises:
            ValueError: for an unknown input or neuron, a polarity other than -1 and 1, or before `build`.
        """
        if self.sensory_adjacency_matrix is None or self.input_dim is None:
            raise ValueError("a wiring must be built before it gets sensory synapses; call build(input_size) first")
        self._check_index("src", src, self.input_dim)
        self._add(self.sensory_adjacency_matrix, src, dest, polarity)

    @property
    def synapse_count(self) -> int:
        """The number of synapses between neurons."""
        return int(np.count_nonzero(self.adjacency_matrix))

    @property
    def sensory_synapse_count(self) -> int:
        """The number of synapses from inputs to neurons."""
        return int(np.count_nonzero(self._sensory_matrix()))

    def erev_initializer(self, shape: object = None, dtype: object = None) -> Matrix:
        """Return the polarities between neurons, (m, m), as ncps names them: reversal potentials in units of 1."""
        return self.adjacency_matrix.copy()

    def sensory_erev_initializer(self, shape: object = None, dtype: object = None) -> Matrix:
        """Return the polarities from inputs to neurons, (n, m)."""
        return self._sensory_matrix().copy()

    def polarities(self) -> Matrix:
        """Return the polarities of all presynaptic rows, (m + n, m): the neurons first, then the inputs."""
        return np.concatenate([self.adjacency_matrix, self._sensory_matrix()])

    def find_unreachable_outputs(self) -> list[int]:
        """Return the motor neurons that no chain of synapses connects with an input."""
        reached = np.asarray(self._sensory_matrix().any(axis=0))
        while True:
            further = reached | np.asarray(self.adjacency_matrix[reached].any(axis=0))
            if (further == reached).all():
                return [neuron for neuron in range(self.output_size) if not reached[neuron]]
            reached = further

    def draw(
        self, layer: Any = None, *, inputs: Sequence[str] | None = None, outputs: Sequence[str] | None = None
    ) -> Figure:
        """Draw the wiring as a matplotlib figure: layers as columns, inputs on the left, motor neurons on the right.

        Excitatory synapses are blue, inhibitory ones orange and dashed. Needs matplotlib: pip install 'lrcnet[plot]'.

        Args:
            layer: a layer or cell with this wiring; its |k * e_l| become the widths, and the signs of k * e_l, which
                training may change, the colours.
            inputs, outputs: names of the inputs and of the motor neurons; numbers if None.

        Raises:
            ValueError: before `build`, for a layer with other synapses, or a wrong number of names.
        """
        from lrcnet.wirings.picture import draw_wiring

        return draw_wiring(self, layer, inputs=inputs, outputs=outputs)

    def get_config(self) -> dict[str, Any]:
        """Return the arguments of the constructor or, if they do not make this wiring, everything it has."""
        arguments = self.arguments()
        return self._describe() if arguments is None else arguments

    @classmethod
    def from_config(cls, config: Mapping[str, Any]) -> Wiring:
        """Make a wiring from the answer of `get_config`."""
        return cls._restore(config) if "adjacency_matrix" in config else cls(**config)

    def to_json(self) -> str:
        """Return the wiring as JSON: its kind, its arguments and every synapse.

        >>> wiring = lrcnet.wirings.AutoNCP(12, 3)
        >>> wiring.build(4)
        >>> lrcnet.wirings.Wiring.from_json(wiring.to_json()) == wiring
        True
        """
        return json.dumps({"kind": _name_kind(type(self)), "arguments": self.arguments(), **self._describe()})

    @classmethod
    def from_json(cls, text: str) -> Wiring:
        """Make a wiring from the answer of `to_json`.

        A kind that this process does not know becomes a plain `Wiring` with the same synapses.

        Raises:
            ValueError: if the text is no wiring.
        """
        try:
            content = json.loads(text)
            if not isinstance(content, dict) or "adjacency_matrix" not in content:
                raise ValueError("it has no adjacency_matrix")
            kind, arguments = Wiring.kinds.get(content["kind"]), content["arguments"]
            if kind is None or arguments is None:
                return Wiring._restore(content)
            wiring = kind(**arguments)
            wiring.take_matrices(content)
            return wiring
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError, RecursionError) as error:
            raise ValueError(
                f"the text must be the answer of Wiring.to_json, but is none ({error}); write it again"
            ) from error

    def __eq__(self, other: object) -> bool:
        """Return whether both have the same kind, sizes and synapses."""
        if not isinstance(other, Wiring):
            return NotImplemented
        return type(self) is type(other) and self._describe() == other._describe()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        arguments = self.arguments()
        given = {"units": self.units} if arguments is None else arguments
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in given.items())})"

    # Lists instead of arrays, so that torch.load(weights_only=True) loads a model that has a wiring.
    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, **self._describe()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.take_matrices(state)

    def _describe(self) -> dict[str, Any]:
        sensory = self.sensory_adjacency_matrix
        return {
            "units": self.units,
            "input_dim": self.input_dim,
            "output_dim": self.output_dim,
            "adjacency_matrix": self.adjacency_matrix.tolist(),
            "sensory_adjacency_matrix": None if sensory is None else sensory.tolist(),
        }

    @staticmethod
    def _restore(content: Mapping[str, Any]) -> Wiring:
        wiring = Wiring(content["units"])
        wiring.take_matrices(content)
        return wiring

    def take_matrices(self, content: Mapping[str, Any]) -> None:
        """Take over sizes and synapses.

        Raises:
            ValueError: if a matrix has another shape than the sizes say, or other entries than -1, 0 and 1.
        """
        self.input_dim, self.output_dim = content["input_dim"], content["output_dim"]
        self.adjacency_matrix = _read_matrix("adjacency_matrix", content, (self.units, self.units))
        if self.input_dim is None:
            self.sensory_adjacency_matrix = None
        else:
            shape = (self.input_dim, self.units)
            self.sensory_adjacency_matrix = _read_matrix("sensory_adjacency_matrix", content, shape)

    def _sensory_matrix(self) -> Matrix:
        if self.sensory_adjacency_matrix is None:
            raise ValueError("a wiring must be built before it has sensory synapses; call build(input_size) first")
        return self.sensory_adjacency_matrix

    def _add(self, matrix: Matrix, src: int, dest: int, polarity: int) -> None:
        self._check_index("dest", dest, self.units)
        if polarity not in (-1, 1):
            raise ValueError(f"polarity must be -1 or 1, but is {polarity}; pass one of these")
        matrix[src, dest] = polarity

    @staticmethod
    def _check_index(what: str, given: int, count: int) -> None:
        if not 0 <= given < count:
            raise ValueError(f"{what} must be in 0 ... {count - 1}, but is {given}; count from 0")

    def _warn_of_unreachable_neurons(self) -> None:
        unreachable = [] if self._warned else self.find_unreachable_outputs()
        if unreachable and self.input_dim:
            self._warned = True  # Copies do not repeat it.
            warnings.warn(
                f"every motor neuron should be reachable from an input, but no chain of synapses leads to "
                f"{', '.join(map(str, unreachable))} of {self!r}; use another seed or more synapses",
                UnreachableNeuronWarning,
                stacklevel=3,
            )


def check_sparsity(given: float) -> float:
    """Return a share of missing synapses if it is at least 0 and below 1.

    Raises:
        ValueError: if it is not.
    """
    if isinstance(given, bool) or not isinstance(given, Real) or not 0 <= given < 1:
        raise ValueError(
            f"sparsity_level must be at least 0 and below 1, but is {describe_kind(given)}; pass the share of missing "
            "synapses"
        )
    return float(given)


def pick_seed(seed: int | None) -> int:
    """Return a seed, drawn from the system's entropy if None is given, so that building again repeats it."""
    return int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else check_seed("the seed", seed)


def _to_int(given: Any) -> Any:
    """Return a whole number of NumPy as an int; anything else is left to the check that follows."""
    return int(given) if isinstance(given, np.integer) else given


def _name_kind(kind: type[Wiring]) -> str:
    """Return the name of a kind in JSON; only those of this package go without their module."""
    ours = kind.__module__.startswith(__package__ or __name__)
    return kind.__name__ if ours else f"{kind.__module__}.{kind.__qualname__}"


def _read_matrix(name: str, content: Mapping[str, Any], shape: tuple[int, int]) -> Matrix:
    matrix = np.asarray(content[name], dtype=np.int32)
    matrix = matrix.reshape(shape) if matrix.size == 0 == shape[0] else matrix
    if matrix.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, but has {matrix.shape}; rows are sources, columns targets")
    if not np.isin(matrix, (-1, 0, 1)).all():
        raise ValueError(f"{name} must have the entries -1, 0 and 1 only, but has others; pass the polarities")
    return matrix
