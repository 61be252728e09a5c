"""Table: the paper's two theorems on trained networks, their bounds beside the measured constants and losses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from lrcnet.pages import palette
from lrcnet.pages.content import Cell, Picture, Table
from lrcnet.pages.tables import format_cell
from lrcnet_paper.artefacts import driving_runs as driving
from lrcnet_paper.artefacts.artefact import Claim, MeasuringArtefact, Rendered
from lrcnet_paper.artefacts.curves import write_finding
from lrcnet_paper.artefacts.driving_runs import EFFICIENCY, Model
from lrcnet_paper.results.estimate import Estimate, mean_over_seeds
from lrcnet_paper.results.groups import Group
from lrcnet_paper.results.verdict import NOT_MEASURED, judge_comparison, judge_count
from lrcnet_paper.training.budgets import check_budget

if TYPE_CHECKING:
    from lrcnet_paper.results.finished_run import FinishedRun
    from lrcnet_paper.training.result import Result
    from lrcnet_paper.training.spec import RunSpec

NAME = "theorems"
TITLE = "The two theorems on trained networks"
SAYS = (
    "An LRC with the synapses of an STC has a smaller Lipschitz bound, and so a smaller bound on its validation loss."
)

# Theorem 1 orders two Lipschitz constants, Theorem 2 two bounds on the validation loss.
CLAIMED: Mapping[str, Any] = {"Theorem 1": ("lrc", "stc"), "Theorem 2": ("lrc", "stc")}

STC = EFFICIENCY["STC E1"]
TRAINED: Mapping[str, Model] = {name: EFFICIENCY[name] for name in ("STC E1", "LRC-A E1", "LRC-S E1")}
# How far the elastance weights of the associated LRC stay below the limit of the proof, as a share of it.
MARGIN = 0.1
ASSOCIATED = {"asymmetric": "LRC-A of the STC", "symmetric": "LRC-S of the STC"}
# Rows of the table -> the network that is drawn in the same colour.
ROWS: Mapping[str, str] = {
    "STC E1": "stc",
    ASSOCIATED["asymmetric"]: "lrc-a",
    ASSOCIATED["symmetric"]: "lrc-s",
    "LRC-A E1": "lrc-a",
    "LRC-S E1": "lrc-s",
}
TRAINING_SEQUENCES, VALIDATION_SEQUENCES, STATES = 128, 32, 500


def runs(budget: str, seeds: int | None = None) -> list[RunSpec]:
    """Plan STC E1, LRC-A E1 and LRC-S E1 on the features of a shared head."""
    return driving.plan_shared_head_runs(tuple(TRAINED.values()), check_budget(budget), seeds)


def wants(result: Result) -> bool:
    """Return whether a result belongs to one of the three networks on a shared head."""
    return driving.wants_shared_head(result, tuple(TRAINED.values()))


def analyse(folder: Path) -> dict[str, Any]:
    """Measure the terms of both theorems on a network, and for an STC on its two associated LRCs as well.

    Returns:
        "networks": row of the table -> numbers as `_measure` returns them; "certificates" of an STC: form of the
        elastance -> whether the condition of the proof holds and the inequality is strict, and both bounds.
    """
    from lrcnet.theory import associated_lrc
    from lrcnet_paper.training.trained_network import load_trained

    trained = load_trained(folder)
    policy: Any = trained.network
    data = [_sequences(trained.spec, split) for split in ("train", "validation")]
    row = next(name for name, model in TRAINED.items() if model == Model(trained.spec.model, trained.spec.solver))
    model = (policy.layer, policy.head)
    networks, certificates = {row: _measure(model, *data)}, {}
    if row == "STC E1":
        domain = _visited_box(model, data)
        for form, name in ASSOCIATED.items():
            lrc, certificate = associated_lrc(model, MARGIN, elastance=form, domain=domain)  # type: ignore[arg-type]
            networks[name] = _measure(lrc, *data)
            certificates[form] = {
                "holds": certificate.condition_holds,
                "strict": certificate.strict,
                "stc": certificate.stc_bound,
                "lrc": certificate.lrc_tighter,
            }
    return {"networks": networks, "certificates": certificates}


def _sequences(spec: RunSpec, split: str) -> tuple[Any, Any]:
    """Return evenly spaced sequences of a split: features, and labels in units of the output."""
    import torch

    from lrcnet_paper.models.policy import CURVATURE_PER_OUTPUT
    from lrcnet_paper.training.shared_head import feature_samples

    samples = feature_samples(spec.variant, split, spec.seed)
    count = min(TRAINING_SEQUENCES if split == "train" else VALIDATION_SEQUENCES, len(samples))
    features, _, curvature = samples[torch.arange(count) * len(samples) // count]
    return features, (curvature / CURVATURE_PER_OUTPUT).unsqueeze(-1)


def _visited_box(model: Any, data: Sequence[tuple[Any, Any]]) -> Any:
    """Return the smallest box around all states and inputs that a network visits on some sequences."""
    import torch

    from lrcnet.theory import Domain, visited_points

    points = [visited_points(model, inputs) for inputs, _ in data]
    return Domain.around(*(torch.cat(parts) for parts in zip(*points, strict=True)))


def _measure(model: Any, training: tuple[Any, Any], validation: tuple[Any, Any]) -> dict[str, float]:
    """Return the bounds and the measured values of one network, all in units of its output."""
    import torch

    from lrcnet.theory import empirical_lipschitz, generalisation_bound, visited_points

    states, inputs = visited_points(model, validation[0])
    chosen = torch.arange(min(STATES, len(states))) * len(states) // min(STATES, len(states))
    bound = generalisation_bound(model, training, validation, kind="tighter")
    return {
        "constant": float(empirical_lipschitz(model, (states[chosen], inputs[chosen]))),
        "lipschitz": bound.lipschitz,
        "eps_training": bound.eps_training,
        "eps_output": bound.eps_output,
        "eps_y": bound.eps_y,
        "bound": bound.value,
        "loss": bound.validation_loss,
    }


def render(runs: Sequence[FinishedRun]) -> Rendered:
    """Tabulate every term of the theorems, and draw the bounds on the loss beside the measured loss."""
    by_model = driving.find_groups(runs, tuple(TRAINED.values()), wanted=driving.wants_shared_head)
    groups = {
        name: by_model[model]
        for name, model in TRAINED.items()
        if model in by_model and any(NAME in run.analyses for run in by_model[model].runs)
    }
    rows = {name: number for name in ROWS if (number := _numbers(groups, name))}
    return Rendered(
        tables=[_table(rows)],
        pictures=[_picture(rows)] if rows else [],
        claims=_claims(groups),
        skipped=[] if rows else ["bounds beside measured losses: no STC or LRC has been trained on a shared head"],
        differences=(driving.SHARED_HEAD, *DIFFERENCES) if rows else (),
    )


DIFFERENCES = (
    "The paper proves its theorems and computes neither of them. The proof covers one Euler step, so the STC is E1.",
    f"The associated LRC has the STC's synapses and read-out, and elastance weights {100 * MARGIN:g} % below the "
    "proof's limit; it is built, not trained, so that its training error ε_T, a term of Theorem 2's bound, is "
    "larger than the STC's.",
)


def _numbers(groups: Mapping[str, Group], name: str) -> dict[str, Estimate]:
    """Return the numbers of a row over seeds; {} if none was measured."""
    group = groups.get(name if name in TRAINED else "STC E1")
    if group is None:
        return {}
    measured = {run.result.seed: run.analyses[NAME]["networks"][name] for run in group.finished if NAME in run.analyses}
    kinds: Mapping[str, float] = next(iter(measured.values()), {})
    estimates = {kind: mean_over_seeds({seed: one[kind] for seed, one in measured.items()}) for kind in kinds}
    return {kind: estimate for kind, estimate in estimates.items() if estimate is not None}


COLUMNS = {
    "lipschitz": "Lipschitz constant: bound",
    "constant": "Lipschitz constant: measured",
    "eps_training": "largest training error ε_T",
    "eps_output": "largest distance of labels ε_o",
    "eps_y": "largest distance of states and inputs ε_y",
    "bound": "bound on the validation loss",
    "loss": "validation loss: measured",
}


def _table(rows: Mapping[str, Mapping[str, Estimate]]) -> Table:
    cells: list[tuple[Cell, ...]] = [(name, *(rows.get(name, {}).get(kind) for kind in COLUMNS)) for name in ROWS]
    return Table(
        "theorems",
        "Terms of both theorems, in units of the output (a curvature of 1/40 m)",
        ("network", *COLUMNS.values()),
        cells,
        "Theorem 2: the validation loss is at most ε_o + ε_T + λ ε_y, with λ the bound on the Lipschitz constant over "
        "the box of visited states and inputs, and the other terms the largest over pairs of nearest training and "
        f"validation sequences ({TRAINING_SEQUENCES} and {VALIDATION_SEQUENCES}). The loss is the mean absolute error. "
        "The theorems order bounds: neither measured constants nor measured losses need have the same order.",
    )


def _claims(groups: Mapping[str, Group]) -> list[Claim]:
    claims = [_theorem_1(groups.get("STC E1"), form) for form in ASSOCIATED]
    stc = _numbers(groups, "STC E1").get("bound")
    for name in ASSOCIATED.values():
        lrc = _numbers(groups, name).get("bound")
        claims.append(
            Claim(
                f"Theorem 2: the bound on the validation loss of {name} is below the STC's.",
                "smaller, proved",
                "–" if lrc is None or stc is None else f"{lrc} against {stc}",
                judge_comparison(None, (lrc, stc), larger_is_better=False, under=_conditions(groups), by_ratio=True),
            )
        )
    return [*claims, _bound_holds(groups)]


def _conditions(groups: Mapping[str, Group]) -> Any:
    return driving.conditions(*groups.values())


def _theorem_1(group: Group | None, form: str) -> Claim:
    """Judge the certificate: the bound of the associated LRC is below that of the trained STC."""
    name = ASSOCIATED[form]
    measured = (
        {}
        if group is None
        else {r.result.seed: r.analyses[NAME]["certificates"][form] for r in group.finished if NAME in r.analyses}
    )
    under = driving.conditions(*([] if group is None else [group]))
    statement = f"Theorem 1: {name} has a smaller Lipschitz bound."
    if not measured:
        return Claim(statement, "smaller, proved", "–", NOT_MEASURED)
    # The certificate is exact; collected bounds have six digits, and that of LRC-A differs from the STC's beyond them.
    certified = sum(one["holds"] and one["strict"] for one in measured.values())
    reduction = 100 * fmean(1 - one["lrc"] / one["stc"] for one in measured.values())
    by = "less than 0.001" if reduction < 1e-3 else f"{reduction:.3g}"
    text = f"smaller in {certified} of {len(measured)} networks, by {by} % on average"
    verdict = judge_count(certified, len(measured), seeds=len(measured), under=under, proved=True)
    return Claim(statement, "smaller, proved", text, verdict)


def _bound_holds(groups: Mapping[str, Group]) -> Claim:
    """Judge whether the measured loss of every network is below Theorem 2's bound."""
    networks = [
        one
        for group in groups.values()
        for run in group.finished
        if NAME in run.analyses
        for one in run.analyses[NAME]["networks"].values()
    ]
    statement = "Theorem 2: the measured validation loss is below the bound."
    if not networks:
        return Claim(statement, "below, proved", "–", NOT_MEASURED)
    below = sum(one["loss"] <= one["bound"] for one in networks)
    ratios = sorted(one["bound"] / one["loss"] for one in networks)
    text = (
        f"below in {below} of {len(networks)} networks; the bound is {ratios[0]:.3g} to {ratios[-1]:.3g} times the loss"
    )
    seeds = max(len(group.finished) for group in groups.values())
    verdict = judge_count(below, len(networks), seeds=seeds, under=_conditions(groups), proved=True)
    return Claim(statement, "below, proved", text, verdict)


