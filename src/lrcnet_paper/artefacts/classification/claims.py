"""The paper's claims on classification, and the verdicts on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lrcnet.pages import palette
from lrcnet_paper import tasks
from lrcnet_paper.artefacts.artefact import Claim, Comparison
from lrcnet_paper.artefacts.classification.runs import LIQUID, SAMPLES, TITLES
from lrcnet_paper.artefacts.sentences import join_words
from lrcnet_paper.results.estimate import Estimate, mean_over_seeds
from lrcnet_paper.results.groups import Group
from lrcnet_paper.results.interval import paired_interval
from lrcnet_paper.results.verdict import NOT_MEASURED, Conditions, judge_comparison, judge_count


def _percent(mean: float, std: float) -> Estimate:
    return Estimate(mean, std, seeds=3, digits=2)


CLAIMED: Mapping[str, Any] = {
    # Accuracy in percent over 3 seeds, from the paper's table; its text gives 84.99 for LRCU-S on the first task.
    "accuracy": {
        "person": {
            "lstm": _percent(82.90, 0.31),
            "gru": _percent(82.76, 0.41),
            "mgu": _percent(83.35, 0.30),
            "lrcu-s": _percent(84.21, 0.26),
            "lrcu-a": _percent(83.90, 0.34),
        },
        "imdb": {
            "lstm": _percent(86.56, 0.49),
            "gru": _percent(86.32, 0.51),
            "mgu": _percent(85.18, 0.85),
            "lrcu-s": _percent(85.73, 0.41),
            "lrcu-a": _percent(87.00, 0.53),
        },
        "psmnist": {
            "lstm": _percent(91.20, 0.10),
            "gru": _percent(90.20, 0.44),
            "mgu": _percent(87.78, 0.82),
            "lrcu-s": _percent(91.74, 0.41),
            "lrcu-a": _percent(91.31, 0.33),
        },
    },
    # The models that lead LSTM, GRU and MGU according to the paper's text.
    "ahead": {"person": ("lrcu-s", "lrcu-a"), "imdb": ("lrcu-a",), "psmnist": ("lrcu-s", "lrcu-a")},
    "diverged": {("psmnist", "mgu"): (2, 3)},
}

# Variants on which claims are judged, best first. Coarse person activity has the paper's windows and updates, but
# coordinates cut to 10 cm and no timestamps: it can agree and cannot contradict.
PRIMARY: Mapping[str, tuple[str, ...]] = {
    "person": ("full", "coarse", "a01-a04"),
    "imdb": ("text",),
    "psmnist": ("permuted",),
}

GATED = ("lstm", "gru", "mgu")
# How the data of a variant differ from the paper's.
DIFFERENCES: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("person", "full-25"): ("on all 25 sequences",),
    ("person", "full-clean"): ("clean split",),
    ("person", "a01-a04"): ("on 4 of 25 sequences",),
    ("person", "a01-a04-clean"): ("on 4 of 25 sequences", "clean split"),
    ("person", "coarse"): ("on coarse data",),
    ("person", "coarse-25"): ("on coarse data", "all 25 sequences"),
    ("person", "coarse-clean"): ("on coarse data", "clean split"),
    ("psmnist", "ordered"): ("pixels in order",),
}


def accuracy(group: Group | None) -> Estimate | None:
    """Return the test accuracy in percent, at the epoch that the protocol names."""
    return None if group is None else group.metric("accuracy", 100.0, digits=2)


def accuracy_after(group: Group | None, epochs: int) -> Estimate | None:
    """Return the test accuracy in percent after at most so many epochs, to compare runs of different lengths.

    A longer run is read off its learning curve, at the last recorded epoch up to that number. This is what a shorter
    run would have ended with, since person activity is trained at a constant rate and reports its last epoch.
    """
    if group is None or group.epochs <= epochs:
        return accuracy(group)
    values: dict[int, float] = {}
    for run in group.runs:
        recorded = [y for x, y in zip(*run.curve("test_accuracy"), strict=True) if x <= epochs]
        if recorded:
            values[run.result.seed] = 100.0 * recorded[-1]
    return mean_over_seeds(values, digits=2)


def conditions(*groups: Group) -> Conditions:
    """List the differences between these groups and the paper's protocol, for a verdict."""
    notes: dict[str, None] = {}
    shorter = other_data = False
    for group in groups:
        differences = DIFFERENCES.get((group.task, group.variant), ())
        other_data |= bool(differences)
        notes |= dict.fromkeys(differences)
        if group.task in SAMPLES.get(group.budget, {}):
            notes[f"{SAMPLES[group.budget][group.task]} samples of each split"] = None
        if group.epochs < protocol_epochs(group):
            shorter = True
            notes[f"{group.epochs} of {protocol_epochs(group)} epochs"] = None
    smoke = any(group.budget == "smoke" for group in groups)
    return Conditions(smoke, shorter, tuple(notes), other_data=other_data)


