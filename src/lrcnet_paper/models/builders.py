"""`build`: the network of a model name for a task. A new kind of task is one row of `BUILDERS`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Protocol

from torch import nn

from lrcnet.errors import one_of
from lrcnet.models import Classifier, Tagger
from lrcnet_paper.models.feature_policy import FeaturePolicy
from lrcnet_paper.models.ode import ode_model
from lrcnet_paper.models.padded import PADDED, build_padded
from lrcnet_paper.models.policy import Policy
from lrcnet_paper.models.recurrent import RECURRENT, recurrent_layer

EMBEDDING = 64
MODELS: tuple[str, ...] = tuple(dict.fromkeys((*RECURRENT, "neural-ode", *PADDED)))
"""Every model name."""


class TaskShape(Protocol):
    """The part of a task that its network depends on; `lrcnet_paper.tasks.Task` has it."""

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
    @property
    def masked(self) -> int: ...


class Builder(Protocol):
    """Builds the network of a model name for one kind of task; see `build` for the arguments."""

    def __call__(self, model: str, task: TaskShape, *, solver: str, units: int | None, **options: Any) -> nn.Module: ...


def _build_ode(model: str, task: TaskShape, *, solver: str, units: int | None, **options: Any) -> nn.Module:
    return ode_model(model, task.input_size, solver=solver, units=units, **options)


def _build_policy(model: str, task: TaskShape, *, solver: str, units: int | None, **options: Any) -> nn.Module:
    _check_recurrent(model, task)
    return Policy(model, solver=solver, units=units, **options)


def _build_feature_policy(model: str, task: TaskShape, *, solver: str, units: int | None, **options: Any) -> nn.Module:
    _check_recurrent(model, task)
    return FeaturePolicy(model, solver=solver, units=units, **options)


def _build_tagger(model: str, task: TaskShape, *, solver: str, units: int | None, **options: Any) -> nn.Module:
    layer, width = _layer(model, task, task.input_size, solver=solver, units=units, **options)
    return Tagger(layer, width, task.output_size)


def _build_classifier(model: str, task: TaskShape, *, solver: str, units: int | None, **options: Any) -> nn.Module:
    input_size = EMBEDDING if task.vocabulary else task.input_size
    layer, width = _layer(model, task, input_size, solver=solver, units=units, **options)
    return Classifier(layer, width, task.output_size, vocabulary=task.vocabulary, embedding=EMBEDDING)


def _layer(model: str, task: TaskShape, input_size: int, **options: Any) -> tuple[nn.Module, int]:
    """Return the recurrent layer and the number of features of its output."""
    _check_recurrent(model, task)
    layer = recurrent_layer(model, input_size, irregular=task.irregular, negative_dt=task.negative_dt, **options)
    width: int = layer.hidden_size  # type: ignore[assignment]
    return layer, width


def _check_recurrent(model: str, task: TaskShape) -> None:
    if model not in RECURRENT:
        raise ValueError(f"a {task.kind} task needs a recurrent model, one of {', '.join(RECURRENT)}, not {model!r}")


BUILDERS: Mapping[str, Builder] = MappingProxyType(
    {
        "label-per-step": _build_tagger,
        "label-per-sequence": _build_classifier,
        "label-per-padded-sequence": build_padded,
        "steering": _build_policy,
        "steering-features": _build_feature_policy,
        "trajectory": _build_ode,
    }
)
"""Kind of a task -> function that builds its network."""


def build(model: str, task: TaskShape, *, solver: str = "", units: int | None = None, **options: Any) -> nn.Module:
    """Build the network of a model name for a task, with the paper's sizes and initial values.

    Args:
        model: one of `MODELS`.
        task: a task, or any object with the properties of `TaskShape`.
        solver: solver and unfoldings, such as "hybrid-6" or "rk4-1"; "" for the model's own.
        units: number of hidden units; None for the paper's.
        options: further arguments of the layer or the field, e.g. parametrisation="ab", backend="reference".

    Returns:
        A module called as module(x, dt) for labels and steering, or as module(y0, times) for trajectories. Initial
        values come from torch's global generator.

    Raises:
        ValueError: for an unknown model, an unknown kind of task, a model that does not serve this kind of task, or a
            solver that the model cannot use.
        TypeError: for an option that the model does not have.

    Example:
        >>> from lrcnet_paper.tasks import find
        >>> build("lrcu-s", find("person", "coarse"))(torch.randn(2, 32, 7), None).shape
        torch.Size([2, 32, 7])
    """
    one_of("model", model, MODELS)
    builder = BUILDERS[one_of("kind of the task", task.kind, BUILDERS)]
    return builder(model, task, solver=solver, units=units, **options)


def parameter_count(module: nn.Module) -> int:
    """Return the number of trainable parameters of a module."""
    return sum(parameter.numel() for parameter in module.parameters() if parameter.requires_grad)
