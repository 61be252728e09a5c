"""Theorem 2: its terms against hand calculation, and the bound on the data it was measured on."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import lrcnet
from lrcnet.theory import Domain, generalisation_bound, lipschitz_bound
from tests.theory.networks import Case, cases


@given(cases(unfolds=(1, 1, 3)), st.integers(0, 2**32))
@settings(max_examples=25)
def test_validation_loss_is_below_the_bound(case: Case, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    n, outputs = case.cell.input_size, case.readout.shape[0]

    def split(count: int) -> tuple[torch.Tensor, torch.Tensor]:
        shape = (5, count)
        inputs = torch.randn(*shape, n, generator=generator, dtype=torch.float64)
        return inputs, torch.randn(*shape, outputs, generator=generator, dtype=torch.float64)

    training, validation = split(6), split(3)
    for kind in ("paper", "tighter"):
        for pairing in ("nearest", "index"):
            bound = generalisation_bound(case.model, training, validation, kind=kind, pairing=pairing)
            assert bound.validation_loss <= bound.value * (1 + 1e-12)


def test_terms_are_the_ones_of_the_theorem() -> None:
    layer, readout = lrcnet.LRCU(2, 4, batch_first=True), torch.nn.Linear(4, 3)
    x, o = torch.randn(7, 6, 2), torch.randn(7, 6, 3)
    bound = generalisation_bound((layer, readout), (x[:5], o[:5]), (x[5:], o[5:]))
    with torch.no_grad():
        states, _ = layer(x)
        error = (o - readout(states)).norm(dim=-1)
        y = torch.cat([torch.cat([torch.zeros(7, 1, 4), states[:, :-1]], 1), x], -1)
    gaps = (x[5:, None] - x[None, :5]).norm(dim=-1).amax(-1)
    pairs = gaps.argmin(1)
    assert bound.pairs.tolist() == pairs.tolist()
    assert bound.eps_training == pytest.approx(error[pairs].max().item(), rel=1e-5)
    assert bound.eps_y == pytest.approx((y[5:] - y[pairs]).norm(dim=-1).max().item(), rel=1e-5)
    assert bound.eps_output == pytest.approx((o[5:] - o[pairs]).norm(dim=-1).max().item(), rel=1e-5)
    assert bound.training_loss == pytest.approx(error[:5].mean().item(), rel=1e-5)
    assert bound.validation_loss == pytest.approx(error[5:].mean().item(), rel=1e-5)
    assert bound.lipschitz == lipschitz_bound((layer, readout), bound.domain, kind="tighter").value
    assert float(bound) == bound.eps_output + bound.eps_training + bound.lipschitz * bound.eps_y
    assert "not say that one model has a smaller validation loss" in bound.statement


def test_equal_splits_leave_only_the_training_error() -> None:
    layer, data = lrcnet.LRCU(2, 4, batch_first=True), (torch.randn(3, 6, 2), torch.randn(3, 6, 4))
    bound = generalisation_bound(layer, data, data)
    assert (bound.eps_y, bound.eps_output, bound.pairs.tolist()) == (0.0, 0.0, [0, 1, 2])
    assert bound.value == bound.eps_training


def test_bad_splits_get_one_sentence() -> None:
    layer = lrcnet.LRCU(2, 4, batch_first=True)
    good = (torch.randn(3, 6, 2), torch.randn(3, 6, 4))
    small = Domain((-1.0, 1.0), (0.0, 0.1))
    for training, validation, options, words in (
        ((good[0], good[1][:2]), good, {}, "training labels must have 4 numbers for each of 3 sequences of 6 steps"),
        (good, (good[0][:, :5], good[1][:, :5]), {}, "must be equally long, but have 6 and 5 steps"),
        ((good[0][:1], good[1][:1]), good, {"pairing": "index"}, "pairing='index' needs a training sequence for each"),
        (good, good, {"pairing": "closest"}, "pairing must be one of nearest, index"),
        (good, good, {"domain": small}, "the domain must contain every y that the model meets, but input 0 goes from"),
    ):
        with pytest.raises(ValueError, match=words) as caught:
            generalisation_bound(layer, training, validation, **options)
        assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="whose gates are bounded"):
        generalisation_bound(lrcnet.LTC(2, 4, batch_first=True), good, good)
    with pytest.raises(TypeError, match=r"must be a pair \(inputs, labels\)"):
        generalisation_bound(layer, good[0], good)
