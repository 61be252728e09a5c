"""Tables: parameter counts and hyper-parameters of the appendix, the code's and the runs' beside the paper's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from lrcnet.pages import palette
from lrcnet.pages.content import Cell, Table
from lrcnet_paper.artefacts.artefact import Artefact, Rendered
from lrcnet_paper.training.budgets import check_budget

if TYPE_CHECKING:
    from lrcnet_paper.results.finished_run import FinishedRun
    from lrcnet_paper.training.spec import RunSpec

TITLE = "Parameters and hyper-parameters"

POLICY_MODELS = ("lstm", "gru", "mgu", "lrcu-a", "lrcu-s")

CLAIMED: Mapping[str, Any] = {
    # Task -> model -> trainable parameters in thousands, as printed. Those of IMDB exclude its embedding.
    "parameters": {
        "neural-ode": {"neural-ode": 1, "lrc-s": 1},
        "person": {"lstm": 40, "gru": 30, "mgu": 20, "lrcu-a": 20, "lrcu-s": 20},
        "imdb": {"lstm": 70, "gru": 50, "mgu": 35, "lrcu-a": 40, "lrcu-s": 40},
        "psmnist": {"lstm": 40, "gru": 30, "mgu": 20, "lrcu-a": 20, "lrcu-s": 20},
        "lane-keeping": dict.fromkeys(POLICY_MODELS, 8),
    },
    "units": {
        "neural-ode": {"neural-ode": "32, 32, 2", "lrc-s": 16},
        "person": {"lstm": 100, "gru": 100, "mgu": 100, "lrcu-a": 64, "lrcu-s": 64},
        "imdb": {"lstm": 100, "gru": 100, "mgu": 100, "lrcu-a": 64, "lrcu-s": 64},
        "psmnist": {"lstm": 100, "gru": 100, "mgu": 100, "lrcu-a": 64, "lrcu-s": 64},
        "lane-keeping": {"lstm": 23, "gru": 28, "mgu": 38, "lrcu-a": 19, "lrcu-s": 19},
    },
    "hyper-parameters": {
        "neural-ode": {"learning rate": 1e-3, "batch size": 16, "sequence length": 16, "iterations": "1000/2000/4000"},
        "person": {"learning rate": 1e-3, "batch size": 128, "sequence length": 32, "epochs": 100},
        "imdb": {"learning rate": 1e-3, "batch size": 64, "sequence length": 256, "epochs": 30},
        "psmnist": {"learning rate": 1e-3, "batch size": 64, "sequence length": 784, "epochs": 200},
        "lane-keeping": {
            "learning rate": 5e-4,
            "schedule": "cosine",
            "optimiser": "adamw",
            "weight decay": 1e-6,
            "batch size": 32,
            "sequence length": 32,
            "epochs": 100,
        },
    },
    "conv-head": (
        ("input", "48 x 160 x 3"),
        ("image normalisation", "mean 0, variance 1"),
        ("convolution", "24 filters, kernel 5, stride 2"),
        ("convolution", "36 filters, kernel 5, stride 1"),
        ("max pooling", "size 2, stride 2"),
        ("convolution", "48 filters, kernel 3, stride 1"),
        ("max pooling", "size 2, stride 2"),
        ("convolution", "64 filters, kernel 3, stride 1"),
        ("max pooling", "size 2, stride 2"),
        ("convolution", "64 filters, kernel 3, stride 1"),
        ("flatten", "-"),
        ("dense", "64 units"),
    ),
}

# Paper's name of a task -> its name in the code, where they differ.
TASK_NAMES = {"lane-keeping": "driving"}
TITLES = {
    "neural-ode": "Neural-ODE tasks",
    "person": "Localization (person activity)",
    "imdb": "IMDB",
    "psmnist": "psMNIST",
    "lane-keeping": "Lane keeping",
}
_SAME = {True: "yes", False: "no", None: None}


def runs(budget: str, seeds: int | None = None) -> list[RunSpec]:
    """Plan no run: the values are read from the code and from the runs of other artefacts."""
    check_budget(budget)
    return []


@cache
def parameter_counts(task: str, model: str) -> tuple[int, int]:
    """Count the trainable parameters of a model on a task without its embedding, and those of the embedding."""
    import torch

    from lrcnet_paper import models, tasks
    from lrcnet_paper.models import policy
    from lrcnet_paper.models.recurrent import recurrent_layer

    # Counting must not disturb a user's random numbers.
    with torch.random.fork_rng(devices=[]):
        if task == "lane-keeping":
            layer = recurrent_layer(model, policy.FEATURES, units=policy.UNITS[model])
            return models.parameter_count(layer), 0
        module = models.build(model, tasks.find(task))
    embedding = getattr(module, "embedding", None)
    in_embedding = 0 if embedding is None else models.parameter_count(embedding)
    return models.parameter_count(module) - in_embedding, in_embedding


def units(task: str, model: str) -> Cell:
    """Return the hidden units of a model in the code."""
    from lrcnet_paper.models import policy
    from lrcnet_paper.models.ode import HIDDEN, UNITS
    from lrcnet_paper.models.recurrent import RECURRENT

    if task == "neural-ode":
        return UNITS if model in RECURRENT else ", ".join(map(str, (*HIDDEN, 2)))
    return policy.UNITS[model] if task == "lane-keeping" else RECURRENT[model].units


def hyper_parameters(task: str, variant: str | None = None) -> dict[str, Cell]:
    """Return the values of the protocol in the code under the paper's names; None stands for the default variant."""
    from lrcnet_paper import tasks

    definition = tasks.find(TASK_NAMES.get(task, task), variant)
    recipe = definition.recipe
    length: dict[str, Cell] = {"iterations": recipe.iterations} if recipe.epochs is None else {"epochs": recipe.epochs}
    return {
        "learning rate": recipe.learning_rate,
        "batch size": recipe.batch_size,
        "sequence length": definition.length,
        **length,
        "schedule": recipe.schedule,
        "optimiser": recipe.optimizer,
        **({} if recipe.rho is None else {"rho": recipe.rho}),
        **({"weight decay": recipe.weight_decay} if recipe.weight_decay else {}),
        "eps": recipe.eps,
        "weights reported": {"last": "last epoch", "best-validation": "best validation epoch"}[recipe.reported],
    }