def protocol_epochs(group: Group) -> int:
    """Return the number of epochs in the protocol of a group's task."""
    epochs = tasks.find(group.task, group.variant).recipe.epochs
    assert epochs is not None, "classification is trained by epochs"
    return epochs


def primary_variant(task: str, groups: Sequence[Group]) -> str:
    """Return the variant of a task that its claims are judged on: the first one of `PRIMARY` that has runs."""
    present = {group.variant for group in groups}
    return next((variant for variant in PRIMARY[task] if variant in present), PRIMARY[task][0])


def judge_task(task: str, groups: Sequence[Group]) -> list[Claim]:
    """Judge every claim on a task, on its primary variant."""
    variant = primary_variant(task, groups)
    # Keep the longest group of each model; `groups` lists the longer ones first.
    longest: dict[str, Group] = {}
    for group in groups:
        if group.variant == variant and group.follows_recipe:
            longest.setdefault(group.model, group)
    claimed: Mapping[str, Estimate] = CLAIMED["accuracy"][task]
    claims = [
        Claim.against_all(
            f"{TITLES[task]}: {palette.model_label(model)} is ahead of LSTM, GRU and MGU.",
            {palette.model_label(other): _compare(model, other, claimed, longest) for other in GATED},
        )
        for model in CLAIMED["ahead"][task]
    ]
    return claims + [_divergence_claim(task, model, longest) for t, model in CLAIMED["diverged"] if t == task]


def clear_differences(groups: Sequence[Group]) -> list[str]:
    """Name the gated units from which an LRCU differs by an interval that excludes 0, ahead of or behind them.

    Args:
        groups: the groups of one variant that follow the recipe. Runs of different lengths are not compared.

    Returns:
        One sentence, or none without two models that have two seeds in common.
    """
    intervals = [
        (palette.model_label(ours.model), palette.model_label(rival.model), interval)
        for ours in groups
        for rival in groups
        if ours.model in LIQUID and rival.model in GATED and ours.epochs == rival.epochs
        if (interval := paired_interval(accuracy(ours), accuracy(rival))) is not None
    ]
    if not intervals:
        return []
    clear = [
        f"{ours} {'ahead of' if interval.low > 0 else 'behind'} {rival} "
        f"({interval.mean:+.3g} points, {interval.low:+.3g} to {interval.high:+.3g})"
        for ours, rival, interval in intervals
        if interval.low > 0 or interval.high < 0
    ]
    listed = f": {join_words(clear)}" if clear else ""
    compared = f"{len(intervals)} comparison{'s' if len(intervals) > 1 else ''}"
    return [
        f"Of {compared} of an LRCU with a gated unit, {len(clear) or 'none'} {'has' if len(clear) < 2 else 'have'} a "
        f"95 % interval that excludes 0{listed}."
    ]


def _compare(model: str, other: str, claimed: Mapping[str, Estimate], longest: Mapping[str, Group]) -> Comparison:
    """Judge one model against one gated unit."""
    ours = longest.get(model), longest.get(other)
    numbers = accuracy(ours[0]), accuracy(ours[1])
    present = [group for group in ours if group is not None]
    return Comparison(
        f"{claimed[model].mean - claimed[other].mean:+.2f} points",
        "–" if None in numbers else f"{numbers[0].mean - numbers[1].mean:+.2f} points",  # type: ignore[union-attr]
        judge_comparison(
            (claimed[model], claimed[other]),
            numbers,
            larger_is_better=True,
            under=conditions(*present),
            comparable=len({group.epochs for group in present}) < 2,
            same_scale=True,
        ),
    )


def _divergence_claim(task: str, model: str, longest: Mapping[str, Group]) -> Claim:
    """Judge whether runs of a model end in NaN; runs that are too few or too short and do not, say nothing."""
    diverged, total = CLAIMED["diverged"][task, model]
    group = longest.get(model)
    measured, verdict = "–", NOT_MEASURED
    if group is not None:
        count = len(group.runs)
        measured = f"{group.diverged} of {count} runs"
        # One such run shows that they occur.
        verdict = judge_count(group.diverged, count, seeds=count, under=conditions(group), enough=1, networks="runs")
    statement = f"{TITLES[task]}: {palette.model_label(model)} runs end in NaN."
    return Claim(statement, f"{diverged} of {total} runs", measured, verdict)
