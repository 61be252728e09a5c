"""Table: the paper's two theorems on trained networks, their bounds beside the measured constants and losses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from lrcnet.pages import palette
from lrcnet.pages.content import Cell, Picture, Table
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
        pictures=[_picture(rows, _bound_ratios(groups))] if rows else [],
        claims=_claims(groups),
        skipped=[] if rows else ["bounds beside measured losses: no STC or LRC has been trained on a shared head"],
        differences=(driving.SHARED_HEAD, *driving.shared_head_training(groups), *DIFFERENCES) if rows else (),
    )


DIFFERENCES = (
    "The paper proves its theorems and computes neither of them. The proof covers one Euler step, so the STC is E1.",
    f"The associated LRC has the STC's synapses and read-out, and elastance weights {100 * MARGIN:g} % below the "
    "proof's limit; it is built, not trained, so that its training error ε_T, a term of Theorem 2's bound, is "
    "larger than the STC's.",
    "Theorem 2 assumes one small ε_T, one ε_o and one ε_y for both networks, so that its order follows from Theorem "
    "1's. Ours have terms of their own, so that the bounds that we measure need not have this order. The claims are "
    "about the measured bounds; the reduction at equal terms (the larger ones for both) stands beside them.",
)


def _measured(group: Group | None) -> dict[int, Mapping[str, Any]]:
    """Return seed -> the measurement of its run."""
    runs = [] if group is None else group.finished
    return {run.result.seed: run.analyses[NAME] for run in runs if NAME in run.analyses}


def _stc_box(measurement: Mapping[str, Any], name: str) -> dict[str, float]:
    """Return the Lipschitz bound over the box that the STC visits, which only an STC and its associated LRCs have."""
    for form, certificate in measurement["certificates"].items():
        if name in ("STC E1", ASSOCIATED[form]):
            return {"stc_box": certificate["stc" if name == "STC E1" else "lrc"]}
    return {}


def _numbers(groups: Mapping[str, Group], name: str) -> dict[str, Estimate]:
    """Return the numbers of a row over seeds; {} if none was measured."""
    group = groups.get(name if name in TRAINED else "STC E1")
    if group is None:
        return {}
    measured = {seed: {**one["networks"][name], **_stc_box(one, name)} for seed, one in _measured(group).items()}
    kinds: Mapping[str, float] = next(iter(measured.values()), {})
    estimates = {kind: mean_over_seeds({seed: one[kind] for seed, one in measured.items()}) for kind in kinds}
    return {kind: estimate for kind, estimate in estimates.items() if estimate is not None}


COLUMNS = {
    "stc_box": "Lipschitz constant: bound over the STC's box",
    "lipschitz": "Lipschitz constant: bound over its own box",
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
        "the box of states and inputs that the network itself visits, and the other terms the largest over pairs of "
        f"nearest training and validation sequences ({TRAINING_SEQUENCES} and {VALIDATION_SEQUENCES}). The loss is the "
        "mean absolute error. Theorem 1 compares an STC with its LRC over one box, the STC's; over boxes of their own "
        "the bounds also differ because the networks visit different states. "
        "The theorems order bounds: neither measured constants nor measured losses need have the same order.",
    )


def _claims(groups: Mapping[str, Group]) -> list[Claim]:
    measured = _measured(groups.get("STC E1"))
    orders = [judge(groups, measured, form) for judge in (_theorem_1, _theorem_2) for form in ASSOCIATED]
    return [*orders, _bound_holds(groups)]


def _theorem_1(groups: Mapping[str, Group], measured: Mapping[int, Mapping[str, Any]], form: str) -> Claim:
    """Judge the certificate: over one box, the bound of the associated LRC is below that of the trained STC."""
    statement = f"Theorem 1: {ASSOCIATED[form]} has a smaller Lipschitz bound."
    if not measured:
        return Claim(statement, "smaller, proved", "–", NOT_MEASURED)
    certificates = [one["certificates"][form] for one in measured.values()]
    # The certificate is exact; collected bounds have six digits, and that of LRC-A differs from the STC's beyond them.
    certified = sum(one["holds"] and one["strict"] for one in certificates)
    reduction = _describe_reduction([1 - one["lrc"] / one["stc"] for one in certificates])
    under = driving.conditions(groups["STC E1"])
    verdict = judge_count(certified, len(measured), seeds=len(measured), under=under, proved=True)
    return Claim(
        statement, "smaller, proved", f"smaller in {certified} of {len(measured)} networks, {reduction}", verdict
    )


def _theorem_2(groups: Mapping[str, Group], measured: Mapping[int, Mapping[str, Any]], form: str) -> Claim:
    """Judge the bounds on the loss with each network's own terms, and print what equal terms would give beside them.

    At equal terms the bounds differ by λ alone, so that the order would follow from Theorem 1 without a measurement.
    """
    name = ASSOCIATED[form]
    lrc, stc = (_numbers(groups, one).get("bound") for one in (name, "STC E1"))
    statement = f"Theorem 2: the bound on the validation loss of {name} is below the STC's."
    under = driving.conditions(*groups.values())
    verdict = judge_comparison(None, (lrc, stc), larger_is_better=False, under=under, by_ratio=True)
    if lrc is None or stc is None:
        return Claim(statement, "smaller, proved", "–", verdict)
    reductions = [_reduction_at_equal_terms(one, form) for one in measured.values()]
    ours = f"{lrc} against {stc}; at equal terms smaller {_describe_reduction(reductions)}"
    return Claim(statement, "smaller, proved", ours, verdict)


def _reduction_at_equal_terms(measurement: Mapping[str, Any], form: str) -> float:
    """Return the share by which the LRC's bound on the loss is below the STC's if both have the larger terms."""
    networks, bounds = measurement["networks"], measurement["certificates"][form]
    error, label, distance = (
        max(networks[name][term] for name in ("STC E1", ASSOCIATED[form]))
        for term in ("eps_training", "eps_output", "eps_y")
    )
    return float(distance * (bounds["stc"] - bounds["lrc"]) / (label + error + distance * bounds["stc"]))


def _describe_reduction(reductions: Sequence[float]) -> str:
    """Describe shares of the STC's bound by their mean; collected bounds have no digits below 0.001 %."""
    percent = 100 * fmean(reductions)
    return f"by {'less than 0.001' if percent < 1e-3 else f'{percent:.3g}'} % on average"


