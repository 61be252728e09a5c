"""Run folders of the suite as subjects of `lrcnet explain`."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from lrcnet.errors import check_target
from lrcnet.interpret.subject import Subject
from lrcnet_paper.training.run_folder import read_spec
from lrcnet_paper.training.trained_network import TrainedNetwork, load_trained


class TrainedSubject(Subject):
    """A network from a run folder."""

    def __init__(self, trained: TrainedNetwork) -> None:
        self.trained, self.network, self.weights = trained, trained.network, trained.file.name

    def layer_inputs(self, data: str, samples: int) -> Tensor:
        x, _, _ = self.trained.task.load("test", data)[:samples]
        embedding = getattr(self.network, "embedding", None)
        with torch.no_grad():
            inputs: Tensor = x if embedding is None else embedding(x)
        return inputs

    def write_page(self, path: str, data: str | None, samples: int | None, beside: Subject | None = None) -> None:
        from lrcnet_paper.report.explain_page import explain, write_explanation

        check_target(path)
        if beside is not None and not _compares(self, beside):
            raise ValueError("two networks are compared on the sequences of one task; pass two runs of one task")
        other = beside.trained if isinstance(beside, TrainedSubject) else None
        write_explanation(self.trained, explain(self.trained, data, samples, other), path, other)


def _compares(first: TrainedSubject, other: Subject) -> bool:
    """Return whether two networks answer for the same sequences."""
    if not isinstance(other, TrainedSubject):
        return False
    specs = [(one.trained.spec.task, one.trained.spec.variant) for one in (first, other)]
    return specs[0] == specs[1]


def read(path: Path) -> TrainedSubject | None:
    """Read a run folder or a checkpoint file in one; return None if the path is neither."""
    folder = path if path.is_dir() else path.parent
    return None if read_spec(folder) is None else TrainedSubject(load_trained(path))
