"""Wirings: the same synapses as ncps, built once, saved, copied, checked and drawn."""

import copy
import json
import pickle
import random
import warnings
from typing import Any

import numpy as np
import pytest

import lrcnet
from lrcnet import wirings
from lrcnet.errors import UnreachableNeuronWarning
from lrcnet.wirings import NCP, AutoNCP, FullyConnected, Layered, Random, Wiring

KINDS: dict[str, Any] = {
    "FullyConnected": lambda: FullyConnected(7, 3, self_connections=False),
    "Random": lambda: Random(9, 4, sparsity_level=0.4),
    "NCP": lambda: NCP(6, 4, 2, 3, 2, 5, 2),
    "AutoNCP": lambda: AutoNCP(14, 3),
    "Layered": lambda: Layered([5, 4, 3, 2], 0.6),
}
kinds = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)


def draw_arguments(source: random.Random) -> tuple[str, dict[str, Any]]:
    kind, seed = source.choice(["FullyConnected", "Random", "NCP", "AutoNCP"]), source.randrange(2**31)
    units = source.randint(4, 30)
    if kind == "FullyConnected":
        return kind, {"units": units, "erev_init_seed": seed, "self_connections": source.random() < 0.5}
    if kind == "Random":
        return kind, {"units": units, "output_dim": 2, "sparsity_level": source.random(), "random_seed": seed}
    if kind == "AutoNCP":
        outputs, sparsity = source.randint(1, units - 3), source.uniform(0.1, 1)
        return kind, {"units": units, "output_size": outputs, "sparsity_level": sparsity, "seed": seed}
    inter, command, motor = (source.randint(1, 12) for _ in range(3))
    return kind, {
        "inter_neurons": inter,
        "command_neurons": command,
        "motor_neurons": motor,
        "sensory_fanout": source.randint(0, inter),
        "inter_fanout": source.randint(0, command),
        "recurrent_command_synapses": source.randint(0, 20),
        "motor_fanin": source.randint(0, command),
        "seed": seed,
    }


@pytest.mark.filterwarnings("ignore::lrcnet.errors.UnreachableNeuronWarning")
def test_masks_and_polarities_are_those_of_ncps() -> None:
    theirs = pytest.importorskip("ncps.wirings", reason="ncps is not installed: pip install 'lrcnet[slow]'")
    source = random.Random(0)
    for _ in range(500):
        kind, arguments = draw_arguments(source)
        inputs = source.randint(1, 12)
        other, ours = getattr(theirs, kind)(**arguments), getattr(wirings, kind)(**arguments)
        other.build(inputs)
        ours.build(inputs)
        for name in ("adjacency_matrix", "sensory_adjacency_matrix"):
            expected, matrix = getattr(other, name), getattr(ours, name)
            assert matrix.dtype == expected.dtype
            assert np.array_equal(matrix, expected), (kind, arguments, inputs)
        assert ours.num_layers == other.num_layers
        for layer in range(other.num_layers):
            assert ours.get_neurons_of_layer(layer) == list(other.get_neurons_of_layer(layer))
        types = [other.get_type_of_neuron(neuron) for neuron in range(other.units)]
        assert [ours.get_type_of_neuron(neuron) for neuron in range(other.units)] == types
        assert (ours.units, ours.input_dim, ours.output_dim) == (other.units, other.input_dim, other.output_dim)
        assert np.array_equal(ours.erev_initializer(), other.erev_initializer())
        assert np.array_equal(ours.sensory_erev_initializer(), other.sensory_erev_initializer())


@kinds
def test_building_twice_changes_nothing(make: Any) -> None:
    once, twice = make(), make()
    for wiring, times in ((once, 1), (twice, 3)):
        for _ in range(times):
            wiring.build(5)
    assert once == twice
    assert once.synapse_count == np.count_nonzero(once.adjacency_matrix)
    assert once.sensory_synapse_count == np.count_nonzero(once.sensory_adjacency_matrix)


@kinds
def test_wirings_survive_json_pickle_and_copies(make: Any) -> None:
    for build in (False, True):
        wiring = make()
        if build:
            wiring.build(5)
        text = wiring.to_json()
        assert isinstance(json.loads(text), dict)
        for other in (Wiring.from_json(text), pickle.loads(pickle.dumps(wiring)), copy.deepcopy(wiring)):
            assert other == wiring
            assert type(other) is type(wiring)
            other.build(5)
            wiring_again = make()
            wiring_again.build(5)
            assert other == wiring_again
        config = type(wiring).from_config(wiring.get_config())
        config.build(5)
        assert config == wiring_again