def trained_values(runs: Sequence[FinishedRun], task: str) -> dict[str, Counter[str]]:
    """Count the finished runs of a task by the value that each hyper-parameter had in them."""
    counts: dict[str, Counter[str]] = {}
    for run in runs:
        result, spec = run.result, run.result.spec
        if result.task != TASK_NAMES.get(task, task) or result.status != "finished":
            continue
        values = hyper_parameters(task, result.variant) | {
            "learning rate": result.rate,
            "schedule": spec.schedule,
            f"{result.unit}s": result.epochs,
            **({"batch size": spec.batch_size} if spec.batch_size else {}),
            **({"sequence length": spec.piece} if spec.piece else {}),
        }
        for name, value in values.items():
            counts.setdefault(name, Counter())[str(_format_value(value))] += 1
    return counts


def conv_head() -> list[tuple[str, str]]:
    """List the layers of the driving policy's head in the code; an activation belongs to the layer before it."""
    import torch
    from torch import nn

    from lrcnet_paper.models import policy

    with torch.random.fork_rng(devices=[]):
        head = policy.ConvHead().layers
    rows = [("input", f"{policy.ROWS} x {policy.COLUMNS} x 3"), ("image normalisation", "mean 0, variance 1")]
    for layer in head:
        if isinstance(layer, nn.Conv2d):
            shape = f"{layer.out_channels} filters, kernel {layer.kernel_size[0]}, stride {layer.stride[0]}"
            rows.append(("convolution", shape))
        elif isinstance(layer, nn.MaxPool2d):
            rows.append(("max pooling", f"size {layer.kernel_size}, stride {layer.stride}"))
        elif isinstance(layer, nn.Flatten):
            rows.append(("flatten", "-"))
        elif isinstance(layer, nn.Linear):
            rows.append(("dense", f"{layer.out_features} units"))
    return rows


