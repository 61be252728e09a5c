"""Numbers of a run as people read them: accuracies in per cent, curvatures with their unit."""

from __future__ import annotations

# The unit of a metric, by the end of its name; others are plain numbers.
UNITS = {"curvature_loss": "(1/100 m)²", "weighted_loss": "(1/100 m)³"}


def format_metric(name: str, value: float) -> str:
    """Return the name and the value of a metric.

    Example:
        >>> format_metric("test_accuracy", 0.8312), format_metric("train_loss", 0.51234)
        ('test accuracy 83.12 %', 'train loss 0.5123')
    """
    return f"{name.replace('_', ' ')} {format_value(name, value)}"


def shorten(name: str) -> str:
    """Return the name of a metric in few characters, for a progress bar.

    Example:
        >>> shorten("test_mean_absolute_error")
        'test MAE'
    """
    return name.replace("mean_absolute_error", "MAE").replace("curvature_loss", "loss").replace("_", " ")


def format_value(name: str, value: float) -> str:
    """Return the value of a metric with its unit."""
    if "accuracy" in name:
        return f"{100 * value:.2f} %"
    unit = next((unit for end, unit in UNITS.items() if name.endswith(end)), "")
    return f"{value:.4g} {unit}".rstrip()
