"""`Fit`: one run from its first step to its result, with the files written at each evaluation.

Lightning's Fabric sets up devices and processes; the training loop is our own. `docs/training.md` has the measurement
behind that choice.
"""

from __future__ import annotations

import math
import time
import warnings
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from lrcnet.cells.liquid import LiquidCell
from lrcnet.errors import DivergenceError, DivergenceWarning
from lrcnet.progress import Bar
from lrcnet_paper.models import build, parameter_count
from lrcnet_paper.tasks import Task, find
from lrcnet_paper.training import checkpoint, run_folder
from lrcnet_paper.training.checkpoint import Row
from lrcnet_paper.training.length import has_stalled, run_length
from lrcnet_paper.training.loggers import Loggers
from lrcnet_paper.training.loop import train_steps
from lrcnet_paper.training.metric_text import format_value, shorten
from lrcnet_paper.training.optimisers import make_optimiser
from lrcnet_paper.training.problems import Problem, ProblemSettings, ProcessShare, problem_class
from lrcnet_paper.training.result import Result, machine, versions
from lrcnet_paper.training.schedules import make_schedule
from lrcnet_paper.training.spec import RunSpec

if TYPE_CHECKING:
    from lightning.fabric import Fabric


def resolve_settings(task: Task, spec: RunSpec, network: nn.Module) -> dict[str, Any]:
    """Return the settings that the recipe and the model add to a run, for people who read its config.json."""
    recipe = task.recipe
    return {
        "title": task.title,
        "notes": task.notes,
        "optimizer": recipe.optimizer,
        "rho": recipe.rho,
        "eps": recipe.eps,
        "weight_decay": recipe.weight_decay,
        "learning_rate": spec.rate,
        "batch_size": spec.batch_size or recipe.batch_size,
        "length": run_length(task, spec),
        "reported": recipe.reported,
        "parameters": parameter_count(network),
        **next((_liquid_settings(part) for part in network.modules() if isinstance(part, LiquidCell)), {}),
        "network": str(network).splitlines(),
    }


def _liquid_settings(cell: LiquidCell) -> dict[str, Any]:
    """Return the choices that decide a liquid network's gradients and steps and are not part of its name."""
    return {
        "parametrisation": cell.parametrisation,
        "constraint": cell.constraint,
        "elastance": cell.elastance,
        "solver": cell.solver,
        "unfolds": cell.unfolds,
        "negative_dt": cell.negative_dt,
        "input_map": cell.input_scale is not None,
        "output_map": cell.output_scale is not None,
    }