def render(runs: Sequence[FinishedRun]) -> Rendered:
    """Set every table of the appendix's set-up beside the values in the code and in the runs."""
    return Rendered(
        tables=[
            _parameter_table(),
            *(_hyper_parameter_table(task, runs) for task in CLAIMED["hyper-parameters"]),
            _conv_head_table(),
        ]
    )


def _parameter_table() -> Table:
    return Table(
        "parameters",
        "Trainable parameters",
        (
            "task",
            "model",
            "units, paper",
            "units, ours",
            "parameters, paper",
            "ours",
            "difference",
            "ours, embedding",
        ),
        [
            (
                TITLES[task],
                palette.model_label(model),
                CLAIMED["units"][task][model],
                units(task, model),
                *_count_cells(task, model, thousands),
            )
            for task, row in CLAIMED["parameters"].items()
            for model, thousands in row.items()
        ],
        "The paper rounds loosely (44 k is printed as 40 k), so our exact counts stand beside its own. The embedding "
        "of IMDB is counted separately, as in the paper. Lane keeping: the recurrent part alone. Our LSTM has "
        "the two biases per gate that torch gives it.",
        row_headers=2,
    )


def _count_cells(task: str, model: str, thousands: int) -> tuple[Cell, ...]:
    count, in_embedding = parameter_counts(task, model)
    return f"{thousands}k", count, f"{100 * (count / (1000 * thousands) - 1):+.0f} %", in_embedding or None


def _hyper_parameter_table(task: str, runs: Sequence[FinishedRun]) -> Table:
    claimed, protocol = CLAIMED["hyper-parameters"][task], hyper_parameters(task)
    trained = trained_values(runs, task)
    rows = [
        (
            name,
            _format_value(claimed.get(name)),
            _format_value(protocol.get(name)),
            _SAME[_agrees(claimed.get(name), protocol.get(name))],
            _describe_trained(trained.get(name, Counter())),
        )
        for name in [*claimed, *(n for n in protocol if n not in claimed)]
    ]
    return Table(
        f"hyper-parameters-{task}",
        f"Hyper-parameters: {TITLES[task]}",
        ("variable", "paper", "our protocol", "protocol as in the paper", "trained"),
        rows,
        f"{TRAINED}{_describe_policies(runs) if task == 'lane-keeping' else ''}",
    )


TRAINED = "Trained: the values of the finished runs, sensitivities included, with the number of runs where they differ."


def _describe_policies(runs: Sequence[FinishedRun]) -> str:
    """Describe the training of the policies from camera frames, which is shorter than that on a shared head."""
    from lrcnet_paper.artefacts import driving_runs

    groups = driving_runs.find_groups(runs, driving_runs.POLICIES)
    return f" Policies that are trained end to end: {driving_runs.describe(groups)}" if groups else ""


def _describe_trained(counts: Counter[str]) -> str | None:
    """List the values of the runs, the most frequent one first; None without a run."""
    if len(counts) < 2:
        return next(iter(counts), None)
    return ", ".join(f"{value} ({number} run{'' if number == 1 else 's'})" for value, number in counts.most_common())


def _conv_head_table() -> Table:
    rows = [
        (name, claimed, ours, _SAME[claimed == ours])
        for (name, claimed), (_, ours) in zip(CLAIMED["conv-head"], conv_head(), strict=True)
    ]
    return Table("conv-head", "Convolutional head of the driving policy", ("layer", "paper", "ours", "same"), rows)


def _agrees(paper: Cell, ours: Cell) -> bool | None:
    """Return whether a value is the paper's, or one of several in the paper; None where one side has no value."""
    if paper is None or ours is None:
        return None
    return _format_value(ours) in str(_format_value(paper)).split("/")


def _format_value(value: Cell) -> Cell:
    return f"{value:g}" if isinstance(value, int | float) else value


ARTEFACT = Artefact(title=TITLE, claimed=CLAIMED, runs=runs, render=render, part="set-up")
