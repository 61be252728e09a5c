"""Initial values, parametrisations, constraints, circuits and parameter counts."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import lrcnet
from lrcnet.cells.liquid import LiquidCell
from lrcnet.circuit import LETTERS
from lrcnet.liquid import PARAMETRISATIONS, LiquidParameters, centre_of


def count(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def test_initial_values_are_those_of_the_release() -> None:
    c = LiquidParameters(40, 60, output_map=True, init="paper", dtype=torch.float64).circuit()
    centre = -c["b"] / c["a"]
    for values, low, high in (
        (c["a"], 3, 8),
        (centre, 0.3, 0.8),
        (c["g"], 0.001, 1),
        (c["g_l"], 0.001, 1),
        (c["e_l"], -0.2, 0.2),
    ):
        assert low <= values.min() < low + 0.1 * (high - low)
        assert high - 0.1 * (high - low) < values.max() <= high
    eye = torch.eye(60, dtype=torch.float64)
    torch.testing.assert_close(c["k"][:60] @ c["k"][:60].T, eye)
    torch.testing.assert_close(c["k"][60:] @ c["k"][60:].T, torch.eye(40, dtype=torch.float64))
    limit = (6 / 160) ** 0.5
    assert 0.9 * limit < c["o"].abs().max() <= limit
    assert torch.equal(c["p"], torch.zeros(60, dtype=torch.float64))
    for name, value in (("k_eps", 1), ("input_scale", 1), ("input_shift", 0), ("output_scale", 1), ("output_shift", 0)):
        assert (c[name] == value).all()


def test_baselines_start_as_the_protocol_says() -> None:
    for layer in (lrcnet.LSTM(20, 30), lrcnet.GRU(20, 30)):
        for name, value in layer.named_parameters():
            if "weight_hh" in name:
                torch.testing.assert_close(value.T @ value, torch.eye(30), atol=1e-5, rtol=0)
            elif "bias" in name and not isinstance(layer, lrcnet.LSTM):
                assert (value == 0).all()
    lstm = lrcnet.LSTM(20, 30)
    total = lstm.bias_ih_l0 + lstm.bias_hh_l0
    assert (total[30:60] == 1).all()
    assert (total[:30] == 0).all()
    assert (total[60:] == 0).all()


@pytest.mark.parametrize("kind", [lrcnet.MGUCell, lrcnet.ResetBeforeGRUCell, lrcnet.GRUODECell])
def test_gated_units_of_the_paper_have_one_glorot_kernel_over_inputs_and_state_per_gate(kind: type) -> None:
    cell = kind(20, 30)
    limit = (6 / (20 + 30 + 30)) ** 0.5
    for gate in torch.cat([cell.weight_ih, cell.weight_hh], 1).split(30):
        assert gate.shape == (30, 50)
        assert 0.97 * limit < gate.abs().max() <= limit
        # The standard deviation of a uniform distribution, to five of the estimate's own standard errors.
        assert abs(gate.std() / (limit / 3**0.5) - 1) < 5 * 0.45 / gate.numel() ** 0.5
    assert (cell.bias == 0).all()


@pytest.mark.parametrize("constraint", ["clamp", "softplus"])
@pytest.mark.parametrize("target", PARAMETRISATIONS)
@pytest.mark.parametrize("source", PARAMETRISATIONS)
def test_circuits_carry_over_between_parametrisations_to_rounding(source: str, target: str, constraint: str) -> None:
    first = lrcnet.LRCU(3, 5, parametrisation=source, dtype=torch.float64, output_map=True)
    second = lrcnet.LRCU(3, 5, parametrisation=target, constraint=constraint, dtype=torch.float64, output_map=True)
    second.load_circuit(first.circuit())
    for name, value in first.circuit().items():
        torch.testing.assert_close(
            second.circuit()[name], value, rtol=4e-16 if constraint == "clamp" else 1e-13, atol=0
        )
    x = torch.randn(6, 2, 3, dtype=torch.float64)
    torch.testing.assert_close(first(x)[0], second(x)[0], rtol=0, atol=1e-13)


def test_a_flat_synapse_with_an_offset_has_no_centre() -> None:
    circuit = lrcnet.LRCU(3, 5).circuit()
    circuit["a"][2, 1] = 0
    layer = lrcnet.LRCU(3, 5, parametrisation="sigma-mu")
    before = layer.circuit()
    with pytest.raises(ValueError, match=r"a\[2, 1\] = 0"):
        layer.load_circuit(circuit)
    assert all(v is None or torch.equal(v, layer.circuit()[k]) for k, v in before.items())
    circuit["b"][2, 1] = 0
    layer.load_circuit(circuit)
    assert layer.circuit()["b"][2, 1] == 0


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6).filter(lambda v: abs(v) > 1e-6))
def test_centre_converts_back_to_the_offset(b: float, a: float) -> None:
    slope, offset = torch.tensor([[a]], dtype=torch.float64), torch.tensor([[b]], dtype=torch.float64)
    assert (-slope * centre_of(slope, offset)).item() == pytest.approx(b, rel=4e-16, abs=1e-300)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_zero_conductance_loads_into_softplus_as_the_smallest_normal_number(dtype: torch.dtype) -> None:
    layer = lrcnet.LRCU(3, 5, constraint="softplus", dtype=dtype)
    circuit = layer.circuit()
    circuit["g"].zero_()
    layer.load_circuit(circuit)
    tiny = torch.finfo(dtype).tiny
    torch.testing.assert_close(layer.circuit()["g"] / tiny, torch.ones(8, 5, dtype=dtype), rtol=1e-4, atol=0)
    large = {**circuit, "g": torch.full((8, 5), 1e4, dtype=dtype)}
    layer.load_circuit(large)
    torch.testing.assert_close(layer.circuit()["g"], large["g"])


@pytest.mark.parametrize("constraint", ["clamp", "softplus"])
def test_a_plain_training_loop_stays_within_the_constraints(constraint: str) -> None:
    # The paper's values of g are the smaller ones in a layer of this size.
    layer = lrcnet.LRCU(3, 5, constraint=constraint, parametrisation="ab", init="paper", backend="reference")
    optimiser = torch.optim.RMSprop(layer.parameters(), lr=0.05)
    x = torch.randn(12, 8, 3)
    for _ in range(20):
        optimiser.zero_grad()
        layer(x)[0].sub(torch.randn(12, 8, 5)).square().mean().backward()
        optimiser.step()
    cell = layer.cells[0]
    assert isinstance(cell, LiquidCell)
    if constraint == "clamp":
        assert (cell.g < 0).any(), "the test must push some conductance below zero to mean anything"
    circuit = layer.circuit()
    for name in ("g", "g_l", "k_eps"):
        assert (circuit[name] >= 0).all()
    twin = lrcnet.LRCU(3, 5, constraint=constraint, backend="reference")
    twin.load_circuit(circuit)
    torch.testing.assert_close(twin(x)[0], layer(x)[0], rtol=1e-5, atol=1e-6)
    before = layer(x)[0]
    assert lrcnet.project_(layer) is layer
    assert torch.equal(layer(x)[0], before)
    if constraint == "clamp":
        assert (cell.g >= 0).all()


@pytest.mark.parametrize(("parametrisation", "unit"), [("ab", 1), ("scaled", LETTERS["g"].unit)])
def test_gradient_reaches_a_negative_conductance_only_to_raise_it(parametrisation: str, unit: float) -> None:
    cell = lrcnet.LRCUCell(1, 1, parametrisation=parametrisation)
    with torch.no_grad():
        cell.g.fill_(-0.5)
    for sign in (1, -1):
        cell.zero_grad()
        (sign * cell.values().g).sum().backward()
        expected = 0.0 if sign > 0 else -unit
        assert (cell.g.grad == expected).all()


def test_project_covers_every_constrained_cell() -> None:
    model = torch.nn.Sequential(lrcnet.CTRNN(2, 3), lrcnet.LTC(2, 3, num_layers=2))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(-1)
    lrcnet.project_(model)
    assert (model[0].cells[0].rate == 0).all()
    assert (model[1].cells[1].g == 0).all()
    assert (model[1].cells[1].k == -1).all()


def test_load_circuit_refuses_what_does_not_fit_and_changes_nothing() -> None:
    layer = lrcnet.LRCU(3, 5)
    circuit = layer.circuit()
    for change, message in (
        ({"a": circuit["a"][:-1]}, "a must have shape"),
        ({"g": -circuit["g"]}, "g must be >= 0"),
        ({"o": None}, "must have exactly"),
        ({"zeta": torch.ones(1)}, "must have exactly"),
        ({"output_scale": torch.ones(5)}, "must have exactly"),
    ):
        with pytest.raises(ValueError, match=message):
            layer.load_circuit({**circuit, "e_l": circuit["e_l"] + 1, **change})
        assert torch.equal(layer.circuit()["e_l"], circuit["e_l"])
    with pytest.raises(ValueError, match="layer must be from 0 to 0"):
        layer.circuit(1)
    with pytest.raises(ValueError, match="bidirectional"):
        layer.circuit(0, reverse=True)


def test_circuits_of_stacked_bidirectional_layers_are_their_own() -> None:
    layer = lrcnet.LRC(3, 5, num_layers=2, bidirectional=True)
    shapes = [layer.circuit(i, r)["a"].shape for i in (0, 1) for r in (False, True)]
    assert shapes == [(8, 5), (8, 5), (15, 5), (15, 5)]
    layer.load_circuit(layer.circuit(1, False), layer=1, reverse=True)
    assert torch.equal(layer.circuit(1, True)["a"], layer.circuit(1, False)["a"])


@pytest.mark.parametrize(("inputs", "thousands"), [(7, 23), (64, 41), (1, 21)])
def test_lrcu_of_64_units_has_the_size_of_the_protocol(inputs: int, thousands: int) -> None:
    m, n = 64, inputs
    asymmetric = 5 * m * m + 5 * m * n + 5 * m + 2 * n
    assert count(lrcnet.LRCU(n, m, elastance="asymmetric", output_map=True)) == asymmetric
    assert count(lrcnet.LRCU(n, m, output_map=True)) == asymmetric + m
    assert count(lrcnet.LRCU(n, m)) == asymmetric + m - 2 * m
    assert count(lrcnet.LRCU(n, m, bias=False)) == asymmetric - 2 * m
    assert round(asymmetric / 1000) == thousands


def test_driving_policies_have_eight_thousand_recurrent_parameters() -> None:
    counts = {
        "lstm": count(lrcnet.LSTM(64, 23)),
        "gru": count(lrcnet.GRU(64, 28)),
        "mgu": count(lrcnet.MGU(64, 38)),
        "lrcu-a": count(lrcnet.LRCU(64, 19, elastance="asymmetric", output_map=True)),
        "lrcu-s": count(lrcnet.LRCU(64, 19, output_map=True)),
    }
    # torch adds a second bias to LSTM and GRU, 4 * 23 and 3 * 28 numbers that Keras does not have.
    assert counts == {"lstm": 8188, "gru": 7896, "mgu": 7828, "lrcu-a": 8108, "lrcu-s": 8127}
    assert all(round(value / 1000) == 8 for value in counts.values())


def test_ode_fields_have_the_papers_sizes() -> None:
    assert count(lrcnet.LRCField(2)) == 1426
    assert count(lrcnet.LRCField(2, elastance="asymmetric")) == 1410
    assert count(lrcnet.MLPField(2)) == 1218
