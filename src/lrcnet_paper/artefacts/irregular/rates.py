"""The search for learning rates: three rates for every model alike, one seed, a tenth of the length."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from lrcnet.pages import palette
from lrcnet.pages.content import Cell, Table
from lrcnet_paper import tasks
from lrcnet_paper.artefacts.irregular.runs import (
    BENCHMARKS,
    FIGURE,
    FIGURE_BENCHMARK,
    MODELS,
    PICKED,
    Benchmark,
    search_epochs,
)
from lrcnet_paper.artefacts.sentences import join_words

if TYPE_CHECKING:
    from lrcnet_paper.results.finished_run import FinishedRun

SEARCHED = {**BENCHMARKS, FIGURE: FIGURE_BENCHMARK}
LOSS = "validation_loss"


def is_search(run: FinishedRun) -> bool:
    """Tell whether a run is one of the search and not of a table.

    It is at the paper budget, and a tenth as long or at a rate that was not picked. The planned length counts: a run of
    a table that diverges early was planned longer.
    """
    spec = run.result.spec
    planned = spec.epochs or tasks.find(spec.task, spec.variant).recipe.epochs
    short = planned is not None and planned <= search_epochs(SEARCHED[spec.task])
    return spec.budget == "paper" and (short or spec.rate != PICKED.get((spec.task, spec.model), spec.rate))


def search_losses(runs: Iterable[FinishedRun]) -> dict[tuple[str, str], dict[float, float]]:
    """Return (task, model) -> rate -> the least validation loss within the length of a search; infinite if it diverged.

    A run of a table counts too, by the beginning of its curve.
    """
    losses: dict[tuple[str, str], dict[float, float]] = {}
    for run in runs:
        spec = run.result.spec
        benchmark = SEARCHED.get(spec.task)
        if benchmark is None or not _belongs(run, benchmark):
            continue
        positions, values = run.curve(LOSS)
        early = [value for where, value in zip(positions, values, strict=True) if where <= search_epochs(benchmark)]
        losses.setdefault((spec.task, spec.model), {})[spec.rate] = min(early, default=float("inf"))
    return losses


def _belongs(run: FinishedRun, benchmark: Benchmark) -> bool:
    spec = run.result.spec
    own = {"parameters": benchmark.parameters}
    return (
        (spec.budget, spec.seed, spec.variant, dict(spec.options)) == ("paper", 0, benchmark.variants[0], own)
        and spec.rate in benchmark.rates
        and spec.model in MODELS
    )


def pick_rates(runs: Iterable[FinishedRun]) -> dict[tuple[str, str], float]:
    """Return (task, model) -> the rate with the least validation loss, where all three rates were tried."""
    return {
        pair: min(by_rate, key=lambda rate: by_rate[rate])
        for pair, by_rate in search_losses(runs).items()
        if len(by_rate) == len(SEARCHED[pair[0]].rates) and min(by_rate.values()) < float("inf")
    }


def describe_edges(picked: Mapping[tuple[str, str], float]) -> str:
    """Say for how many models the largest or the smallest of the three rates was picked; "" if it was for none."""
    text = ""
    for edge, place, beyond in (("largest", max, "larger"), ("smallest", min, "smaller")):
        parts = []
        for task, benchmark in SEARCHED.items():
            rates = [rate for (own, _), rate in picked.items() if own == task]
            if count := rates.count(place(benchmark.rates)):
                parts.append(f"{count} of {len(rates)} models on {benchmark.title}")
        if parts:
            text += (
                f" The {edge} of the three rates was picked for {join_words(parts)}, so a {beyond} one might do better."
            )
    return text


def rate_table(runs: Sequence[FinishedRun]) -> list[Table]:
    """Tabulate the searches; no table without any."""
    rows: list[tuple[Cell, ...]] = []
    for (task, model), by_rate in search_losses(runs).items():
        tried = sorted(by_rate.items())
        losses = ", ".join(f"{rate:g}: {loss:.4g}" for rate, loss in tried)
        picked = PICKED.get((task, model))
        rows.append(
            (
                SEARCHED[task].title,
                palette.model_label(model),
                losses,
                "not yet" if picked is None else f"{picked:g}",
                search_epochs(SEARCHED[task]),
            )
        )
    note = (
        "The least validation loss within a tenth of the length, on one seed. The tables use the picked rate."
        f"{describe_edges(pick_rates(runs))}"
    )
    columns = ("task", "model", "rate: validation loss", "picked", "epochs")
    return [Table("rates", "The search for learning rates", columns, rows, note, row_headers=2)] if rows else []
