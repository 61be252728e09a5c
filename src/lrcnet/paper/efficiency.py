"""Table: time per epoch, best epoch and Lipschitz constant of LTC, STC and LRC on lane keeping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lrcnet.paper import driving_runs as driving
from lrcnet.paper.artefact import Cell, Claim, Rendered, Table, check_budget
from lrcnet.paper.driving_runs import EFFICIENCY, Model
from lrcnet.paper.estimate import Estimate, mean_over_seeds
from lrcnet.paper.groups import Group
from lrcnet.paper.verdict import judge_comparison

if TYPE_CHECKING:
    from lrcnet.paper.finished import Finished
    from lrcnet.training.result import Result
    from lrcnet.training.spec import RunSpec

NAME = "efficiency"
TITLE = "Efficiency of LTC, STC and LRC"

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
LRCS, OTHERS = ("LRC-A E1", "LRC-S E1"), ("LTC H6", "STC E1", "STC H6")
# Sequences of the validation split whose states are looked at, and states among them.
SEQUENCES, STATES = 32, 1000


def runs(budget: str, seeds: int | None = None) -> list[RunSpec]:
    """LTC H6, STC E1, STC H6, LRC-A E1 and LRC-S E1; the last two are LRCUs, shared with the lane-keeping table."""
    return driving.planned(MODELS, check_budget(budget), seeds)


def wants(result: Result) -> bool:
    """The five networks in our own world."""
    return driving.wants(result, MODELS)


def analyse(folder: Path) -> dict[str, Any]:
    """The Lipschitz constant of the curvature with respect to state and features: measured, and bounded if known.

    Returns:
        The largest spectral norm over states met on validation drives, and the theorem's bounds over their range;
        all in units of curvature (1/m) per unit of state or feature.
    """
    import torch

    from lrcnet.models.policy import UNIT, normalised
    from lrcnet.theory import Domain, empirical_lipschitz, lipschitz_bound, visited_points
    from lrcnet.theory.network import bounded_circuit, read_model
    from lrcnet.training.trained import load_trained

    trained = load_trained(folder)
    policy: Any = trained.network
    frames, _, _ = trained.task.load("validation").spread(SEQUENCES)[:]
    with torch.inference_mode():
        features = torch.stack([policy.conv(normalised(drive)) for drive in frames]).clone()
    model = (policy.layer, policy.head)
    states, inputs = visited_points(model, features)
    chosen = torch.arange(min(STATES, len(states))) * len(states) // min(STATES, len(states))
    found: dict[str, Any] = {
        "empirical": UNIT * float(empirical_lipschitz(model, (states[chosen], inputs[chosen]))),
        "states": len(chosen),
    }
    try:
        bounded_circuit(read_model(model))
    except ValueError as error:
        return found | {"no_bound": str(error)}
    domain = Domain.around(states, inputs)
    return found | {kind: UNIT * lipschitz_bound(model, domain, 1.0, kind=kind).value for kind in ("paper", "tighter")}


def render(runs: Sequence[Finished]) -> Rendered:
    """The paper's table with ours beside it, and its three comparisons."""
    found = driving.found(runs, MODELS)
    named = {name: found[model] for name, model in EFFICIENCY.items() if model in found}
    skipped = [] if named else ["times, epochs and constants: no policy has been trained"]
    return Rendered(tables=[_table(named)], claims=_claims(named), skipped=skipped)


def lipschitz(group: Group | None, kind: str = "empirical") -> Estimate | None:
    """Mean over seeds of a measured or bounded constant, in units of 1e-4."""
    if group is None:
        return None
    values = [1e4 * run.analyses[NAME][kind] for run in group.finished if kind in run.analyses.get(NAME, {})]
    return mean_over_seeds(values, digits=1)


def best_epoch(group: Group | None) -> Estimate | None:
    """Mean over seeds of the epoch of best validation."""
    return None if group is None else mean_over_seeds([float(r.result.best_epoch) for r in group.finished], digits=1)


