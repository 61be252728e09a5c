"""Lane keeping: how a policy's curvature is judged, and the paper's hyper-parameters.

The paper's recordings are not public; `lrcnet.driving` makes some. Loss is in curvature, in units of 1/100 m, so that
an error as large as a bend of 100 m radius counts 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from torch import Tensor

UNIT = 0.01
"""1/m."""

HYPER_PARAMETERS: Mapping[str, str | float] = MappingProxyType(
    {
        "optimizer": "AdamW",
        "learning_rate": 5e-4,
        "schedule": "cosine",
        "weight_decay": 1e-6,
        "batch_size": 32,
        "length": 32,
        "epochs": 100,
    }
)
"""Of the paper's appendix, the same for every model."""


def _errors(output: Tensor, target: Tensor) -> Tensor:
    if output.shape != target.shape:
        raise ValueError(f"output must have the target's shape {tuple(target.shape)}; got {tuple(output.shape)}")
    return ((output - target) / UNIT) ** 2


def curvature_loss(output: Tensor, target: Tensor) -> Tensor:
    """Mean squared error of curvatures (1/m) of one shape, in units of (1/100 m)^2.

    >>> curvature_loss(torch.tensor([0.01, 0.0]), torch.tensor([0.0, 0.0]))
    tensor(0.5000)
    """
    return _errors(output, target).mean()


def weighted_curvature_loss(output: Tensor, target: Tensor) -> Tensor:
    """As `curvature_loss`, each step weighted by the curvature that the driver took, in units of 1/100 m.

    The paper does not give its weights. With these a straight counts nothing, a bend of 100 m radius 1 and one of 25 m
    4; the mean is over steps, so that the mean over equal batches is the mean over the whole split.

    >>> weighted_curvature_loss(torch.tensor([0.01, 0.05]), torch.tensor([0.0, 0.04]))
    tensor(2.0000)
    """
    return (target.abs() / UNIT * _errors(output, target)).mean()
