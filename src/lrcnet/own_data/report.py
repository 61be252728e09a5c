"""The report page of `lrcnet fit`: is the network any good, and what did it learn?"""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from lrcnet.data import Floats
from lrcnet.own_data.examples import example_inputs
from lrcnet.own_data.fit import Fit, comparison, describe, verdict
from lrcnet.own_data.inside import time_constants
from lrcnet.own_data.measures import calibration, confusion
from lrcnet.pages import palette
from lrcnet.pages.content import Picture, Section, Table
from lrcnet.pages.figures import write_finding
from lrcnet.pages.html import contents, section_html, write_page

# A confusion matrix of more classes than this is shown as colours only.
MOST_WRITTEN_CLASSES = 15


def write_report(result: Fit, path: Path, source: str) -> Path:
    """Write the page; it has no script and nothing to load."""
    schema = result.schema
    data = Table(
        "data",
        f"What was understood of {source}, training part",
        ("", "meaning"),
        [tuple(line.split(maxsplit=1)) for line in describe(schema, result.split.training)],
    )
    sections = [
        Section("comparison", "Is it worth it?", [comparison(result)]),
        Section("learning", "How it learned", [_learning_curve(result)]),
        _answers(result),
        time_constants(result.estimator.module_, example_inputs(result), schema.dates),
        Section("channels", "Which channels matter", [_weights(result)]),
        Section("data", "The data", [data]),
    ]
    title = f"{result.estimator.cell.upper()} on {source}: {schema.goal}"
    links = contents([(section.name, section.title) for section in sections])
    body = "".join(section_html(section) for section in sections)
    return write_page(
        path,
        title,
        f"<header><h1>{escape(title)}</h1><p class='finding'>{escape(verdict(result))}</p>{links}</header>"
        f"<main>{body}</main>"
        "<footer><p class='soft'>Written by <code>lrcnet fit</code>. All measures are on data that no model saw in "
        "training.</p></footer>",
    )


def _figure(width: float = 6, height: float = 3.2) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def _learning_curve(result: Fit) -> Picture:
    with palette.figure_style():
        figure, axes = _figure()
        for name, history, colour, dashes in (
            (result.estimator.cell, result.estimator.history_, palette.VERMILION, "-"),
            ("LSTM", result.lstm_history, palette.BLUE, "--"),
        ):
            epochs = [record["epoch"] for record in history]
            axes.plot(epochs, [record["loss"] for record in history], dashes, color=colour, label=f"{name}, training")
            if "validation_loss" in history[0]:
                checked = [record["validation_loss"] for record in history]
                axes.plot(epochs, checked, dashes, color=colour, alpha=0.5, label=f"{name}, validation")
                kept = int(np.argmin(checked))
                axes.plot(epochs[kept : kept + 1], checked[kept : kept + 1], "o", color=colour, markersize=5)
        losses = np.concatenate([line.get_ydata() for line in axes.lines])
        # Within one power of ten, a logarithmic axis has hardly a number on it.
        axes.set(xlabel="epoch", ylabel="loss", yscale="log" if 0 < 10 * losses.min() < losses.max() else "linear")
        axes.legend(loc="best")
        write_finding(figure, _learning_finding(result))
    return Picture(
        "learning-curve",
        "Loss over the epochs. The weights of the epoch with the smallest validation loss (dot) are kept.",
        "Training and validation loss of the network and of an LSTM of equal size.",
        figure,
    )


def _learning_finding(result: Fit) -> str:
    histories = {result.estimator.cell: result.estimator.history_, "the LSTM": result.lstm_history}
    kind = "validation_loss" if all("validation_loss" in history[0] for history in histories.values()) else "loss"
    least = {name: min(record[kind] for record in history) for name, history in histories.items()}
    texts = [f"{value:.3g} for {name}" for name, value in sorted(least.items(), key=lambda item: item[1])]
    return f"Least {kind.replace('_', ' ')}: {', '.join(texts)}"


def _answers(result: Fit) -> Section:
    if result.schema.task == "classification":
        return Section("answers", "Which answers it gives", [_confusion(result), _calibration(result)])
    return Section("answers", "Which answers it gives", [_residuals(result)])