def _table(named: Mapping[str, Group]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for name in EFFICIENCY:
        group = named.get(name)
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
                lipschitz(group, "tighter"),
                lipschitz(group, "paper"),
                None if group is None else len(group.runs),
            )
        )
    budget = next(iter(named.values())).budget if named else "paper"
    return Table(
        "efficiency",
        "Time per epoch, best epoch, and Lipschitz constant (in 1e-4) of LTC, STC and LRC",
        (
            "model",
            "paper: min per epoch",
            "ours: s per epoch",
            "paper: best epoch",
            "ours: best epoch",
            "of epochs",
            "paper: Lipschitz",
            "ours: empirical",
            "tighter bound",
            "the proof's bound",
            "seeds",
        ),
        rows,
        f"{driving.WORLD} {driving.describe(budget)} The empirical constant is the largest spectral norm of the "
        "curvature's (1/m) Jacobian with respect to state and features over states of validation drives; the paper "
        "does not say in which units its own is. Bounds hold over the box of these states and exist for one step of "
        "STC and LRC as the proof gives them, for six unfoldings by an extension of ours, and for LTC not at all. "
        "LRC-A E1 and LRC-S E1 are the LRCUs of the lane-keeping table.",
    )


def _claims(named: Mapping[str, Group]) -> list[Claim]:
    def compare(what: str, first: str, second: str, kind: str, number: Any) -> Claim:
        groups = [named.get(name) for name in (first, second)]
        ours = [number(group) for group in groups]
        claimed = CLAIMED[kind][first], CLAIMED[kind][second]
        # Constants and epochs of another world and another length: compared as parts of the second model's.
        parts = [None if e is None or ours[1] is None or not ours[1].mean else e.over(ours[1].mean) for e in ours]
        return Claim(
            what,
            f"{claimed[0].mean:g} against {claimed[1].mean:g}",
            "–" if None in ours else f"{ours[0]} against {ours[1]}",
            judge_comparison(
                (claimed[0].over(claimed[1].mean), claimed[1].over(claimed[1].mean)),
                (parts[0], parts[1]),
                larger_is_better=False,
                under=driving.conditions(*[g for g in groups if g is not None]),
            ),
        )

    return [
        *(
            compare(f"{lrc} reaches its best validation in fewer epochs than {other}.", lrc, other, "best", best_epoch)
            for lrc in LRCS
            for other in OTHERS
        ),
        *(
            compare(f"{lrc} has a smaller Lipschitz constant than {other}.", lrc, other, "lipschitz", lipschitz)
            for lrc in LRCS
            for other in OTHERS
        ),
        *(_time_claim(named, lrc, other) for lrc in LRCS for other in ("LTC H6", "STC H6")),
        _unfolding_claim(named),
    ]


def _time_claim(named: Mapping[str, Group], lrc: str, other: str) -> Claim:
    def total(name: str) -> Estimate:
        return Estimate(CLAIMED["time"][name] * CLAIMED["best"][name].mean)

    def ours(name: str) -> Estimate | None:
        group = named.get(name)
        values = [] if group is None else [r.result.seconds_per_epoch * r.result.best_epoch for r in group.finished]
        return mean_over_seeds(values, digits=0)

    numbers = ours(lrc), ours(other)
    groups = [named[name] for name in (lrc, other) if name in named]
    parts = tuple(None if n is None or numbers[1] is None else n.over(numbers[1].mean) for n in numbers)
    factor = total(other).mean / total(lrc).mean
    return Claim(
        f"{lrc} reaches its best epoch in less time than {other}.",
        f"{factor:.1f} times faster",
        "–" if None in numbers else f"{numbers[1].mean / numbers[0].mean:.1f} times faster",  # type: ignore[union-attr]
        judge_comparison(
            (total(lrc).over(total(other).mean), Estimate(1.0)),
            parts,  # type: ignore[arg-type]
            larger_is_better=False,
            under=driving.conditions(*groups),
        ),
    )


def _unfolding_claim(named: Mapping[str, Group]) -> Claim:
    """Six unfoldings cost 2.5 times one: a comparison of two times, so its margin is their ratio."""
    slow, fast = named.get("STC H6"), named.get("STC E1")
    claimed = CLAIMED["time"]["STC H6"] / CLAIMED["time"]["STC E1"]
    ratio = None if slow is None or fast is None else slow.seconds_per_epoch() / fast.seconds_per_epoch()
    present = [g for g in (slow, fast) if g is not None]
    return Claim(
        "An epoch with six unfoldings takes longer than one with one explicit step.",
        f"{claimed:.1f} times",
        "–" if ratio is None else f"{ratio:.2f} times",
        judge_comparison(
            (Estimate(claimed, 0.1 * claimed), Estimate(1.0, 0.1)),
            (None if ratio is None else Estimate(ratio), None if ratio is None else Estimate(1.0)),
            larger_is_better=True,
            under=driving.conditions(*present),
        ),
    )


__all__ = ["CLAIMED", "TITLE", "Model", "analyse", "best_epoch", "lipschitz", "render", "runs", "wants"]
