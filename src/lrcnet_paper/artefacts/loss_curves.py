"""Figure: training and validation loss of LTC, STC and LRC on lane keeping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lrcnet.pages import palette
from lrcnet.pages.content import Cell, Picture, Table
from lrcnet_paper.artefacts import driving_runs as driving
from lrcnet_paper.artefacts.artefact import Artefact, Claim, Comparison, Rendered
from lrcnet_paper.artefacts.curves import WORST_TO_BEST, draw_band, legend_below, mean_curve, write_finding
from lrcnet_paper.artefacts.driving_runs import EFFICIENCY
from lrcnet_paper.results.estimate import Estimate
from lrcnet_paper.results.groups import Group
from lrcnet_paper.results.verdict import judge_comparison
from lrcnet_paper.training.budgets import check_budget

if TYPE_CHECKING:
    from lrcnet_paper.results.finished_run import FinishedRun
    from lrcnet_paper.training.spec import RunSpec

TITLE = "Loss curves of LTC, STC and LRC"
SAYS = "The symmetric LRC converges to a lower validation loss than LTC and STC."

# The paper's text: the symmetric LRC converges to about 0.15, LTCs and STCs to 0.22. It has no number for STC E1.
CLAIMED: Mapping[str, Any] = {
    "validation": {"LRC-S E1": Estimate(0.15), "LTC H6": Estimate(0.22), "STC H6": Estimate(0.22)},
    "STC E1": "“not very satisfactory”",
}


def runs(budget: str, seeds: int | None = None) -> list[RunSpec]:
    """Plan the five networks of the efficiency table."""
    return driving.plan_shared_head_runs(tuple(EFFICIENCY.values()), check_budget(budget), seeds)


def render(runs: Sequence[FinishedRun]) -> Rendered:
    """Draw both losses over the epochs, and judge whether the LRC reaches the smallest validation loss."""
    by_model = driving.find_groups(runs, tuple(EFFICIENCY.values()), wanted=driving.wants_shared_head)
    groups = {name: by_model[model] for name, model in EFFICIENCY.items() if model in by_model}
    return Rendered(
        tables=[_table(groups)],
        pictures=[_picture(groups)] if groups else [],
        claims=[
            Claim.against_all(
                "The best validation loss of LRC-S E1 is below those of LTC and STC.",
                {other: _compare(groups, other) for other in driving.LTC_AND_STC},
            )
        ],
        skipped=[] if groups else ["loss curves: no policy has been trained"],
        differences=driving.shared_head_differences(groups),
    )


def _table(groups: Mapping[str, Group]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            name,
            CLAIMED["validation"].get(name),
            None if name not in groups else groups[name].metric("train_loss"),
            None if name not in groups else groups[name].metric("validation_curvature_loss"),
            None if name not in groups else len(groups[name].runs),
        )
        for name in EFFICIENCY
    ]
    return Table(
        "losses",
        "Final training loss and best validation loss",
        ("model", "paper: validation", "ours: final training", "ours: best validation", "seeds"),
        rows,
        "The paper's losses are on another scale: only their order and ratios can be compared with ours.",
    )


def _compare(groups: Mapping[str, Group], other: str) -> Comparison:
    pair = [groups.get(name) for name in ("LRC-S E1", other)]
    numbers = [None if g is None else g.metric("validation_curvature_loss") for g in pair]
    paper = CLAIMED["validation"]
    claimed = (paper["LRC-S E1"], paper[other]) if other in paper else None
    return Comparison(
        f"{paper['LRC-S E1'].mean:g} against {paper[other].mean:g}" if claimed else CLAIMED[other],
        "–" if None in numbers else f"{numbers[0]} against {numbers[1]}",
        judge_comparison(
            claimed,
            (numbers[0], numbers[1]),
            larger_is_better=False,
            under=driving.conditions(*[g for g in pair if g is not None]),
            by_ratio=True,
        ),
    )


def _picture(groups: Mapping[str, Group]) -> Picture:
    from matplotlib.figure import Figure

    with palette.figure_style():
        figure = Figure(figsize=(7.2, 3.7), layout="constrained")
        panels = figure.subplots(1, 2, sharey=True)
        for axes, column, title in zip(
            panels, ("train_loss", "validation_curvature_loss"), ("training", "validation"), strict=True
        ):
            for name, group in groups.items():
                colour, dashes, marker = driving.LINES[name]
                where, mean, low, high = mean_curve(group, column)
                axes.plot(
                    where, mean, color=colour, linestyle=dashes, marker=marker, markersize=3.5, label=name,
                    markevery=max(1, len(where) // 10),
                )  # fmt: skip
                draw_band(axes, where, low, high, colour, WORST_TO_BEST)
            axes.set(title=f"{title} loss", xlabel="epoch", yscale="log")
        panels[0].set_ylabel("mean squared error\nof curvature, (1/100 m)²")
        legend_below(figure, list(panels))
        write_finding(figure, _finding(groups))
    return Picture(
        "loss-curves",
        "Loss over the epochs, mean over seeds; bands reach from the best to the worst seed. "
        "H6: hybrid solver with six unfoldings; E1: one explicit Euler step. The training loss is "
        "measured on balanced pieces, so it cannot be compared with the validation loss.",
        "Two plots of falling loss curves of LTC, STC and LRC networks over the epochs of training.",
        figure,
    )


def _finding(groups: Mapping[str, Group]) -> str:
    losses = {n: e for n, g in groups.items() if (e := g.metric("validation_curvature_loss")) is not None}
    if not losses:
        return "Losses over the epochs"
    best, worst = min(losses, key=lambda n: losses[n].mean), max(losses, key=lambda n: losses[n].mean)
    return (
        f"{best} reaches the smallest validation loss ({losses[best].mean:.3g}"
        f"{driving.within_spread(losses, largest=False, by_ratio=True)}), {worst} the largest "
        f"({losses[worst].mean:.3g}{driving.within_spread(losses, largest=True, by_ratio=True)})"
    )


ARTEFACT = Artefact(title=TITLE, claimed=CLAIMED, runs=runs, render=render, says=SAYS)
