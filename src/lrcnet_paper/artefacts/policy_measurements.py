"""Parts shared by artefacts that measure driving policies: seasons, noise, gated units, measured runs, orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lrcnet.pages import palette
from lrcnet_paper.artefacts import driving_runs as driving
from lrcnet_paper.artefacts.artefact import Claim, Comparison
from lrcnet_paper.driving.closed_loop import NoiseReading
from lrcnet_paper.results.estimate import Estimate
from lrcnet_paper.results.verdict import Conditions, Verdict, judge_comparison

if TYPE_CHECKING:
    from lrcnet_paper.results.finished_run import FinishedRun
    from lrcnet_paper.results.groups import Group

SEASONS = ("summer", "winter")
GATED = ("lstm", "gru", "mgu")
"""The models that the paper compares its LRCUs with."""
# "Variance 0.1" on pixels is a signal-to-noise ratio of 0.25, on the normalised frame of 10. At this variance three of
# the paper's five policies never crash, which ours come close to by the second reading only: claims are judged by it.
PRIMARY_READING: NoiseReading = "normalised"
READING_NAMES: Mapping[NoiseReading, str] = {"pixels": "pixels", "normalised": "the normalised frame"}
READING_NOTE = (
    "The paper does not say whether its variance of noise refers to pixels or to the normalised frame; claims are "
    "judged by the second reading, and a table has both."
)


def measured_groups(runs: Sequence[FinishedRun], artefact: str) -> dict[str, Group]:
    """Return model -> the group of its runs that an artefact has measured, without models that have none."""
    groups = driving.find_groups(runs, driving.POLICIES)
    return {model.name: part for model, group in groups.items() if (part := measured_part(group, artefact)) is not None}


def measured_part(group: Group, artefact: str) -> Group | None:
    """Return the runs of a group that an artefact has measured, None if there are none."""
    measured = tuple(run for run in group.finished if artefact in run.analyses)
    return replace(group, runs=measured) if measured else None


def judge_order(
    ours: tuple[Estimate | None, Estimate | None], under: Conditions, *, larger_is_better: bool = True
) -> Verdict:
    """Judge "A is ahead of B" where the paper gives no numbers."""
    return judge_comparison(None, ours, larger_is_better=larger_is_better, under=under)


def judge_against_gated(
    statement: str,
    paper: str,
    model: str,
    groups: Mapping[str, Group],
    measured: Mapping[str, Estimate | None],
    *,
    larger_is_better: bool = True,
    unit: str = "",
) -> Claim:
    """Judge "a model is ahead of every gated unit" where the paper gives words instead of numbers.

    Args:
        statement, paper: the claim, and the paper's words.
        model: the model's name.
        groups: name of a model -> its runs.
        measured: name of a model -> the quantity that is compared, None where there is none.
        larger_is_better: its direction.
        unit: its unit, with a space before it.
    """

    def compare(other: str) -> Comparison:
        ours = measured[model], measured[other]
        under = driving.conditions(*(groups[name] for name in (model, other) if name in groups))
        text = "–" if None in ours else f"{ours[0]} against {ours[1]}{unit}"
        return Comparison(paper, text, judge_order(ours, under, larger_is_better=larger_is_better))

    return Claim.against_all(statement, {palette.model_label(other): compare(other) for other in GATED})
