"""Attention of a policy and its change under noise, and integrated gradients beside it."""

import pytest
import torch
from torch import Tensor

from lrcnet.interpret import integrated_gradients
from lrcnet_paper.driving import World
from lrcnet_paper.interpret import attention, attention_under_noise, box, gradient_attention, similarity
from lrcnet_paper.models.policy import Policy


@pytest.fixture(scope="module")
def frames() -> Tensor:
    world = World([1, 2, 3], season="summer", length=60.0)
    for _ in range(10):
        world.step(world.road_curvature)
    return world.frames()


def test_the_batch_size_does_not_change_attention(frames: Tensor) -> None:
    policy = Policy("lrcu-s")
    torch.testing.assert_close(attention(policy, frames), attention(policy, frames, batch=2), rtol=1e-4, atol=1e-5)
    assert attention(policy, frames[:0]).shape == (0, 48, 160)


def test_no_noise_changes_nothing_and_more_noise_changes_more(frames: Tensor) -> None:
    policy = Policy("lrcu-s")
    similarities = attention_under_noise(policy, frames, [0.0, 0.001, 0.2])
    still, little, much = similarities.mean(1).tolist()
    assert similarities.shape == (3, 3)
    assert still == pytest.approx(1.0, abs=1e-6)
    assert still > little > much
    assert torch.equal(attention_under_noise(policy, frames, [0.2])[0], similarities[2])
    assert not torch.equal(attention_under_noise(policy, frames, [0.2], seed=1)[0], similarities[2])


def test_similarity_is_per_pair() -> None:
    maps = torch.rand(2, 48, 160)
    similarities = similarity(maps, torch.stack([maps[0], 1 - maps[1]]))
    assert similarities[0] == pytest.approx(1.0)
    assert similarities[1] < 0
    with pytest.raises(ValueError, match="must have one shape"):
        similarity(maps, maps[:1])


def test_a_box_equals_matplotlibs() -> None:
    from matplotlib.cbook import boxplot_stats

    for seed in range(5):
        values = torch.randn(50, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) ** 3
        theirs, ours = boxplot_stats(values.numpy())[0], box(values)
        for name, own in (("whislo", "low"), ("q1", "first_quartile"), ("med", "median"), ("whishi", "high")):
            assert getattr(ours, own) == pytest.approx(theirs[name])
    with pytest.raises(ValueError, match="at least one number"):
        box([])


def test_integrated_gradients_add_up_to_the_outputs_difference() -> None:
    layer = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    x = torch.randn(3, 4)
    gradients = integrated_gradients(lambda v: layer(v)[:, 0], x, steps=64)
    expected = (layer(x) - layer(torch.zeros(1, 4)))[:, 0]
    torch.testing.assert_close(gradients.sum(1), expected.detach(), rtol=1e-3, atol=1e-4)


def test_gradient_attention_is_a_map(frames: Tensor) -> None:
    attention_map = gradient_attention(Policy("gru"), frames[:1], steps=4)
    assert attention_map.shape == (1, 48, 160)
    assert attention_map.min() >= 0
    assert attention_map.max() == 1


def test_frames_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match=r"must have shape \(frame, 48, 160, 3\)"):
        attention(Policy("gru"), torch.zeros(48, 160, 3))
