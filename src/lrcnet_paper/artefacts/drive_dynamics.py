"""Figure: outputs of LTC, STC and LRC over the same drive, and how much they oscillate."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lrcnet.pages import palette
from lrcnet.pages.content import Cell, Picture, Table
from lrcnet_paper.artefacts import driving_runs as driving
from lrcnet_paper.artefacts.artefact import Claim, Comparison, Rendered
from lrcnet_paper.artefacts.curves import legend_below, write_finding
from lrcnet_paper.artefacts.driving_runs import EFFICIENCY, Model
from lrcnet_paper.results.estimate import Estimate, mean_over_seeds
from lrcnet_paper.results.groups import Group
from lrcnet_paper.results.verdict import NOT_MEASURED, Verdict, judge_comparison, judge_count

if TYPE_CHECKING:
    from lrcnet_paper.results.finished_run import FinishedRun

NAME = "dynamics"
# An LTC under one explicit Euler step, which fails to converge according to the paper.
UNSTABLE = Model("ltc", "euler-1")
MODELS = (*EFFICIENCY.values(), UNSTABLE)
STEPS = 450
# A policy has converged if its best validation loss is below this share of its loss after the first epoch.
CONVERGED = 0.5


def measure(folder: Path) -> dict[str, Any]:
    """Measure the output of a network along one drive of the validation recording, and how much it oscillates.

    All networks of a seed read the same features of a shared head.

    Returns:
        Curvatures of the network and of the expert ("driver") in 1/100 m, and of each its total variation per second
        and its largest slope per second.
    """
    import torch

    from lrcnet_paper.driving.vehicle import STEP
    from lrcnet_paper.tasks.driving import CURVATURE_UNIT, FEATURE_VARIANTS, recording
    from lrcnet_paper.training.shared_head import shared_features
    from lrcnet_paper.training.trained_network import load_trained

    trained = load_trained(folder)
    policy: Any = trained.network
    source = FEATURE_VARIANTS[trained.spec.variant]
    drives = recording(source, "validation")
    pairs = [(a, min(a + STEPS, b)) for a, b in itertools.pairwise(drives.starts.tolist())]
    # Take the drive with the most bends, because on a straight road all outputs are alike.
    start, end = max(pairs, key=lambda pair: float(abs(drives.curvature[slice(*pair)]).sum()))
    features = torch.from_numpy(shared_features(source, trained.spec.seed)["validation"][start:end])
    with torch.inference_mode():
        output = policy(features[None])[0] / CURVATURE_UNIT
    expert = torch.from_numpy(drives.curvature[start:end].copy()) / CURVATURE_UNIT
    change, expert_change = output.diff().abs() / STEP, expert.diff().abs() / STEP
    return {
        "step": STEP,
        "output": [round(v, 4) for v in output.tolist()],
        "driver": [round(v, 4) for v in expert.tolist()],
        "variation": float(change.mean()),
        "slope": float(change.max()),
        "driver_variation": float(expert_change.mean()),
        "driver_slope": float(expert_change.max()),
    }


def render(runs: Sequence[FinishedRun]) -> Rendered:
    """Draw the outputs over one drive, measure their oscillation, and judge LTC under one explicit step."""
    by_model = driving.find_groups(runs, MODELS, wanted=driving.wants_shared_head)
    groups = {
        name: by_model[model]
        for name, model in EFFICIENCY.items()
        if model in by_model and _is_measured(by_model[model])
    }
    claim = Claim.against_all(
        "The output of LRC-S E1 oscillates less than those of LTC and STC.",
        {other: _compare(groups, other) for other in driving.LTC_AND_STC},
    )
    claims = [claim, _instability_claim(runs)]
    if not groups:
        return Rendered(claims=claims, skipped=["outputs over a drive: no network has been trained on a shared head"])
    return Rendered(
        tables=[_table(groups)],
        pictures=[_picture(groups)],
        claims=claims,
        differences=(*driving.shared_head_differences(groups), CONVERGED_ONLY),
    )


CONVERGED_ONLY = (
    "A constant output oscillates least, so networks are compared only if they have converged: their gain in sharp "
    f"bends is at least {driving.ENOUGH_GAIN:g}. Oscillation is relative to the expert's own."
)


def _is_measured(group: Group) -> bool:
    return any(NAME in run.analyses for run in group.runs)


def _mean(group: Group, name: str, relative: bool = False) -> Estimate | None:
    """Return the mean over seeds of a number, or of its ratio to the expert's."""
    values = {
        run.result.seed: run.analyses[NAME][name] / (run.analyses[NAME][f"driver_{name}"] if relative else 1.0)
        for run in group.finished
        if NAME in run.analyses
    }
    return mean_over_seeds(values, digits=2)


def _peak(group: Group) -> Estimate | None:
    """Return the mean over seeds of the largest output's ratio to the expert's."""
    measured = {run.result.seed: run.analyses[NAME] for run in group.finished if NAME in run.analyses}
    peaks = {seed: max(map(abs, one["output"])) / max(map(abs, one["driver"])) for seed, one in measured.items()}
    return mean_over_seeds(peaks, digits=2)


def _has_converged(group: Group) -> bool:
    gain = driving.sharp_bend_gain(group)
    return gain is not None and gain.mean >= driving.ENOUGH_GAIN


