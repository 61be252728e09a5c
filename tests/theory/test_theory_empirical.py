"""Jacobians and measured constants against finite differences, autograd and brute force."""

import pytest
import torch

import lrcnet
from lrcnet.theory import Domain, empirical_lipschitz, visited_points
from lrcnet.theory.empirical import spectral_norms
from lrcnet.theory.jacobian import _jacobian_by_output, output_jacobian
from lrcnet.theory.network import read_model

MODELS = [
    lrcnet.LTC(3, 4, dtype=torch.float64),
    lrcnet.STC(3, 4, solver="euler", unfolds=1, dtype=torch.float64),
    lrcnet.STC(3, 4, output_map=True, parametrisation="sigma-mu", dtype=torch.float64),
    lrcnet.LRC(3, 4, solver="exponential", unfolds=2, elastance="asymmetric", bias=False, dtype=torch.float64),
    lrcnet.LRC(3, 4, solver="rk4", unfolds=2, constraint="softplus", dtype=torch.float64),
    lrcnet.LRC(3, 4, solver="heun", dtype=torch.float64),
    lrcnet.LRCU(3, 4, dtype=torch.float64),
    lrcnet.MGU(3, 4, dtype=torch.float64),
    lrcnet.CTRNN(3, 4, dtype=torch.float64),
    lrcnet.GRUODE(3, 4, dtype=torch.float64),
]


def names(layer: torch.nn.Module) -> str:
    cell = layer.cells[0]
    return f"{type(layer).__name__}-{getattr(cell, 'solver', 'step')}-{getattr(cell, 'unfolds', 1)}"


