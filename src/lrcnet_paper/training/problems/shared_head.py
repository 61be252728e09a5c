"""Training to steer by the features of a shared head instead of camera frames."""

from __future__ import annotations

from lrcnet_paper.tasks import SampleSet
from lrcnet_paper.training.problems.steering import SteeringProblem
from lrcnet_paper.training.shared_head import feature_samples


class SharedHeadProblem(SteeringProblem):
    """Lane keeping by features; the head that made them was trained with the seed of the run."""

    def load(self, split: str) -> SampleSet:
        samples, limit = feature_samples(self.task.variant, split, self.settings.seed), self.settings.limit
        return (samples if limit is None else samples.evenly_spaced(limit)).to(self.share.device)
