"""One run on several processes: the loss curve of one process with the doubled batch."""

import csv
import sys

import pytest
import torch
from torch.multiprocessing.spawn import ProcessExitedException, ProcessRaisedException

from lrcnet.cli import main
from lrcnet_paper.training import Result, RunSpec
from lrcnet_paper.training.atomic_files import PAUSE
from lrcnet_paper.training.run_folder import BusyFolderError
from lrcnet_paper.training.single_run import run_in

# Two processes add the same numbers in another order: single precision, a few dozen steps.
TOLERANCE = 1e-5


def rows(folder):
    with (folder / "metrics.csv").open() as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["a01-a04", "a01-a04-clean"])
def test_two_processes_train_like_one_with_the_doubled_batch(start, tmp_path, person_data, variant):
    # 61 samples: the last batch is uneven, so only one of the processes gets its last sample.
    words = [
        "person", "--variant", variant, "--model", "lrcu-s", "--epochs", "3", "--samples", "61", "--option", "units=8",
        "--data", str(person_data),
    ]  # fmt: skip
    # With slow writes the second process would be at the best weights before the first one has written them.
    both = start(*words, "--batch-size", "6", "--devices", "2", "--out", tmp_path / "two", **{PAUSE: "0.3"})
    _, errors = both.communicate(timeout=300)
    assert both.returncode == 0, errors
    assert main(["train", *words, "--batch-size", "12", "--out", str(tmp_path / "one"), "--threads", "1"]) == 0
    one, two = rows(tmp_path / "one"), rows(tmp_path / "two")
    assert len(one) == len(two) == 3
    for a, b in zip(one, two, strict=True):
        for name in a:
            assert float(a[name]) == pytest.approx(float(b[name]), rel=TOLERANCE, abs=TOLERANCE), (name, a, b)
    reported = [Result.read(tmp_path / name) for name in ("one", "two")]
    assert reported[0].best_epoch == reported[1].best_epoch
    assert reported[0].metrics == pytest.approx(reported[1].metrics, rel=TOLERANCE, abs=TOLERANCE)


RAISED = """

-- Process 1 terminated with the following error:
Traceback (most recent call last):
  File "spawn.py", line 90, in _wrap
    fn(i, *args)
{}
"""


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (
            ProcessRaisedException(RAISED.format("ValueError: hidden: must be 3"), 1, 1),
            RuntimeError,
            "a process of the run in {} failed: hidden: must be 3",
        ),
        (
            ProcessRaisedException(RAISED.format("lrcnet_paper.training.run_folder.BusyFolderError: busy; wait"), 1, 1),
            BusyFolderError,
            "busy; wait",
        ),
        (
            ProcessExitedException("process 1 terminated with signal SIGKILL", 1, 1, -9, "SIGKILL"),
            RuntimeError,
            "a process of the run in {} failed: process 1 terminated with signal SIGKILL",
        ),
    ],
)
def test_a_failed_process_is_reported_in_one_line(tmp_path, monkeypatch, error, kind, message):
    class Launcher:
        def launch(self, *arguments):
            raise error

    # The package's `run` is the function, not the module that it comes from.
    monkeypatch.setattr(sys.modules[run_in.__module__], "_make_fabric", lambda spec: Launcher())
    with pytest.raises(kind) as caught:
        run_in(tmp_path, RunSpec("neural-ode", "spiral", "lrc-s", devices=2))
    assert str(caught.value) == message.format(tmp_path)


def test_the_parts_of_a_batch_weigh_as_much_as_the_whole():
    from lrcnet_paper.tasks import Samples
    from lrcnet_paper.training.problems import ProcessShare
    from lrcnet_paper.training.problems.sequences import SequenceProblem

    samples = Samples(torch.arange(7.0), None, torch.arange(7))
    for chosen in (torch.arange(6), torch.arange(5), torch.arange(1)):
        total = torch.tensor(0.0)
        for rank in range(2):
            problem = SequenceProblem.__new__(SequenceProblem)
            problem.share = ProcessShare(rank, 2, torch.device("cpu"))
            batch = problem.batch(samples, chosen)
            # The processes' gradients are averaged.
            total += batch.samples[0].mean() * batch.weight / 2
        assert float(total) == pytest.approx(float(samples.x[chosen].mean()))
