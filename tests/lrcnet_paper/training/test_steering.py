"""Training to steer: the gain in sharp bends, and the head that all models share."""

import numpy as np
import pytest
import torch

from lrcnet_paper.artefacts import driving_runs
from lrcnet_paper.tasks import find
from lrcnet_paper.tasks.driving import recording
from lrcnet_paper.training import run
from lrcnet_paper.training.problems.steering import sharp_bend_gain
from lrcnet_paper.training.shared_head import feature_samples, shared_features
from lrcnet_paper.training.spec import RunSpec


def test_the_gain_looks_at_the_sharpest_tenth_only():
    target = torch.linspace(-1, 1, 1001)
    output = torch.where(target.abs() > 0.89, 0.6 * target, 5.0)
    assert sharp_bend_gain(output, target) == pytest.approx(0.6, abs=1e-6)
    assert sharp_bend_gain(target, target) == pytest.approx(1.0)
    assert sharp_bend_gain(torch.zeros_like(target), target) == 0.0


@pytest.fixture
def sample_world(tmp_path, monkeypatch):
    """The small variant of the world in a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    recording.cache_clear()
    shared_features.cache_clear()
    yield tmp_path
    recording.cache_clear()
    shared_features.cache_clear()


def test_all_models_of_a_seed_learn_from_the_same_standardised_features(sample_world):
    features = shared_features("own-sample", 0)
    assert features["train"].shape == (len(recording("own-sample", "train")), 64)
    moving = features["train"].std(0) > 0.5
    assert moving.any()
    np.testing.assert_allclose(features["train"][:, moving].std(0), 1.0, atol=1e-3)
    np.testing.assert_allclose(features["train"].mean(0), 0.0, atol=1e-3)
    shared_features.cache_clear()
    assert all(np.array_equal(features[split], again) for split, again in shared_features("own-sample", 0).items())
    assert not np.array_equal(features["test"], shared_features("own-sample", 1)["test"])
    x, _, y = feature_samples("own-sample-features", "validation", 0)[:]
    assert (x.shape[1:], y.shape[1:]) == ((32, 64), (32,))


def test_a_run_on_shared_features_reports_losses_and_its_gain(sample_world):
    spec = driving_runs.plan_shared_head_runs((driving_runs.Model("lrcu-s"),), "smoke", 1)[0]
    result = run(spec, sample_world / "runs", progress=False, threads=1)
    assert spec.clip == driving_runs.CLIP
    assert {"validation_curvature_loss", "weighted_loss", "validation_sharp_bend_gain"} <= result.metrics.keys()


def test_features_cannot_be_loaded_without_a_seed():
    with pytest.raises(ValueError, match="depend on the seed"):
        find("driving", "own-features").load("train")


def test_shared_heads_follow_the_papers_schedule():
    specs = driving_runs.plan_shared_head_runs(driving_runs.POLICIES, "paper", None)
    assert len(specs) == 5 * len(driving_runs.POLICIES)
    task = find("driving", specs[0].variant)
    assert (task.recipe.epochs, task.recipe.batch_size, task.length) == (100, 32, 32)
    assert all(isinstance(spec, RunSpec) and spec.epochs is None and spec.schedule == "cosine" for spec in specs)
