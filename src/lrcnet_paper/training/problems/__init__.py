"""The training problem of each kind of task. A new kind is one row of `PROBLEMS` (and one of `models.BUILDERS`)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from lrcnet.errors import one_of
from lrcnet_paper.tasks import Task
from lrcnet_paper.training.problems.padded import PaddedSequenceProblem
from lrcnet_paper.training.problems.problem import Batch, Problem, ProblemSettings, ProcessShare
from lrcnet_paper.training.problems.sequences import LabelPerSequenceProblem, SequenceProblem
from lrcnet_paper.training.problems.shared_head import SharedHeadProblem
from lrcnet_paper.training.problems.steering import SteeringProblem
from lrcnet_paper.training.problems.trajectories import TrajectoryProblem

PROBLEMS: Mapping[str, type[Problem]] = MappingProxyType(
    {
        "label-per-step": SequenceProblem,
        "label-per-sequence": LabelPerSequenceProblem,
        "label-per-padded-sequence": PaddedSequenceProblem,
        "steering": SteeringProblem,
        "steering-features": SharedHeadProblem,
        "trajectory": TrajectoryProblem,
    }
)
"""Kind of a task -> class of its training problem."""


def problem_class(task: Task) -> type[Problem]:
    """Return the class of a task's training problem.

    Raises:
        ValueError: for an unknown kind of task; the message lists the valid ones.
    """
    return PROBLEMS[one_of(f"kind of the task {task.name}", task.kind, PROBLEMS)]


__all__ = ["PROBLEMS", "Batch", "Problem", "ProblemSettings", "ProcessShare", "problem_class"]
