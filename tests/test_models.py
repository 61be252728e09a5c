"""Networks around a layer: layouts, lengths, pooling, scaling and streams agree with each other."""

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

import lrcnet
from tests.collection import NAMES, make_layer, output_size

KINDS: dict[str, Any] = {
    "last": lambda layer, width: lrcnet.Classifier(layer, width, 2),
    "mean": lambda layer, width: lrcnet.Classifier(layer, width, 2, pooling="mean"),
    "max": lambda layer, width: lrcnet.Regressor(layer, width, 2, pooling="max"),
    "tagger": lambda layer, width: lrcnet.Tagger(layer, width, 2),
    "forecaster": lambda layer, width: lrcnet.Forecaster(layer, width, 3),
}
LENGTHS = torch.tensor([5, 9, 1])


def build(kind: str, name: str = "lrcu", **options: Any) -> Any:
    torch.manual_seed(1)
    layer = make_layer(name, batch_first=options.pop("batch_first", True), **options)
    return KINDS[kind](layer, output_size(name)).double()


def readings() -> Tensor:
    return torch.randn(3, 9, 3, dtype=torch.float64)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_each_sequence_alone_gives_the_answer_of_the_padded_batch(kind: str, name: str) -> None:
    model, x = build(kind, name), readings()
    answers = model(x, lengths=LENGTHS)
    for sample, length in enumerate(LENGTHS.tolist()):
        alone = model(x[sample : sample + 1, :length])[0]
        batched = answers[sample, :length] if answers.dim() == 3 else answers[sample]
        torch.testing.assert_close(batched, alone)


@pytest.mark.parametrize("kind", KINDS)
def test_padding_changes_nothing(kind: str) -> None:
    model, x = build(kind), readings()
    dirty = x.clone()
    dirty[0, 5:], dirty[2, 1:] = 1e6, -1e6
    clean, other = model(x, lengths=LENGTHS), model(dirty, lengths=LENGTHS)
    if clean.dim() == 3:
        inside = torch.arange(9) < LENGTHS.unsqueeze(-1)
        clean, other = clean[inside], other[inside]
    torch.testing.assert_close(clean, other, rtol=0, atol=0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["lrcu", "gru"])
