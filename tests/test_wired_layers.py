"""Layers with a wiring: shapes, missing synapses, signs, saving, streaming, theory and traces."""

import copy
import io
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import lrcnet
from lrcnet import theory
from lrcnet.circuit import SYNAPTIC_LETTERS
from lrcnet.interpret import shares, trace
from lrcnet.wirings import AutoNCP, FullyConnected, Layered, Random, Wiring
from tests.tolerances import REARRANGED

LAYERS: dict[str, Any] = {"ltc": lrcnet.LTC, "stc": lrcnet.STC, "lrc": lrcnet.LRC, "lrcu": lrcnet.LRCU}
layers = pytest.mark.parametrize("kind", LAYERS.values(), ids=LAYERS)
backends = pytest.mark.parametrize(
    "backend",
    [
        "reference",
        pytest.param(
            "fused",
            marks=pytest.mark.skipif(lrcnet.kernels.unavailable() is not None, reason="the kernels are not built"),
        ),
    ],
)


def series(*shape: int) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64)


@layers
def test_output_has_the_motor_neurons_and_h_n_all_units(kind: Any) -> None:
    layer = kind(8, wiring=AutoNCP(64, 10))
    output, h_n = layer(torch.randn(5, 3, 8))
    assert output.shape == (5, 3, 10)
    assert h_n.shape == (1, 3, 64)
    assert torch.equal(output[-1], h_n[0, :, :10])
    assert (layer.hidden_size, layer.proj_size) == (64, 10)
    both = kind(8, 64, 2, wiring=AutoNCP(64, 10), bidirectional=True)
    output, h_n = both(torch.randn(5, 3, 8))
    assert output.shape == (5, 3, 20)
    assert h_n.shape == (4, 3, 64)
    sizes = [cell.wiring.input_dim for cell in both.cells]
    assert sizes == [8, 8, 20, 20]


@backends
@layers
def test_the_derivative_does_not_depend_on_unconnected_units(kind: Any, backend: str) -> None:
    torch.manual_seed(0)
    cell = kind.cell_type(4, wiring=AutoNCP(12, 3), dtype=torch.float64, backend=backend)
    h, x = series(12).mul(0.3), series(4)
    exists = torch.as_tensor(cell.wiring.polarities() != 0)

    def move(y: Tensor) -> Tensor:
        return cell.derivative(y[12:], y[:12])

    slopes = torch.autograd.functional.jacobian(move, torch.cat([h, x])).t()
    own = torch.cat([torch.eye(12, dtype=torch.bool), torch.zeros(4, 12, dtype=torch.bool)])
    assert not slopes[~exists & ~own].any()
    assert (slopes[exists] != 0).all()
    # The same of whole steps with the given backend, by changing one unit after the other.
    before = cell(x, h, 0.1) if kind is not lrcnet.LTC else None
    for unit in range(12) if before is not None else ():
        changed = h.clone()
        changed[unit] += 0.5
        after = cell(x, changed, 0.1)
        if cell.unfolds == 1:
            unconnected = ~exists[unit]
            unconnected[unit] = False
            assert torch.equal(after[unconnected], before[unconnected])


@pytest.mark.parametrize("init", ["balanced", "paper"])
@pytest.mark.parametrize("parametrisation", ["scaled", "ab", "sigma-mu"])
@layers
def test_polarity_is_the_initial_sign_of_k_times_e_l(kind: Any, parametrisation: Any, init: Any) -> None:
    layer = kind(5, wiring=Layered([6, 4, 2]), parametrisation=parametrisation, init=init)
    circuit = layer.circuit()
    signs = torch.sign(circuit["k"] * circuit["e_l"])
    assert np.array_equal(signs.numpy(), layer.wiring.polarities())


@pytest.mark.parametrize("constraint", ["clamp", "softplus"])
@pytest.mark.parametrize("parametrisation", ["scaled", "ab", "sigma-mu"])
def test_the_mask_covers_every_synaptic_letter_and_its_gradient(parametrisation: Any, constraint: Any) -> None:
    layer = lrcnet.LRCU(5, wiring=AutoNCP(12, 3), parametrisation=parametrisation, constraint=constraint)
    cell = layer.cells[0]
    missing = torch.as_tensor(layer.wiring.polarities() == 0)
    with torch.no_grad():
        for parameter in cell.parameters():
            if parameter.dim() == 2:
                parameter[missing] = 3.0
    assert not any(layer.circuit()[name][missing].any() for name in SYNAPTIC_LETTERS)
    layer(torch.randn(6, 20, 5))[0].sum().backward()
    gradients = [parameter.grad for parameter in cell.parameters() if parameter.dim() == 2]
    assert len(gradients) == 5
    assert all(gradient.any() and not gradient[missing].any() for gradient in gradients)


