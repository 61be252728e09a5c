"""The models against an independent transcription of the paper's equations, and against each other."""

import numpy as np
import pytest
import torch

import lrcnet
from lrcnet import liquid
from lrcnet.cells.liquid import LiquidCell
from tests import transcription
from tests.tolerances import TRANSCRIPTION

MODELS = {
    "ltc": (lrcnet.LTC, {}),
    "stc": (lrcnet.STC, {}),
    "lrc-a": (lrcnet.LRC, {"elastance": "asymmetric"}),
    "lrc-s": (lrcnet.LRC, {"elastance": "symmetric"}),
}


def numpy_circuit(layer: lrcnet.LRCU) -> dict[str, np.ndarray]:
    return {name: value.numpy() for name, value in layer.circuit().items() if value is not None}


@pytest.mark.parametrize("parametrisation", ["scaled", "ab", "sigma-mu"])
@pytest.mark.parametrize(("solver", "unfolds"), [("euler", 1), ("hybrid", 6), ("exponential", 3)])
@pytest.mark.parametrize("model", MODELS)
def test_layers_equal_the_transcribed_equations_over_irregular_time(
    model: str, solver: str, unfolds: int, parametrisation: str
) -> None:
    layer_type, options = MODELS[model]
    # An explicit step of an LTC need not be stable to be equal.
    options = {**options, "time_warnings": False}
    layer = layer_type(
        3, 5, solver=solver, unfolds=unfolds, parametrisation=parametrisation, dtype=torch.float64, **options
    )
    randomise_maps(layer)
    x, dt = torch.randn(13, 4, 3, dtype=torch.float64), torch.rand(13, 4, dtype=torch.float64) * 0.8
    with torch.no_grad():
        output, _ = layer(x, dt=dt)
    c = numpy_circuit(layer)
    mapped = x.numpy() * c["input_scale"] + c["input_shift"]
    for sample in range(4):
        expected = transcription.run(
            c, mapped[:, sample], dt.numpy()[:, sample], model=model, solver=solver, unfolds=unfolds
        )
        np.testing.assert_allclose(output[:, sample], expected, rtol=0, atol=TRANSCRIPTION)


@pytest.mark.parametrize("elastance", ["symmetric", "asymmetric"])
def test_lrcu_is_the_gated_unit_of_the_appendix(elastance: str) -> None:
    layer = lrcnet.LRCU(3, 5, elastance=elastance, dtype=torch.float64)
    x = torch.randn(20, 3, dtype=torch.float64)
    with torch.no_grad():
        output, _ = layer(x)
    expected = transcription.lrcu(numpy_circuit(layer), x.numpy(), symmetric=elastance == "symmetric")
    np.testing.assert_allclose(output, expected, rtol=0, atol=TRANSCRIPTION)


@pytest.mark.parametrize("elastance", ["symmetric", "asymmetric"])
def test_lrcu_is_one_explicit_euler_step_of_lrc(elastance: str) -> None:
    unit = lrcnet.LRCUCell(3, 5, elastance=elastance, dtype=torch.float64)
    network = lrcnet.LRCCell(3, 5, elastance=elastance, solver="euler", unfolds=1, dtype=torch.float64)
    network.load_circuit(unit.circuit())
    x, h = torch.randn(4, 3, dtype=torch.float64), torch.randn(4, 5, dtype=torch.float64)
    dt = torch.rand(4, dtype=torch.float64)
    torch.testing.assert_close(unit(x, h, dt), network(x, h, dt), rtol=0, atol=TRANSCRIPTION)
    by_hand = h + dt[:, None] * network.derivative(x, h)
    torch.testing.assert_close(unit(x, h, dt), by_hand, rtol=0, atol=TRANSCRIPTION)


@pytest.mark.parametrize("solver", ["euler", "hybrid", "exponential", "heun", "rk4"])
def test_lrc_with_elastance_one_is_the_stc(solver: str) -> None:
    stc = lrcnet.STC(3, 5, solver=solver, unfolds=2, dtype=torch.float64)
    lrc = lrcnet.LRC(3, 5, elastance="asymmetric", solver=solver, unfolds=2, dtype=torch.float64)
    # sigmoid(40) differs from 1 by 4e-18, less than float64 can tell.
    wide_open = {"o": torch.zeros(8, 5), "p": torch.full((5,), 40.0)}
    lrc.load_circuit({**stc.circuit(), **wide_open})
    x, dt = torch.randn(9, 2, 3, dtype=torch.float64), torch.rand(9, 2, dtype=torch.float64)
    torch.testing.assert_close(lrc(x, dt=dt)[0], stc(x, dt=dt)[0], rtol=0, atol=TRANSCRIPTION)


def test_euler_step_of_gru_ode_is_the_papers_gru_and_not_torchs() -> None:
    cell = lrcnet.GRUODECell(3, 5, dtype=torch.float64)
    torch.nn.init.normal_(cell.bias)
    x, h = torch.randn(4, 3, dtype=torch.float64), torch.randn(4, 5, dtype=torch.float64)
    update, reset, candidate = (
        torch.cat([cell.weight_hh[rows], cell.weight_ih[rows]], 1) for rows in torch.arange(15).split(5)
    )
    bias_update, bias_reset, bias_candidate = cell.bias.split(5)
    y = torch.cat([h, x], 1)
    f, r = torch.sigmoid(y @ update.T + bias_update), torch.sigmoid(y @ reset.T + bias_reset)
    u = torch.tanh(torch.cat([r * h, x], 1) @ candidate.T + bias_candidate)
    torch.testing.assert_close(cell(x, h, dt=1.0), (1 - f) * h + f * u, rtol=0, atol=TRANSCRIPTION)
    after_product = torch.tanh(x @ candidate[:, 5:].T + r * (h @ candidate[:, :5].T) + bias_candidate)
    assert not torch.allclose(u, after_product)