def test_a_time_major_layer_gives_the_same_answers(kind: str, name: str) -> None:
    x, options = readings(), {"time_feature": True}
    dt = torch.rand(3, 9, dtype=torch.float64)
    first, second = build(kind, name, **options), build(kind, name, batch_first=False, **options)
    for lengths in (None, LENGTHS):
        torch.testing.assert_close(second(x, dt, lengths), first(x, dt, lengths), rtol=0, atol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_packed_input_equals_lengths(kind: str) -> None:
    model, x = build(kind), readings()
    dt = torch.rand(3, 9, dtype=torch.float64)
    packed, packed_dt = (pack_padded_sequence(v, LENGTHS, True, enforce_sorted=False) for v in (x, dt))
    expected, answers = model(x, dt, LENGTHS), model(packed, packed_dt)
    if isinstance(answers, PackedSequence):
        expected = pack_padded_sequence(expected, LENGTHS, True, enforce_sorted=False).data
        answers = answers.data
    torch.testing.assert_close(answers, expected, rtol=0, atol=0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_a_stream_ends_with_the_answer_to_the_whole_sequence(kind: str, name: str) -> None:
    model, x = build(kind, name), readings()
    model.set_input_scaling(torch.tensor([0.1, 0.2, 0.3]), torch.tensor([2.0, 1, 4]))
    whole, state = model(x), None
    for t in range(9):
        answer, state = model.step(x[:, t], state)
    torch.testing.assert_close(answer, whole[:, -1] if whole.dim() == 3 else whole)


def test_the_last_output_of_a_bidirectional_layer_has_read_everything() -> None:
    model = lrcnet.Classifier(lrcnet.LRCU(3, 4, batch_first=True, bidirectional=True), 8, 2)
    x = torch.randn(2, 6, 3)
    output, _ = model.layer(x)
    expected = model.head(torch.cat([output[:, -1, :4], output[:, 0, 4:]], -1))
    torch.testing.assert_close(model(x), expected)
    torch.testing.assert_close(model(x, lengths=torch.tensor([6, 6])), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_scaling_inside_equals_scaling_outside(kind: str) -> None:
    model, x = build(kind), readings()
    plain = copy.deepcopy(model)
    mean, scale = torch.tensor([100.0, -3, 0]).double(), torch.tensor([20.0, 0.1, 1]).double()
    model.set_input_scaling(mean, scale)
    outputs = model.outputs
    model.set_target_scaling(torch.full((outputs,), 7.0), torch.full((outputs,), 3.0))
    unscaled = x * scale + mean
    expected = plain(x)
    residual = isinstance(model, lrcnet.Forecaster)
    expected = unscaled + 7 + 3 * (expected - x) if residual else 7 + 3 * expected
    torch.testing.assert_close(model(unscaled), expected)
    other = build(kind)
    other.load_state_dict(model.state_dict())
    torch.testing.assert_close(other(unscaled), model(unscaled), rtol=0, atol=0)
    other.load_state_dict(plain.state_dict())
    torch.testing.assert_close(other(x), plain(x), rtol=0, atol=0)


def test_a_gru_gets_gaps_in_their_own_unit() -> None:
    model = build("last", "gru", time_feature=True)
    x, seconds = readings(), 3600 * torch.rand(3, 9, dtype=torch.float64)
    expected = model(x, seconds / 60)
    model.set_time_unit(60)
    torch.testing.assert_close(model(x, seconds), expected)
    torch.testing.assert_close(model(x, dt=120.0), model(x, torch.full((3, 9), 120.0, dtype=torch.float64)))


def test_layers_of_torch_work_without_dt() -> None:
    model = lrcnet.Classifier(nn.GRU(3, 4, batch_first=True), 4, 2)
    assert model(torch.randn(2, 5, 3), lengths=torch.tensor([5, 2])).shape == (2, 2)
    with pytest.raises(TypeError, match="GRU has none; use a layer of lrcnet"):
        model.step(torch.randn(2, 3))


def test_tokens_have_lengths_too() -> None:
    model = lrcnet.Classifier(lrcnet.LRCU(8, 4, batch_first=True), 4, 2, vocabulary=9, embedding=8)
    tokens = torch.randint(9, (2, 6))
    torch.testing.assert_close(model(tokens, lengths=torch.tensor([6, 3]))[1], model(tokens[1:, :3])[0])


def test_a_forecast_feeds_itself_back() -> None:
    model, x = build("forecaster"), readings()
    first = model(x)[:, -1]
    forecasts = model.forecast(x, 3)
    torch.testing.assert_close(forecasts[:, 0], first)
    torch.testing.assert_close(forecasts[:, 1], model(torch.cat([x, first.unsqueeze(1)], 1))[:, -1])
    ragged = model.forecast(x, 3, lengths=LENGTHS)
    torch.testing.assert_close(ragged[0], model.forecast(x[:1, :5], 3)[0])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m: m(torch.randn(9, 3).double()), r"expects a tensor \(batch, time, channels\).* shape \(9, 3\)"),
        (lambda m: m(torch.randn(2, 0, 3).double()), "at least one reading per sequence"),
        (lambda m: m(readings(), lengths=torch.tensor([5, 9])), "3 whole numbers, one per sequence"),
        (lambda m: m(readings(), lengths=torch.tensor([5, 9, 0])), r"lengths\[2\] is 0; leave out empty"),
        (lambda m: m.set_input_scaling(torch.ones(2), torch.ones(3)), "vectors of one length"),
        (lambda m: m.set_input_scaling(torch.ones(2), torch.zeros(2)), "above 0"),
        (lambda m: m.set_time_unit(0), "finite number above 0, but is 0"),
        (lambda m: lrcnet.Classifier(m.layer, 4, 2, pooling="first"), "pooling must be one of last, mean, max"),
    ],
)
def test_bad_input_is_one_sentence(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(build("last"))
