"""Training to steer: sequences with a curvature per step, and the gain in sharp bends of the trained network."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lrcnet_paper.training.checkpoint import Row
from lrcnet_paper.training.problems.sequences import SequenceProblem

# The share of labels that counts as sharp bends: those of largest absolute value.
SHARP = 0.1
# Sequences per forward pass when the gain is measured; camera frames are large.
_SEQUENCES = 8


def sharp_bend_gain(output: Tensor, target: Tensor) -> float:
    """Return the slope of predictions on labels where |label| is in its top decile: 1 is right, 0 does not react.

    The line goes through the origin: a straight road needs no steering.

    >>> target = torch.linspace(-1.0, 1.0, 101)
    >>> round(sharp_bend_gain(0.5 * target, target), 3)
    0.5
    """
    output, target = output.flatten().double(), target.flatten().double()
    sharp = target.abs() >= target.abs().quantile(1 - SHARP)
    return float((target[sharp] * output[sharp]).sum() / target[sharp].square().sum())


class SteeringProblem(SequenceProblem):
    """A task with a curvature to steer at every step; the report adds the gain in sharp bends over validation."""

    def report(self, network: nn.Module, history: list[Row]) -> Row:
        gain = sharp_bend_gain(*self.predict(network, "validation"))
        return super().report(network, history) | {"validation_sharp_bend_gain": gain}

    @torch.no_grad()
    def predict(self, network: nn.Module, split: str) -> tuple[Tensor, Tensor]:
        """Return the outputs and the labels of a whole split."""
        samples = self.splits[split]
        network.eval()
        parts = [samples[chosen] for chosen in torch.split(torch.arange(len(samples)), _SEQUENCES)]
        outputs = [network(x, dt) for x, dt, _ in parts]
        network.train()
        return torch.cat(outputs), torch.cat([y for _, _, y in parts])