class Fit:
    """One run in this process; several processes may share a run.

    Args:
        fabric: a Fabric that has been launched.
        spec: the run.
        folder: folder of the run, visible to all processes.
        data: folder of the task's files.
        progress: whether to show a progress bar.
        loggers: names among "tensorboard", "wandb", "mlflow".
    """

    def __init__(
        self, fabric: Fabric, spec: RunSpec, folder: Path, data: str | None, progress: bool, loggers: tuple[str, ...]
    ) -> None:
        self.fabric, self.spec, self.folder = fabric, spec, folder
        # Only the first process shows a bar and logs.
        self.shows_progress = progress and fabric.is_global_zero
        self.logger_names = loggers if fabric.is_global_zero else ()
        self.task = find(spec.task, spec.variant)
        self.length = run_length(self.task, spec)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(spec.seed)
            options: dict[str, Any] = dict(spec.options)
            self.network = build(spec.model, self.task, solver=spec.solver, **options)
        if fabric.is_global_zero:
            run_folder.claim(folder, spec, resolve_settings(self.task, spec, self.network))
        fabric.barrier()
        self.problem = self._make_problem(data)
        optimiser = make_optimiser(self.network, self.task.recipe, spec.rate)
        self.model, self.optimiser = fabric.setup(self.network, optimiser)
        self.progress = checkpoint.load_last(folder, self.network, self.raw_optimiser)
        self.schedule = make_schedule(spec.schedule, spec.rate, self.problem.steps(self.length))

    @property
    def raw_optimiser(self) -> Optimizer:
        """The optimiser without Fabric's wrapper; a checkpoint holds the state of this one."""
        inner = self.optimiser.optimizer
        assert isinstance(inner, Optimizer)
        return inner

    def _make_problem(self, data: str | None) -> Problem:
        spec, fabric = self.spec, self.fabric
        batch_size = spec.batch_size or self.task.recipe.batch_size
        settings = ProblemSettings(self.length, batch_size, spec.seed, data=data, limit=spec.samples, piece=spec.piece)
        share = ProcessShare(fabric.global_rank, fabric.world_size, fabric.device, self._sum_over_processes)
        return problem_class(self.task)(self.task, settings, share)

    def _sum_over_processes(self, values: Tensor) -> Tensor:
        if self.fabric.world_size == 1:
            return values
        total = self.fabric.all_reduce(values.to(self.fabric.device), reduce_op="sum")
        assert isinstance(total, Tensor)
        return total.cpu()

    def run(self) -> Result:
        """Train to the end and evaluate.

        Raises:
            DivergenceError: when a loss or a weight is not finite; result.json says so too, and the last good
                checkpoint is kept.
            LongerRunError: when the folder holds more of this run than was asked for.
        """
        if self.progress.done > self.length:
            raise run_folder.LongerRunError(
                f"the run in {self.folder} has {self.progress.done} {self.problem.unit}s already, more than the "
                f"{self.length} asked for; ask for at least as many, or choose another folder with --out"
            )
        problem, progress = self.problem, self.progress
        numbers: Row = {}
        # Dropout and the like draw from torch's generator. It is reseeded at every evaluation, so that a resumed run
        # has no generator state to restore.
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            warnings.simplefilter("ignore", DivergenceWarning)  # the DivergenceError that follows is more precise
            title = f"{self.spec.task} {self.spec.label()} {self.spec.model} seed {self.spec.seed}"
            self._write_tables()
            with (
                self._open_bar(title) as bar,
                Loggers(self.logger_names, self.folder, self.spec) as loggers,
            ):
                try:
                    while progress.done < self.length and not self._has_stalled():
                        self._train_to_next_evaluation(bar, loggers)
                    numbers = self._report()
                    if not math.isfinite(numbers[self.task.metric]):
                        raise DivergenceError(f"the reported {self.task.metric} is {numbers[self.task.metric]}")
                except DivergenceError as error:
                    self._finish(numbers or problem.partial_report(progress.history), "diverged")
                    raise DivergenceError(f"{title}: {error}") from error
        return self._finish(numbers, "finished")

    def _open_bar(self, title: str) -> Bar:
        steps = self.problem.steps
        return Bar(
            title,
            steps(self.length),
            done=steps(self.progress.done),
            unit=self.problem.unit,
            per_unit=steps(1),
            folder=str(self.folder),
            wanted=self.shows_progress,
        )

    def _train_to_next_evaluation(self, bar: Bar, loggers: Loggers) -> None:
        """Train up to the next evaluation, evaluate, and write the checkpoint and the tables."""
        problem, progress = self.problem, self.progress
        stop = problem.next_evaluation(progress.done)
        torch.manual_seed(problem.generator(progress.done, 1).initial_seed())
        started = time.perf_counter()
        sums = train_steps(
            self.fabric,
            problem,
            self.model,
            self.optimiser,
            schedule=self.schedule,
            done=progress.done,
            stop=stop,
            clip=self.spec.clip,
            on_step=bar.advance,
        )
        losses, samples = self._sum_over_processes(torch.tensor(sums, dtype=torch.float64)).tolist()
        seconds = time.perf_counter() - started
        rate = self.schedule(problem.steps(stop) - 1)
        row: Row = {problem.unit: stop, "learning_rate": rate, "train_loss": losses / samples}
        _check_weights(self.network, problem.unit, stop)
        row |= problem.evaluate(self.network)
        _check_losses(row, problem.unit)
        progress.done = stop
        progress.history.append(row)
        progress.seconds.append(seconds)
        better = self._is_better(row)
        if better:
            progress.best = row
        # Before the checkpoint: after a kill between the two, a logger gets the row twice, which is better than never.
        loggers.log(row, problem.unit)
        if self.fabric.is_global_zero:
            # The best weights first: after a kill between the two, this epoch is repeated and writes the same weights.
            if better:
                checkpoint.save_best(self.folder, self.network, stop)
            checkpoint.save_last(self.folder, self.network, self.raw_optimiser, progress)
        self._write_tables()
        metric = self.task.metric
        measured = (row[name] for split in ("validation", "test") if (name := f"{split}_{metric}") in row)
        value = next(measured, None)
        headline = "" if value is None else f"{shorten(metric)} {format_value(metric, value)}"
        hidden = (problem.unit, "learning_rate")
        bar.show(headline, {shorten(name): number for name, number in row.items() if name not in hidden})

    def _has_stalled(self) -> bool:
        """Tell whether the validation has not become better for as long as the recipe waits."""
        best = self.progress.best
        return best is not None and has_stalled(self.task, self.progress.done, int(best[self.problem.unit]))

    def _is_better(self, row: Row) -> bool:
        """Tell whether this is the best validation so far: by the reported metric, then by the loss."""
        name = f"validation_{self.task.metric}"
        if name not in row:
            return False
        best = self.progress.best
        if best is None:
            return True
        sign = 1 if self.task.maximise else -1
        new, old = ((sign * r[name], -r["validation_loss"]) for r in (row, best))
        return new > old

    def _report(self) -> Row:
        """Return the numbers of the finished run, by the weights that the protocol names."""
        last = self.progress.history[-1]
        numbers = {name: value for name, value in last.items() if name.startswith(("train_", "validation_"))}
        if self._reports_best():
            assert self.progress.best is not None
            numbers |= {name: value for name, value in self.progress.best.items() if name.startswith("validation_")}
            # The first process may still be writing the best weights.
            self.fabric.barrier()
            checkpoint.load_best(self.folder, self.network)
        return self.problem.report(self.network, self.progress.history) | numbers

    def _reports_best(self) -> bool:
        return self.task.recipe.reported == "best-validation" and self.progress.best is not None

    def _finish(self, metrics: Row, status: str) -> Result:
        progress = self.progress
        best = progress.best if self._reports_best() else None
        # The median: a pause of the process or a busy minute of the machine says nothing about the model.
        typical = median(progress.seconds or [0.0])
        result = Result(
            spec=self.spec,
            rate=self.spec.rate,
            unit=self.problem.unit,
            parameters=parameter_count(self.network),
            epochs=progress.done,
            updates=self.problem.steps(progress.done),
            best_epoch=progress.done if best is None else int(best[self.problem.unit]),
            seconds_per_epoch=round(typical * len(progress.seconds) / max(progress.done, 1), 6),
            metrics={name: value for name, value in metrics.items() if math.isfinite(value)},
            status=status,
            versions=versions(),
            machine=machine(),
        )
        if self.fabric.is_global_zero:
            result.write(self.folder)
        self.fabric.barrier()
        return result

    def _write_tables(self) -> None:
        if self.fabric.is_global_zero:
            run_folder.write_tables(self.folder, self.problem.unit, self.progress.history, self.progress.seconds)


def _check_losses(row: Row, unit: str) -> None:
    for name in ("train_loss", "validation_loss", "test_loss"):
        if name in row and not math.isfinite(row[name]):
            raise DivergenceError(f"{name} became {row[name]} in {unit} {row[unit]}; try a smaller --lr, or --clip 1")


def _check_weights(network: nn.Module, unit: str, done: int) -> None:
    # No loss is computed after the last step before an evaluation, and a roll-out may be infinite with finite weights.
    if not all(bool(weights.isfinite().all()) for weights in network.parameters()):
        raise DivergenceError(f"the weights stopped being finite in {unit} {done}; try a smaller --lr, or --clip 1")
