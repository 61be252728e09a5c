"""Neural circuit policies: inputs -> inter neurons -> command neurons, which are recurrent -> motor neurons."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from lrcnet.errors import positive_size
from lrcnet.wirings.base import Wiring, pick_seed


class NCP(Wiring):
    """A neural circuit policy; its neurons are numbered motor, command, inter.

    Each fan-out or fan-in is the number of synapses that are drawn for every source or target. A neuron that is left
    out then gets as many as its neighbours have on average.

    Args:
        inter_neurons, command_neurons, motor_neurons: number of neurons of each layer.
        sensory_fanout: synapses from each input to inter neurons.
        inter_fanout: synapses from each inter neuron to command neurons.
        recurrent_command_synapses: number of draws of a synapse between two command neurons; the same synapse may be
            drawn twice.
        motor_fanin: synapses from command neurons to each motor neuron.
        seed: random seed of synapses and polarities.
    """

    def __init__(
        self,
        inter_neurons: int,
        command_neurons: int,
        motor_neurons: int,
        sensory_fanout: int,
        inter_fanout: int,
        recurrent_command_synapses: int,
        motor_fanin: int,
        seed: int | None = 22222,
    ) -> None:
        positive_size("inter_neurons", inter_neurons)
        positive_size("command_neurons", command_neurons)
        positive_size("motor_neurons", motor_neurons)
        check_fan("sensory_fanout", sensory_fanout, inter_neurons, "inter neurons")
        check_fan("inter_fanout", inter_fanout, command_neurons, "command neurons")
        check_fan("motor_fanin", motor_fanin, command_neurons, "command neurons")
        super().__init__(inter_neurons + command_neurons + motor_neurons)
        self.set_output_dim(motor_neurons)
        self._sizes = (motor_neurons, command_neurons, inter_neurons)
        self._sensory_fanout = sensory_fanout
        self._inter_fanout = inter_fanout
        self._recurrent_synapses = positive_size("recurrent_command_synapses", recurrent_command_synapses, least=0)
        self._motor_fanin = motor_fanin
        self._seed = pick_seed(seed)

    def arguments(self) -> dict[str, Any]:
        motor, command, inter = self._sizes
        return {
            "inter_neurons": inter,
            "command_neurons": command,
            "motor_neurons": motor,
            "sensory_fanout": self._sensory_fanout,
            "inter_fanout": self._inter_fanout,
            "recurrent_command_synapses": self._recurrent_synapses,
            "motor_fanin": self._motor_fanin,
            "seed": self._seed,
        }

    @property
    def num_layers(self) -> int:
        return 3

    def get_neurons_of_layer(self, layer_id: int) -> list[int]:
        self._check_index("layer_id", layer_id, self.num_layers)
        motor, command, _ = self._sizes
        return [
            list(range(motor + command, self.units)),
            list(range(motor, motor + command)),
            list(range(motor)),
        ][layer_id]

    def get_type_of_neuron(self, neuron_id: int) -> str:
        self._check_index("neuron_id", neuron_id, self.units)
        motor, command, _ = self._sizes
        if neuron_id < motor:
            return "motor"
        return "command" if neuron_id < motor + command else "inter"

    def draw_synapses(self) -> None:
        source = np.random.RandomState(self._seed)
        inter, command, motor = (self.get_neurons_of_layer(layer) for layer in range(3))
        inputs = list(range(self.input_dim or 0))
        connect_layers(source, inputs, inter, self._sensory_fanout, self.add_sensory_synapse, limit=len(inputs))
        connect_layers(source, inter, command, self._inter_fanout, self.add_synapse, limit=len(command))
        connect_within(source, command, self._recurrent_synapses, self.add_synapse)

        def add_backwards(dest: int, src: int, polarity: int) -> None:
            self.add_synapse(src, dest, polarity)

        # A fan-in is the fan-out of the targets.
        connect_layers(source, motor, command, self._motor_fanin, add_backwards, limit=len(motor))


class AutoNCP(NCP):
    """A neural circuit policy of a given size; the rest follows from the sparsity.

    Args:
        units: number of neurons.
        output_size: number of motor neurons, below units - 2.
        sparsity_level: from 0.1 (many synapses) to 1 (one for each neuron).
        seed: random seed of synapses and polarities.

    >>> wiring = lrcnet.wirings.AutoNCP(64, 10)
    >>> layer = lrcnet.LRCU(8, wiring=wiring)
    """

    def __init__(self, units: int, output_size: int, sparsity_level: float = 0.5, seed: int | None = 22222) -> None:
        positive_size("units", units)
        positive_size("output_size", output_size)
        if output_size >= units - 2:
            raise ValueError(
                f"output_size must be below units - 2, but there are {units} units and {output_size} outputs; use more "
                "units or fewer outputs"
            )
        if not 0.1 <= sparsity_level <= 1:
            raise ValueError(f"sparsity_level must be from 0.1 to 1, but is {sparsity_level}; pass one in between")
        density = 1.0 - sparsity_level
        command = max(int(0.4 * (units - output_size)), 1)
        inter = units - output_size - command
        super().__init__(
            inter,
            command,
            output_size,
            sensory_fanout=max(int(inter * density), 1),
            inter_fanout=max(int(command * density), 1),
            recurrent_command_synapses=max(int(command * density * 2), 1),
            motor_fanin=max(int(command * density), 1),
            seed=seed,
        )
        self._sparsity_level = sparsity_level

    def arguments(self) -> dict[str, Any]:
        return {
            "units": self.units,
            "output_size": self.output_dim,
            "sparsity_level": self._sparsity_level,
            "seed": self._seed,
        }


def check_fan(what: str, given: int, neurons: int, place: str) -> None:
    """Raise unless a fan-out or fan-in is at most the number of neurons at its other end."""
    if positive_size(what, given, least=0) > neurons:
        raise ValueError(
            f"{what} must be at most the number of {place}, {neurons}, but is {given}; choose a smaller one"
        )


def connect_layers(
    source: np.random.RandomState,
    sources: Sequence[int],
    targets: Sequence[int],
    fan_out: int,
    add: Callable[[int, int, int], None],
    *,
    limit: int,
) -> None:
    """Draw the synapses from one layer to the next, in the order of ncps.

    Every source gets `fan_out` targets. A target that none has chosen then gets the mean fan-in, at least 1 and at most
    `limit`.
    """
    forgotten = list(targets)
    for src in sources:
        for dest in source.choice(targets, size=fan_out, replace=False).tolist():
            if dest in forgotten:
                forgotten.remove(dest)
            add(src, dest, _draw_polarity(source))
    fan_in = min(max(len(sources) * fan_out // len(targets), 1), limit)
    for dest in forgotten:
        for src in source.choice(sources, size=fan_in, replace=False).tolist() if sources else ():
            add(src, dest, _draw_polarity(source))


def connect_within(
    source: np.random.RandomState, neurons: Sequence[int], count: int, add: Callable[[int, int, int], None]
) -> None:
    """Draw `count` synapses between neurons of one layer; the same one may come twice."""
    for _ in range(count):
        src, dest = int(source.choice(neurons)), int(source.choice(neurons))
        add(src, dest, _draw_polarity(source))


def _draw_polarity(source: np.random.RandomState) -> int:
    return int(source.choice([-1, 1]))
