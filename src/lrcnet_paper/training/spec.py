"""`RunSpec`: the description of a run before it runs, with every choice that changes its numbers."""

from __future__ import annotations

import hashlib
import json
import math
import re
import shlex
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from typing import Any

from lrcnet.errors import check_kind, one_of, positive_size
from lrcnet_paper import tasks
from lrcnet_paper.training.budgets import BUDGETS, CUSTOM, LONG
from lrcnet_paper.training.change import Change
from lrcnet_paper.training.protocols import FIRST, current_protocol
from lrcnet_paper.training.schedules import SCHEDULES

Option = str | int | float | bool


@dataclass(frozen=True)
class RunSpec:
    """One run. None stands for the value of the task's recipe, "" for the model's own solver.

    Attributes:
        task: name of a task, as in `lrcnet_paper.tasks.TASKS`.
        variant: the task's variant; for neural-ode the dynamical system.
        model: a name in `lrcnet_paper.models.MODELS`.
        solver: solver and unfoldings, such as "hybrid-6" or "euler-1".
        seed: random seed for initial weights and sample order.
        epochs: passes over the training split.
        iterations: training steps, for tasks that count these (neural-ode).
        batch_size, learning_rate: replace the recipe's values.
        budget: a label; numbers of different budgets are never compared.
        clip: largest norm of the gradient, None for no clipping.
        schedule: schedule of the learning rate, a name in `SCHEDULES`.
        samples: number of samples to take from each split, for smoke runs; None takes all.
        piece: length in steps of the pieces to train on; None trains on whole sequences.
        devices, nodes: processes per node, and nodes, that share each step; every process takes `batch_size` samples.
        options: further arguments of the model, such as {"units": 32, "parametrisation": "ab"}.
        protocol: version of the experiment, see `lrcnet_paper.training.protocols`; 0 stands for today's.

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
    protocol: int = 0

    def __post_init__(self) -> None:
        for name in ("task", "variant", "model", "solver"):
            _check_name(name, getattr(self, name))
        one_of("schedule", self.schedule, SCHEDULES)
        one_of("budget", self.budget, (*BUDGETS, LONG, CUSTOM))
        positive_size("seed", self.seed, least=0)
        for name in ("epochs", "iterations", "batch_size", "samples", "piece", "devices", "nodes"):
            if getattr(self, name) is not None:
                positive_size(name, getattr(self, name))
        for name in ("learning_rate", "clip"):
            value = getattr(self, name)
            if value is not None:
                check_kind(name, value, (int, float), "a number")
                if not 0 < value < math.inf:
                    raise ValueError(f"{name} must be finite and above 0, but is {value}; pass such a number")
        check_kind("options", self.options, Mapping, "a mapping of names to values")
        # Sorted, so that equal options give equal files.
        object.__setattr__(self, "options", dict(sorted(self.options.items())))
        if self.protocol == 0:
            object.__setattr__(self, "protocol", current_protocol(self.task, self.model))

    def identity(self) -> dict[str, Any]:
        """Return every choice that decides the numbers of the first epoch.

        Two runs of equal identity differ in their length at most, and the longer one continues the shorter one. Under
        a schedule that depends on the length, the length decides every step's rate and so belongs to the identity.
        """
        choices = self.as_dict()
        if not SCHEDULES[self.schedule].depends_on_length:
            del choices["epochs"], choices["iterations"]
        # Without defaults, so that a field added to this class later does not change the names of older runs.
        return {name: value for name, value in choices.items() if value != _DEFAULTS[name]}

    def digest(self) -> str:
        """Return eight hexadecimal digits that differ between runs of different identity."""
        return hashlib.sha256(json.dumps(self.identity(), sort_keys=True).encode()).hexdigest()[:8]

    def folder_name(self) -> str:
        """Name the run's folder: a readable part, then the digest."""
        parts = [self.task, self.variant, self.model, self.solver, f"seed{self.seed}", self.budget, self.digest()]
        return "_".join(part for part in parts if part)

    @property
    def rate(self) -> float:
        """The learning rate of the first step: the run's own or the recipe's."""
        return self.learning_rate or tasks.find(self.task, self.variant).recipe.learning_rate

    @property
    def unit(self) -> str:
        """The unit of the run's length: "epoch" or "iteration"."""
        return "iteration" if tasks.find(self.task, self.variant).recipe.epochs is None else "epoch"

    @property
    def change(self) -> Change:
        """The solver, schedule and rate of this run where they differ from the default.

        The rate counts at the paper budget alone: a shorter budget has a rate of its own, and the settings of a custom
        run are all listed by `settings_label`.
        """
        if not tasks.is_known(self.task):
            # A run of a user's task, reported where the file of the task has not been named.
            return Change(self.solver, "" if self.schedule == _DEFAULTS["schedule"] else self.schedule, None)
        recipe = tasks.find(self.task, self.variant).recipe
        default_rate = self.budget != "paper" or self.learning_rate in (None, recipe.learning_rate)
        return Change(
            self.solver,
            "" if self.schedule == recipe.schedule else self.schedule,
            None if default_rate else self.learning_rate,
        )

    def label(self) -> str:
        """Name the variant and the change for people.

        >>> RunSpec("neural-ode", "spiral", "lrc-s", schedule="cosine").label()
        'spiral, cosine'
        >>> RunSpec("person", "coarse", "lrcu-s", learning_rate=1e-2, budget="paper").label()
        'coarse, rate 0.01'
        """
        return ", ".join(part for part in (self.variant, self.change.label()) if part)

    def slug(self) -> str:
        """Name the variant and the change in file names and in the patterns of `lrcnet reproduce --only`.

        >>> RunSpec("person", "coarse", "lrcu-s", learning_rate=1e-2, budget="paper").slug()
        'coarse+lr0.01'
        """
        return "+".join(part for part in (self.variant, self.change.slug()) if part)

    def settings_label(self) -> str:
        """Name, for people, every setting by which this run leaves its recipe, apart from solver and length.

        >>> RunSpec("person", "coarse", "lrcu-s", learning_rate=1e-2, options={"units": 8}).settings_label()
        'rate 0.01, units 8'
        """
        values = {words: getattr(self, name) for name, words in _SETTINGS.items() if self._differs(name)}
        return ", ".join(f"{words} {value}" for words, value in (values | dict(self.options)).items())

    def command(self) -> str:
        """Write the command line that makes this run, without the machine's paths."""
        words = ["lrcnet", "train", self.task, "--model", self.model, "--variant", self.variant]
        for flag, name in FLAGS.items():
            value = getattr(self, name)
            # Without the flag the rate follows the task's own schedule.
            needed = (
                name == "schedule"
                and tasks.is_known(self.task)
                and value != tasks.find(self.task, self.variant).recipe.schedule
            )
            if needed or self._differs(name):
                words += [flag, str(value)]
        words += ["--seed", str(self.seed)]
        for name, value in self.options.items():
            words += ["--option", f"{name}={value}"]
        return shlex.join(words)

    def _differs(self, name: str) -> bool:
        return bool(getattr(self, name) != _DEFAULTS[name])

    def with_(self, **changes: Any) -> RunSpec:
        """Return this run with some fields changed."""
        return replace(self, **changes)

    def without_length(self) -> RunSpec:
        """Return this run without its number of epochs or iterations."""
        return self.with_(epochs=None, iterations=None)

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values; the inverse of `from_dict`."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> RunSpec:
        """Make a run from the values that `as_dict` returns.

        Raises:
            ValueError: for missing or unknown fields.
        """
        names = {f.name for f in fields(cls)}
        if content.keys() - names or not {"task", "variant", "model"} <= content.keys():
            raise ValueError(f"a run needs task, variant and model and knows {sorted(names)}; got {sorted(content)}")
        # Descriptions that are older than the field follow the first protocol.
        return cls(**{"protocol": FIRST, **content})


