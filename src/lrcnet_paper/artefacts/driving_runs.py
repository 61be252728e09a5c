"""The lane-keeping policies behind the driving tables and figures: runs, groups and differences from the paper."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from lrcnet.pages import palette
from lrcnet_paper import tasks
from lrcnet_paper.models.policy import IN_BFLOAT16
from lrcnet_paper.results.estimate import Estimate
from lrcnet_paper.results.finished_run import FinishedRun
from lrcnet_paper.results.groups import Group, group_runs
from lrcnet_paper.results.interval import FEWEST_SEEDS
from lrcnet_paper.results.verdict import Conditions, judge_comparison
from lrcnet_paper.tasks.driving import LENGTH
from lrcnet_paper.training.change import Change
from lrcnet_paper.training.result import Result
from lrcnet_paper.training.spec import Option, RunSpec

TASK = "driving"
# Largest norm of a gradient.
CLIP = 1.0
GAIN = "validation_sharp_bend_gain"
# A policy whose mean gain in sharp bends is below this is undertrained.
ENOUGH_GAIN = 0.8


class Model(NamedTuple):
    """A model with its solver, "" for the model's own."""

    name: str
    solver: str = ""


POLICIES = (Model("lstm"), Model("gru"), Model("mgu"), Model("lrcu-a"), Model("lrcu-s"))
# An LRC under one explicit Euler step is an LRCU: the paper's LRC-A E1 and LRC-S E1 are the same networks as above.
EFFICIENCY: Mapping[str, Model] = {
    "LTC H6": Model("ltc"),
    "STC E1": Model("stc", "euler-1"),
    "STC H6": Model("stc"),
    "LRC-A E1": Model("lrcu-a"),
    "LRC-S E1": Model("lrcu-s"),
}

FURTHER = tuple(model for model in EFFICIENCY.values() if model not in POLICIES)
"""The networks of the efficiency table that are not among the paper's policies."""
LTC_AND_STC = tuple(name for name, model in EFFICIENCY.items() if model in FURTHER)
"""The rivals in every claim that an LRC is ahead of LTC and STC."""

# Colour, dashes and marker of each network; STC has one colour and differs by dashes and marker between its solvers.
LINES = {
    name: (
        palette.model_style(model.name).colour,
        (0, (3, 2)) if model.solver else palette.model_style(model.name).dashes,
        "P" if model.solver else palette.model_style(model.name).marker,
    )
    for name, model in EFFICIENCY.items()
}


class TrainingBudget(NamedTuple):
    """The data and training settings of a run at one budget; None stands for the paper's value."""

    variant: str
    seeds: int
    epochs: int | None = None
    samples: int | None = None
    batch_size: int | None = None
    piece: int | None = None
    learning_rate: float | None = None


TRAINING_BUDGETS: Mapping[str, TrainingBudget] = {
    "smoke": TrainingBudget("own-sample", 1, epochs=1, samples=2, batch_size=2, piece=4),
    # Rendering frames takes most of the time here. Per frame, short pieces of many drives teach more than long pieces
    # of few, and many small batches teach more than few large ones. At twice this rate the features of some runs grew
    # to hundreds, where every synapse is saturated.
    "quick": TrainingBudget("own", 3, epochs=10, samples=480, batch_size=4, piece=8, learning_rate=1e-3),
    "paper": TrainingBudget("own", 3),
}
# The recurrent part alone, on the features of a head that is trained once per seed: the paper's schedule at its full
# length, 100 epochs of 40 batches of 32 sequences of 32 frames.
SHARED_HEAD_BUDGETS: Mapping[str, TrainingBudget] = {
    "smoke": TrainingBudget("own-sample-features", 1, epochs=1, samples=2, batch_size=2, piece=4),
    "quick": TrainingBudget("own-features", 1, epochs=10),
    "paper": TrainingBudget("own-features", 5),
}
SHARED_HEAD_VARIANTS = frozenset(settings.variant for settings in SHARED_HEAD_BUDGETS.values())
OWN_VARIANTS = frozenset(settings.variant for settings in TRAINING_BUDGETS.values())
"""Variants of the task that are driven in our own world."""


def plan_runs(models: Sequence[Model], budget: str, seeds: int | None) -> list[RunSpec]:
    """List the runs of a budget in our own world."""
    return plan_runs_with(TRAINING_BUDGETS[budget], models, budget, seeds)


def plan_runs_with(
    settings: TrainingBudget,
    models: Sequence[Model],
    budget: str,
    seeds: int | None,
    *,
    options: Mapping[str, Option] | None = None,
) -> list[RunSpec]:
    """List the runs of all models seed by seed, so that an interrupted grid has whole tables."""
    return [
        RunSpec(
            TASK,
            settings.variant,
            model.name,
            solver=model.solver,
            seed=seed,
            epochs=settings.epochs,
            batch_size=settings.batch_size,
            learning_rate=settings.learning_rate,
            budget=budget,
            clip=CLIP,
            schedule="cosine",
            samples=settings.samples,
            piece=settings.piece,
            options=options or {},
        )
        for seed in range(settings.seeds if seeds is None else seeds)
        for model in models
    ]


