"""Older results, which carried their run as a label and a command line instead of as data.

Their variant had the form "coarse+lr0.01": the task's variant, then the solver, schedule or rate that was not the
default. Every setting also stands in the command line, so the run is read from there. This is the only place that
reads either text; new results carry a `RunSpec`.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from typing import Any

from lrcnet_paper import tasks
from lrcnet_paper.training.protocols import FIRST
from lrcnet_paper.training.spec import FLAGS, RunSpec, parse_option

# Fields of an old result that describe the run; the others mean the same in a new one.
RUN_FIELDS = ("task", "variant", "model", "seed", "budget", "command")
_CONVERT: Mapping[str, Callable[[str], Any]] = {
    "solver": str,
    "budget": str,
    "schedule": str,
    "learning_rate": float,
    "clip": float,
}


def is_old_result(content: Mapping[str, Any]) -> bool:
    """Tell whether these are the fields of an older result."""
    return "spec" not in content and all(name in content for name in RUN_FIELDS)


def convert_old_result(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an old result in the present form.

    Example:
        >>> command = "lrcnet train person --model gru --variant coarse --lr 0.01 --budget paper --seed 2"
        >>> old = {"task": "person", "variant": "coarse+lr0.01", "model": "gru", "seed": 2, "budget": "paper",
        ...        "command": command, "epochs": 100}
        >>> new = convert_old_result(old)
        >>> new["spec"]["variant"], new["spec"]["learning_rate"], new["rate"], new["unit"], new["epochs"]
        ('coarse', 0.01, 0.01, 'epoch', 100)
    """
    spec = _read_run(content)
    unchanged = {name: value for name, value in content.items() if name not in RUN_FIELDS}
    updates = content["epochs"] if spec.unit == "iteration" else None
    return {"spec": spec.as_dict(), "rate": spec.rate, "unit": spec.unit, "updates": updates, **unchanged}


def _read_run(content: Mapping[str, Any]) -> RunSpec:
    task, variant = content["task"], content["variant"].partition("+")[0]
    settings: dict[str, Any] = {"schedule": tasks.find(task, variant).recipe.schedule, "budget": content["budget"]}
    options = {}
    # After "lrcnet train TASK" the command is pairs of a flag and its value.
    words = shlex.split(content["command"])[3:]
    for flag, value in zip(words[::2], words[1::2], strict=False):
        if flag == "--option":
            name, option = parse_option(value)
            options[name] = option
        elif flag in FLAGS:
            settings[FLAGS[flag]] = _CONVERT.get(FLAGS[flag], int)(value)
    run = {"seed": content["seed"], "options": options, "protocol": FIRST}
    return RunSpec(task, variant, content["model"], **run, **settings)
