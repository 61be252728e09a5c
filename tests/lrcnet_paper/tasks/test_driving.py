"""Losses of lane keeping have readable units, and one is weighted by bends as in the paper."""

from pathlib import Path

import pytest
import torch

from lrcnet_paper.tasks import find
from lrcnet_paper.tasks.driving import curvature_loss, recording, weighted_curvature_loss


def test_an_error_of_a_100_m_bend_counts_one() -> None:
    target = torch.tensor([[0.0, 0.02], [-0.03, 0.01]])
    assert curvature_loss(target + 0.01, target).item() == pytest.approx(1.0, rel=1e-4)


def test_straight_road_weighs_nothing_and_sharp_bends_most() -> None:
    straight, bend = torch.zeros(8), torch.full((8,), -0.04)
    assert weighted_curvature_loss(straight + 0.01, straight).item() == 0
    assert weighted_curvature_loss(bend + 0.01, bend).item() == pytest.approx(4.0, rel=1e-4)


def test_the_mean_over_equal_batches_is_the_mean_over_all() -> None:
    output, target = torch.randn(2, 6, 32) * 0.02
    for measure in (curvature_loss, weighted_curvature_loss):
        parts = torch.stack([measure(output[i : i + 2], target[i : i + 2]) for i in (0, 2, 4)]).mean()
        torch.testing.assert_close(parts, measure(output, target))


def test_shapes_must_agree() -> None:
    with pytest.raises(ValueError, match=r"the target's shape \(4, 1\); got \(4,\)"):
        curvature_loss(torch.zeros(4), torch.zeros(4, 1))


def test_hyper_parameters_are_the_papers() -> None:
    task = find("driving")
    recipe = task.recipe
    assert (recipe.optimizer, recipe.learning_rate, recipe.weight_decay) == ("adamw", 5e-4, 1e-6)
    assert (recipe.batch_size, task.length, recipe.epochs) == (32, 32, 100)


def test_an_epoch_draws_as_many_windows_as_it_says(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    recording.cache_clear()
    task = find("driving", "own-sample")
    train, validation = task.load("train"), task.load("validation")
    order = train.order(torch.Generator().manual_seed(0))
    assert len(order) == len(train) == 4
    frames, dt, curvature = train[order]
    assert frames.shape == (4, 32, 48, 160, 3)
    assert frames.dtype is torch.uint8
    assert dt is None
    assert curvature.shape == (4, 32)
    assert len(train.evenly_spaced(2).order(torch.Generator())) == 2
    torch.testing.assert_close(validation[torch.tensor([0, 1])][2], validation[0:2][2])
    assert not list((tmp_path / "lrcnet" / "driving").glob("*.part"))
    recording.cache_clear()
