"""Sections about the inside of a fitted network: time constants, one series in detail, shares of channels."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from lrcnet.interpret import heat_map, shares, trace
from lrcnet.interpret.trace import Trace
from lrcnet.models import SequenceModel
from lrcnet.own_data.examples import Examples
from lrcnet.own_data.schema import Schema
from lrcnet.pages import palette
from lrcnet.pages.content import Picture, Section, Table
from lrcnet.pages.figures import write_finding
from lrcnet.pages.tables import format_cell


def time_constants(model: SequenceModel, examples: Examples, dates: bool) -> Section:
    """Return a picture of the time constants of all units over some series."""
    records = [trace(model, one["x"], one.get("dt")).time_constant for one in examples]
    values = [record.flatten(0, -2).numpy() for record in records if record is not None]
    title = "How long its units remember"
    if not values:
        return Section("time-constants", title, ["The layer has no time constants."])
    whole = np.concatenate(values)
    low, middle, high = np.quantile(np.where(np.isfinite(whole), whole, 1e9), [0.1, 0.5, 0.9], axis=0)
    order = np.argsort(middle)
    is_feature = bool(getattr(model.layer, "time_feature", False))
    unit = "readings" if is_feature or "dt" not in examples[0] else "seconds" if dates else "units of time"
    from matplotlib.figure import Figure

    with palette.figure_style():
        figure = Figure(figsize=(6, 3), layout="constrained")
        axes = figure.subplots()
        axes.vlines(
            range(len(order)), low[order], high[order], color=palette.BLUE, linewidth=2, alpha=0.5,
            label="middle 80 % of the readings",
        )  # fmt: skip
        axes.plot(range(len(order)), middle[order], "o", color=palette.VERMILION, markersize=4, label="median")
        axes.set(yscale="log", xlabel="unit, the quickest first", ylabel=f"time constant ({unit})")
        figure.legend(loc="outside lower center", ncols=2)
        quick, slow = (float(middle[order[i]]) for i in (0, -1))
        write_finding(figure, f"The units forget within {format_cell(quick)} to {format_cell(slow)} {unit}")
    picture = Picture(
        "time-constants",
        f"Median and middle 80 % of each unit's effective time constant over {len(examples)} test series: after that "
        "time a unit has forgotten about two thirds of its state.",
        "One line per unit from its 10 % to its 90 % quantile, with a dot at the median, on a logarithmic scale.",
        figure,
    )
    return Section("time-constants", title, [picture])


def one_series(model: SequenceModel, examples: Examples) -> Section:
    """Return a picture of states, gates and time constants over the longest of some series."""
    longest = max(examples, key=lambda one: one["x"].shape[1])
    record: Trace = trace(model, longest["x"], longest.get("dt"))
    picture = Picture(
        "units",
        "States, gates and effective time constants of all units over one test series.",
        "One panel per quantity, with neurons from top to bottom and time from left to right, coloured by value.",
        heat_map(record, sample=0, title="one test series"),
    )
    return Section("trace", "What its units do over time", [picture])


def channel_shares(model: SequenceModel, examples: Examples, schema: Schema) -> Section:
    """Return a table of the share of each channel in the network's answers, by gradients."""

    def score(answers: Tensor) -> Tensor:
        last = answers[:, -1] if answers.dim() == 3 else answers
        return last.max(-1).values if schema.task == "classification" else last.sum(-1)

    # A channel's part is its distance from the mean over all series, so they have to be one batch: of equal length.
    length = sorted(one["x"].shape[1] for one in examples)[len(examples) // 2]
    chosen = [one for one in examples if one["x"].shape[1] >= length]
    x = torch.cat([one["x"][:, :length] for one in chosen])
    dt = torch.cat([one["dt"][:, :length] for one in chosen]) if "dt" in chosen[0] else None
    total = shares(model, x, score, dt).inputs
    names = schema.input_names(len(total) > len(schema.channels))
    rows: Any = sorted(
        ((name, 100 * float(part)) for name, part in zip(names, total, strict=True)), key=lambda row: -row[1]
    )
    table = Table(
        "shares",
        "Share of each channel in the answers (%)",
        ("channel", "share"),
        rows[:30],
        "The part of the answer, to first order, that would be lost if the channel stayed at its mean; averaged over "
        f"{len(chosen)} test series.",
    )
    return Section("shares", "What its answers are made of", [table])
