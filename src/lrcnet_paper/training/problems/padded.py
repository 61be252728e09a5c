"""Training on sequences of unequal lengths with one label each; metrics are those of a whole split."""

from __future__ import annotations

import torch
from torch import nn

from lrcnet_paper.training.checkpoint import Row
from lrcnet_paper.training.problems.sequences import EVALUATION_BATCH, LabelPerSequenceProblem


class PaddedSequenceProblem(LabelPerSequenceProblem):
    """A task with one target for a sequence, whose metrics need not be means over samples, such as an AUC."""

    # A step has small matrices, for which a second thread costs more than it gains.
    default_threads = 1

    @torch.no_grad()
    def evaluate_split(self, network: nn.Module, split: str) -> Row:
        """Return loss and metrics of all outputs of a split together."""
        samples, share = self.splits[split], self.share
        network.eval()
        outputs = torch.zeros(len(samples), self.task.output_size, device=share.device)
        mine = torch.arange(share.rank, len(samples), share.world, device=share.device)
        labels = torch.zeros(len(samples), dtype=torch.long, device=share.device)
        for chosen in torch.split(mine, EVALUATION_BATCH):
            x, dt, labels[chosen] = samples[chosen]
            outputs[chosen] = network(x, dt)
        network.train()
        # Every process has filled its own rows, and the others are 0.
        whole, targets = share.sum(outputs), share.sum(labels)
        measures = {"loss": self.task.loss, **self.task.metrics}
        return {name: float(measure(whole, targets)) for name, measure in measures.items()}
