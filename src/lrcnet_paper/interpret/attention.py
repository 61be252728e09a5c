"""Attention of a camera policy: VisualBackProp of its convolutional head, and how much noise changes it.

Axes: frame, row, column, colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import torch
from torch import Tensor
from torch.nn import functional

from lrcnet.errors import positive_size
from lrcnet.interpret.visual_backprop import visual_backprop
from lrcnet_paper.driving import add_noise
from lrcnet_paper.driving.camera import REGIONS
from lrcnet_paper.driving.closed_loop import NoiseReading
from lrcnet_paper.models.policy import Policy, normalise_frames

BATCH = 64
WHISKER = 1.5
"""Whiskers end at the last value within this many interquartile ranges of the box, as Tukey draws them."""


def attention(policy: Policy, frames: Tensor, *, batch: int = BATCH) -> Tensor:
    """Compute attention maps of a policy's convolutional head.

    Args:
        policy: the policy.
        frames: (frame, 48, 160, 3), uint8, or floating point in [0, 1].
        batch: frames at a time; it bounds the memory and does not change the maps.

    Returns:
        (frame, 48, 160), 0 to 1.

    Example:
        >>> from lrcnet_paper.models.policy import Policy
        >>> attention(Policy("lrcu-s"), torch.zeros(2, 48, 160, 3, dtype=torch.uint8)).shape
        torch.Size([2, 48, 160])
    """
    if frames.ndim != 4:
        raise ValueError(f"frames must have shape (frame, 48, 160, 3), but have {tuple(frames.shape)}")
    if not len(frames):
        return torch.zeros(frames.shape[:3])
    parts = torch.split(frames, positive_size("batch", batch))
    return torch.cat(
        [visual_backprop(policy.conv.layers, normalise_frames(part).permute(0, 3, 1, 2)) for part in parts]
    )


def smooth(maps: Tensor) -> Tensor:
    """Smooth the attention to successive frames over time and space, so that it can be watched without flicker.

    Each map is averaged with its two neighbours on either side in time (weights 1, 2, 3, 2, 1) and blurred over 5x5
    pixels; the largest value of a frame is 1 again.

    Args:
        maps: (frame, row, column), 0 to 1, with even numbers of rows and columns.

    Returns:
        (frame, row / 2, column / 2), 0 to 1: half the size, which holds all that the blur leaves.

    Example:
        >>> smooth(torch.rand(3, 48, 160)).shape
        torch.Size([3, 24, 80])
    """
    if not len(maps):
        return maps[:, ::2, ::2]
    small = functional.avg_pool2d(maps.unsqueeze(1), 2)
    blurred = functional.avg_pool2d(small, 5, 1, 2, count_include_pad=False)[:, 0]
    ends = torch.cat([blurred[:1].expand(2, -1, -1), blurred, blurred[-1:].expand(2, -1, -1)])
    weights = (1, 2, 3, 2, 1)
    mean = sum(w * ends[k : k + len(maps)] for k, w in enumerate(weights)) / sum(weights)
    assert isinstance(mean, Tensor)
    return mean / mean.amax((1, 2), keepdim=True).clamp_min(torch.finfo(mean.dtype).tiny)


def similarity(first: Tensor, second: Tensor) -> Tensor:
    """Compute the structural similarity of pairs of maps from 0 to 1 with torchmetrics (extra `interpret`).

    Args:
        first, second: (frame, row, column).

    Returns:
        (frame,): 1 where both maps are equal.

    Raises:
        ValueError: for maps of different shapes.
        ImportError: without torchmetrics.

    Example:
        >>> maps = torch.rand(2, 48, 160)
        >>> similarity(maps, maps)
        tensor([1., 1.])
    """
    if first.shape != second.shape or first.ndim != 3:
        raise ValueError(f"maps must have one shape (frame, row, column), not {first.shape} and {second.shape}")
    try:
        from torchmetrics.functional.image import structural_similarity_index_measure
    except ImportError as error:
        raise ImportError(
            "structural similarity needs torchmetrics, which is not installed; run: pip install 'lrcnet[interpret]'"
        ) from error
    if not len(first):
        return first.new_zeros(0)
    similarities = structural_similarity_index_measure(
        first.unsqueeze(1), second.unsqueeze(1), data_range=1.0, reduction="none"
    )
    assert isinstance(similarities, Tensor)
    return similarities.reshape(-1)


@torch.no_grad()
def attention_under_noise(
    policy: Policy,
    frames: Tensor,
    variances: Sequence[float],
    *,
    reading: NoiseReading = "pixels",
    seed: int = 0,
    batch: int = BATCH,
    clean: Tensor | None = None,
) -> Tensor:
    """Compare a policy's attention to frames with and without Gaussian noise.

    Args:
        policy: the policy.
        frames: (frame, 48, 160, 3), uint8.
        variances, reading: variances of the noise and what they refer to, as `lrcnet_paper.driving.add_noise` takes
            them.
        seed: random seed of the noise; two policies with the same seed get the same noisy frames.
        batch: frames at a time; the noise is drawn batch by batch.
        clean: the attention without noise, (frame, 48, 160), if it is known already.

    Returns:
        Structural similarity, (variance, frame).
    """
    clean = attention(policy, frames, batch=batch) if clean is None else clean
    generators = [torch.Generator().manual_seed(seed) for _ in variances]
    similarities = []
    for part, maps in zip(torch.split(frames, positive_size("batch", batch)), torch.split(clean, batch), strict=True):
        noisy = [add_noise(part, v, g, reading=reading) for v, g in zip(variances, generators, strict=True)]
        similarities.append(torch.stack([similarity(maps, attention(policy, noisy_part)) for noisy_part in noisy]))
    return torch.cat(similarities, 1)


def share_by_region(maps: Tensor, regions: Tensor) -> dict[str, float]:
    """Return the share of attention on each region of the frames, each frame counting the same; they add up to 1.

    Args:
        maps: attention, (frame, row, column), not negative.
        regions: index of `REGIONS` of each pixel, of the same shape.

    Raises:
        ValueError: for different shapes.

    Example:
        >>> share_by_region(torch.ones(1, 2, 2), torch.tensor([[[1, 1], [2, 3]]]))
        {'sky': 0.0, 'horizon': 0.5, 'road': 0.25, 'roadside': 0.25}
    """
    if maps.shape != regions.shape or maps.ndim != 3:
        raise ValueError(
            f"maps and regions must have one shape (frame, row, column), not {tuple(maps.shape)} and "
            f"{tuple(regions.shape)}"
        )
    weights = maps.double() / maps.double().sum((1, 2), keepdim=True).clamp_min(torch.finfo(torch.float64).tiny)
    return {name: float((weights * (regions == i)).sum((1, 2)).mean()) for i, name in enumerate(REGIONS)}


@dataclass(frozen=True)
class Box:
    """The numbers that a box plot shows."""

    count: int
    mean: float
    std: float
    low: float
    first_quartile: float
    median: float
    third_quartile: float
    high: float

    def as_dict(self) -> dict[str, float]:
        """Return plain JSON values."""
        return asdict(self)


def box(values: Tensor | Sequence[float]) -> Box:
    """Compute quartiles, whiskers, mean and standard deviation (n - 1) of some numbers.

    Raises:
        ValueError: for no numbers.

    Example:
        >>> box([0.0, 1.0, 2.0, 3.0, 100.0]).high
        3.0
    """
    numbers = torch.as_tensor(values, dtype=torch.float64).flatten()
    if not len(numbers):
        raise ValueError("a box needs at least one number, but there is none")
    first, median, third = torch.quantile(numbers, torch.tensor([0.25, 0.5, 0.75], dtype=torch.float64)).tolist()
    reach = WHISKER * (third - first)
    within = numbers[(numbers >= first - reach) & (numbers <= third + reach)]
    std = float(numbers.std()) if len(numbers) > 1 else 0.0
    low, high = min(float(within.min()), first), max(float(within.max()), third)
    return Box(len(numbers), float(numbers.mean()), std, low, first, median, third, high)
