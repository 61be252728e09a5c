"""`layer.calibrate(x)`: the first layer's synapses see centred inputs of unit variance, whatever the layout of x."""

import copy

import pytest
import torch
from torch.nn.utils.rnn import pack_padded_sequence

import lrcnet
from lrcnet.liquid import affine

LIQUID = ["ltc", "stc", "lrc", "lrcu"]
SCALE, OFFSET = torch.tensor([100.0, 0.01, 3.0]), torch.tensor([1000.0, -5.0, 0.0])


def unscaled(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, 3) * SCALE + OFFSET


def mapped(layer: lrcnet.LRCU, x: torch.Tensor, reverse: bool = False) -> torch.Tensor:
    circuit = layer.circuit(reverse=reverse)
    return affine(x, circuit["input_scale"], circuit["input_shift"])


def assert_standard(values: torch.Tensor) -> None:
    rows = values.reshape(-1, values.shape[-1])
    torch.testing.assert_close(rows.mean(0), torch.zeros_like(rows[0]), atol=1e-3, rtol=0)
    torch.testing.assert_close(rows.std(0, correction=0), torch.ones_like(rows[0]), atol=1e-3, rtol=0)


@pytest.mark.parametrize("name", LIQUID)
@pytest.mark.parametrize(
    "options",
    [{}, {"parametrisation": "sigma-mu"}, {"constraint": "softplus"}, {"batch_first": True}],
    ids=lambda options: "-".join(map(str, options.values())) or "default",
)
def test_synapses_see_centred_inputs_of_unit_variance(name: str, options: dict[str, object]) -> None:
    layer, x = lrcnet.LAYERS[name](3, 5, **options), unscaled(20, 8)
    before = layer.circuit()
    assert layer.calibrate(x) is layer
    assert_standard(mapped(layer, x))
    after = layer.circuit()
    for letter, value in before.items():
        if value is not None and not letter.startswith("input_"):
            torch.testing.assert_close(after[letter], value)


def test_calibrated_layers_compute_as_if_the_data_were_standardised() -> None:
    layer, x = lrcnet.LRCU(3, 5, dtype=torch.float64), unscaled(20, 8).double()
    standard = (x - x.mean((0, 1))) / x.std((0, 1), correction=0)
    expected, _ = layer(standard)
    torch.testing.assert_close(layer.calibrate(x)(x)[0], expected)


def test_both_directions_of_the_first_layer_are_calibrated_and_no_other() -> None:
    layer, x = lrcnet.LRCU(3, 5, num_layers=2, bidirectional=True), unscaled(20, 8)
    layer.calibrate(x)
    for reverse in (False, True):
        assert_standard(mapped(layer, x, reverse))
        assert bool((layer.circuit(1, reverse)["input_scale"] == 1).all())


def test_layouts_of_the_same_readings_give_the_same_map() -> None:
    x = unscaled(20, 8)
    maps = []
    for layer, given in (
        (lrcnet.LRCU(3, 5), x),
        (lrcnet.LRCU(3, 5, batch_first=True), x.transpose(0, 1)),
        (lrcnet.LRCU(3, 5), x.reshape(-1, 3)),
        (lrcnet.LRCU(3, 5), pack_padded_sequence(x, torch.full((8,), 20))),
    ):
        circuit = layer.calibrate(given).circuit()
        maps.append(torch.stack([circuit["input_scale"], circuit["input_shift"]]))
    for other in maps[1:]:
        torch.testing.assert_close(other, maps[0])


def test_padding_of_packed_sequences_does_not_count() -> None:
    x, lengths = unscaled(20, 8), torch.tensor([20, 3, 7, 1, 9, 20, 2, 5])
    rows = torch.cat([x[:length, sample] for sample, length in enumerate(lengths.tolist())])
    for sample, length in enumerate(lengths.tolist()):
        x[length:, sample] = 1e6
    layer = lrcnet.LRCU(3, 5).calibrate(pack_padded_sequence(x, lengths, enforce_sorted=False))
    assert_standard(mapped(layer, rows))


def test_missing_values_are_ignored() -> None:
    x = unscaled(20, 8)
    missing = torch.rand(x.shape) < 0.4
    layer = lrcnet.LRCU(3, 5).calibrate(x.masked_fill(missing, float("nan")))
    values = mapped(layer, x)
    for channel in range(3):
        assert_standard(values[..., channel][~missing[..., channel]].unsqueeze(-1))