def _check_name(what: str, given: object) -> None:
    """Raise unless a name is one that can be part of a file name; runs are read from files that others wrote."""
    if not isinstance(given, str) or not re.fullmatch(r"(?!\.)[\w.+-]*", given, re.ASCII):
        raise ValueError(
            f"{what} must be a name of letters, digits and . + - _, but is {given!r}; use a name as it is listed"
        )


class HasRunSpec:
    """An object with the `spec` of one run, or of runs that differ in their seed only; it has the run's names too."""

    spec: RunSpec

    @property
    def task(self) -> str:
        """The task's name."""
        return self.spec.task

    @property
    def variant(self) -> str:
        """The task's variant."""
        return self.spec.variant

    @property
    def model(self) -> str:
        """The model's name."""
        return self.spec.model

    @property
    def budget(self) -> str:
        """The budget: smoke, quick, paper or custom."""
        return self.spec.budget


def parse_option(text: str) -> tuple[str, Option]:
    """Read NAME=VALUE, as `--option` takes it; the value becomes a bool, an int or a float where it looks like one.

    >>> parse_option("units=8")
    ('units', 8)

    Raises:
        ValueError: if the text has another form.
    """
    check_kind("--option", text, str, "a text NAME=VALUE")
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise ValueError(f"--option must be NAME=VALUE, but is {text!r}")
    if value in ("True", "False"):
        return name, value == "True"
    for number in (int, float):
        try:
            return name, number(value)
        except ValueError:
            continue
    return name, value


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
"""Flag of `lrcnet train` -> the field that it sets."""

_SETTINGS = {
    "batch_size": "batch size",
    "learning_rate": "rate",
    "clip": "clip",
    "schedule": "schedule",
    "samples": "samples",
    "piece": "piece",
    "devices": "devices",
    "nodes": "nodes",
}
_DEFAULTS = {f.name: f.default if f.default is not MISSING else {} for f in fields(RunSpec)} | {"protocol": FIRST}