def test_hand_made_wirings_and_unknown_kinds_survive_json() -> None:
    class Ring(Wiring):
        def draw_synapses(self) -> None:
            for neuron in range(self.units):
                self.add_synapse(neuron, (neuron + 1) % self.units, 1)
                self.add_sensory_synapse(0, neuron, -1)

    ring = Ring(4)
    ring.build(2)
    text = ring.to_json().replace("Ring", "Circle")
    restored = Wiring.from_json(text)
    assert type(restored) is Wiring
    assert np.array_equal(restored.polarities(), ring.polarities())
    assert Wiring.from_config(ring.get_config()) == restored
    with pytest.raises(ValueError, match="has no adjacency_matrix"):
        Wiring.from_json("{}")


@kinds
def test_copies_for_layers_leave_the_wiring_alone(make: Any) -> None:
    wiring = make()
    small, large = wiring.build_copy(3), wiring.build_copy(8)
    assert not wiring.is_built()
    assert (small.input_dim, large.input_dim) == (3, 8)
    assert small.rebuild(8) == large
    assert large.rebuild(3) == small


def test_seeds_make_the_difference() -> None:
    first, second, same = AutoNCP(20, 3, seed=1), AutoNCP(20, 3, seed=2), AutoNCP(20, 3, seed=1)
    for wiring in (first, second, same):
        wiring.build(4)
    assert first == same
    assert first != second
    unseeded = Random(9, random_seed=None, sparsity_level=0.5)
    assert unseeded.build_copy(3) == unseeded.build_copy(3)


def test_layers_of_a_layered_wiring_feed_forward() -> None:
    wiring = Layered([5, 4, 3, 2], fanouts=[2, 3, 1, 2], recurrent_synapses=[0, 0, 3, 0])
    wiring.build(6)
    layers = [wiring.get_neurons_of_layer(number) for number in range(4)]
    assert layers[-1] == [0, 1]
    assert {wiring.get_type_of_neuron(n) for n in layers[1] + layers[2]} == {"command"}
    place = {neuron: number for number, neurons in enumerate(layers) for neuron in neurons}
    for src, dest in np.argwhere(wiring.adjacency_matrix):
        step = place[int(dest)] - place[int(src)]
        assert step == 1 or (step == 0 and place[int(src)] == 2)
    assert {place[int(dest)] for _, dest in np.argwhere(wiring.sensory_adjacency_matrix)} == {0}
    assert not wiring.find_unreachable_outputs()


def test_an_unreachable_motor_neuron_warns_once() -> None:
    wiring = Random(6, 2, sparsity_level=0.95)
    with pytest.warns(UnreachableNeuronWarning, match="no chain of synapses leads to .* of Random"):
        wiring.build(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer = lrcnet.LRCU(3, wiring=wiring)
    assert layer.wiring is not None
    assert layer.wiring.find_unreachable_outputs()
    by_hand = Wiring(2)
    by_hand.build(1)
    with pytest.warns(UnreachableNeuronWarning, match="leads to 0, 1 of Wiring"):
        lrcnet.LRCU(1, wiring=by_hand)


def add_synapse(*synapse: int) -> None:
    Wiring(3).add_synapse(*synapse)


def build(wiring: Wiring, *sizes: int) -> None:
    for size in sizes:
        wiring.build(size)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: FullyConnected(4, 5), "output_dim must be at most the number of units, 4, but is 5; use"),
        (lambda: Random(4, 5), "output_dim must be at most the number of units, 4, but is 5; use"),
        (lambda: Random(4, sparsity_level=1.0), "sparsity_level must be at least 0 and below 1, but is 1.0; pass"),
        (lambda: AutoNCP(6, 4), "output_size must be below units - 2, but there are 6 units and 4 outputs; use"),
        (lambda: AutoNCP(9, 4, 0.05), "sparsity_level must be from 0.1 to 1, but is 0.05; pass"),
        (lambda: NCP(4, 3, 2, 5, 1, 1, 1), "sensory_fanout must be at most the number of inter neurons, 4, but is 5"),
        (lambda: NCP(4, 3, 2, 1, 4, 1, 1), "inter_fanout must be at most the number of command neurons, 3, but is 4"),
        (lambda: NCP(4, 3, 2, 1, 1, 1, 4), "motor_fanin must be at most the number of command neurons, 3, but is 4"),
        (lambda: NCP(4, 0, 2, 1, 1, 1, 0), "command_neurons must be at least 1, but is 0"),
        (lambda: Layered([]), "layers must name at least one layer, but is empty; pass"),
        (lambda: Layered([3, 2], fanouts=[4, 1]), r"fanouts\[0\] must be at most the number of neurons of layer 0, 3"),
        (lambda: Layered([3, 2], fanouts=[1]), "fanouts must have one number for each of the 2 layers, but has 1"),
        (lambda: build(AutoNCP(9, 2), 3, 4), "this wiring was built for 3 inputs, but there are 4; make"),
        (lambda: add_synapse(3, 0, 1), r"src must be in 0 ... 2, but is 3"),
        (lambda: add_synapse(0, -1, 1), r"dest must be in 0 ... 2, but is -1"),
        (lambda: add_synapse(0, 1, 2), "polarity must be -1 or 1, but is 2"),
        (lambda: Wiring(3).add_sensory_synapse(0, 0, 1), "must be built before it gets sensory synapses; call build"),
        (lambda: Wiring(3).polarities(), "must be built before it has sensory synapses; call build"),
        (lambda: AutoNCP(9, 2).get_neurons_of_layer(3), "layer_id must be in 0 ... 2, but is 3"),
    ],
)
def test_bad_input_gets_one_sentence(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message) as raised:
        call()
    assert "\n" not in str(raised.value)


