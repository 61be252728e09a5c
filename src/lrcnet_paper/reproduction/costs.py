"""Costs of planned runs in core-hours, from a timed pilot of a few training steps of each kind of run."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice

import torch
from torch import Tensor, nn

from lrcnet.constraints import project_
from lrcnet.errors import DivergenceWarning
from lrcnet_paper.models import build
from lrcnet_paper.tasks import find
from lrcnet_paper.tasks.driving import FEATURE_VARIANTS
from lrcnet_paper.training.length import run_length
from lrcnet_paper.training.optimisers import make_optimiser
from lrcnet_paper.training.problems import ProblemSettings, ProcessShare, problem_class
from lrcnet_paper.training.single_run import default_threads, use_threads
from lrcnet_paper.training.spec import RunSpec

# The first step allocates memory and is not timed.
TIMED_STEPS = 2


@dataclass(frozen=True)
class Cost:
    """The runs of one model on one task, and their cost.

    Attributes:
        name: task, variant, model and change of the runs.
        runs: number of runs.
        hours: core-hours of training all of them; evaluations and measurements come on top.
    """

    name: str
    runs: int
    hours: float

    def __str__(self) -> str:
        return f"{self.name}: {self.runs} run{'' if self.runs == 1 else 's'}, about {self.hours:.2g} core-hours"


def estimate_costs(
    specs: Sequence[RunSpec], data: str | os.PathLike[str] | None = None, threads: int | None = None
) -> Iterator[Cost]:
    """Time a pilot of each kind of run, and yield the cost of all runs of that kind.

    Args:
        specs: the runs; those that differ in seed or schedule only have the same cost.
        data: folder of the data files; see `lrcnet_paper.training.run`.
        threads: threads of each run; None for the number that a new run takes.
    """

    def kind(spec: RunSpec) -> str:
        options = "".join(f" {name}={value}" for name, value in spec.options.items())
        return f"{spec.task} {spec.variant} {spec.model}{f' {spec.solver}' if spec.solver else ''}{options}"

    for name, members in groupby(sorted(specs, key=kind), key=kind):
        runs = list(members)
        # Threads that the run does not have would wait for each other, and waiting counts as processor time.
        with use_threads(threads or default_threads(runs[0])):
            seconds = time_step(runs[0], data)
        yield Cost(name, len(runs), seconds * sum(count_steps(spec) for spec in runs) / 3600)


def time_step(spec: RunSpec, data: str | os.PathLike[str] | None = None) -> float:
    """Return the processor time of one training step of a run, in seconds."""
    task = find(spec.task, spec.variant)
    batch_size = spec.batch_size or task.recipe.batch_size
    with torch.random.fork_rng(devices=[]):
        network = build(spec.model, task, solver=spec.solver, **dict(spec.options))  # type: ignore[arg-type]
    optimiser = make_optimiser(network, task.recipe, spec.rate)
    started = 0.0
    with warnings.catch_warnings():
        # An LTC under one explicit step diverges, as the paper says; its steps take as long.
        warnings.simplefilter("ignore", DivergenceWarning)
        for number, loss in enumerate(islice(_pilot_losses(spec, network, batch_size, data), 1 + TIMED_STEPS)):
            torch.autograd.backward(loss)
            optimiser.step()
            project_(network)
            optimiser.zero_grad()
            if number == 0:
                started = time.process_time()
    return (time.process_time() - started) / TIMED_STEPS


def _pilot_losses(
    spec: RunSpec, network: nn.Module, batch_size: int, data: str | os.PathLike[str] | None
) -> Iterator[Tensor]:
    """Yield the loss of one batch after the other."""
    task = find(spec.task, spec.variant)
    if spec.variant in FEATURE_VARIANTS:
        # The features would need a trained head, which takes minutes; random numbers take as long per step.
        generator = torch.Generator().manual_seed(0)
        while True:
            features = torch.randn(batch_size, task.length, task.input_size, generator=generator)
            yield task.loss(network(features), torch.zeros(batch_size, task.length))
    files = None if data is None else os.fspath(data)
    settings = ProblemSettings(
        run_length(task, spec), batch_size, spec.seed, data=files, limit=batch_size, piece=spec.piece
    )
    problem = problem_class(task)(task, settings, ProcessShare(0, 1, torch.device("cpu")))
    for batch in problem.batches(0, 1 + TIMED_STEPS):
        yield problem.loss(network, batch)


def count_steps(spec: RunSpec) -> int:
    """Return the number of training steps of a run."""
    task = find(spec.task, spec.variant)
    length = run_length(task, spec)
    if spec.unit == "iteration":
        return length
    samples = task.splits["train"] if spec.samples is None else min(spec.samples, task.splits["train"])
    return length * -(-samples // (spec.batch_size or task.recipe.batch_size))
