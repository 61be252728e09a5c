"""The recurrent part of a driving policy by itself, on the features of a head that is shared by all models."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from lrcnet.errors import one_of
from lrcnet_paper.models.policy import CURVATURE_PER_OUTPUT, FEATURES, UNITS, Policy, read_out
from lrcnet_paper.models.recurrent import recurrent_layer


class FeaturePolicy(nn.Module):
    """A recurrent layer and a linear output, from features (batch, time, 64) to curvatures (batch, time), 1/m.

    Args:
        model: name of the recurrent layer, a key of `UNITS`.
        solver: solver such as "hybrid-6"; "" is the model's own.
        units: number of recurrent units; None is the paper's number.
        options: further arguments of the layer.

    >>> FeaturePolicy("lrcu-s")(torch.zeros(2, 5, 64)).shape
    torch.Size([2, 5])
    """

    def __init__(self, model: str, *, solver: str = "", units: int | None = None, **options: Any) -> None:
        super().__init__()
        width = UNITS[one_of("model", model, UNITS)] if units is None else units
        self.layer = recurrent_layer(model, FEATURES, solver=solver, units=width, **options)
        self.head = read_out(self.layer, width, FEATURES)

    @classmethod
    def of(cls, policy: Policy) -> FeaturePolicy:
        """Return the recurrent part of a whole policy; it shares the policy's parameters."""
        part = cls.__new__(cls)
        nn.Module.__init__(part)
        part.layer, part.head = policy.layer, policy.head
        return part

    def forward(self, features: Tensor, dt: Tensor | None = None) -> Tensor:
        """Compute curvatures (batch, time), 1/m, from features (batch, time, 64)."""
        output, _ = self.layer(features, dt=dt)
        curvature: Tensor = self.head(output).squeeze(-1) * CURVATURE_PER_OUTPUT
        return curvature
