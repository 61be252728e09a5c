"""What a run is, before it runs: the task, the model, the seed and every choice that changes its numbers."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from typing import Any

from lrcnet.errors import one_of, positive_size
from lrcnet_paper.training.budgets import BUDGETS, CUSTOM

SCHEDULES = ("constant", "cosine")
Option = str | int | float | bool


@dataclass(frozen=True)
class RunSpec:
    """One run. None stands for the task's own recipe, "" for the model's own solver.

    Attributes:
        task: name of a task, as in `lrcnet_paper.tasks.TASKS`.
        variant: the task's variant; for neural-ode the dynamical system.
        model: a name in `lrcnet_paper.models.MODELS`.
        solver: solver and unfoldings, such as "hybrid-6" or "euler-1".
        seed: of initial weights and of the order of the samples.
        epochs: passes over the training split.
        iterations: training steps, for tasks that count these (neural-ode).
        batch_size, learning_rate: instead of the recipe's.
        budget: a label; numbers of different budgets are never compared.
        clip: largest norm of the gradient, None for no clipping.
        schedule: of the learning rate, "constant" or "cosine" (down to 0 at the last step).
        samples: take only so many samples of each split, for smoke runs.
        piece: train on pieces of so many steps instead of whole sequences.
        devices, nodes: processes per node, and nodes, that share each step; every process takes `batch_size` samples.
        options: further arguments of the model, such as {"units": 32, "parametrisation": "ab"}.

    Example:
        >>> spec = RunSpec("person", "coarse", "lrcu-s", epochs=100)
        >>> spec.folder_name()
        'person_coarse_lrcu-s_seed0_custom_d9016ba9'
    """

    task: str
    variant: str
    model: str
    solver: str = ""
    seed: int = 0
    epochs: int | None = None
    iterations: int | None = None
    batch_size: int | None = None
    learning_rate: float | None = None
    budget: str = CUSTOM
    clip: float | None = None
    schedule: str = "constant"
    samples: int | None = None
    piece: int | None = None
    devices: int = 1
    nodes: int = 1
    options: Mapping[str, Option] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        one_of("schedule", self.schedule, SCHEDULES)
        one_of("budget", self.budget, (*BUDGETS, CUSTOM))
        positive_size("seed", self.seed, least=0)
        for name in ("epochs", "iterations", "batch_size", "samples", "piece", "devices", "nodes"):
            if getattr(self, name) is not None:
                positive_size(name, getattr(self, name))
        for name in ("learning_rate", "clip"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be above 0, but is {value}")
        # Sorted, so that equal options give equal files.
        object.__setattr__(self, "options", dict(sorted(self.options.items())))

    def identity(self) -> dict[str, Any]:
        """Everything that decides the first epoch's numbers, and so what a longer run may have in common with this.

        A constant rate makes a longer run the continuation of a shorter one, so the length does not count; under a
        cosine schedule it decides every step's rate, so it does.
        """
        whole = self.as_dict()
        if self.schedule == "constant":
            del whole["epochs"], whole["iterations"]
        # Without defaults, so that a field added to this class later leaves the names of older runs alone.
        return {name: value for name, value in whole.items() if value != _DEFAULTS[name]}

    def folder_name(self) -> str:
        """A name for the run's folder: readable, then eight digits of a digest of `identity`."""
        digest = hashlib.sha256(json.dumps(self.identity(), sort_keys=True).encode()).hexdigest()[:8]
        parts = [self.task, self.variant, self.model, self.solver, f"seed{self.seed}", self.budget, digest]
        return "_".join(part for part in parts if part)

    def label(self) -> str:
        """The variant as a result carries it: the task's, and after a plus what is not the model's or the task's own.

        That is the solver, the schedule of the rate and, at the paper budget, the rate itself. A shorter budget may
        have a rate of its own, and a custom run is told from others by its command.

        >>> RunSpec("neural-ode", "spiral", "lrc-s", schedule="cosine").label()
        'spiral+cosine'
        >>> RunSpec("person", "coarse", "lrcu-s", learning_rate=1e-2, budget="paper").label()
        'coarse+lr0.01'
        """
        from lrcnet_paper import tasks

        recipe = tasks.find(self.task, self.variant).recipe
        schedule = "" if self.schedule == recipe.schedule else self.schedule
        own = self.budget != "paper" or self.learning_rate in (None, recipe.learning_rate)
        rate = "" if own else f"lr{self.learning_rate:g}"
        changed = ",".join(part for part in (self.solver, schedule, rate) if part)
        return f"{self.variant}+{changed}" if changed else self.variant

    def command(self) -> str:
        """The command line that makes this run, without the machine's paths."""
        from lrcnet_paper import tasks

        words = ["lrcnet", "train", self.task, "--model", self.model, "--variant", self.variant]
        for flag, name in FLAGS.items():
            value = getattr(self, name)
            # Without the flag the rate follows the task's own schedule.
            needed = name == "schedule" and value != tasks.find(self.task, self.variant).recipe.schedule
            if needed or value != _DEFAULTS[name]:
                words += [flag, str(value)]
        words += ["--seed", str(self.seed)]
        for name, value in self.options.items():
            words += ["--option", f"{name}={value}"]
        return shlex.join(words)

    def with_(self, **changes: Any) -> RunSpec:
        """This run with some fields changed."""
        return replace(self, **changes)

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON values; the inverse of `from_dict`."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> RunSpec:
        """From what `as_dict` gave.

        Raises:
            ValueError: for missing or unknown fields.
        """
        names = {f.name for f in fields(cls)}
        if content.keys() - names or not {"task", "variant", "model"} <= content.keys():
            raise ValueError(f"a run needs task, variant and model and knows {sorted(names)}; got {sorted(content)}")
        return cls(**content)


FLAGS = {
    "--solver": "solver",
    "--epochs": "epochs",
    "--iterations": "iterations",
    "--batch-size": "batch_size",
    "--lr": "learning_rate",
    "--budget": "budget",
    "--clip": "clip",
    "--schedule": "schedule",
    "--samples": "samples",
    "--piece": "piece",
    "--devices": "devices",
    "--nodes": "nodes",
}
"""Flags of `lrcnet train` by the field that they set."""
_DEFAULTS = {f.name: f.default if f.default is not MISSING else {} for f in fields(RunSpec)}
