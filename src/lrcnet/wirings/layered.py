"""Wirings of any number of layers: each layer drives the next, and all but the last may be recurrent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lrcnet.errors import check_kind, positive_size
from lrcnet.wirings.base import Wiring, check_sparsity, pick_seed
from lrcnet.wirings.ncp import check_fan, connect_layers, connect_within


class Layered(Wiring):
    """Inputs -> layers[0] -> ... -> layers[-1], the motor neurons; each layer has recurrent synapses except the last.

    As in an NCP, every neuron draws its targets in the next layer, a target that is left out gets as many synapses as
    its neighbours have on average, half of the synapses are inhibitory, and the motor neurons come first: neurons are
    numbered from the last layer to the first.

    Args:
        layers: number of neurons of each layer.
        sparsity_level: share of the synapses between two layers that are missing, at least 0 and below 1.
        fanouts: synapses from each input and from each neuron of every layer but the last to the layer that follows;
            replaces the sparsity.
        recurrent_synapses: number of draws of a synapse within each layer; from the sparsity if None, and none in the
            last layer.
        seed: random seed of synapses and polarities.

    >>> wiring = lrcnet.wirings.Layered([16, 12, 8, 4], sparsity_level=0.75)
    >>> wiring.units, wiring.output_dim, wiring.num_layers
    (40, 4, 4)
    """

    def __init__(
        self,
        layers: Sequence[int],
        sparsity_level: float = 0.5,
        *,
        fanouts: Sequence[int] | None = None,
        recurrent_synapses: Sequence[int] | None = None,
        seed: int | None = 22222,
    ) -> None:
        check_kind("layers", layers, (list, tuple), "a list of numbers of neurons")
        if not layers:
            raise ValueError("layers must name at least one layer, but is empty; pass the number of neurons of each")
        for number, size in enumerate(layers):
            positive_size(f"layers[{number}]", size)
        super().__init__(sum(layers))
        self.set_output_dim(layers[-1])
        self.layers = tuple(layers)
        self.sparsity_level = check_sparsity(sparsity_level)
        density = 1 - self.sparsity_level
        self.fanouts = _per_layer("fanouts", fanouts, [max(int(size * density), 1) for size in layers])
        self.recurrent_synapses = _per_layer(
            "recurrent_synapses", recurrent_synapses, [int(size * density * 2) for size in layers[:-1]] + [0]
        )
        for number, (fan_out, size) in enumerate(zip(self.fanouts, layers, strict=True)):
            check_fan(f"fanouts[{number}]", fan_out, size, f"neurons of layer {number}")
        self._seed = pick_seed(seed)

    def arguments(self) -> dict[str, Any]:
        return {
            "layers": list(self.layers),
            "sparsity_level": self.sparsity_level,
            "fanouts": list(self.fanouts),
            "recurrent_synapses": list(self.recurrent_synapses),
            "seed": self._seed,
        }

    @property
    def num_layers(self) -> int:
        return len(self.layers)

    def get_neurons_of_layer(self, layer_id: int) -> list[int]:
        self._check_index("layer_id", layer_id, self.num_layers)
        first = sum(self.layers[layer_id + 1 :])
        return list(range(first, first + self.layers[layer_id]))

    def get_type_of_neuron(self, neuron_id: int) -> str:
        self._check_index("neuron_id", neuron_id, self.units)
        if neuron_id < self.layers[-1]:
            return "motor"
        return "inter" if neuron_id >= self.units - self.layers[0] else "command"

    def draw_synapses(self) -> None:
        source = np.random.RandomState(self._seed)
        sources, add = list(range(self.input_dim or 0)), self.add_sensory_synapse
        for number, fan_out in enumerate(self.fanouts):
            targets = self.get_neurons_of_layer(number)
            connect_layers(source, sources, targets, fan_out, add, limit=len(sources))
            connect_within(source, targets, self.recurrent_synapses[number], self.add_synapse)
            sources, add = targets, self.add_synapse


def _per_layer(what: str, given: Sequence[int] | None, default: list[int]) -> tuple[int, ...]:
    if given is not None:
        check_kind(what, given, (list, tuple), "a list of numbers, one per layer")
    numbers = default if given is None else list(given)
    if len(numbers) != len(default):
        raise ValueError(
            f"{what} must have one number for each of the {len(default)} layers, but has {len(numbers)}; leave it out "
            "to have them chosen"
        )
    return tuple(positive_size(f"{what}[{number}]", count, least=0) for number, count in enumerate(numbers))