def is_run_of(spec: RunSpec, models: Sequence[Model]) -> bool:
    """Tell whether a run trains one of these models with the schedule, rate and initial values of its budget."""
    # The precision of the head is the budget's too.
    unchanged = spec.change == Change(solver=spec.solver) and dict(spec.options) in ({}, IN_BFLOAT16)
    return Model(spec.model, spec.solver) in models and unchanged


def plan_shared_head_runs(
    models: Sequence[Model], budget: str, seeds: int | None, *, options: Mapping[str, Option] | None = None
) -> list[RunSpec]:
    """List the runs of a budget on the features of a shared head."""
    return plan_runs_with(SHARED_HEAD_BUDGETS[budget], models, budget, seeds, options=options)


def wants_shared_head(result: Result, models: Sequence[Model]) -> bool:
    """Tell whether a result belongs to one of these models, trained on the features of a shared head."""
    return result.task == TASK and result.variant in SHARED_HEAD_VARIANTS and is_run_of(result.spec, models)


def wants(result: Result, models: Sequence[Model] = POLICIES) -> bool:
    """Tell whether a result belongs to one of these policies, trained in our own world."""
    return result.task == TASK and result.variant in OWN_VARIANTS and is_run_of(result.spec, models)


def wants_end_to_end(result: Result) -> bool:
    """Tell whether a result belongs to any policy that is trained end to end in our own world."""
    return wants(result, (*POLICIES, *FURTHER))


def find_groups(
    runs: Sequence[FinishedRun],
    models: Sequence[Model],
    *,
    wanted: Callable[[Result, Sequence[Model]], bool] = wants,
) -> dict[Model, Group]:
    """Find the group of each model at the longest budget that any of them has, in the order of `models`.

    Models that have not been trained at that budget are missing. `wanted` chooses end-to-end runs or, as
    `wants_shared_head`, those on the features of a shared head.
    """
    groups = [g for g in group_runs(runs, TASK) if wanted(g.runs[0].result, models)]
    if not groups:
        return {}
    budget = groups[0].budget
    by_model = {Model(g.model, g.spec.solver): g for g in reversed(groups) if g.budget == budget}
    return {model: by_model[model] for model in models if model in by_model}


def conditions(*groups: Group) -> Conditions:
    """Return the differences of these groups from the paper, for a verdict."""
    smoke = any(group.budget == "smoke" for group in groups)
    shorter = any(group.budget != "paper" for group in groups)
    notes = ("in a synthetic world", *(["short training"] if shorter else []))
    warnings = tuple(dict.fromkeys(warning for group in groups for warning in _undertrained(group)))
    return Conditions(smoke, shorter, notes, other_data=True, warnings=warnings)


def sharp_bend_gain(group: Group | None) -> Estimate | None:
    """Return the mean over seeds of the gain in sharp bends: 1 steers as the expert does, 0 does not react."""
    return None if group is None else group.metric(GAIN, digits=2)


def _undertrained(group: Group) -> tuple[str, ...]:
    gain = sharp_bend_gain(group)
    if gain is None or gain.mean >= ENOUGH_GAIN:
        return ()
    return (f"{palette.model_label(group.model)} is undertrained, with a gain of {gain} in sharp bends",)


def label(model: Model) -> str:
    """Name a model in a table."""
    name = palette.model_label(model.name)
    return f"{name} ({model.solver})" if model.solver else name


def incomplete(models: Collection[object]) -> str:
    """Say how many of the paper's policies there are, "" if all: without the others none is the best or the worst.

    >>> incomplete(["lrcu-s"])
    '1 of 5 policies measured: no comparison yet'
    """
    missing = len(models) < len(POLICIES)
    return f"{len(models)} of {len(POLICIES)} policies measured: no comparison yet" if missing else ""


def too_few_seeds(groups: Mapping[Any, Group]) -> str:
    """Return the end of a headline that names the best of fewer seeds than a verdict needs, "" if there are enough."""
    seeds = min(len(group.finished) for group in groups.values())
    return "" if seeds >= FEWEST_SEEDS else f"; {seeds} {'seed' if seeds == 1 else 'seeds'}, no verdict"


