"""Initial values by name: ranges, memories, any size, and the paper's draws."""

import pytest
import torch

import lrcnet
from lrcnet.circuit import ELASTANCES
from lrcnet.initial_values import INITS, LONGEST_MEMORY, SHORTEST_MEMORY, SHORTEST_WITH_ELASTANCE, WIDTH

LAYERS = {
    "LRCU-S": (lrcnet.LRCU, {"elastance": "symmetric"}),
    "LRCU-A": (lrcnet.LRCU, {"elastance": "asymmetric"}),
    "LRC": (lrcnet.LRC, {}),
    "STC": (lrcnet.STC, {}),
    "LTC": (lrcnet.LTC, {}),
}


@pytest.mark.parametrize("name", INITS)
@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize(("inputs", "units"), [(1, 1), (1, 32), (60, 8), (3, 128)])
def test_every_layer_starts_finite_and_reacts_to_its_input(layer: str, name: str, inputs: int, units: int) -> None:
    cls, options = LAYERS[layer]
    network = cls(inputs, units, init=name, dtype=torch.float64, **options)
    x = torch.randn(20, 4, inputs, dtype=torch.float64)
    output, _ = network(x)
    other, _ = network(-x)
    assert torch.isfinite(output).all()
    assert (output - other).abs().max() > 1e-6


@pytest.mark.parametrize("name", [name for name, form in ELASTANCES.items() if form.inverse is not None])
def test_the_inverse_of_an_elastance_gives_it_back(name: str) -> None:
    form = ELASTANCES[name]
    assert form.inverse is not None
    eps = torch.linspace(1 / LONGEST_MEMORY, 1 / SHORTEST_WITH_ELASTANCE, 50, dtype=torch.float64)
    letters = [torch.full_like(eps, WIDTH) for _ in form.letters]
    torch.testing.assert_close(form.gate(form.inverse(eps, *letters), *letters), eps)


@pytest.mark.parametrize("elastance", ["symmetric", "asymmetric"])
def test_balanced_memories_are_spread_over_their_range(elastance: str) -> None:
    circuit = lrcnet.LRCU(3, 2000, elastance=elastance, dtype=torch.float64).circuit()
    form = ELASTANCES[elastance]
    memory = 1 / form.gate(circuit["p"], *(circuit[letter] for letter in form.letters))
    assert memory.min() >= SHORTEST_WITH_ELASTANCE - 1e-9
    assert memory.max() <= LONGEST_MEMORY + 1e-9
    # Log-uniform: half of the units remember less than the geometric mean.
    shorter = (memory < (SHORTEST_WITH_ELASTANCE * LONGEST_MEMORY) ** 0.5).double().mean()
    assert 0.45 < shorter < 0.55


@pytest.mark.parametrize(("inputs", "units"), [(1, 1), (0, 3), (1, 32), (60, 8), (3, 128)])
def test_balanced_units_start_where_tanh_responds(inputs: int, units: int) -> None:
    """Without input and at h = 0 the synapses cancel, so that u is the leak alone, at any size."""
    cell = lrcnet.LRCUCell(inputs, units, dtype=torch.float64)
    values = cell.values()
    u = (values.k * torch.sigmoid(values.b)).sum(0) + values.g_l
    torch.testing.assert_close(u, values.g_l)
    assert values.g_l.max() <= 1
    # The width of the layer does not drive the forget gate into saturation.
    f = (values.g * torch.sigmoid(values.b)).sum(0) + values.g_l
    assert f.max() < 12


def test_an_ltc_remembers_by_its_leak() -> None:
    circuit = lrcnet.LTC(3, 200).circuit()
    assert circuit["g_l"].min() >= 1 / LONGEST_MEMORY - 1e-6
    assert circuit["g_l"].max() <= 1 / SHORTEST_MEMORY + 1e-6


def test_an_stc_remembers_by_exciting_itself() -> None:
    """Without input and without the other units, a state near 0 decays with its unit's time constant."""
    layer = lrcnet.STC(3, 400, dtype=torch.float64)
    letters = layer.circuit()
    for name in ("k", "g"):
        values = letters[name]
        assert values is not None
        # The other synapses have their resting conductance, and no drive.
        values[~torch.eye(*values.shape, dtype=torch.bool)] *= float(name == "g")
    layer.load_circuit(letters)
    h = torch.full((400,), 1e-6, dtype=torch.float64, requires_grad=True)
    rate = layer.cells[0].derivative(torch.zeros(3, dtype=torch.float64), h)
    (slope,) = torch.autograd.grad(rate.sum(), h)
    memory = -1 / slope
    assert memory.min() > 0.9 * SHORTEST_MEMORY
    assert memory.max() < 1.1 * LONGEST_MEMORY


def test_the_papers_values_are_drawn_as_before() -> None:
    """Results of the paper's tasks depend on the order of the draws."""
    torch.manual_seed(0)
    circuit = lrcnet.LRCUCell(3, 5, init="paper").circuit()
    torch.manual_seed(0)
    a = torch.empty(8, 5).uniform_(3, 8)
    b = -a * torch.empty(8, 5).uniform_(0.3, 0.8)
    g = torch.empty(8, 5).uniform_(0.001, 1)
    blocks = [torch.nn.init.orthogonal_(torch.empty(rows, 5)) for rows in (5, 3)]
    g_l, e_l = torch.empty(5).uniform_(0.001, 1), torch.empty(5).uniform_(-0.2, 0.2)
    o = torch.empty(8, 5).uniform_(-((6 / 13) ** 0.5), (6 / 13) ** 0.5)
    letters = {"a": a, "b": b, "g": g, "k": torch.cat(blocks), "g_l": g_l, "e_l": e_l, "o": o, "p": torch.zeros(5)}
    for name, value in letters.items():
        torch.testing.assert_close(circuit[name], value)


def test_an_unknown_name_lists_the_valid_ones() -> None:
    with pytest.raises(ValueError, match="init must be one of balanced, paper, but is 'he'"):
        lrcnet.LRCU(3, 5, init="he")