@pytest.mark.parametrize("layer", MODELS, ids=names)
def test_jacobian_agrees_with_finite_differences(layer: torch.nn.Module) -> None:
    """Compute central differences of the layer's own step, output map included; their error is about 1e-9."""
    readout = torch.nn.Linear(4, 2, dtype=torch.float64)
    network = read_model((layer, readout))
    y, width = torch.randn(6, 7, dtype=torch.float64), 1e-5
    takes_dt = type(layer) is not lrcnet.MGU
    dt = torch.rand(6, dtype=torch.float64) + 0.2 if takes_dt else torch.ones(6, dtype=torch.float64)

    def output(y: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return readout(layer.step(y[:, 4:], y[None, :, :4].contiguous(), dt if takes_dt else None)[0])

    columns = [(output(y + width * e) - output(y - width * e)) / (2 * width) for e in torch.eye(7, dtype=torch.float64)]
    jacobian = output_jacobian(network, y[:, :4], y[:, 4:], dt)
    torch.testing.assert_close(jacobian, torch.stack(columns, -1), rtol=1e-6, atol=1e-8)
    norms = spectral_norms(network, y[:, :4], y[:, 4:], dt)
    torch.testing.assert_close(norms, torch.linalg.matrix_norm(jacobian, 2))


@pytest.mark.parametrize("layer", MODELS[:7], ids=names)
def test_unit_by_unit_equals_output_jacobian_by_output(layer: torch.nn.Module) -> None:
    network = read_model(layer)
    h, x, dt = torch.randn(5, 4).double(), torch.randn(5, 3).double(), torch.rand(5).double()
    general = _jacobian_by_output(network, h, x, dt)
    torch.testing.assert_close(output_jacobian(network, h, x, dt), general)


def test_gradient_of_the_jacobian_agrees_with_finite_differences() -> None:
    network = read_model((lrcnet.LRC(2, 3, unfolds=2, dtype=torch.float64), torch.randn(2, 3)))
    y = torch.randn(2, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda y: output_jacobian(network, y[:, :3], y[:, 3:], 0.7), y)


def test_ascent_beats_random_search_and_stays_in_the_box() -> None:
    layer = lrcnet.LRCU(4, 6, dtype=torch.float64)
    box = Domain((-0.4, 0.4), (-1.0, 1.0))
    network = read_model(layer)
    measured = empirical_lipschitz(layer, domain=box)
    y = torch.rand(5000, 10, dtype=torch.float64) * 2 - 1
    y[:, :6] *= 0.4
    random = spectral_norms(network, y[:, :6], y[:, 6:], torch.ones(5000, dtype=torch.float64)).max()
    assert measured.value > float(random)
    assert bool((measured.state.abs() <= 0.4).all())
    assert bool((measured.inputs.abs() <= 1).all())
    again = empirical_lipschitz(layer, (measured.state.unsqueeze(0), measured.inputs.unsqueeze(0)))
    assert again.value == pytest.approx(measured.value, rel=1e-12)
    assert empirical_lipschitz(layer, domain=box).value == measured.value


def test_ascent_starts_from_the_data_too() -> None:
    layer, box = lrcnet.LRCU(4, 6), Domain((-0.4, 0.4), (-1.0, 1.0))
    best = empirical_lipschitz(layer, domain=box)
    point = (best.state.unsqueeze(0), best.inputs.unsqueeze(0))
    measured = empirical_lipschitz(layer, point, domain=box, starts=1, steps=0)
    assert measured.over_data == measured.by_ascent == measured.value == pytest.approx(best.value)
    elsewhere = Domain((-0.4, 0.4), (3.0, 4.0))
    outside = empirical_lipschitz(layer, point, domain=elsewhere, starts=1, steps=0)
    assert outside.by_ascent == empirical_lipschitz(layer, domain=elsewhere, starts=1, steps=0).value


@pytest.mark.parametrize("batch_first", [False, True])
def test_visited_states_are_those_before_each_step(batch_first: bool) -> None:
    layer = lrcnet.LRCU(3, 4, batch_first=batch_first, dtype=torch.float64)
    x = torch.randn(2, 9, 3, dtype=torch.float64)
    states, inputs = visited_points(layer, x if batch_first else x.transpose(0, 1))
    output, _ = layer(x if batch_first else x.transpose(0, 1))
    output = output if batch_first else output.transpose(0, 1)
    expected = torch.cat([torch.zeros(2, 1, 4, dtype=torch.float64), output[:, :-1]], 1)
    torch.testing.assert_close(states, expected.flatten(0, 1))
    torch.testing.assert_close(inputs, x.flatten(0, 1))
    sequences = empirical_lipschitz(layer, x if batch_first else x.transpose(0, 1))
    assert sequences.value == empirical_lipschitz(layer, (states, inputs)).value
    assert visited_points(layer, x[0])[0].shape == (9, 4)


def test_bad_data_get_one_sentence() -> None:
    layer = lrcnet.LRCU(3, 4)
    h, x = torch.zeros(5, 4), torch.zeros(5, 3)
    for arguments, words in (
        ({}, "needs data, a domain or both"),
        ({"data": (h, x[:4])}, r"must be states \(N, 4\) and inputs \(N, 3\)"),
        ({"data": (h[:0], x[:0])}, "with N at least 1"),
        ({"data": (h / 0, x)}, "the Jacobian at point 0 is not finite"),
        ({"data": torch.zeros(5, 2, 2)}, "sequences must have 3 features"),
        ({"data": torch.zeros(0, 2, 3)}, "at least one step"),
        ({"data": (h, x), "dt": torch.ones(4)}, r"of shape \(5,\)"),
        ({"data": torch.zeros(5, 2, 3), "dt": torch.ones(5)}, "dt must be one number for sequences"),
        ({"data": (h, x), "starts": 0}, "starts must be at least 1"),
    ):
        with pytest.raises(ValueError, match=words) as caught:
            empirical_lipschitz(layer, **arguments)
        assert "\n" not in str(caught.value)
    with pytest.raises(TypeError, match=r"data must be \(states, inputs\) or a tensor"):
        empirical_lipschitz(layer, {"h": h})
    with pytest.raises(ValueError, match="an adaptive solver cannot be batched"):
        empirical_lipschitz(lrcnet.LRC(3, 4, solver="dopri5"), (h, x))
    with pytest.raises(ValueError, match="one more input column"):
        empirical_lipschitz(lrcnet.MGU(3, 4, time_feature=True), (h, x))


def test_the_callers_model_is_left_alone() -> None:
    layer = lrcnet.LRCU(3, 4)
    before = {name: value.clone() for name, value in layer.state_dict().items()}
    empirical_lipschitz(layer, domain=Domain((-1.0, 1.0), (-1.0, 1.0)), steps=2)
    assert all(p.requires_grad and p.dtype == torch.float32 and p.grad is None for p in layer.parameters())
    assert all(torch.equal(value, before[name]) for name, value in layer.state_dict().items())
    assert layer.cells[0].backend == "auto"