def _picture(rows: Mapping[str, Mapping[str, Estimate]]) -> Picture:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    ratio = max(numbers["bound"].mean / numbers["loss"].mean for numbers in rows.values())
    least = min(numbers["bound"].mean / numbers["loss"].mean for numbers in rows.values())
    with palette.figure_style():
        figure = Figure(figsize=(7.2, 0.42 * len(rows) + 1.6), layout="constrained")
        axes = figure.subplots()
        for row, (name, numbers) in enumerate(rows.items()):
            colour = palette.model_style(ROWS[name]).colour
            axes.plot([numbers["loss"].mean, numbers["bound"].mean], [row, row], color=palette.GRID, linewidth=1.2)
            axes.plot(numbers["loss"].mean, row, "o", color=colour)
            axes.plot(numbers["bound"].mean, row, "D", markerfacecolor=palette.PAPER, markeredgecolor=colour)
        axes.set_yticks(range(len(rows)), list(rows))
        axes.set(xscale="log", xlabel="mean absolute error of curvature, in 1/40 m", ylim=(len(rows) - 0.5, -0.5))
        axes.grid(False, axis="y")
        marks = [
            Line2D([], [], color=palette.INK, marker="o", linestyle="none", label="measured validation loss"),
            Line2D([], [], color=palette.INK, marker="D", markerfacecolor=palette.PAPER, linestyle="none",
                   label="bound of Theorem 2"),
        ]  # fmt: skip
        figure.legend(handles=marks, loc="outside lower center", ncols=2)
        span = f"{format_cell(least)} to {format_cell(ratio)}"
        write_finding(figure, f"Theorem 2's bound is {span} times the loss that is measured")
    return Picture(
        "bounds",
        "Validation loss and its bound by Theorem 2, means over seeds.",
        "One row per network with two marks on a logarithmic axis: the measured loss, and to its right the bound.",
        figure,
    )


ARTEFACT = MeasuringArtefact(
    title=TITLE, claimed=CLAIMED, runs=runs, render=render, wants=wants, analyse=analyse, says=SAYS
)
