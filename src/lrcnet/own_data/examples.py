"""Test series that a folder keeps, so that `lrcnet explain` needs no table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from lrcnet.estimators.preparation import Inputs
from lrcnet.own_data.fit import Fit
from lrcnet.saving import import_safetensors, write_whole

FILE = "examples.safetensors"
MOST_EXAMPLES, LONGEST_EXAMPLE = 16, 500
PARTS = ("x", "dt", "truth")
Examples = list[dict[str, Tensor]]


def example_inputs(result: Fit) -> Examples:
    """Return some test series as inputs of the network, each alone, with their true answers.

    Returns:
        For each series x (1, T, n), dt (1, T) if there are times, and truth: the number of its class or its value, ()
        or one per reading (T,); none for forecasts and for classes that the network has not seen.
    """
    test = result.split.test.take(range(min(MOST_EXAMPLES, len(result.split.test.ids))))
    examples = single_inputs(result.estimator.preparation_.prepare(test.series))
    if test.targets is None:
        return examples
    known = getattr(result.estimator, "classes_", None)
    for one, target in zip(examples, test.targets, strict=True):
        if known is not None and not np.isin(target, known).all():
            continue  # A class of single readings may be missing from the training part.
        truth = torch.as_tensor(np.asarray(target) if known is None else np.searchsorted(known, target))
        one["truth"] = truth[: one["x"].shape[1]].contiguous() if truth.dim() else truth
    return examples


def single_inputs(inputs: Inputs) -> Examples:
    """Return each series of a batch alone, without padding, and at most its first readings."""
    examples: Examples = []
    for i, length in enumerate(inputs.lengths.clamp(max=LONGEST_EXAMPLE).tolist()):
        example = {"x": inputs.x[i : i + 1, :length].contiguous()}
        if inputs.dt is not None:
            example["dt"] = inputs.dt[i : i + 1, :length].contiguous()
        examples.append(example)
    return examples


def write_examples(examples: Examples, folder: Path) -> None:
    """Write examples into a folder."""
    tensors = {f"{i}.{part}": value for i, one in enumerate(examples) for part, value in one.items()}
    write_whole(folder / FILE, import_safetensors().save(tensors))


def read_examples(folder: Path) -> Examples:
    """Return the examples of a folder.

    Raises:
        ValueError: if it has none.
    """
    path = folder / FILE
    if not path.is_file():
        raise ValueError(f"the folder of a fitted model must hold {FILE}, but {folder} does not; fit again")
    stored = import_safetensors().load_file(path)
    count = len({name.split(".")[0] for name in stored})
    return [{part: stored[f"{i}.{part}"] for part in PARTS if f"{i}.{part}" in stored} for i in range(count)]