@layers
def test_initial_states_are_as_large_as_those_of_a_dense_layer(kind: Any) -> None:
    torch.manual_seed(0)
    x = torch.randn(50, 32, 8)
    sizes = []
    for wiring in (None, Random(64, sparsity_level=0.75), FullyConnected(64)):
        states, _ = kind(8, 64, wiring=wiring)(x)
        sizes.append(float(states[-1].detach().square().mean().sqrt()))
    # Within a factor of two: fan-in scaling, and not equality, is the claim.
    assert all(sizes[0] / 2 < size < 2 * sizes[0] for size in sizes)


def test_one_wiring_serves_layers_of_different_inputs() -> None:
    wiring = AutoNCP(14, 3)
    first, second = lrcnet.LRCU(4, wiring=wiring), lrcnet.LTC(7, wiring=wiring)
    assert not wiring.is_built()
    assert first(torch.randn(2, 1, 4))[0].shape == second(torch.randn(2, 1, 7))[0].shape
    timed = lrcnet.LRCU(4, wiring=wiring, time_feature=True)
    assert timed.wiring is not None
    assert timed.wiring.input_dim == 5


def test_a_complete_wiring_is_a_dense_layer() -> None:
    layer, dense = lrcnet.LRCU(4, wiring=FullyConnected(6)), lrcnet.LRCU(4, 6)
    assert layer.cells[0].mask is None
    dense.load_state_dict(layer.state_dict())
    x = torch.randn(5, 2, 4)
    assert torch.equal(layer(x)[0], dense(x)[0])


def test_hand_made_wirings_serve_one_layer_and_direction() -> None:
    wiring = Wiring(2)
    wiring.build(1)
    wiring.add_sensory_synapse(0, 0, 1)
    wiring.add_synapse(0, 1, -1)
    assert lrcnet.LRCU(1, wiring=wiring)(torch.randn(3, 1, 1))[0].shape == (3, 1, 2)
    with pytest.raises(ValueError, match="built for 2 inputs too, but this one was built for 1 and has synapses set"):
        lrcnet.LRCU(1, wiring=wiring, num_layers=2)


@layers
def test_state_dicts_carry_the_mask_and_refuse_another(kind: Any) -> None:
    make = lambda seed=22222: kind(4, wiring=AutoNCP(12, 3, seed=seed))  # noqa: E731
    layer, x = make(), torch.randn(5, 2, 4)
    buffer = io.BytesIO()
    torch.save(layer.state_dict(), buffer)
    buffer.seek(0)
    other = make()
    other.load_state_dict(torch.load(buffer, weights_only=True))
    assert torch.equal(other(x)[0], layer(x)[0])
    assert torch.equal(copy.deepcopy(layer)(x)[0], layer(x)[0])
    with pytest.raises(RuntimeError, match="mask must be that of this network's wiring, but the state dict has other"):
        make(1).load_state_dict(layer.state_dict())
    empty = kind(4, wiring=AutoNCP(12, 3), device="meta").to_empty(device="cpu")
    empty.load_state_dict(layer.state_dict())
    assert torch.equal(empty(x)[0], layer(x)[0])
    empty = kind(4, wiring=AutoNCP(12, 3), device="meta").to_empty(device="cpu")
    empty.reset_parameters()
    assert torch.equal(empty.cells[0].mask, layer.cells[0].mask)


def test_whole_models_load_with_weights_only() -> None:
    model, x = torch.nn.Sequential(lrcnet.LRCU(4, wiring=AutoNCP(12, 3))), torch.randn(5, 2, 4)
    buffer = io.BytesIO()
    torch.save(model, buffer)
    buffer.seek(0)
    with torch.serialization.safe_globals(lrcnet.safe_globals()):
        loaded = torch.load(buffer, weights_only=True)
    assert loaded[0].wiring == model[0].wiring
    assert torch.equal(loaded(x)[0], model(x)[0])