def test_constant_channels_are_centred_and_empty_ones_left_alone() -> None:
    x = unscaled(20, 8)
    x[..., 0], x[..., 2] = 1000.3, float("nan")
    circuit = lrcnet.LRCU(3, 5).calibrate(x).circuit()
    assert circuit["input_scale"][[0, 2]].tolist() == [1, 1]
    torch.testing.assert_close(circuit["input_shift"][0].item(), -1000.3, rtol=1e-6, atol=0)
    assert circuit["input_shift"][2] == 0
    zeros = lrcnet.LRCU(3, 5).calibrate(torch.zeros(4, 2, 3)).circuit()
    assert zeros["input_scale"].tolist() == [1, 1, 1]
    assert zeros["input_shift"].tolist() == [0, 0, 0]


def test_calibrating_twice_changes_nothing() -> None:
    layer, x = lrcnet.LRCU(3, 5), unscaled(20, 8)
    first = layer.calibrate(x).circuit()
    second = layer.calibrate(x).circuit()
    assert all(torch.equal(first[name], second[name]) for name in ("input_scale", "input_shift"))


def test_the_map_is_fixed_until_the_layer_is_reset() -> None:
    layer, x = lrcnet.LRCU(3, 5, num_layers=2, bidirectional=True), unscaled(20, 8)
    optimiser = torch.optim.Adam(layer.parameters(), 1e-2)
    before = layer.calibrate(x).circuit(reverse=True)
    layer(x)[0].sum().backward()
    optimiser.step()
    after = layer.circuit(reverse=True)
    assert torch.equal(after["input_scale"], before["input_scale"])
    assert torch.equal(after["input_shift"], before["input_shift"])
    assert not torch.equal(after["a"], before["a"])
    learnable = [parameter.requires_grad for parameter in layer.parameters()]
    assert learnable.count(False) == 4
    layer.reset_parameters()
    assert all(parameter.requires_grad for parameter in layer.parameters())
    assert "input_map_fixed" not in layer.state_dict()


def test_a_state_dict_carries_the_map_and_that_it_is_fixed() -> None:
    layer, x = lrcnet.LRCU(3, 5), unscaled(20, 8)
    fresh = copy.deepcopy(layer.state_dict())
    model = torch.nn.Sequential(layer.calibrate(x))
    other = torch.nn.Sequential(lrcnet.LRCU(3, 5))
    other.load_state_dict(model.state_dict())
    assert torch.equal(other(x)[0], layer(x)[0])
    assert not other[0].cells[0].input_scale.requires_grad
    # Another model's state dict says nothing about this layer; one of an uncalibrated layer does.
    other.load_state_dict({}, strict=False)
    assert not other[0].cells[0].input_scale.requires_grad
    other[0].load_state_dict(fresh)
    assert other[0].cells[0].input_scale.requires_grad


def test_calibrated_layers_learn_from_unscaled_data_as_from_scaled() -> None:
    x, y = torch.randn(64, 10, 2), torch.arange(64) % 2
    x[..., 0] += 1.5 * y.unsqueeze(-1)
    losses = []
    for scale, offset in ((1.0, 0.0), (100.0, 1000.0)):
        torch.manual_seed(0)
        layer, head = lrcnet.LRCU(2, 8, batch_first=True), torch.nn.Linear(8, 2)
        given = scale * x + offset
        layer.calibrate(given)
        optimiser = torch.optim.Adam([*layer.parameters(), *head.parameters()], 1e-2)
        for _ in range(50):
            optimiser.zero_grad()
            loss = torch.nn.functional.cross_entropy(head(layer(given)[0][:, -1]), y)
            loss.backward()
            optimiser.step()
        losses.append(loss.item())
    assert losses[1] == pytest.approx(losses[0], rel=0.05)
    assert losses[0] < 0.5


def test_calibrate_says_what_is_wrong() -> None:
    with pytest.raises(ValueError, match=r"needs the input map.*input_map=True"):
        lrcnet.LRCU(3, 5, input_map=False).calibrate(unscaled(20, 8))
    layer = lrcnet.LRCU(3, 5)
    with pytest.raises(ValueError, match=r"3 features.*\(20, 4\)"):
        layer.calibrate(torch.randn(20, 4))
    with pytest.raises(ValueError, match=r"2 or 3 dimensions.*\(3,\)"):
        layer.calibrate(torch.randn(3))
    with pytest.raises(ValueError, match="at least one reading"):
        layer.calibrate(torch.empty(0, 2, 3))
    with pytest.raises(ValueError, match="channel 1 has an infinite value"):
        layer.calibrate(torch.tensor([[0.0, float("inf"), 0.0]]))
    with pytest.raises(TypeError, match=r"tensor or a PackedSequence.*ndarray"):
        layer.calibrate(torch.randn(5, 3).numpy())
