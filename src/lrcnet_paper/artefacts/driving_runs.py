"""Which policies the lane-keeping tables and figures are made of, at each budget, and what differs from the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from lrcnet.pages import palette
from lrcnet_paper.results.groups import Group, grouped
from lrcnet_paper.results.verdict import Conditions

if TYPE_CHECKING:
    from lrcnet_paper.results.finished import Finished
    from lrcnet_paper.training.result import Result
    from lrcnet_paper.training.spec import RunSpec

TASK = "driving"


class Model(NamedTuple):
    """A model with its solver, "" for the model's own."""

    name: str
    solver: str = ""


POLICIES = (Model("lstm"), Model("gru"), Model("mgu"), Model("lrcu-a"), Model("lrcu-s"))
# An LRC under one explicit Euler step is an LRCU: the paper's LRC-A E1 and LRC-S E1 are the same networks as above.
EFFICIENCY: Mapping[str, Model] = {
    "LTC H6": Model("ltc"),
    "STC E1": Model("stc", "euler-1"),
    "STC H6": Model("stc"),
    "LRC-A E1": Model("lrcu-a"),
    "LRC-S E1": Model("lrcu-s"),
}


class Effort(NamedTuple):
    """What a budget spends on a run; None is the paper's."""

    variant: str
    seeds: int
    epochs: int | None = None
    samples: int | None = None
    batch_size: int | None = None
    piece: int | None = None
    learning_rate: float | None = None


EFFORTS: Mapping[str, Effort] = {
    "smoke": Effort("own-sample", 1, epochs=1, samples=2, batch_size=2, piece=4),
    # Short pieces of many drives teach more per picture than long ones of few, and many small batches more than few
    # large ones; pictures are what costs time here. At twice this rate the features of some runs grew to hundreds,
    # where every synapse is saturated.
    "quick": Effort("own", 3, epochs=10, samples=480, batch_size=4, piece=8, learning_rate=1e-3),
    "paper": Effort("own", 3),
}


def planned(models: Sequence[Model], budget: str, seeds: int | None) -> list[RunSpec]:
    """The runs of a budget in our own world."""
    return specs(models, budget, EFFORTS[budget], seeds)


def specs(models: Sequence[Model], budget: str, effort: Effort, seeds: int | None) -> list[RunSpec]:
    """Seeds outermost, so that an interrupted grid has whole tables."""
    from lrcnet_paper.training.spec import RunSpec

    return [
        RunSpec(
            TASK,
            effort.variant,
            model.name,
            solver=model.solver,
            seed=seed,
            epochs=effort.epochs,
            batch_size=effort.batch_size,
            learning_rate=effort.learning_rate,
            budget=budget,
            schedule="cosine",
            samples=effort.samples,
            piece=effort.piece,
        )
        for seed in range(effort.seeds if seeds is None else seeds)
        for model in models
    ]


def wants(result: Result, models: Sequence[Model] = POLICIES) -> bool:
    """Whether a result is one of these policies', in our own world."""
    variant, _, solver = result.variant.partition("+")
    own = {effort.variant for effort in EFFORTS.values()}
    return result.task == TASK and variant in own and Model(result.model, solver) in models


def found(runs: Sequence[Finished], models: Sequence[Model]) -> dict[Model, Group]:
    """The group of each model at the longest budget that any of them has, in the order of `models`.

    Models that have not been trained there are missing.
    """
    groups = [g for g in grouped(runs, TASK) if wants(g.runs[0].result, models)]
    if not groups:
        return {}
    budget = groups[0].budget
    by_model = {Model(g.model, g.change): g for g in reversed(groups) if g.budget == budget}
    return {model: by_model[model] for model in models if model in by_model}


def conditions(*groups: Group) -> Conditions:
    """What differs from the paper, for a verdict on these groups."""
    smoke = any(group.budget == "smoke" for group in groups)
    shorter = any(group.budget != "paper" for group in groups)
    return Conditions(smoke, shorter, ("in a synthetic world", *(["short training"] if shorter else [])))


def label(model: Model) -> str:
    """How a table calls a model."""
    name = palette.model_label(model.name)
    return f"{name} ({model.solver})" if model.solver else name


def describe(budget: str) -> str:
    """What a budget trains, in a sentence."""
    effort = EFFORTS.get(budget, EFFORTS["paper"])
    if effort.epochs is None:
        return "The paper's protocol: 100 epochs, batches of 32 sequences of 32 frames, AdamW, cosine decay from 5e-4."
    return (
        f"Budget {budget}: {effort.epochs} epochs of {effort.samples} pieces of {effort.piece} frames, batches of "
        f"{effort.batch_size}, AdamW with cosine decay from {effort.learning_rate or 5e-4:g}; the paper trains 100 "
        "epochs, batches of 32 sequences of 32 frames, from 5e-4."
    )


WORLD = (
    "The paper's recordings of human drivers are not public. These policies learned from a synthetic driver in a "
    "synthetic world, summer and winter, so losses are on another scale than the paper's (mean squared error of "
    "curvature in units of 1/100 m) and only comparisons between models can be set beside its own."
)
