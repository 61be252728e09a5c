"""Table: person activity at the three learning rates that the paper searched, and the rate that a search picks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lrcnet.pages import palette
from lrcnet.pages.content import Cell, Table
from lrcnet_paper.artefacts.classification.claims import accuracy, accuracy_after, protocol_epochs
from lrcnet_paper.artefacts.classification.runs import MODELS
from lrcnet_paper.artefacts.sentences import join_words
from lrcnet_paper.results.estimate import Estimate, mean_over_seeds
from lrcnet_paper.results.groups import Group
from lrcnet_paper.training.change import Change


@dataclass(frozen=True)
class RateTrial:
    """One model at one learning rate.

    Attributes:
        variant: the data's variant with the faithful split.
        model: the model's name.
        rate: the learning rate.
        faithful: the runs on the faithful split, if any; their test accuracy is compared with the paper's.
        clean: the runs on the clean split of the same data, if any.
        loss: validation loss of `clean` over the seeds that every rate of this model has.
        picked: whether `loss` is the smallest of all three rates.
        epochs: number of epochs after which the faithful runs of this variant are compared, the shortest run's.
    """

    variant: str
    model: str
    rate: float
    faithful: Group | None
    clean: Group | None
    loss: Estimate | None
    picked: bool
    epochs: int

    @property
    def accuracy(self) -> Estimate | None:
        """The test accuracy on the faithful split after `epochs`."""
        return accuracy_after(self.faithful, self.epochs)


def search_rates(groups: Sequence[Group]) -> list[RateTrial]:
    """List every model at every rate, for the variants on which a rate other than the recipe's was tried."""
    from lrcnet_paper.training.rate_search import RATES

    # The longest group comes first, so `setdefault` keeps it.
    longest: dict[tuple[str, str, float], Group] = {}
    for group in groups:
        rate = _trained_rate(group)
        if rate is not None:
            longest.setdefault((group.variant, group.model, rate), group)
    variants = dict.fromkeys(
        g.variant.removesuffix("-clean") for g in groups if g.change and _trained_rate(g) is not None
    )
    trials = []
    for variant in variants:
        epochs = min((group.epochs for key, group in longest.items() if key[0] == variant), default=0)
        for model in MODELS:
            clean = {rate: longest.get((f"{variant}-clean", model, rate)) for rate in RATES}
            losses = _losses(clean)
            # A rate whose runs all diverged loses the search; a rate that was not tried leaves the search open.
            tried = all(group is not None for group in clean.values())
            least = min(losses, key=lambda rate: losses[rate].mean) if tried and losses else None
            trials += [
                RateTrial(
                    variant,
                    model,
                    rate,
                    longest.get((variant, model, rate)),
                    clean[rate],
                    losses.get(rate),
                    rate == least,
                    epochs,
                )
                for rate in RATES
            ]
    return trials


def _trained_rate(group: Group) -> float | None:
    """Return the rate of a group, or None if its solver, schedule or options are not the recipe's."""
    follows = group.change == Change(rate=group.change.rate) and not group.spec.options
    return group.spec.rate if follows else None


def _losses(groups: Mapping[float, Group | None]) -> dict[float, Estimate]:
    """Return validation losses by rate over the seeds common to all rates; leave out rates without a finished run."""
    from lrcnet_paper.training.rate_search import LOSS

    by_seed = {
        rate: {run.result.seed: run.result.metrics[LOSS] for run in group.finished}
        for rate, group in groups.items()
        if group is not None and group.finished
    }
    common = set.intersection(*(set(losses) for losses in by_seed.values())) if by_seed else set()
    estimates = {
        rate: mean_over_seeds({seed: losses[seed] for seed in common}, digits=3) for rate, losses in by_seed.items()
    }
    return {rate: estimate for rate, estimate in estimates.items() if estimate is not None}


def _picked(trial: RateTrial) -> str:
    """Mark the picked rate, with a note if a single seed picked it."""
    if not trial.picked:
        return ""
    return "picked by one seed" if _by_one_seed(trial) else "picked"


def _by_one_seed(trial: RateTrial) -> bool:
    return trial.loss is not None and trial.loss.seeds == 1


def _seeds(*numbers: Estimate | None) -> str:
    """List the number of seeds in each mean, "–" for a missing one.

    >>> _seeds(Estimate(1.2, 0.1, seeds=2), None, Estimate(84.0, 0.3, seeds=3))
    '2, –, 3'
    """
    return ", ".join("–" if number is None else str(number.seeds) for number in numbers)


def describe_searches(trials: Sequence[RateTrial]) -> str:
    """Say how many of the complete searches pick the rate that is picked most often, and how many by one seed."""
    picks = [trial for trial in trials if trial.picked]
    if not picks:
        return "No search over the three rates is complete yet"
    rates = [trial.rate for trial in picks]
    most = max(sorted(set(rates)), key=rates.count)
    models = join_words(list(dict.fromkeys(palette.model_label(trial.model) for trial in picks)))
    variants = join_words(list(dict.fromkeys(trial.variant for trial in picks)))
    single = sum(trial.rate == most and _by_one_seed(trial) for trial in picks)
    return (
        f"{rates.count(most)} of {len(picks)} searches by validation loss ({models} on {variants}) pick a rate of "
        f"{most:g}{f', {single} of them by a single seed' if single else ''}"
    )


def rate_table(trials: Sequence[RateTrial]) -> Table:
    """Tabulate one row per variant, model and rate."""
    rows: list[tuple[Cell, ...]] = []
    for trial in trials:
        group = trial.faithful
        if group is None and trial.clean is None:
            continue
        rows.append(
            (
                trial.variant,
                palette.model_label(trial.model),
                f"{trial.rate:g}",
                trial.loss,
                _picked(trial),
                accuracy(trial.clean),
                trial.accuracy,
                _seeds(trial.loss, accuracy(trial.clean), trial.accuracy),
                None if group is None else f"{trial.epochs} of {protocol_epochs(group)}",
            )
        )
    return Table(
        "rates",
        "Person activity by learning rate: test accuracy (%)",
        (
            "variant",
            "model",
            "rate",
            "validation loss, clean split",
            "search",
            "accuracy, clean split",
            "accuracy, faithful split",
            "seeds of the three numbers",
            "epochs, faithful split",
        ),
        rows,
        "The tables above use the protocol's rate, 0.001. The paper says that it searched these three by validation "
        "loss. Its split has no validation set, so we search on the clean split (by sequence). The search does not "
        "use the faithful split's test accuracy, but shares its sequences: windows of the clean validation sequences "
        "are in the faithful test set. The validation loss is the mean over the seeds that all three rates have; with "
        "fewer rates tried, over the seeds that these have. A rate is picked once all three have been tried; the best "
        "rate for few clean sequences need not be the best for the faithful split. The faithful split is compared "
        "after equal numbers of epochs: longer runs are read off their learning curves there.",
    )