def within_spread(numbers: Mapping[Any, Estimate], *, largest: bool, by_ratio: bool = False) -> str:
    """Return the words after the first model of a headline that is not ahead of the second by the rule of verdicts.

    Args:
        numbers: model -> its number, by which the headline names the first.
        largest: whether the first has the largest number, or else the smallest.
        by_ratio: compare logarithms, as the claims on these numbers do.

    >>> from lrcnet_paper.results.estimate import mean_over_seeds
    >>> close = {"LSTM": mean_over_seeds({0: 1.0, 1: 2.0}), "GRU": mean_over_seeds({0: 1.1, 1: 1.8})}
    >>> within_spread(close, largest=True)
    ', within the spread over seeds'
    """
    ranked = sorted(numbers.values(), key=lambda number: number.mean, reverse=largest)
    if len(ranked) < 2:
        return ""
    verdict = judge_comparison(None, (ranked[0], ranked[1]), larger_is_better=largest, by_ratio=by_ratio)
    return ", within the spread over seeds" if verdict.word == "no difference seen" else ""


def describe(groups: Mapping[Any, Group]) -> str:
    """Describe the training of runs that share their settings in a sentence."""
    paper = "100 epochs, batches of 32 sequences of 32 frames, AdamW with cosine decay from 5e-4"
    group = next(iter(groups.values()), None)
    if group is None or (group.spec.samples is None and group.spec.piece is None):
        return f"The paper's schedule: {paper}."
    spec = group.spec
    head = ", the convolutional head in bfloat16" if spec.options == IN_BFLOAT16 else ""
    return (
        f"{group.epochs} epochs of {spec.samples} pieces of {spec.piece} frames, batches of {spec.batch_size}, AdamW "
        f"with cosine decay from {spec.rate:g}{head}; the paper: {paper}."
    )


DIFFERENCES = (
    "The paper's recordings of human drivers are not public: an expert drives in a synthetic world, summer and winter.",
    "Losses are on another scale than the paper's (mean squared error of curvature in units of 1/100 m), so that "
    "models are compared by ratios.",
    f"Gradients are clipped to a norm of {CLIP:g}, which the paper does not mention.",
)
SHARED_HEAD = (
    "The convolutional head is trained once per seed with a linear read-out of single frames, then fixed; all models "
    "learn from its features, standardised over the training frames."
)


def shared_head_differences(groups: Mapping[Any, Group]) -> tuple[str, ...]:
    """List the differences of networks that are trained on the features of a shared head."""
    return (*DIFFERENCES, SHARED_HEAD, *shared_head_training(groups))


def shared_head_training(groups: Mapping[Any, Group]) -> tuple[str, ...]:
    """Describe the length of training on a shared head in one sentence; () without runs."""
    return tuple(_describe_training(group, "networks on a shared head") for group in [*groups.values()][:1])


LOSSES = (
    "Both losses are mean squared errors of curvature in units of 1/100 m, another scale than the paper's, so that "
    "models are compared by ratios. The paper does not give the weights of its weighted loss; ours are the expert's "
    "curvature."
)


def end_to_end_differences(groups: Mapping[Any, Group]) -> tuple[str, ...]:
    """List the differences of policies that are trained end to end, with the numbers of their own runs.

    No sentence is one of `shared_head_differences`: a page states each sentence once and then refers to its section,
    and the other differences of a shared head's section are none of these policies'.
    """
    world = (
        "The paper's recordings of human drivers are not public: the policies learn from an expert in a synthetic "
        "world, summer and winter, and are tested in it."
    )
    group = next(iter(groups.values()), None)
    return (world,) if group is None else (world, *_training_differences(group))


def _training_differences(group: Group) -> list[str]:
    spec, recipe = group.spec, tasks.find(TASK, group.variant).recipe
    differences = [_describe_training(group, "policies")]
    if spec.rate != recipe.learning_rate:
        differences.append(f"The learning rate decays from {spec.rate:g}, the paper's from {recipe.learning_rate:g}.")
    if spec.options == IN_BFLOAT16:
        differences.append("The convolutional head is computed in bfloat16; the rest of a policy is not.")
    if spec.clip is not None:
        differences.append(
            f"The gradients of a policy are clipped to a norm of {spec.clip:g}; the paper mentions no limit."
        )
    return differences


def _describe_training(group: Group, trained: str) -> str:
    """Set the updates, epochs and batches of a group beside the paper's, whose number of updates is not known."""
    spec, recipe = group.spec, tasks.find(TASK, group.variant).recipe
    batch, piece = spec.batch_size or recipe.batch_size, spec.piece or LENGTH
    # A run that diverged has fewer updates than the others.
    updates = max((run.result.updates or 0 for run in group.runs), default=0)
    length = f"{updates:,} updates in {group.epochs} epochs" if updates else f"{group.epochs} epochs"
    return (
        f"The {trained} are trained for {length}, with batches of {batch} sequences of {piece} frames; the paper "
        f"trains for {recipe.epochs} epochs, with batches of {recipe.batch_size} sequences of {LENGTH} frames, and "
        "does not give its number of updates."
    )
