"""What the tasks train: a model name and a task become a network.

`MODELS` lists the names; solver and unfoldings come beside them as a string such as "hybrid-6".
"""

from __future__ import annotations

from typing import Any, Protocol

from torch import nn

from lrcnet.errors import one_of
from lrcnet.models import Classifier, Tagger
from lrcnet_paper.models.ode import FIELDS, ode_model
from lrcnet_paper.models.policy import Policy
from lrcnet_paper.models.recurrent import RECURRENT, parse_solver, recurrent_layer

EMBEDDING = 64
MODELS: tuple[str, ...] = (*RECURRENT, "neural-ode")
"""Every model name."""


class Sizes(Protocol):
    """What a model must know about a task; `lrcnet_paper.tasks.Task` is one."""

    @property
    def kind(self) -> str: ...
    @property
    def input_size(self) -> int: ...
    @property
    def vocabulary(self) -> int: ...
    @property
    def output_size(self) -> int: ...
    @property
    def irregular(self) -> bool: ...
    @property
    def negative_dt(self) -> str: ...


def build(model: str, task: Sizes, *, solver: str = "", units: int | None = None, **options: Any) -> nn.Module:
    """The network of a model name for a task, with the paper's sizes and initial values.

    Args:
        model: one of `MODELS`.
        task: a task, or anything with its sizes.
        solver: such as "hybrid-6" or "rk4-1"; the model's own if "".
        units: hidden units; the paper's if None.
        options: further arguments of the layer or the field, e.g. parametrisation="ab", backend="reference".

    Returns:
        A module called as module(x, dt) for labels, or as module(y0, times) for trajectories. Initial values come from
        torch's global generator.

    Raises:
        ValueError: for an unknown model, one that does not serve this kind of task, or a solver it cannot use.
        TypeError: for an option that it does not have.

    Example:
        >>> from lrcnet_paper.tasks import find
        >>> build("lrcu-s", find("person", "coarse"))(torch.randn(2, 32, 7), None).shape
        torch.Size([2, 32, 7])
    """
    one_of("model", model, MODELS)
    if task.kind == "trajectory":
        return ode_model(model, task.input_size, solver=solver, units=units, **options)
    if model not in RECURRENT:
        raise ValueError(f"a {task.kind} task needs a recurrent model, one of {', '.join(RECURRENT)}, not {model!r}")
    if task.kind == "steering":
        return Policy(model, solver=solver, units=units, **options)
    layer = recurrent_layer(
        model,
        EMBEDDING if task.vocabulary else task.input_size,
        units=units,
        solver=solver,
        irregular=task.irregular,
        negative_dt=task.negative_dt,
        **options,
    )
    width: int = layer.hidden_size  # type: ignore[assignment]
    if task.kind == "label-per-step":
        return Tagger(layer, width, task.output_size)
    return Classifier(layer, width, task.output_size, vocabulary=task.vocabulary, embedding=EMBEDDING)


def parameter_count(module: nn.Module) -> int:
    """Trainable numbers of a module."""
    return sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)


__all__ = [
    "FIELDS",
    "MODELS",
    "RECURRENT",
    "Classifier",
    "Policy",
    "Tagger",
    "build",
    "parameter_count",
    "parse_solver",
]
