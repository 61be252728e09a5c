"""A result as a few lines of text for a terminal."""

from __future__ import annotations

from lrcnet_paper.training.rate_search import LOSS
from lrcnet_paper.training.result import Result


def format_result(result: Result) -> str:
    """Format a result as one line per fact and metric."""
    rows = {
        "task": f"{result.task} {result.spec.label()}",
        "model": f"{result.model}, {result.parameters:,} parameters, seed {result.seed}",
        "trained": f"{result.epochs} {result.unit}s, {result.seconds_per_epoch:.4g} s each; "
        f"reported: {result.best_epoch}",
        **{name: f"{value:.6g}" for name, value in result.metrics.items()},
    }
    width = max(map(len, rows))
    return "\n".join(f"{name:<{width}}  {text}" for name, text in rows.items())


def format_rate(rate: float, result: Result | None) -> str:
    """Format the outcome of one learning rate of a search; None is a run that diverged."""
    outcome = "diverged" if result is None else f"validation loss {result.metrics[LOSS]:.4f}"
    return f"learning rate {rate:g}: {outcome}"
