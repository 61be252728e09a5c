"""The runs to train for some artefacts: chosen by pattern, cut to a length, and without those that lack their data."""

from __future__ import annotations

import os
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path

from lrcnet.errors import one_of, positive_size
from lrcnet_paper import artefacts, tasks
from lrcnet_paper.reproduction.long_budget import shorten
from lrcnet_paper.results.reading import trained_so_far
from lrcnet_paper.training.budgets import BUDGETS, LONG
from lrcnet_paper.training.single_run import finished_result
from lrcnet_paper.training.spec import RunSpec


def plan_runs(
    names: Sequence[str],
    budget: str,
    out: str | os.PathLike[str],
    *,
    seeds: int | None = None,
    epochs: int | None = None,
    only: Sequence[str] | None = None,
) -> list[RunSpec]:
    """List the runs that some artefacts need, each once.

    Args:
        names: names of artefacts.
        budget: smoke, quick, long or paper.
        out: the folder of the runs. A run that is already longer than `epochs` there keeps its length.
        seeds: number of seeds of each run; None takes the budget's own number.
        epochs: largest number of epochs (or iterations) per run; None trains the budget's full length.
        only: patterns of TASK/VARIANT/MODEL; see `matches`.

    Raises:
        ValueError: for an unknown name or budget, numbers below 1, or patterns that match no run.
    """
    for name, value in (("seeds", seeds), ("epochs", epochs)):
        if value is not None:
            positive_size(name, value)
    one_of("budget", budget, (*BUDGETS, LONG))
    source = "paper" if budget == LONG else budget
    planned = list(dict.fromkeys(spec for name in names for spec in artefacts.load(name).runs(source, seeds)))
    if budget == LONG:
        planned = list(shorten(planned))
    chosen = [spec for spec in planned if matches(spec, only)]
    if only and not chosen:
        known = sorted({f"{spec.task}/{spec.slug()}/{spec.model}" for spec in planned})
        raise ValueError(f"--only {' '.join(only)} matches none of the runs: {', '.join(known) or 'there are none'}")
    return [_limit_length(spec, epochs, Path(out)) for spec in chosen]


def matches(spec: RunSpec, patterns: Sequence[str] | None) -> bool:
    """Tell whether a run matches one of the patterns; without patterns every run does.

    A pattern may name the changed solver, schedule or rate of a run after a plus, or leave it out.

    >>> fast = RunSpec("person", "coarse", "gru", learning_rate=0.01, budget="paper")
    >>> [matches(fast, [pattern]) for pattern in ("person/coarse/*", "person/coarse+lr0.01/*", "person/full/*")]
    [True, True, False]
    """
    names = [f"{spec.task}/{variant}/{spec.model}" for variant in {spec.variant, spec.slug()}]
    return not patterns or any(fnmatch(name, pattern) for name in names for pattern in patterns)


def _limit_length(spec: RunSpec, limit: int | None, out: Path) -> RunSpec:
    recipe = tasks.find(spec.task, spec.variant).recipe
    field, default = ("epochs", recipe.epochs) if spec.unit == "epoch" else ("iterations", recipe.iterations)
    planned = getattr(spec, field) or default or 1
    length = max(planned if limit is None else min(limit, planned), trained_so_far(out / spec.folder_name()))
    return spec if length == planned else spec.with_(**{field: length})


def is_done(spec: RunSpec, out: str | os.PathLike[str]) -> bool:
    """Tell whether a run is finished in the folder of the runs."""
    return finished_result(Path(out) / spec.folder_name(), spec) is not None


def split_by_data(
    specs: Sequence[RunSpec], out: str | os.PathLike[str], data: str | os.PathLike[str] | None
) -> tuple[list[RunSpec], dict[tuple[str, str], str]]:
    """Separate the runs that are finished or have their data from those that lack files.

    Returns:
        The runs to keep, and (task, variant) -> reason for the others.
    """
    possible, missing = [], {}
    for spec in specs:
        reason = "" if is_done(spec, out) else tasks.find(spec.task, spec.variant).missing(data)
        if reason:
            missing[spec.task, spec.variant] = reason
        else:
            possible.append(spec)
    return possible, missing