def test_mgu_equals_its_equation() -> None:
    cell = lrcnet.MGUCell(3, 5, dtype=torch.float64)
    torch.nn.init.normal_(cell.bias)
    x, h = torch.randn(4, 3, dtype=torch.float64), torch.randn(4, 5, dtype=torch.float64)
    forget_row, candidate_row = (
        torch.cat([cell.weight_ih[r], cell.weight_hh[r]], 1) for r in torch.arange(10).split(5)
    )
    f = torch.sigmoid(torch.cat([x, h], 1) @ forget_row.T + cell.bias[:5])
    c = torch.tanh(torch.cat([x, f * h], 1) @ candidate_row.T + cell.bias[5:])
    torch.testing.assert_close(cell(x, h), (1 - f) * h + f * c, rtol=0, atol=TRANSCRIPTION)


def test_the_papers_gru_resets_before_the_product_and_equals_one_euler_step_of_its_ode() -> None:
    cell, ode = lrcnet.ResetBeforeGRUCell(3, 5, dtype=torch.float64), lrcnet.GRUODECell(3, 5, dtype=torch.float64)
    torch.nn.init.normal_(cell.bias)
    ode.load_state_dict(cell.state_dict())
    x, h = torch.randn(4, 3, dtype=torch.float64), torch.randn(4, 5, dtype=torch.float64)
    update, reset, candidate = torch.cat([cell.weight_ih, cell.weight_hh], 1).split(5)
    bias_update, bias_reset, bias_candidate = cell.bias.split(5)
    both = torch.cat([x, h], 1)
    z, r = torch.sigmoid(both @ update.T + bias_update), torch.sigmoid(both @ reset.T + bias_reset)
    c = torch.tanh(torch.cat([x, r * h], 1) @ candidate.T + bias_candidate)
    torch.testing.assert_close(cell(x, h), (1 - z) * h + z * c, rtol=0, atol=TRANSCRIPTION)
    torch.testing.assert_close(cell(x, h), ode(x, h, dt=1.0), rtol=0, atol=TRANSCRIPTION)


def test_derivative_is_what_a_tiny_step_does() -> None:
    for cell in (lrcnet.LTCCell(2, 4), lrcnet.LRCCell(2, 4), lrcnet.CTRNNCell(2, 4), lrcnet.GRUODECell(2, 4)):
        cell = cell.double()
        x, h = torch.randn(3, 2, dtype=torch.float64), torch.randn(3, 4, dtype=torch.float64)
        slope = (cell(x, h, dt=1e-7) - h) / 1e-7
        torch.testing.assert_close(slope, cell.derivative(x, h), rtol=1e-5, atol=1e-5)


def test_output_map_touches_the_output_and_not_the_state() -> None:
    layer = lrcnet.LRCU(3, 5, output_map=True)
    plain = lrcnet.LRCU(3, 5)
    plain.load_circuit({**layer.circuit(), "output_scale": None, "output_shift": None})
    cell = layer.cells[0]
    assert isinstance(cell, LiquidCell)
    with torch.no_grad():
        cell.output_scale.uniform_(0.5, 2)
        cell.output_shift.uniform_(-1, 1)
        x = torch.randn(7, 2, 3)
        (mapped, h_mapped), (states, h_states) = layer(x), plain(x)
    assert torch.equal(h_mapped, h_states)
    circuit = layer.circuit()
    torch.testing.assert_close(mapped, states * circuit["output_scale"] + circuit["output_shift"])


def test_symmetric_elastance_is_even_and_bounded_by_its_value_at_zero() -> None:
    w, k = torch.linspace(-30, 30, 601, dtype=torch.float64), torch.tensor(1.3, dtype=torch.float64)
    eps = liquid.elastance_gate("symmetric", w, k)
    torch.testing.assert_close(eps, eps.flip(0), rtol=0, atol=1e-15)
    assert float(eps.max()) == pytest.approx(float(torch.tanh(k / 2)), abs=1e-15)


def randomise_maps(layer: torch.nn.Module) -> None:
    with torch.no_grad():
        for name, parameter in layer.named_parameters():
            if name.endswith(("input_scale", "input_shift")):
                parameter.uniform_(0.5, 1.5)


@pytest.mark.parametrize("elastance", ["symmetric", "asymmetric", "none"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_fused_field_equals_the_plain_one(elastance: str, dtype: torch.dtype) -> None:
    plain = lrcnet.LRCField(2, elastance=elastance, backend="reference").to(dtype)
    fused = lrcnet.LRCField(2, elastance=elastance, backend="fused").to(dtype)
    fused.load_state_dict(plain.state_dict())
    y = torch.randn(16, 2, dtype=dtype)
    tolerance = 1e-12 if dtype == torch.float64 else 1e-6
    torch.testing.assert_close(fused(0.0, y), plain(0.0, y), rtol=0, atol=tolerance)
    for field in (plain, fused):
        field(0.0, y).square().sum().backward()
    for name, parameter in plain.named_parameters():
        torch.testing.assert_close(fused.get_parameter(name).grad, parameter.grad, rtol=1e-4, atol=10 * tolerance)
