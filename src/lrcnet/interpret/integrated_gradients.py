"""Integrated gradients by Captum (extra `interpret`): the amount that each input adds to an output."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from lrcnet.errors import check_kind, check_number, describe_kind, positive_size


def integrated_gradients(
    output: Callable[[Tensor], Tensor], x: Tensor, baseline: Tensor | float = 0.0, *, steps: int = 32
) -> Tensor:
    """Compute how much each number of x adds to an output, compared with a baseline.

    Args:
        output: maps inputs like x, (sample, ...), to one number per sample, (sample,).
        x: (sample, ...), floating point.
        baseline: the inputs to compare with: a number, or a tensor of the shape of x.
        steps: number of points on the way from the baseline to x. The attributions of a sample add up to the
            difference of its outputs; more points make the sum more exact.

    Returns:
        The attributions, of the shape of x.

    Raises:
        ImportError: if Captum is not installed.

    Example:
        >>> weights = torch.tensor([1.0, -2.0])
        >>> integrated_gradients(lambda x: x @ weights, torch.ones(1, 2)).round(decimals=3)
        tensor([[ 1., -2.]])
    """
    try:
        from captum.attr import IntegratedGradients
    except ImportError as error:
        raise ImportError(
            "integrated gradients need Captum, which is not installed; run: pip install 'lrcnet[interpret]'"
        ) from error
    for name, given in (("x", x), ("baseline", baseline)):
        if isinstance(given, Tensor) and (not given.is_floating_point() or given.is_sparse or given.is_meta):
            raise ValueError(f"{name} must hold real numbers, but is {given.dtype} on {given.device}; convert it")
    check_kind("x", x, Tensor, "a tensor of samples")
    if not x.dim() or not len(x):
        raise ValueError(f"x must have at least one sample along its first axis, but has shape {tuple(x.shape)}")
    if not isinstance(baseline, Tensor):
        baseline = check_number("baseline", baseline)
    elif baseline.shape not in (x.shape, x[:1].shape):
        raise ValueError(f"baseline must be a number or have shape {tuple(x.shape)}, but has {tuple(baseline.shape)}")
    with torch.no_grad():
        one = output(x[:1])
    if not isinstance(one, Tensor) or one.numel() != 1:
        shape = f"shape {tuple(one.shape)}" if isinstance(one, Tensor) else describe_kind(one)
        raise ValueError(f"output must give one number per sample, (sample,), but gives {shape}; choose one of them")
    method = IntegratedGradients(output, multiply_by_inputs=True)
    attributions: Tensor = method.attribute(
        x, baselines=baseline, n_steps=positive_size("steps", steps), internal_batch_size=max(len(x), 1)
    )
    return attributions.detach().to(x.dtype)
