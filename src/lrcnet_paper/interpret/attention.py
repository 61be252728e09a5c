"""What a camera policy looks at: VisualBackProp of its convolutional head, and how far noise moves it.

Axes: picture, row, column, colour.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import torch
from torch import Tensor

from lrcnet.errors import positive_size
from lrcnet.interpret.visual_backprop import visual_backprop
from lrcnet_paper.driving import add_noise
from lrcnet_paper.models.policy import Policy, normalise_frames

BATCH = 64
WHISKER = 1.5
"""Whiskers end at the last value within that many quartile distances of the box, as Tukey draws them."""


def attention(policy: Policy, frames: Tensor, *, batch: int = BATCH) -> Tensor:
    """Where a policy looks.

    Args:
        policy: whose convolutional head is looked into.
        frames: (picture, 48, 160, 3), uint8, or floating point in [0, 1].
        batch: pictures at a time; bounds the memory, changes nothing.

    Returns:
        (picture, 48, 160), 0 to 1.

    Example:
        >>> from lrcnet_paper.models.policy import Policy
        >>> attention(Policy("lrcu-s"), torch.zeros(2, 48, 160, 3, dtype=torch.uint8)).shape
        torch.Size([2, 48, 160])
    """
    if frames.ndim != 4:
        raise ValueError(f"frames must have shape (picture, 48, 160, 3), but have {tuple(frames.shape)}")
    if not len(frames):
        return torch.zeros(frames.shape[:3])
    parts = torch.split(frames, positive_size("batch", batch))
    return torch.cat(
        [visual_backprop(policy.conv.layers, normalise_frames(part).permute(0, 3, 1, 2)) for part in parts]
    )


def similarity(first: Tensor, second: Tensor) -> Tensor:
    """Structural similarity of maps from 0 to 1, pair by pair, by torchmetrics (extra `interpret`).

    Args:
        first, second: (picture, row, column).

    Returns:
        (picture,): 1 where both are the same.

    Raises:
        ValueError: for maps of different shapes.
        ImportError: without torchmetrics.

    Example:
        >>> maps = torch.rand(2, 48, 160)
        >>> similarity(maps, maps)
        tensor([1., 1.])
    """
    if first.shape != second.shape or first.ndim != 3:
        raise ValueError(f"maps must have one shape (picture, row, column), not {first.shape} and {second.shape}")
    try:
        from torchmetrics.functional.image import structural_similarity_index_measure
    except ImportError as error:
        raise ImportError(
            "structural similarity needs torchmetrics, which is not installed; run: pip install 'lrcnet[interpret]'"
        ) from error
    if not len(first):
        return first.new_zeros(0)
    found = structural_similarity_index_measure(
        first.unsqueeze(1), second.unsqueeze(1), data_range=1.0, reduction="none"
    )
    assert isinstance(found, Tensor)
    return found.reshape(-1)


@torch.no_grad()
def attention_under_noise(
    policy: Policy, frames: Tensor, variances: Sequence[float], *, seed: int = 0, batch: int = BATCH
) -> Tensor:
    """How similar a policy's attention to frames with Gaussian noise is to that without.

    Args:
        policy: who looks.
        frames: (picture, 48, 160, 3), uint8.
        variances: of the noise, each as `lrcnet_paper.driving.noisy` takes it.
        seed: of the noise: the same for two policies gives both the same pictures.
        batch: pictures at a time; the noise is drawn batch by batch.

    Returns:
        Structural similarity, (variance, picture).
    """
    generators = [torch.Generator().manual_seed(seed) for _ in variances]
    found = []
    for part in torch.split(frames, positive_size("batch", batch)):
        clean = attention(policy, part)
        shaken = [add_noise(part, v, generator) for v, generator in zip(variances, generators, strict=True)]
        found.append(torch.stack([similarity(clean, attention(policy, seen)) for seen in shaken]))
    return torch.cat(found, 1)


@dataclass(frozen=True)
class Box:
    """What a box plot shows of some numbers."""

    count: int
    mean: float
    std: float
    low: float
    first_quartile: float
    median: float
    third_quartile: float
    high: float

    def as_dict(self) -> dict[str, float]:
        """Plain JSON values."""
        return asdict(self)


def box(values: Tensor | Sequence[float]) -> Box:
    """Quartiles, whiskers, mean and standard deviation (n - 1) of some numbers.

    Raises:
        ValueError: for no numbers.

    Example:
        >>> box([0.0, 1.0, 2.0, 3.0, 100.0]).high
        3.0
    """
    numbers = torch.as_tensor(values, dtype=torch.float64).flatten()
    if not len(numbers):
        raise ValueError("a box needs one number at least, but there is none")
    first, median, third = torch.quantile(numbers, torch.tensor([0.25, 0.5, 0.75], dtype=torch.float64)).tolist()
    reach = WHISKER * (third - first)
    within = numbers[(numbers >= first - reach) & (numbers <= third + reach)]
    std = float(numbers.std()) if len(numbers) > 1 else 0.0
    low, high = min(float(within.min()), first), max(float(within.max()), third)
    return Box(len(numbers), float(numbers.mean()), std, low, first, median, third, high)
