"""Fitting one run: the training loop between two evaluations, and what is written at each.

Lightning's Fabric sets up devices and processes; the loop is ours. `docs/training.md` has the measurement behind that
choice.
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
from lrcnet_paper.models import build, parameter_count
from lrcnet_paper.tasks import Task, find
from lrcnet_paper.training import checkpoint, run_folder
from lrcnet_paper.training.checkpoint import Row
from lrcnet_paper.training.loggers import Loggers
from lrcnet_paper.training.loop import train_steps
from lrcnet_paper.training.optimisers import make_optimiser
from lrcnet_paper.training.problems import Problem, ProblemSettings, ProcessShare, problem_class
from lrcnet_paper.training.progress_bar import ProgressBar
from lrcnet_paper.training.result import Result, machine, versions
from lrcnet_paper.training.schedules import make_schedule
from lrcnet_paper.training.spec import RunSpec

if TYPE_CHECKING:
    from lightning.fabric import Fabric


def length(task: Task, spec: RunSpec) -> int:
    """How long a run is, in the task's unit: epochs, or iterations.

    Raises:
        ValueError: if the other unit was given.
    """
    wanted, other = (spec.iterations, spec.epochs) if task.recipe.epochs is None else (spec.epochs, spec.iterations)
    if other is not None:
        unit, wrong = ("iterations", "epochs") if task.recipe.epochs is None else ("epochs", "iterations")
        raise ValueError(f"{task.name} is counted in {unit}, but {wrong}={other} was given; give {unit}")
    own = task.recipe.iterations if task.recipe.epochs is None else task.recipe.epochs
    assert own is not None, "a recipe states epochs or iterations"
    return own if wanted is None else wanted


def resolve(task: Task, spec: RunSpec, network: nn.Module) -> dict[str, Any]:
    """What the recipe and the model made of a run, for people who read its config.json."""
    recipe = task.recipe
    return {
        "title": task.title,
        "notes": task.notes,
        "optimizer": recipe.optimizer,
        "rho": recipe.rho,
        "eps": recipe.eps,
        "weight_decay": recipe.weight_decay,
        "learning_rate": spec.learning_rate or recipe.learning_rate,
        "batch_size": spec.batch_size or recipe.batch_size,
        "length": length(task, spec),
        "reported": recipe.reported,
        "parameters": parameter_count(network),
        **next((_choices(part) for part in network.modules() if isinstance(part, LiquidCell)), {}),
        "network": str(network).splitlines(),
    }


def _choices(cell: LiquidCell) -> dict[str, Any]:
    """Return the choices that decide a liquid network's gradients and steps and are not in its name."""
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
    """One run in one process, perhaps of several.

    Args:
        fabric: launched.
        spec: the run.
        place: its folder, which all processes see.
        data: folder of the task's files.
        progress: whether to show a bar.
        loggers: names among "tensorboard", "wandb", "mlflow".
    """

    def __init__(
        self, fabric: Fabric, spec: RunSpec, place: Path, data: str | None, progress: bool, loggers: tuple[str, ...]
    ) -> None:
        self.fabric, self.spec, self.place, self.watched, self.logger_names = fabric, spec, place, progress, loggers
        self.task = find(spec.task, spec.variant)
        self.total = length(self.task, spec)
        self.rate = spec.learning_rate or self.task.recipe.learning_rate
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(spec.seed)
            options: dict[str, Any] = dict(spec.options)
            self.network = build(spec.model, self.task, solver=spec.solver, **options)
        if fabric.is_global_zero:
            run_folder.claim(place, spec, resolve(self.task, spec, self.network))
        fabric.barrier()
        self.problem = self._problem(data)
        optimiser = make_optimiser(self.network, self.task.recipe, self.rate)
        self.model, self.optimiser = fabric.setup(self.network, optimiser)
        self.progress = checkpoint.load_last(place, self.network, self.raw_optimiser)
        self.schedule = make_schedule(spec.schedule, self.rate, self.problem.steps(self.total))

    @property
    def raw_optimiser(self) -> Optimizer:
        """The optimiser under what Fabric wrapped around it: its state is what a checkpoint holds."""
        inner = self.optimiser.optimizer
        assert isinstance(inner, Optimizer)
        return inner

    def _problem(self, data: str | None) -> Problem:
        spec, fabric = self.spec, self.fabric
        batch_size = spec.batch_size or self.task.recipe.batch_size
        settings = ProblemSettings(self.total, batch_size, spec.seed, data=data, limit=spec.samples, piece=spec.piece)
        share = ProcessShare(fabric.global_rank, fabric.world_size, fabric.device, self._sum)
        return problem_class(self.task)(self.task, settings, share)

    def _sum(self, values: Tensor) -> Tensor:
        if self.fabric.world_size == 1:
            return values
        total = self.fabric.all_reduce(values.to(self.fabric.device), reduce_op="sum")
        assert isinstance(total, Tensor)
        return total.cpu()

    def run(self) -> Result:
        """Train to the end and judge.

        Raises:
            DivergenceError: when a loss or a weight is not finite; result.json says so too, and the last good
                checkpoint is kept.
            LongerRunError: when the folder holds more of this run than was asked for.
        """
        if self.progress.done > self.total:
            raise run_folder.LongerRunError(
                f"the run in {self.place} has {self.progress.done} {self.problem.unit}s already, more than the "
                f"{self.total} asked for; ask for at least as many, or choose another folder with --out"
            )
        problem, progress = self.problem, self.progress
        numbers: Row = {}
        # Randomness of dropout and the like; reseeded at every evaluation, so that nothing need be restored.
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            warnings.simplefilter("ignore", DivergenceWarning)  # the DivergenceError that follows says it better
            watched = self.watched and self.fabric.is_global_zero
            title = f"{self.spec.task} {self.spec.label()} {self.spec.model} seed {self.spec.seed}"
            chosen = self.logger_names if self.fabric.is_global_zero else ()
            self._write_tables()
            with (
                ProgressBar(title, problem.steps(self.total), problem.steps(progress.done), watched) as bar,
                Loggers(chosen, self.place, self.spec) as loggers,
            ):
                try:
                    while progress.done < self.total:
                        self._round(bar, loggers)
                    numbers = self._report()
                    if not math.isfinite(numbers[self.task.metric]):
                        raise DivergenceError(f"the reported {self.task.metric} is {numbers[self.task.metric]}")
                except DivergenceError as error:
                    self._finish(numbers or problem.partial_report(progress.history), "diverged")
                    raise DivergenceError(f"{title}: {error}") from error
        return self._finish(numbers, "finished")

    def _round(self, bar: ProgressBar, loggers: Loggers) -> None:
        """Train up to the next evaluation, evaluate, and write everything down."""
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
            on_step=bar.step,
        )
        losses, samples = self._sum(torch.tensor(sums, dtype=torch.float64)).tolist()
        seconds = time.perf_counter() - started
        rate = self.schedule(problem.steps(stop) - 1)
        row: Row = {problem.unit: stop, "learning_rate": rate, "train_loss": losses / samples}
        _refuse_broken_weights(self.network, problem.unit, stop)
        row |= problem.evaluate(self.network)
        _refuse_divergence(row, problem.unit)
        progress.done = stop
        progress.history.append(row)
        progress.seconds.append(seconds)
        better = self._is_better(row)
        if better:
            progress.best = row
        # Before the checkpoint: after a kill between the two a logger has a row twice, which is better than never.
        loggers.log(row, problem.unit)
        if self.fabric.is_global_zero:
            # The best weights first: a kill between the two repeats this epoch and writes the same ones again.
            if better:
                checkpoint.save_best(self.place, self.network, stop)
            checkpoint.save_last(self.place, self.network, self.raw_optimiser, progress)
        self._write_tables()
        bar.say(**{name: value for name, value in row.items() if name not in (problem.unit, "learning_rate")})

    def _is_better(self, row: Row) -> bool:
        """Whether this is the best validation so far: by the reported metric, then by the loss."""
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
        """The numbers of the finished run, by the weights that the protocol names."""
        last = self.progress.history[-1]
        numbers = {name: value for name, value in last.items() if name.startswith(("train_", "validation_"))}
        if self._reports_best():
            assert self.progress.best is not None
            numbers |= {name: value for name, value in self.progress.best.items() if name.startswith("validation_")}
            # The first process may still be writing them.
            self.fabric.barrier()
            checkpoint.load_best(self.place, self.network)
        return self.problem.report(self.network, self.progress.history) | numbers

    def _reports_best(self) -> bool:
        return self.task.recipe.reported == "best-validation" and self.progress.best is not None

    def _finish(self, metrics: Row, status: str) -> Result:
        progress = self.progress
        best = progress.best if self._reports_best() else None
        # The median: a pause of the process or a busy minute of the machine is not the model's.
        typical = median(progress.seconds or [0.0])
        result = Result(
            spec=self.spec,
            rate=self.rate,
            unit=self.problem.unit,
            parameters=parameter_count(self.network),
            epochs=progress.done,
            best_epoch=progress.done if best is None else int(best[self.problem.unit]),
            seconds_per_epoch=round(typical * len(progress.seconds) / max(progress.done, 1), 6),
            metrics={name: value for name, value in metrics.items() if math.isfinite(value)},
            status=status,
            versions=versions(),
            machine=machine(),
        )
        if self.fabric.is_global_zero:
            result.write(self.place)
        self.fabric.barrier()
        return result

    def _write_tables(self) -> None:
        if self.fabric.is_global_zero:
            run_folder.write_tables(self.place, self.problem.unit, self.progress.history, self.progress.seconds)


def _refuse_divergence(row: Row, unit: str) -> None:
    for name in ("train_loss", "validation_loss", "test_loss"):
        if name in row and not math.isfinite(row[name]):
            raise DivergenceError(f"{name} became {row[name]} in {unit} {row[unit]}; try a smaller --lr, or --clip 1")


def _refuse_broken_weights(network: nn.Module, unit: str, done: int) -> None:
    # The last step before an evaluation has no loss after it, and a roll-out may be infinite with the best of weights.
    if not all(bool(weights.isfinite().all()) for weights in network.parameters()):
        raise DivergenceError(f"the weights stopped being finite in {unit} {done}; try a smaller --lr, or --clip 1")
