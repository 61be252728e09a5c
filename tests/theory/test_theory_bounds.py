"""The bounds against hand calculation, and the models and arguments that are errors."""

import math

import pytest
import torch

import lrcnet
from lrcnet.theory import Domain, bounds, empirical_lipschitz, lipschitz_bound
from lrcnet.theory.network import read_model
from tests.theory.networks import Case, one_neuron
from tests.theory.test_theory_laws import check_one_unfolding

SUPREMUM = 20 + 1 - 1 / (1 + math.exp(-5))
BOX = Domain((-2.0, 2.0))


def test_one_neuron_has_the_bound_22() -> None:
    bound = lipschitz_bound(one_neuron(), BOX)
    assert (bound.value, bound.source) == (22.0, "paper")
    assert float(bound) == lipschitz_bound(one_neuron(), BOX, kind="tighter").value


def test_gradient_ascent_finds_the_one_neuron_supremum() -> None:
    measured = empirical_lipschitz(one_neuron(), domain=BOX)
    assert measured.value == pytest.approx(SUPREMUM, rel=0.01)
    assert measured.value <= SUPREMUM * (1 + 1e-12)
    # The ascent reached this value; its starting points are below it.
    assert measured.value > empirical_lipschitz(one_neuron(), domain=BOX, steps=0).value
    assert measured.value == measured.by_ascent
    assert measured.over_data is None


def test_six_unfoldings_are_thousands_and_only_the_propagated_bound_covers_them() -> None:
    six = one_neuron(unfolds=6)
    measured = empirical_lipschitz(six, domain=BOX, starts=32).value
    bound = lipschitz_bound(six, BOX)
    assert 5000 < measured <= bound.value == pytest.approx((1 + 21 / 6) ** 6)
    assert bound.source == "paper, propagated"
    assert bound.unfolds == 6
    with pytest.raises(ValueError, match="the proof covers one solver step, but the model takes 6"):
        lipschitz_bound(six, BOX, propagate=False)


def test_without_its_update_term_the_bound_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = bounds.sensitivity_on

    def without_update_term(circuit, state):
        parts = whole(circuit, state)
        update = 0.25 * (circuit.k * circuit.a * circuit.e_l).abs().t()
        return parts._replace(synaptic=parts.synaptic - update)

    case = Case(one_neuron(), torch.ones(1, 1), BOX, 1.0)
    check_one_unfolding(case)
    monkeypatch.setattr(bounds, "sensitivity_on", without_update_term)
    with pytest.raises(AssertionError):
        check_one_unfolding(case)


def test_bound_is_the_formula_of_the_proof() -> None:
    """Compute the bound entry by entry, in loops, with both maps on."""
    layer = lrcnet.LRCU(2, 3, output_map=True, elastance="asymmetric", dtype=torch.float64)
    c = layer.circuit()
    c["input_scale"], c["output_scale"] = torch.tensor([2.0, -3.0]), torch.tensor([1.0, -2.0, 0.5])
    layer.load_circuit(c)
    readout = torch.randn(2, 3, dtype=torch.float64)
    domain, dt = Domain((-0.3, 0.5), (-1.0, 2.0)), 0.7
    bound = lipschitz_bound((layer, readout), domain, dt)
    for k in range(2):
        for j in range(5):
            scale = 1.0 if j < 3 else c["input_scale"][j - 3].item()
            v = 0.0
            for i in range(3):
                a, o = c["a"][j, i].item() * scale, abs(c["o"][j, i].item() * scale)
                g, u, e = c["g"][j, i].item(), abs(c["k"][j, i].item()), abs(c["e_l"][i].item())
                d = 0.0625 * abs(g * a) * 0.5 + 0.25 * abs(u * a) * e + 1
                if o > min(0.0625 * abs(g * a), 0.25 * abs(u * a)):
                    d += 0.25 * o * (0.5 + e)
                v += abs(readout[k, i].item() * c["output_scale"][i].item()) * (1 + dt * d)
            assert bound.matrix[k, j].item() == pytest.approx(v, rel=1e-12)
    assert bound.value == pytest.approx(torch.linalg.matrix_norm(bound.matrix, 2).item())


def test_tighter_bound_is_the_maximum_over_the_elastance() -> None:
    for el in ("asymmetric", "symmetric"):
        cell = lrcnet.LRCCell(1, 3, elastance=el, solver="euler", dtype=torch.float64)
        c = cell.circuit()
        c["o"] = c["o"] * 30
        cell.load_circuit(c)
        network = read_model(cell)
        low, high = Domain((-0.5, 0.5), (-1.0, 1.0)).ends(network)
        parts, limit = bounds.sensitivities(network, network.circuit, low, high, 1.0)
        e = torch.linspace(0, 1, 20001, dtype=torch.float64).reshape(-1, 1, 1) * limit.largest.unsqueeze(-1)
        scanned = (e * parts.synaptic + e * (1 - e) * parts.elastic).amax(0)
        torch.testing.assert_close(bounds.tighter_sensitivity(parts, limit), scanned, rtol=1e-6, atol=0)


def test_elastance_limit_is_reached_on_the_box() -> None:
    for el in ("asymmetric", "symmetric"):
        cell = lrcnet.LRCCell(2, 3, elastance=el, dtype=torch.float64)
        network = read_model(cell)
        for centre in (0.0, 3.0):
            low, high = Domain((-0.5, 0.5), (centre - 1.0, centre + 1.0)).ends(network)
            limit = lrcnet.theory.elastance.elastance_limit(network.circuit, low, high)
            draw = torch.rand(20000, 5, dtype=torch.float64)
            y = low + torch.cat([draw, draw.round()]) * (high - low)
            w = y @ network.circuit.o + network.circuit.p
            seen = lrcnet.liquid.elastance_of(network.circuit, network.cell.switches(), w).amax(0)
            assert bool((seen <= limit.largest * (1 + 1e-12)).all())
            torch.testing.assert_close(seen, limit.largest, rtol=1e-5, atol=0)
            torch.testing.assert_close(1 - limit.largest, limit.complement, rtol=1e-9, atol=1e-15)