def test_a_matrix_of_the_wrong_shape_is_refused() -> None:
    wiring = FullyConnected(3)
    wiring.build(2)
    content = json.loads(wiring.to_json())
    content["sensory_adjacency_matrix"] = [[1, 1, 1]]
    with pytest.raises(ValueError, match=r"sensory_adjacency_matrix must have shape \(2, 3\), but has \(1, 3\)"):
        Wiring.from_json(json.dumps(content))
    content["sensory_adjacency_matrix"] = [[1, 1, 2], [0, 0, 0]]
    with pytest.raises(ValueError, match="must have the entries -1, 0 and 1 only"):
        Wiring.from_json(json.dumps(content))
    wiring.adjacency_matrix = np.ones((2, 3), dtype=np.int32)
    with pytest.raises(ValueError, match=r"adjacency_matrix must have shape \(3, 3\), but has \(2, 3\)"):
        lrcnet.LRCU(2, wiring=wiring)


@kinds
def test_pictures_show_every_synapse(make: Any) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'lrcnet[plot]'")
    layer = lrcnet.LRCU(5, wiring=make())
    wiring = layer.wiring
    assert wiring is not None
    for figure in (wiring.draw(), wiring.draw(layer, inputs=list("abcde"))):
        excitatory, inhibitory = figure.axes[0].collections
        signs = wiring.polarities()
        assert len(excitatory.get_segments()) == (signs > 0).sum()
        assert len(inhibitory.get_segments()) == (signs < 0).sum()
    circuit = layer.circuit()
    assert circuit["k"] is not None
    circuit["k"] *= -1
    layer.load_circuit(circuit)
    excitatory, inhibitory = wiring.draw(layer).axes[0].collections
    assert len(excitatory.get_segments()) == (signs < 0).sum()
    widths = sorted([*excitatory.get_linewidths(), *inhibitory.get_linewidths()])
    assert widths[0] < widths[-1]


def test_pictures_refuse_other_layers_and_names() -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed: pip install 'lrcnet[plot]'")
    wiring = AutoNCP(9, 2).build_copy(3)
    with pytest.raises(ValueError, match="must have the synapses of this wiring, but has others too"):
        wiring.draw(lrcnet.LRCU(3, 9))
    with pytest.raises(ValueError, match=r"must have synapses of shape \(12, 9\), .* but has \(11, 9\)"):
        wiring.draw(lrcnet.LRCU(2, 9))
    with pytest.raises(TypeError, match="layer must be a liquid layer or cell, but is a int"):
        wiring.draw(3)
    with pytest.raises(ValueError, match="inputs must have a name for each of 3, but has 1"):
        wiring.draw(inputs=["a"])
    with pytest.raises(ValueError, match="must be built"):
        AutoNCP(9, 2).draw()