def test_circuits_go_back_and_forth_and_refuse_other_synapses() -> None:
    layer, other = lrcnet.LRCU(4, wiring=AutoNCP(12, 3)), lrcnet.LRCU(4, wiring=AutoNCP(12, 3), constraint="softplus")
    other.load_circuit(layer.circuit())
    torch.testing.assert_close(other.circuit(), layer.circuit())
    dense = lrcnet.LRCU(4, 12)
    dense.load_circuit(layer.circuit())
    x = torch.randn(5, 2, 4)
    torch.testing.assert_close(dense(x)[0][..., :3], layer(x)[0])
    before = layer.circuit()
    with pytest.raises(ValueError, match=r"g must be 0 where the wiring has no synapse, but g\[\d+, \d+\] = "):
        layer.load_circuit(lrcnet.LRCU(4, 12).circuit())
    torch.testing.assert_close(layer.circuit(), before)


@backends
@layers
def test_steps_traces_and_runs_agree(kind: Any, backend: str) -> None:
    torch.manual_seed(0)
    layer = kind(4, wiring=AutoNCP(12, 3), dtype=torch.float64, backend=backend, output_map=True)
    x = series(6, 2, 4)
    whole, last = layer(x)
    state, outputs = None, []
    with torch.no_grad():
        for t in range(6):
            output, state = layer.step(x[t], state)
            outputs.append(output)
    torch.testing.assert_close(torch.stack(outputs), whole, rtol=0, atol=REARRANGED)
    torch.testing.assert_close(state, last, rtol=0, atol=REARRANGED)
    record = trace(layer, x)
    assert record.output.shape == (6, 2, 3)
    assert record.state.shape == record.forget.shape == (6, 2, 12)
    assert shares(layer, x, lambda out: out[-1, :, 0]).neurons.shape == (3,)


@pytest.mark.parametrize("kind", [lrcnet.STC, lrcnet.LRC, lrcnet.LRCU])
def test_bounds_hold_and_shrink_with_missing_synapses(kind: Any) -> None:
    torch.manual_seed(0)
    layer, readout = kind(4, wiring=AutoNCP(12, 3), batch_first=True), torch.nn.Linear(3, 2)
    dense = kind(4, 12, batch_first=True)
    dense.load_circuit(layer.circuit())
    padded = torch.cat([readout.weight.detach(), torch.zeros(2, 9)], -1)
    domain = theory.Domain.invariant((layer, readout), inputs=(-1.0, 1.0))
    bound = theory.lipschitz_bound((layer, readout), domain).value
    assert bound == pytest.approx(theory.lipschitz_bound((dense, padded), domain).value)
    measured = theory.empirical_lipschitz((layer, readout), 2 * torch.rand(20, 6, 4) - 1)
    assert 0 < measured.value <= bound
    with pytest.raises(ValueError, match=r"the readout must have shape \(K, 3\)"):
        theory.lipschitz_bound((layer, torch.nn.Linear(12, 2)), domain)


def test_an_associated_lrc_has_the_same_wiring() -> None:
    stc = lrcnet.STC(4, wiring=AutoNCP(12, 3), solver="euler", unfolds=2)
    lrc, certificate = theory.associated_lrc(stc, margin=0.2)
    assert isinstance(lrc, lrcnet.LRC)
    assert lrc.wiring == stc.wiring
    assert certificate.condition_holds
    assert certificate.strict
    assert certificate.gap > 0


def test_a_channel_is_judged_by_the_synapses_that_exist() -> None:
    wiring = Wiring(4)
    wiring.build(2)
    wiring.add_sensory_synapse(0, 0, 1)
    wiring.add_sensory_synapse(1, 1, 1)
    wiring.set_output_dim(2)
    layer = lrcnet.LRCU(2, wiring=wiring)
    x = torch.randn(20, 4, 2)
    x[..., 1] += 1000
    with pytest.warns(lrcnet.errors.InputRangeWarning, match=r"1 of 2 channels \(1\)"):
        layer(x)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: lrcnet.LRCU(3), TypeError, "hidden_size must be given without a wiring, but is missing; pass"),
        (lambda: lrcnet.LRCUCell(3), TypeError, "hidden_size must be given without a wiring, but is missing; pass"),
        (
            lambda: lrcnet.LRCU(3, 8, wiring=AutoNCP(9, 2)),
            ValueError,
            "hidden_size must equal the units of the wiring, 9, but is 8; leave it out",
        ),
        (lambda: lrcnet.LTC(3, wiring=9), TypeError, "wiring must be one of lrcnet.wirings, but is a int; make"),
        (
            lambda: lrcnet.LTC(4, wiring=AutoNCP(9, 2).build_copy(3)),
            ValueError,
            "this wiring was built for 3 inputs, but there are 4; make a new one",
        ),
    ],
)
def test_bad_input_gets_one_sentence(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as raised:
        call()
    assert "\n" not in str(raised.value)
