"""Attention of a camera policy by integrated gradients, as a check on VisualBackProp."""

from __future__ import annotations

import torch
from torch import Tensor

from lrcnet.interpret import integrated_gradients
from lrcnet_paper.models.policy import CURVATURE_PER_OUTPUT, Policy, normalise_frames


def gradient_attention(policy: Policy, frames: Tensor, *, steps: int = 32) -> Tensor:
    """Attribute a policy's curvature to the pixels, with each frame taken as the first of a drive.

    The path of integration goes from a grey image to the normalised frame, which is the input of the policy's layers.

    Args:
        policy: the policy that steers.
        frames: (frame, 48, 160, 3), as `normalise_frames` takes them.
        steps: number of steps, as `integrated_gradients` takes it.

    Returns:
        (frame, 48, 160): the sum of the absolute attributions of the colours, scaled to 0 to 1 within each frame.
    """

    def curvature(normalised: Tensor) -> Tensor:
        output, _ = policy.layer(policy.conv(normalised).unsqueeze(1))
        result: Tensor = policy.head(output)[:, 0, 0] * CURVATURE_PER_OUTPUT
        return result

    with torch.enable_grad():
        attribution = integrated_gradients(curvature, normalise_frames(frames), steps=steps).abs().sum(-1)
    return attribution / attribution.amax((1, 2), keepdim=True).clamp_min(torch.finfo(attribution.dtype).tiny)