def _table(groups: Mapping[str, Group]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (
            name,
            _mean(group, "variation"),
            _mean(group, "variation", relative=True),
            _mean(group, "slope"),
            _peak(group),
            driving.sharp_bend_gain(group),
            "yes" if _has_converged(group) else "no",
            len(group.runs),
        )
        for name, group in groups.items()
    ]
    # All networks and seeds see the same drive of the expert, so that there is one value and no spread.
    expert = next(run.analyses[NAME] for group in groups.values() for run in group.runs if NAME in run.analyses)
    variation, slope = (Estimate(expert[f"driver_{name}"], digits=2) for name in ("variation", "slope"))
    rows.append(("the expert", variation, 1.0, slope, 1.0, 1.0, None, None))
    return Table(
        "oscillation",
        "Oscillation of the output over one drive",
        (
            "model",
            "total variation, (1/100 m)/s",
            "relative to the expert's",
            "largest slope, (1/100 m)/s",
            "largest output, relative to the expert's",
            "gain in sharp bends",
            "converged",
            "seeds",
        ),
        rows,
        "All networks of a seed see the same features of a drive that is in no training set; the expert steers the "
        "car. A network that does not reach the expert's largest curvature oscillates less for this reason too. The "
        "paper shows such outputs in a figure without numbers.",
    )


def _compare(groups: Mapping[str, Group], other: str) -> Comparison:
    pair = [groups.get("LRC-S E1"), groups.get(other)]
    present = [group for group in pair if group is not None]
    ours = [None if g is None else _mean(g, "variation", relative=True) for g in pair]
    under = driving.conditions(*present)
    # The paper shows this in a figure without numbers.
    verdict = judge_comparison(None, (ours[0], ours[1]), larger_is_better=False, under=under, by_ratio=True)
    idle = [palette.model_label(group.model) for group in present if not _has_converged(group)]
    if idle and len(present) == len(pair):
        reason = f"not converged: {', '.join(idle)}"
        verdict = Verdict("not measurable here", (*under.notes, reason), under.warnings)
    return Comparison(
        "shown in a figure",
        "–" if None in ours else f"{ours[0]} against {ours[1]} times the expert's total variation",
        verdict,
    )


def _instability_claim(runs: Sequence[FinishedRun]) -> Claim:
    group = driving.find_groups(runs, (UNSTABLE,), wanted=driving.wants_shared_head).get(UNSTABLE)
    statement = "LTC fails to converge under one explicit Euler step per input."
    if group is None or group.budget == "smoke":
        return Claim(statement, "fails", "–", NOT_MEASURED)
    curves = [run.curve("validation_curvature_loss")[1] for run in group.finished]
    learned = sum(min(curve) < CONVERGED * curve[0] for curve in curves)
    failed = len(group.runs) - learned
    epochs = ", ".join(str(run.result.epochs + 1) for run in group.runs if run.result.status == "diverged")
    parts = [f"loss not finite in epoch {epochs}"] if epochs else []
    if curves:
        parts.append(f"validation loss {min(curves[0]):.3f} at best, {curves[0][0]:.3f} after epoch 1")
    verdict = judge_count(failed, len(group.runs), seeds=len(group.runs), under=driving.conditions(group))
    return Claim(statement, "fails", "; ".join(parts), verdict)


def _picture(groups: Mapping[str, Group]) -> Picture:
    from matplotlib.figure import Figure

    with palette.figure_style():
        figure = Figure(figsize=(7.2, 1.55 * len(groups) + 1.0), layout="constrained")
        panels = figure.subplots(len(groups), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
        for axes, (name, group) in zip(panels, groups.items(), strict=True):
            measurement = next(run.analyses[NAME] for run in group.finished if NAME in run.analyses)
            time = [i * measurement["step"] for i in range(len(measurement["output"]))]
            axes.plot(
                time, measurement["driver"], color=palette.INK, linewidth=0.9, linestyle=(0, (4, 2)), label="expert"
            )
            colour, dashes, _ = driving.LINES[name]
            axes.plot(time, measurement["output"], color=colour, linewidth=1.2, linestyle=dashes, label=name)
            number = _mean(group, "variation", relative=True)
            axes.set_title(f"{name}: {number} times the expert's total variation", loc="left", fontsize=9)
        panels[len(groups) // 2].set_ylabel("curvature (1/100 m), left is positive")
        panels[-1].set_xlabel("time (s)")
        legend_below(figure, list(panels))
        write_finding(figure, _finding(groups))
    return Picture(
        "outputs",
        "Curvature that the networks would steer over the same drive (first seed), and the expert's curvature; the "
        "numbers are means over seeds.",
        "One line plot per network of curvature over time, beside the expert's curvature as a dashed line.",
        figure,
    )


def _finding(groups: Mapping[str, Group]) -> str:
    ratios = {name: e for name, group in groups.items() if (e := _mean(group, "variation", relative=True))}
    least, most = min(ratios, key=lambda n: ratios[n].mean), max(ratios, key=lambda n: ratios[n].mean)
    return (
        f"{least} oscillates least ({ratios[least].mean:.3g} times the expert"
        f"{driving.within_spread(ratios, largest=False, by_ratio=True)}), {most} most ({ratios[most].mean:.3g} times "
        f"the expert{driving.within_spread(ratios, largest=True, by_ratio=True)})"
    )
