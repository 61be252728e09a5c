"""Table: time per epoch, best epoch and Lipschitz constant of LTC, STC and LRC on lane keeping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lrcnet.pages.content import Cell, Picture, Table
from lrcnet_paper.artefacts import driving_runs as driving
from lrcnet_paper.artefacts.artefact import Claim, Comparison, MeasuringArtefact, Rendered
from lrcnet_paper.artefacts.driving_runs import EFFICIENCY, Model
from lrcnet_paper.artefacts.efficiency_figure import EfficiencyDots, draw_efficiency
from lrcnet_paper.artefacts.initial_values import EXPLANATION, OUR_DEFAULTS, has_our_defaults
from lrcnet_paper.artefacts.sentences import join_words
from lrcnet_paper.results.estimate import Estimate, mean_over_seeds
from lrcnet_paper.results.groups import Group, group_runs
from lrcnet_paper.results.interval import paired_interval
from lrcnet_paper.results.verdict import judge_comparison
from lrcnet_paper.training.budgets import check_budget

if TYPE_CHECKING:
    from lrcnet_paper.results.finished_run import FinishedRun
    from lrcnet_paper.training.result import Result
    from lrcnet_paper.training.spec import RunSpec

NAME = "efficiency"
TITLE = "Efficiency of LTC, STC and LRC"
SAYS = "LRCs need fewer epochs and have a smaller Lipschitz constant than LTCs and STCs."

CLAIMED: Mapping[str, Any] = {
    # Minutes.
    "time": {"LTC H6": 10.06, "STC E1": 3.97, "STC H6": 10.13, "LRC-A E1": 4.05, "LRC-S E1": 4.16},
    "best": {
        "LTC H6": Estimate(52, 6, 3, digits=0),
        "STC E1": Estimate(50, 22, 3, digits=0),
        "STC H6": Estimate(69, 10, 3, digits=0),
        "LRC-A E1": Estimate(43, 8, 3, digits=0),
        "LRC-S E1": Estimate(22, 3, 3, digits=0),
    },
    # In units of 1e-4.
    "lipschitz": {
        "LTC H6": Estimate(90, 23, 3, digits=0),
        "STC E1": Estimate(101, 25, 3, digits=0),
        "STC H6": Estimate(89, 23, 3, digits=0),
        "LRC-A E1": Estimate(47, 8, 3, digits=0),
        "LRC-S E1": Estimate(43, 11, 3, digits=0),
    },
}
MODELS = tuple(EFFICIENCY.values())
GATED_MODELS = (Model("lstm"), Model("gru"), Model("mgu"))
LRCUS = (Model("lrcu-a"), Model("lrcu-s"))
LRCS = ("LRC-A E1", "LRC-S E1")
# The constants that no claim is about.
OTHER_PARTS = {"state": "the state alone", "empirical": "features and state together"}
# How many validation sequences the network runs on, and how many of the states that it visits are measured.
SEQUENCES, STATES = 32, 1000


def runs(budget: str, seeds: int | None = None) -> list[RunSpec]:
    """Plan LTC H6, STC E1, STC H6, LRC-A E1 and LRC-S E1, which are LRCUs, and the gated units.

    The paper budget trains the LRCUs from the library's initial values too.
    """
    planned = driving.plan_shared_head_runs((*MODELS, *GATED_MODELS), check_budget(budget), seeds)
    if budget == "paper":
        planned += driving.plan_shared_head_runs(LRCUS, budget, seeds, options=OUR_DEFAULTS)
    return planned


def wants(result: Result) -> bool:
    """Return whether a result belongs to one of the five networks in our own world."""
    return driving.wants_shared_head(result, MODELS)


def analyse(folder: Path) -> dict[str, Any]:
    """Measure Lipschitz constants of the curvature with respect to features, to state and to both, and bound the last.

    Returns:
        The largest norms over states visited on validation drives, and the theorem's bounds over the range of these
        states; all in units of curvature (1/m) per unit of state or feature.
    """
    import torch

    from lrcnet.theory import Domain, empirical_lipschitz, lipschitz_bound, visited_points
    from lrcnet.theory.network import bounded_circuit, read_model
    from lrcnet_paper.models.policy import CURVATURE_PER_OUTPUT
    from lrcnet_paper.training.shared_head import feature_samples
    from lrcnet_paper.training.trained_network import load_trained

    trained = load_trained(folder)
    policy: Any = trained.network
    samples = feature_samples(trained.spec.variant, "validation", trained.spec.seed)
    features, _, _ = samples.evenly_spaced(SEQUENCES)[:]
    model = (policy.layer, policy.head)
    states, inputs = visited_points(model, features)
    chosen = torch.arange(min(STATES, len(states))) * len(states) // min(STATES, len(states))
    points = states[chosen], inputs[chosen]
    constants: dict[str, Any] = {
        "empirical": CURVATURE_PER_OUTPUT * float(empirical_lipschitz(model, points)),
        **_split_constants(policy, *points),
        "states": len(chosen),
    }
    try:
        bounded_circuit(read_model(model))
    except ValueError as error:
        return constants | {"no_bound": str(error)}
    domain = Domain.around(states, inputs)
    return constants | {
        kind: CURVATURE_PER_OUTPUT * lipschitz_bound(model, domain, 1.0, kind=kind).value
        for kind in ("paper", "tighter")
    }


def _split_constants(policy: Any, states: Any, inputs: Any) -> dict[str, float]:
    """Return the largest norms of the curvature's gradient with respect to features and to states, apart.

    The part of the state is mostly memory, so the part of the features is the one that says how gently a unit reacts.
    """
    import torch

    from lrcnet_paper.models.policy import CURVATURE_PER_OUTPUT

    cell, dtype = policy.layer.cells[0], policy.head.weight.dtype
    h, x = (points.to(dtype).clone().requires_grad_() for points in (states, inputs))
    output = policy.head(cell.read_out(cell(x, h))).sum()
    by_state, by_input = torch.autograd.grad(output, (h, x))
    norms = {"state": by_state, "input": by_input}
    return {name: CURVATURE_PER_OUTPUT * float(gradient.norm(dim=1).max()) for name, gradient in norms.items()}


def render(runs: Sequence[FinishedRun]) -> Rendered:
    """Set our numbers beside the paper's, and judge its three comparisons."""
    by_model = driving.find_groups(runs, MODELS, wanted=driving.wants_shared_head)
    groups = {name: by_model[model] for name, model in EFFICIENCY.items() if model in by_model}
    skipped = [] if groups else ["times, epochs and constants: no policy has been trained"]
    return Rendered(
        tables=[_table(groups)],
        pictures=_pictures(groups),
        claims=_claims(groups),
        skipped=skipped,
        differences=driving.shared_head_differences(groups),
        sensitivities=_initial_values(runs),
    )


