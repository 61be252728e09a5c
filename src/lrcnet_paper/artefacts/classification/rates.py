"""Table: person activity at the three learning rates that the paper searched, and which one a search would pick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lrcnet.pages import palette
from lrcnet.pages.content import Cell, Table
from lrcnet_paper.artefacts.artefact import Claim
from lrcnet_paper.artefacts.classification.claims import accuracy, who_is_ahead, whole
from lrcnet_paper.artefacts.classification.runs import MODELS, SEARCHED, TITLES
from lrcnet_paper.results.estimate import Estimate, mean_over_seeds
from lrcnet_paper.results.groups import Group
from lrcnet_paper.training.change import Change


@dataclass(frozen=True)
class Rate:
    """One model at one rate.

    Attributes:
        variant: of the data, with the faithful split.
        model, rate: which.
        faithful: the runs on the faithful split, if any; their test accuracy is what is compared with the paper's.
        clean: the runs on the clean split of the same data, if any.
        loss: their validation loss, over the seeds that every rate of this model has.
        picked: whether that is the least of all three rates.
    """

    variant: str
    model: str
    rate: float
    faithful: Group | None
    clean: Group | None
    loss: Estimate | None
    picked: bool


def searched(groups: Sequence[Group]) -> list[Rate]:
    """Every model at every rate, for the variants where another rate than the recipe's was tried."""
    from lrcnet_paper.training.rate_search import RATES

    # The longest group of each comes first and stays.
    found: dict[tuple[str, str, float], Group] = {}
    for group in groups:
        rate = _rate(group)
        if rate is not None:
            found.setdefault((group.variant, group.model, rate), group)
    variants = dict.fromkeys(g.variant.removesuffix("-clean") for g in groups if g.change and _rate(g) is not None)
    rows = []
    for variant in variants:
        for model in MODELS:
            clean = {rate: found.get((f"{variant}-clean", model, rate)) for rate in RATES}
            losses = _losses(clean)
            # A rate whose runs all diverged has lost the search; one that was not tried leaves it open.
            tried = all(group is not None for group in clean.values())
            least = min(losses, key=lambda rate: losses[rate].mean) if tried and losses else None
            rows += [
                Rate(
                    variant,
                    model,
                    rate,
                    found.get((variant, model, rate)),
                    clean[rate],
                    losses.get(rate),
                    rate == least,
                )
                for rate in RATES
            ]
    return rows


def _rate(group: Group) -> float | None:
    """The rate it was trained with, None if it has another solver or schedule."""
    return group.spec.rate if group.change == Change(rate=group.change.rate) else None


def _losses(groups: Mapping[float, Group | None]) -> dict[float, Estimate]:
    """Validation loss by rate, over the seeds that all of them have; a rate without a finished run is left out."""
    from lrcnet_paper.training.rate_search import LOSS

    by_seed = {
        rate: {run.result.seed: run.result.metrics[LOSS] for run in group.finished}
        for rate, group in groups.items()
        if group is not None and group.finished
    }
    common = set.intersection(*(set(losses) for losses in by_seed.values())) if by_seed else set()
    estimates = {rate: mean_over_seeds([losses[seed] for seed in common], digits=3) for rate, losses in by_seed.items()}
    return {rate: estimate for rate, estimate in estimates.items() if estimate is not None}


def rate_table(rates: Sequence[Rate]) -> Table:
    """One line per variant, model and rate."""
    rows: list[tuple[Cell, ...]] = []
    for entry in rates:
        group = entry.faithful
        if group is None and entry.clean is None:
            continue
        rows.append(
            (
                entry.variant,
                palette.model_label(entry.model),
                f"{entry.rate:g}",
                entry.loss,
                "picked" if entry.picked else "",
                accuracy(entry.clean),
                accuracy(group),
                None if group is None else len(group.runs),
                None if group is None else f"{group.epochs} of {whole(group)}",
            )
        )
    return Table(
        "rates",
        "Person activity: what the learning rate changes, test accuracy (%)",
        (
            "variant",
            "model",
            "rate",
            "validation loss, clean split",
            "search",
            "accuracy, clean split",
            "accuracy, faithful split",
            "seeds",
            "epochs",
        ),
        rows,
        "The tables above take the protocol's rate, 0.001. The paper says that it searched these three by validation "
        "loss. Its split has no validation set, so the search is made on the clean one (split by sequence), which sees "
        "nothing of the faithful split's test accuracy. A rate is picked once all three have been tried there; what is "
        "best for few clean sequences need not be best for the other split.",
    )


def rate_claims(rates: Sequence[Rate]) -> list[Claim]:
    """The paper's comparisons, each model at the rate that the search picks for it, on either split."""
    claims = []
    for variant in dict.fromkeys(entry.variant for entry in rates):
        picked = [entry for entry in rates if entry.variant == variant and entry.picked]
        for groups in ([entry.faithful for entry in picked], [entry.clean for entry in picked]):
            by_model = {group.model: group for group in groups if group is not None}
            if by_model:
                split = next(iter(by_model.values())).variant
                where = f"{TITLES[SEARCHED]} ({split}, each at its searched rate)"
                claims += who_is_ahead(SEARCHED, where, by_model)
    return claims
