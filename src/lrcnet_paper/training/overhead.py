"""Benchmark of Lightning's overhead per training step: `python -m lrcnet_paper.training.overhead`.

One person-activity step (128 windows of 32 readings, 7 features, LRCU-S with 64 units, RMSprop) in a bare torch loop,
in this package's loop on Fabric, and in Lightning's Trainer. The three take turns, so that a busy machine disturbs all
of them alike; CPU time is shown beside wall-clock time for the same reason. `--units 1` makes the network so small that
the time of the loop itself dominates.
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import torch

from lrcnet.constraints import project_
from lrcnet_paper.models import build
from lrcnet_paper.tasks import Samples, Task, find
from lrcnet_paper.training.loop import train_steps
from lrcnet_paper.training.optimisers import make_optimiser
from lrcnet_paper.training.problems import ProblemSettings, ProcessShare, problem_class

Measurement = tuple[float, float]


def synthetic_task(samples: int) -> Task:
    """Make the person-activity task with random readings and labels."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(samples, 32, 7, generator=generator)
    y = torch.randint(0, 7, (samples, 32), generator=generator)
    task = find("person", "coarse")
    return replace(task, splits={"train": samples}, reader=lambda variant, split, data: Samples(x, None, y))


def loops(steps: int, units: int) -> dict[str, Callable[[], Measurement]]:
    """Return name -> function that trains `steps` steps and returns wall-clock and CPU seconds per step."""
    from lightning.fabric import Fabric

    task = synthetic_task(128 * steps)
    fabric = Fabric(accelerator="cpu", devices=1)
    problem = problem_class(task)(task, ProblemSettings(1, 128, 0), ProcessShare(0, 1, fabric.device))

    def make_network() -> Any:
        torch.manual_seed(0)
        network = build("lrcu-s", task, units=units)
        return network, make_optimiser(network, task.recipe, 1e-3)

    network, optimiser = make_network()

    def bare() -> None:
        for batch in problem.batches(0, 1):
            x, dt, y = batch.samples
            optimiser.zero_grad()
            loss = task.loss(network(x, dt), y)
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            project_(network)
            loss.item()

    model, wrapped = fabric.setup(*make_network())

    def on_fabric() -> None:
        train_steps(
            fabric,
            problem,
            model,
            wrapped,
            schedule=lambda step: 1e-3,
            done=0,
            stop=1,
            clip=None,
            on_step=lambda: None,
        )

    return {
        "bare torch loop": lambda: _time(bare, steps),
        "Fabric (this package)": lambda: _time(on_fabric, steps),
        "Trainer": _trainer(task, steps, make_network),
    }


def _trainer(task: Task, steps: int, make_network: Callable[[], Any]) -> Callable[[], Measurement]:
    from lightning.pytorch import LightningModule, Trainer
    from torch.utils.data import BatchSampler, DataLoader, RandomSampler

    samples = cast("Samples", task.load("train"))
    loader = DataLoader(
        samples, sampler=BatchSampler(RandomSampler(samples), 128, drop_last=False), batch_size=None, num_workers=0
    )
    clock: dict[str, Measurement] = {}

    class Module(LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.network, self.optimiser = make_network()

        def training_step(self, batch: Any, index: int) -> torch.Tensor:
            x, dt, y = batch
            return task.loss(self.network(x, dt), y)

        def configure_optimizers(self) -> Any:
            return self.optimiser

        def on_train_batch_end(self, *ignored: Any) -> None:
            project_(self.network)

        def on_train_epoch_start(self) -> None:
            clock["start"] = (time.perf_counter(), time.process_time())

        def on_train_epoch_end(self) -> None:
            wall, cpu = clock["start"]
            clock["taken"] = ((time.perf_counter() - wall) / steps, (time.process_time() - cpu) / steps)

    module = Module()

    def measure() -> Measurement:
        trainer = Trainer(
            accelerator="cpu",
            devices=1,
            max_epochs=1,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(module, loader)
        return clock["taken"]

    return measure


def _time(call: Callable[[], None], steps: int) -> Measurement:
    wall, cpu = time.perf_counter(), time.process_time()
    call()
    return (time.perf_counter() - wall) / steps, (time.process_time() - cpu) / steps


def main() -> None:
    """Measure and print JSON: milliseconds per step and the overhead against the bare loop."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=40, help="number of steps per turn (default: 40)")
    parser.add_argument("--turns", type=int, default=7, help="number of turns of each loop (default: 7)")
    parser.add_argument("--units", type=int, default=64, help="number of hidden units (default: 64)")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    measured: dict[str, list[Measurement]] = {}
    by_name = loops(arguments.steps, arguments.units)
    for turn in range(arguments.turns + 1):
        for name, measure in by_name.items():
            taken = measure()
            if turn:  # the first turn warms up
                measured.setdefault(name, []).append(taken)
    # The least disturbed turn: other load on the machine only adds time.
    best = {name: tuple(min(turn[i] for turn in turns) * 1e3 for i in (0, 1)) for name, turns in measured.items()}
    middle = {name: statistics.median(turn[1] for turn in turns) * 1e3 for name, turns in measured.items()}
    base = best["bare torch loop"]
    print(
        json.dumps(
            {
                name: {
                    "wall_ms": round(wall, 3),
                    "cpu_ms": round(cpu, 3),
                    "cpu_ms_median": round(middle[name], 3),
                    "overhead_cpu_percent": round(100 * (cpu / base[1] - 1), 1),
                    "overhead_wall_percent": round(100 * (wall / base[0] - 1), 1),
                }
                for name, (wall, cpu) in best.items()
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