def test_unbounded_inputs_take_the_asymmetric_gain_away_but_not_the_symmetric_one() -> None:
    """With unbounded inputs, sigma(w) tends to 1 and phi to D, but the symmetric form cannot exceed tanh(k / 2)."""
    gains = {}
    for el in ("asymmetric", "symmetric"):
        stc = lrcnet.STCCell(1, 2, solver="euler", unfolds=1, dtype=torch.float64)
        gains[el] = [
            lrcnet.theory.associated_lrc(stc, elastance=el, domain=Domain((-1.0, 1.0), (-size, size))).certificate.gap
            for size in (1.0, 10.0, 100.0, 1000.0)
        ]
    assert gains["asymmetric"] == sorted(gains["asymmetric"], reverse=True)
    assert 0 < gains["asymmetric"][-1] < 1e-15
    assert min(gains["symmetric"]) > 0.1


def test_hybrid_step_from_a_small_box_needs_the_states_on_the_way() -> None:
    """In a hybrid step the gates' slopes multiply the new state, so a bound from the old states alone is too small."""
    cell = lrcnet.STCCell(1, 1, solver="hybrid", unfolds=1, input_map=False, dtype=torch.float64)
    letters = {"g": [0.0, 4.0], "k": [0.0, 0.0], "a": [0.0, 4.0], "b": [0.0, 0.0], "g_l": [0.5], "e_l": [100.0]}
    shapes = {name: value.shape for name, value in cell.circuit().items() if value is not None}
    cell.load_circuit({n: torch.tensor(v, dtype=torch.float64).reshape(shapes[n]) for n, v in letters.items()})
    domain = Domain((0.0, 0.0), (-1.0, 1.0))
    measured = empirical_lipschitz(cell, domain=domain).value
    start_only = bounds.sensitivity_on(read_model(cell).circuit, torch.zeros(1, dtype=torch.float64)).synaptic
    assert float(torch.linalg.matrix_norm(1 + start_only, 2)) < measured <= lipschitz_bound(cell, domain).value


def test_models_without_a_bound_get_one_sentence() -> None:
    box = Domain((-1.0, 1.0), (-1.0, 1.0))
    for model, words in (
        (lrcnet.LTC(3, 5), "STC, LRC and LRCU, whose gates are bounded, but the model is an LTC"),
        (lrcnet.MGU(3, 5), "but the model is an MGU"),
        (lrcnet.LRCU(3, 5, num_layers=2), "one LRCU layer in one direction, but this one is a stack of 2 layers"),
        (lrcnet.LRC(3, 5, bidirectional=True), "but this one is bidirectional"),
        (lrcnet.LRC(3, 5, solver="rk4"), "the solvers euler, hybrid, exponential, but the solver is 'rk4'"),
        (lrcnet.GRU(3, 5), "no Lipschitz constant is defined here for a GRU"),
        (lrcnet.LRCField(2), "but LRCField is a vector field"),
        (torch.nn.Linear(3, 5), "exactly one recurrent layer, but Linear has 0"),
        (torch.nn.Sequential(lrcnet.LRCU(3, 5), torch.nn.ReLU(), torch.nn.Linear(5, 1)), "but ReLU, Linear does"),
        ((lrcnet.LRCU(3, 5), torch.ones(2, 4)), r"must have shape \(K, 5\), K at least 1, but has \(2, 4\)"),
    ):
        with pytest.raises(ValueError, match=words) as caught:
            lipschitz_bound(model, box)
        assert "\n" not in str(caught.value)
    for model, words in (
        ((lrcnet.LRCU(3, 5), "Q"), "a readout must be an nn.Linear, a tensor or None, but is a str"),
        ((lrcnet.LRCU(3, 5),), "must be .layer, readout., but has 1 parts"),
        ("lrcu", "must be a module or .layer, readout., but is a str"),
    ):
        with pytest.raises(TypeError, match=words):
            lipschitz_bound(model, box)


def test_a_module_is_read_as_its_layer_and_the_linear_after_it() -> None:
    class Tagger(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.into = torch.nn.Linear(7, 3)
            self.layer = lrcnet.LRCU(3, 5, batch_first=True)
            self.drop = torch.nn.Dropout(0.5)
            self.out = torch.nn.Linear(5, 2)

    tagger, box = Tagger(), Domain((-1.0, 1.0), (-1.0, 1.0))
    assert lipschitz_bound(tagger, box).value == lipschitz_bound((tagger.layer, tagger.out), box).value
    assert lipschitz_bound(tagger, box).value == lipschitz_bound((tagger.layer, tagger.out.weight), box).value
    assert lipschitz_bound(tagger.layer, box).value == lipschitz_bound((tagger.layer, torch.eye(5)), box).value


def test_bad_steps_and_kinds_are_refused() -> None:
    model, box = lrcnet.LRCU(3, 5), Domain((-1.0, 1.0), (-1.0, 1.0))
    with pytest.raises(ValueError, match="dt must be finite and >= 0, but is -1"):
        lipschitz_bound(model, box, -1.0)
    with pytest.raises(TypeError, match="dt must be one number"):
        lipschitz_bound(model, box, torch.ones(3))
    with pytest.raises(ValueError, match="kind must be one of paper, tighter, but is 'best'"):
        lipschitz_bound(model, box, kind="best")