def lipschitz(group: Group | None, kind: str = "input") -> Estimate | None:
    """Return the mean over seeds of a measured or bounded constant, in units of 1e-4."""
    if group is None:
        return None
    values = {
        run.result.seed: 1e4 * run.analyses[NAME][kind] for run in group.finished if kind in run.analyses.get(NAME, {})
    }
    return mean_over_seeds(values, digits=1)


def best_epoch(group: Group | None) -> Estimate | None:
    """Return the mean over seeds of the epoch of best validation."""
    if group is None:
        return None
    return mean_over_seeds({run.result.seed: float(run.result.best_epoch) for run in group.finished}, digits=1)


def _table(groups: Mapping[str, Group]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name in EFFICIENCY:
        group = groups.get(name)
        rows.append(
            (
                name,
                CLAIMED["time"][name],
                None if group is None else group.seconds_per_epoch(),
                CLAIMED["best"][name],
                best_epoch(group),
                None if group is None else group.epochs,
                CLAIMED["lipschitz"][name],
                lipschitz(group),
                lipschitz(group, "state"),
                lipschitz(group, "empirical"),
                lipschitz(group, "tighter"),
                lipschitz(group, "paper"),
                driving.sharp_bend_gain(group),
                None if group is None else len(group.runs),
            )
        )
    return Table(
        "efficiency",
        "Time per epoch, best epoch, and Lipschitz constant (in 1e-4) of LTC, STC and LRC",
        (
            "model",
            "paper: min per epoch",
            "ours: s per epoch, median over seeds",
            "paper: best epoch",
            "ours: best epoch",
            "ours: epochs trained",
            "paper: Lipschitz",
            "ours: features",
            "ours: state",
            "ours: both",
            "tighter bound",
            "bound of the proof",
            "gain in sharp bends",
            "seeds",
        ),
        rows,
        f"{driving.describe(groups)} The constants are the largest norms of the "
        "curvature's (1/m) Jacobian over states of validation drives. The paper does not say whether its constant is "
        "with respect to features, states or both, nor its units; claims are about the features' part, since the "
        "state's part is mostly memory. The bounds hold over the box that contains these states. For one "
        "step of STC and LRC they come from the proof, for six unfoldings from our extension of it; LTC has none. "
        "LRC-A E1 and LRC-S E1 are the LRCUs of the lane-keeping table. The runs shared the machine with other runs, "
        f"so that times are indications only.{_describe_other_parts(groups)}",
    )


def _opposite_rivals(groups: Mapping[str, Group], lrc: str, part: str) -> list[str]:
    """List the rivals whose constant in another part is below that of an LRC, by the whole interval over seeds."""

    def is_opposite(other: str) -> bool:
        interval = paired_interval(*(lipschitz(groups.get(name), part) for name in (lrc, other)), by_ratio=True)
        return interval is not None and interval.low > 0

    return [other for other in driving.LTC_AND_STC if is_opposite(other)]


def _opposite_warning(groups: Mapping[str, Group], lrc: str) -> tuple[str, ...]:
    """Warn if by other parts of the constant an LRC is behind some rivals, which no verdict shows."""
    rivals = {words: join_words(_opposite_rivals(groups, lrc, part)) for part, words in OTHER_PARTS.items()}
    return tuple(
        f"with respect to {' and to '.join(words for words in rivals if rivals[words] == names)}, the order is "
        f"opposite against {names}"
        for names in dict.fromkeys(rivals.values())
        if names
    )


def _describe_other_parts(groups: Mapping[str, Group]) -> str:
    """Count the comparisons that come out the other way by the parts of the constant that no claim is about."""
    sentences = []
    for part, words in OTHER_PARTS.items():
        constants = {name: number.mean for name, group in groups.items() if (number := lipschitz(group, part))}
        opposite = sum(len(_opposite_rivals(groups, lrc, part)) for lrc in LRCS)
        if opposite:
            lrcs, others = ([constants[name] for name in constants if (name in LRCS) == own] for own in (True, False))
            sentences.append(
                f" With respect to {words}, {opposite} of {len(LRCS) * len(driving.LTC_AND_STC)} comparisons come out "
                "the other way, by the whole interval: the constants of LRCs are "
                f"{min(lrcs):,.0f} to {max(lrcs):,.0f}, those of LTC and STC {min(others):,.0f} to {max(others):,.0f}."
            )
    return "".join(sentences)


def _pictures(groups: Mapping[str, Group]) -> list[Picture]:
    """Draw the best epochs and both parts of the Lipschitz constants; return no picture if none was measured."""
    dots = {
        name: EfficiencyDots(
            {kind: CLAIMED[kind][name] for kind in ("best", "lipschitz")},
            best_epoch(group),
            lipschitz(group),
            lipschitz(group, "state"),
        )
        for name, group in groups.items()
    }
    return [draw_efficiency(dots)] if any(one.features for one in dots.values()) else []


def _initial_values(runs: Sequence[FinishedRun]) -> list[Table]:
    """Compare both initial values of the LRCUs on the shared head; no table if the library's were not tried."""
    groups = [g for g in group_runs(runs, driving.TASK) if g.variant in driving.SHARED_HEAD_VARIANTS]
    library = {g.model: g for g in groups if has_our_defaults(g)}
    paper = driving.find_groups(runs, LRCUS, wanted=driving.wants_shared_head)
    rows: list[tuple[Cell, ...]] = [
        (
            driving.label(model),
            start,
            best_epoch(group),
            group.metric("validation_curvature_loss", digits=4),
            driving.sharp_bend_gain(group),
            len(group.runs),
        )
        for model in LRCUS
        if model.name in library
        for start, group in (("paper", paper.get(model)), ("library", library[model.name]))
        if group is not None
    ]
    if not rows:
        return []
    table = Table(
        "initial-values",
        "LRCUs on a shared head from the paper's and from the library's initial values",
        ("model", "initial values", "best epoch", "validation loss", "gain in sharp bends", "seeds"),
        rows,
        EXPLANATION,
        row_headers=2,
    )
    return [table]


def _claims(groups: Mapping[str, Group]) -> list[Claim]:
    def compare(first: str, second: str, kind: str, measure: Any) -> Comparison:
        pair = [groups.get(name) for name in (first, second)]
        ours = [measure(group) for group in pair]
        claimed = CLAIMED[kind][first], CLAIMED[kind][second]
        under = driving.conditions(*[g for g in pair if g is not None])
        if kind == "lipschitz":
            under = replace(under, warnings=(*under.warnings, *_opposite_warning(groups, first)))
        return Comparison(
            f"{claimed[0].mean:g} against {claimed[1].mean:g}",
            "–" if None in ours else f"{ours[0]} against {ours[1]}",
            judge_comparison(
                claimed,
                (ours[0], ours[1]),
                larger_is_better=False,
                under=under,
                by_ratio=True,
            ),
        )

    return [
        Claim.against_all(
            f"{lrc} {statement} LTC and STC.",
            {other: compare(lrc, other, kind, measure) for other in driving.LTC_AND_STC},
        )
        for statement, kind, measure in (
            ("reaches its best validation loss in fewer epochs than", "best", best_epoch),
            ("has a smaller Lipschitz constant with respect to features than", "lipschitz", lipschitz),
        )
        for lrc in LRCS
    ]


ARTEFACT = MeasuringArtefact(
    title=TITLE, claimed=CLAIMED, runs=runs, render=render, wants=wants, analyse=analyse, says=SAYS
)
