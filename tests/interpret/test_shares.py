"""Shares are exact where a network is linear, and marks equal SciPy's rank statistic."""

import pytest
import torch
from torch import nn

import lrcnet
from lrcnet.interpret import marks, rank, shares
from lrcnet.models import Tagger


def test_neurons_of_a_linear_read_out_have_exact_shares() -> None:
    tagger, x = Tagger(lrcnet.LRCU(3, 5, batch_first=True), 5, 4), torch.randn(16, 6, 3)
    result = shares(tagger, x, lambda logits: logits[:, -1, 2])
    states = tagger.layer(x)[0].detach()
    parts = (tagger.head.weight[2].detach() * (states[:, -1] - states.mean((0, 1)))).abs().mean(0)
    torch.testing.assert_close(result.neurons, parts / parts.sum())
    assert result.inputs.shape == (3,)
    assert result.inputs.sum() == pytest.approx(1)


@pytest.mark.parametrize("kind", [lrcnet.LRCU, lrcnet.LSTM, lrcnet.MGU, nn.GRU])
def test_an_input_that_is_not_connected_has_no_share(kind) -> None:
    layer = kind(3, 5)
    with torch.no_grad():
        if isinstance(layer, lrcnet.LRCU):
            for name in ("a", "o"):
                getattr(layer.cells[0], name)[5 + 1] = 0
        else:
            (layer.weight_ih_l0 if isinstance(layer, nn.RNNBase) else layer.cells[0].weight_ih)[:, 1] = 0
    result = shares(layer, torch.randn(7, 4, 3), lambda out: out[-1].sum(-1))
    assert result.inputs[1] == 0
    assert result.inputs[0] > 0


def test_a_channel_that_stands_still_has_no_share() -> None:
    x = torch.randn(4, 6, 3)
    x[..., 2] = 1.5
    assert shares(lrcnet.GRU(3, 5, batch_first=True), x, lambda out: out[:, -1].sum(-1)).inputs[2] < 1e-6


def test_ranking_is_by_size() -> None:
    assert rank(torch.tensor([0.1, -0.6, 0.3])) == [
        ("2", pytest.approx(-0.6)),
        ("3", pytest.approx(0.3)),
        ("1", pytest.approx(0.1)),
    ]
    with pytest.raises(ValueError, match="a name for each of 2 parts"):
        rank(torch.zeros(2), ["one"])


def test_marks_are_mann_whitneys() -> None:
    from scipy.stats import mannwhitneyu

    values = torch.randn(60, 3, dtype=torch.float64).round(decimals=1)
    event = torch.rand(60) < 0.3
    strengths = marks(values, event)
    for column, one in zip(values.unbind(1), strengths.tolist(), strict=True):
        u = mannwhitneyu(column[event].numpy(), column[~event].numpy()).statistic
        assert one == pytest.approx(2 * u / (int(event.sum()) * int((~event).sum())) - 1)
    with pytest.raises(ValueError, match="does at 0 of 60"):
        marks(values, torch.zeros(60, dtype=torch.bool))


def test_bad_outputs_are_named() -> None:
    layer, x = lrcnet.LRCU(3, 5, batch_first=True), torch.randn(2, 4, 3)
    with pytest.raises(ValueError, match="one number per sample"):
        shares(layer, x, lambda out: out)
    with pytest.raises(ValueError, match="depends on none"):
        shares(layer, x, lambda out: 0 * out[:, 0, 0])