def _bound_ratios(groups: Mapping[str, Group]) -> list[float]:
    """Return the bound of Theorem 2 as a multiple of the measured loss, in every single network, sorted."""
    return sorted(one["bound"] / one["loss"] for one in _networks(groups))


def _networks(groups: Mapping[str, Group]) -> list[Mapping[str, float]]:
    """List the numbers of every single network."""
    return [one for group in groups.values() for run in _measured(group).values() for one in run["networks"].values()]


def _describe_ratios(ratios: Sequence[float]) -> str:
    """Describe the smallest and the largest ratio with three digits.

    >>> _describe_ratios([93217.0, 410045.0])
    '93,200 to 410,000'
    """
    return " to ".join(f"{float(f'{end:.3g}'):,.12g}" for end in (ratios[0], ratios[-1]))


def _bound_holds(groups: Mapping[str, Group]) -> Claim:
    """Judge whether the measured loss of every network is below Theorem 2's bound."""
    networks = _networks(groups)
    statement = "Theorem 2: the measured validation loss is below the bound."
    if not networks:
        return Claim(statement, "below, proved", "–", NOT_MEASURED)
    below = sum(one["loss"] <= one["bound"] for one in networks)
    ratios = _describe_ratios(_bound_ratios(groups))
    text = f"below in {below} of {len(networks)} networks; in single networks the bound is {ratios} times the loss"
    seeds = max(len(group.finished) for group in groups.values())
    verdict = judge_count(below, len(networks), seeds=seeds, under=driving.conditions(*groups.values()), proved=True)
    return Claim(statement, "below, proved", text, verdict)


def _picture(rows: Mapping[str, Mapping[str, Estimate]], ratios: Sequence[float]) -> Picture:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

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
        span = _describe_ratios(ratios)
        write_finding(figure, f"In single networks Theorem 2's bound is {span} times the loss that is measured")
    return Picture(
        "bounds",
        "Validation loss and its bound by Theorem 2, means over seeds.",
        "One row per network with two marks on a logarithmic axis: the measured loss, and to its right the bound.",
        figure,
    )


ARTEFACT = MeasuringArtefact(
    title=TITLE, claimed=CLAIMED, runs=runs, render=render, wants=wants, analyse=analyse, says=SAYS
)
