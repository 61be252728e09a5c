"""Figure: what LTC, STC and LRC policies steer over the same drive, and how much their output oscillates."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lrcnet.pages import palette
from lrcnet_paper.artefacts import driving_runs as driving
from lrcnet_paper.artefacts.artefact import Cell, Claim, Picture, Rendered, Table
from lrcnet_paper.artefacts.driving_runs import Model
from lrcnet_paper.results.estimate import Estimate, mean_over_seeds
from lrcnet_paper.results.groups import Group
from lrcnet_paper.results.verdict import Verdict, judge_comparison

if TYPE_CHECKING:
    from lrcnet_paper.results.finished import Finished

NAME = "dynamics"
SHOWN: Mapping[str, Model] = {
    "LTC H6": Model("ltc"),
    "STC E1": Model("stc", "euler-1"),
    "STC H6": Model("stc"),
    "LRC-A E1": Model("lrcu-a"),
    "LRC-S E1": Model("lrcu-s"),
}
# An LTC under one explicit Euler step: the paper says that it fails to converge.
UNSTABLE = Model("ltc", "euler-1")
MODELS = (*SHOWN.values(), UNSTABLE)
STEPS = 450
# A policy that explains less than this share of the label's variance on validation has not converged.
LEARNED = 0.5


def measure(folder: Path) -> dict[str, Any]:
    """What a policy steers along the first drive of the validation recording, and how much that oscillates.

    Returns:
        Curvatures in 1/100 m, of the policy and of the driver; the policy's total variation per second, its largest
        slope per second, and those of the difference to the driver's.
    """
    import torch

    from lrcnet_paper.driving.vehicle import STEP
    from lrcnet_paper.tasks.driving import UNIT, recording
    from lrcnet_paper.training.trained import load_trained

    trained = load_trained(folder)
    policy: Any = trained.network
    drives = recording(trained.spec.variant, "validation")
    pairs = [(a, min(a + STEPS, b)) for a, b in itertools.pairwise(drives.starts.tolist())]
    # The drive with the most bends: a straight says nothing.
    start, end = max(pairs, key=lambda pair: float(abs(drives.curvature[slice(*pair)]).sum()))
    frames = torch.from_numpy(drives.frames[start:end].copy())
    state, steered = None, []
    with torch.inference_mode():
        for part in torch.split(frames, 64):
            curvature, state = policy.run(part[None], state)
            steered.append(curvature[0])
    output = torch.cat(steered) / UNIT
    driver = torch.from_numpy(drives.curvature[start:end].copy()) / UNIT
    change, own = output.diff().abs() / STEP, driver.diff().abs() / STEP
    return {
        "step": STEP,
        "output": [round(v, 4) for v in output.tolist()],
        "driver": [round(v, 4) for v in driver.tolist()],
        "variation": float(change.mean()),
        "slope": float(change.max()),
        "driver_variation": float(own.mean()),
        "driver_slope": float(own.max()),
    }


def render(runs: Sequence[Finished]) -> Rendered:
    """Outputs over one drive, their oscillation, and what became of LTC under one explicit step."""
    found = driving.found(runs, MODELS)
    named = {name: found[model] for name, model in SHOWN.items() if model in found and _measured(found[model])}
    unstable = _unstable(runs)
    if not named:
        return Rendered(claims=[unstable], skipped=["outputs over a drive: no policy has been trained"])
    return Rendered(
        tables=[_table(named)],
        pictures=[_picture(named)],
        claims=[_claim(named, other) for other in ("LTC H6", "STC E1")] + [unstable],
    )


def _measured(group: Group) -> bool:
    return any(NAME in run.analyses for run in group.runs)


def _number(group: Group, name: str) -> Estimate | None:
    values = [run.analyses[NAME][name] for run in group.finished if NAME in run.analyses]
    return mean_over_seeds(values, digits=2)


def _table(named: Mapping[str, Group]) -> Table:
    rows: list[tuple[Cell, ...]] = [
        (name, _number(group, "variation"), _number(group, "slope"), len(group.runs)) for name, group in named.items()
    ]
    first = next(iter(named.values()))
    rows.append(("the driver", _number(first, "driver_variation"), _number(first, "driver_slope"), None))
    return Table(
        "oscillation",
        "How much the output moves over one drive, in 1/100 m per second",
        ("model", "total variation per second", "largest slope", "seeds"),
        rows,
        "All networks see the same pictures, of a drive that no training has; the network does not steer the car.",
    )


def _claim(named: Mapping[str, Group], other: str) -> Claim:
    groups = [named.get("LRC-S E1"), named.get(other)]
    ours = [None if g is None else _number(g, "variation") for g in groups]
    # The paper shows this in a picture without a number: any margin will do.
    verdict = judge_comparison(
        (Estimate(1.0, 0.0), Estimate(1.0, 0.0)),
        (ours[0], ours[1]),
        larger_is_better=False,
        under=driving.conditions(*[g for g in groups if g is not None]),
    )
    return Claim(
        f"The output of LRC-S E1 oscillates less than that of {other}.",
        "shown in a figure",
        "–" if None in ours else f"{ours[0]} against {ours[1]} (1/100 m)/s",
        verdict,
    )


def _unstable(runs: Sequence[Finished]) -> Claim:
    group = driving.found(runs, (UNSTABLE,)).get(UNSTABLE)
    statement = "LTC fails to converge under one explicit Euler step per input."
    if group is None or group.budget == "smoke":
        return Claim(statement, "fails", "–", Verdict("open", ("not measured" if group is None else "smoke runs",)))
    under = driving.conditions(group).notes
    if group.diverged == len(group.runs):
        epochs = ", ".join(str(run.result.epochs + 1) for run in group.runs)
        return Claim(statement, "fails", f"loss not finite in epoch {epochs}", Verdict("reproduced", under))
    losses = [min(y for y in run.curve("validation_curvature_loss")[1]) for run in group.finished]
    constant = [run.curve("validation_curvature_loss")[1][0] for run in group.finished]
    learned = all(best < LEARNED * first for best, first in zip(losses, constant, strict=True))
    word = Verdict("not reached" if learned else "reproduced", under)
    return Claim(statement, "fails", f"validation loss {losses[0]:.3f} at best, {constant[0]:.3f} after epoch 1", word)


def _picture(named: Mapping[str, Group]) -> Picture:
    from matplotlib.figure import Figure

    with palette.style():
        figure = Figure(figsize=(7.2, 1.65 * len(named) + 0.5), layout="constrained")
        panels = figure.subplots(len(named), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
        for axes, (name, group) in zip(panels, named.items(), strict=True):
            shown = next(run.analyses[NAME] for run in group.finished if NAME in run.analyses)
            time = [i * shown["step"] for i in range(len(shown["output"]))]
            axes.plot(time, shown["driver"], color=palette.INK, linewidth=0.9, linestyle=(0, (4, 2)), label="driver")
            axes.plot(time, shown["output"], color=palette.look(SHOWN[name].name).colour, linewidth=1.2, label=name)
            axes.legend(loc="lower right", bbox_to_anchor=(1.0, 0.95), ncols=2, borderaxespad=0.0)
        panels[len(named) // 2].set_ylabel("curvature (1/100 m), left is positive")
        panels[-1].set_xlabel("time (s)")
    return Picture(
        "outputs",
        "What the networks would steer over the same drive (seed 0), and what the driver steered.",
        "One line plot per network of curvature over time, beside the driver's curvature as a dashed line.",
        figure,
    )
