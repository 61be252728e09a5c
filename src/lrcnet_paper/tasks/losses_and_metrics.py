"""Losses and metrics of the tasks, each `(output, target) -> scalar`, the mean over the whole batch."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional


def _check(output: Tensor, expected: tuple[int, ...], what: str) -> None:
    if tuple(output.shape) != expected:
        raise ValueError(f"output must have shape {expected}, {what}; got {tuple(output.shape)}")


def _check_classes(output: Tensor, target: Tensor) -> None:
    if output.ndim == 0 or output.shape[:-1] != target.shape:
        raise ValueError(
            f"output must have the target's shape {tuple(target.shape)} and one axis of classes after it; "
            f"got {tuple(output.shape)}"
        )


def cross_entropy(output: Tensor, target: Tensor) -> Tensor:
    """Return the mean cross-entropy of logits (..., classes) and class numbers (...), over all samples and steps."""
    _check_classes(output, target)
    return functional.cross_entropy(output.reshape(-1, output.shape[-1]), target.reshape(-1))


def accuracy(output: Tensor, target: Tensor) -> Tensor:
    """Return the fraction of samples and steps where the largest logit (..., classes) is the target (...)."""
    _check_classes(output, target)
    return (output.argmax(-1) == target).to(torch.float64).mean()


def binary_cross_entropy(output: Tensor, target: Tensor) -> Tensor:
    """Return the mean cross-entropy of one logit per sample, (sample, 1), against 0 or 1, (sample,)."""
    _check(output, (*target.shape, 1), "one logit for each target")
    return functional.binary_cross_entropy_with_logits(output[..., 0], target.to(output.dtype))


def _binary_accuracy(output: Tensor, target: Tensor, threshold: float) -> Tensor:
    _check(output, (*target.shape, 1), "one logit for each target")
    return ((output[..., 0] > threshold) == (target == 1)).to(torch.float64).mean()


def binary_accuracy(output: Tensor, target: Tensor) -> Tensor:
    """Return the fraction of samples whose logit (sample, 1) is above 0 exactly where the target (sample,) is 1."""
    return _binary_accuracy(output, target, 0.0)


def binary_accuracy_above_half(output: Tensor, target: Tensor) -> Tensor:
    """Return `binary_accuracy` with the threshold 0.5, as Keras' accuracy computes it from logits."""
    return _binary_accuracy(output, target, 0.5)


def area_under_curve(output: Tensor, target: Tensor) -> Tensor:
    """Return the area under the ROC curve of one logit per sample, (sample, 1), against 0 or 1, (sample,).

    This is the share of pairs of a positive and a negative sample in which the positive one has the larger logit; equal
    logits count as half a pair. It is 0.5 if only one class occurs.
    """
    _check(output, (*target.shape, 1), "one logit for each target")
    logits, positive = output[..., 0].double(), target == 1
    others, ours = torch.sort(logits[~positive]).values, logits[positive].contiguous()
    if not len(others) or not len(ours):
        return torch.tensor(0.5, dtype=torch.float64)
    below, not_above = (torch.searchsorted(others, ours, right=right) for right in (False, True))
    return (below + not_above).double().mean() / (2 * len(others))


def mean_absolute_error(output: Tensor, target: Tensor) -> Tensor:
    """Return the mean absolute difference of two tensors of the same shape."""
    _check(output, tuple(target.shape), "the target's")
    return (output - target).abs().mean()
