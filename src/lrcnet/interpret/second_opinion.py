"""Integrated gradients by Captum (extra `interpret`): a second opinion on what an output depends on."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from lrcnet.errors import positive_size
from lrcnet.models.policy import UNIT, Policy, normalised


def integrated_gradients(
    output: Callable[[Tensor], Tensor], x: Tensor, baseline: Tensor | float = 0.0, *, steps: int = 32
) -> Tensor:
    """How much each number of x adds to an output, against a baseline.

    Args:
        output: from inputs like x, (sample, ...), to one number per sample, (sample,).
        x: (sample, ...), floating point.
        baseline: what the inputs are compared with: a number, or shaped like x.
        steps: points on the way from the baseline to x. The attributions of a sample add up to the difference of its
            outputs, the better the more there are.

    Returns:
        Shaped like x.

    Raises:
        ImportError: without Captum.

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
    method = IntegratedGradients(output, multiply_by_inputs=True)
    found: Tensor = method.attribute(
        x, baselines=baseline, n_steps=positive_size("steps", steps), internal_batch_size=max(len(x), 1)
    )
    return found.detach().to(x.dtype)


def gradient_attention(policy: Policy, frames: Tensor, *, steps: int = 32) -> Tensor:
    """Where the pixels are that a policy's curvature depends on, each frame seen as the first of a drive.

    The way goes from a grey picture to the normalised frame, on which the policy's layers compute.

    Args:
        policy: who steers.
        frames: (picture, 48, 160, 3), as `normalised` takes them.
        steps: as `integrated_gradients`.

    Returns:
        (picture, 48, 160): the colours' attributions, absolute and summed, from 0 to 1 within each picture.
    """

    def curvature(pictures: Tensor) -> Tensor:
        output, _ = policy.layer(policy.conv(pictures).unsqueeze(1))
        steered: Tensor = policy.head(output)[:, 0, 0] * UNIT
        return steered

    with torch.enable_grad():
        found = integrated_gradients(curvature, normalised(frames), steps=steps).abs().sum(-1)
    return found / found.amax((1, 2), keepdim=True).clamp_min(torch.finfo(found.dtype).tiny)
