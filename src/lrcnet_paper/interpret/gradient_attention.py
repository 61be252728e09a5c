"""Attention of a camera policy by integrated gradients, a second opinion beside VisualBackProp."""

from __future__ import annotations

import torch
from torch import Tensor

from lrcnet.interpret import integrated_gradients
from lrcnet_paper.models.policy import CURVATURE_PER_OUTPUT, Policy, normalise_frames


def gradient_attention(policy: Policy, frames: Tensor, *, steps: int = 32) -> Tensor:
    """Where the pixels are that a policy's curvature depends on, each frame seen as the first of a drive.

    The way goes from a grey picture to the normalised frame, on which the policy's layers compute.

    Args:
        policy: who steers.
        frames: (picture, 48, 160, 3), as `normalise_frames` takes them.
        steps: as `integrated_gradients`.

    Returns:
        (picture, 48, 160): the colours' attributions, absolute and summed, from 0 to 1 within each picture.
    """

    def curvature(pictures: Tensor) -> Tensor:
        output, _ = policy.layer(policy.conv(pictures).unsqueeze(1))
        steered: Tensor = policy.head(output)[:, 0, 0] * CURVATURE_PER_OUTPUT
        return steered

    with torch.enable_grad():
        found = integrated_gradients(curvature, normalise_frames(frames), steps=steps).abs().sum(-1)
    return found / found.amax((1, 2), keepdim=True).clamp_min(torch.finfo(found.dtype).tiny)