def _confusion(result: Fit) -> Picture:
    counts, classes = confusion(result.schema, result.predictions), result.schema.classes
    share = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    size = min(6.5, 2 + 0.5 * len(classes))
    with palette.figure_style():
        figure, axes = _figure(size + 0.8, size)
        axes.imshow(share, cmap=palette.SEQUENTIAL, vmin=0, vmax=1)
        axes.grid(False)
        axes.set(xlabel="prediction", ylabel="truth")
        if len(classes) <= MOST_WRITTEN_CLASSES:
            axes.set_xticks(range(len(classes)), classes, rotation=45, ha="right")
            axes.set_yticks(range(len(classes)), classes)
            for (row, column), count in np.ndenumerate(counts):
                ink = palette.DARK_PAPER if share[row, column] > 0.5 else "#fefefe"
                axes.text(column, row, str(count), ha="center", va="center", color=ink)
        write_finding(figure, f"{counts.trace():,} of {counts.sum():,} answers are right")
    return Picture(
        "confusion",
        "Confusion matrix: the number of test examples of each class (row) that got each answer (column).",
        "A square of classes, coloured by the share of each row.",
        figure,
    )


def _calibration(result: Fit) -> Picture:
    points = calibration(result.predictions)
    with palette.figure_style():
        figure, axes = _figure(4.2, 3.6)
        axes.plot([0, 1], [0, 1], ":", color=palette.GREY, label="as sure as right")
        probability, share, error = zip(*points, strict=True)
        axes.errorbar(
            probability, share, error, fmt="o-", color=palette.BLUE, elinewidth=1, clip_on=False,
            label="answers ± standard error",
        )  # fmt: skip
        axes.set(xlabel="probability of the answer", ylabel="share of right answers", xlim=(0, 1), ylim=(0, 1))
        figure.legend(loc="outside lower center", ncols=2, fontsize=8)
        predicted = result.predictions.predicted
        sure, right = predicted.max(1).mean(), (predicted.argmax(1) == result.predictions.truth).mean()
        write_finding(figure, f"{100 * sure:.0f} % sure on average, {100 * right:.0f} % right")
    return Picture(
        "calibration",
        "Calibration: an answer given with 80 % probability should be right in 80 % of the cases (dotted). The test "
        f"examples are in {len(points)} groups of equal size, by probability; lines show the standard error.",
        "Share of right answers over the probability of the answer, beside the diagonal.",
        figure,
    )


def _residuals(result: Fit) -> Picture:
    truth, predicted = result.predictions.truth, result.predictions.predicted
    scale = result.scale
    if scale is not None:
        center = np.array(result.estimator.preparation_.mean)
        truth, predicted = (truth - center) / scale, (predicted - center) / scale
    truth, predicted = truth.ravel(), predicted.ravel()
    known = ~np.isnan(truth)
    truth, predicted = truth[known], predicted[known]
    thin = slice(None, None, max(1, len(truth) // 2000))
    unit = " (standard deviations)" if scale is not None else ""
    with palette.figure_style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(7, 3.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        left.plot(truth[thin], predicted[thin], ".", color=palette.BLUE, alpha=0.5, markersize=4)
        ends = _central(np.concatenate([truth, predicted]))
        left.plot(ends, ends, ":", color=palette.GREY, label="prediction = truth")
        left.legend(loc="best", fontsize=8)
        left.set(xlabel=f"truth{unit}", ylabel=f"prediction{unit}", xlim=ends, ylim=ends)
        right.hist(predicted - truth, bins=40, range=_central(predicted - truth), color=palette.VERMILION)
        right.set(xlabel=f"prediction \N{MINUS SIGN} truth{unit}", ylabel="test examples")
        write_finding(figure, f"Half of the errors are below {np.median(np.abs(predicted - truth)):.3g}{unit}")
    return Picture(
        "residuals",
        "Predictions beside the truth, and the distribution of the errors; the axes show the central 99 %, so that "
        "a few odd values do not hide the others.",
        "A scatter plot of predictions over truth with the diagonal, and a histogram of the errors.",
        figure,
    )


def _central(values: Floats) -> tuple[float, float]:
    """Return the ends of an axis for the central 99 % of some values, with a margin."""
    low, high = np.quantile(values, [0.005, 0.995])
    margin = 0.05 * (high - low) or 1.0
    return float(low - margin), float(high + margin)


def _weights(result: Fit) -> Table:
    name, _ = result.schema.main_measure
    rows = sorted(result.weights.items(), key=lambda row: -row[1])
    return Table(
        "channels",
        f"How much worse the {name} becomes if a channel's values are mixed up",
        ("channel", f"worse by ({name})"),
        [(channel, weight) for channel, weight in rows],
        "Measured on the test data by putting the channel's values in random order. Near 0: the network does not need "
        "the channel, or another one says the same.",
    )
