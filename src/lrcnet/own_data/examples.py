"""Test series that a folder keeps, so that `lrcnet explain` needs no table."""

from __future__ import annotations

from pathlib import Path

from torch import Tensor

from lrcnet.estimators.preparation import Inputs
from lrcnet.own_data.fit import Fit
from lrcnet.saving import import_safetensors, write_whole

FILE = "examples.safetensors"
MOST_EXAMPLES, LONGEST_EXAMPLE = 16, 500
Examples = list[dict[str, Tensor]]


def example_inputs(result: Fit) -> Examples:
    """Return some test series as inputs of the network, each alone: x (1, T, n), and dt (1, T) if there are times."""
    series = result.split.test.series.take(range(min(MOST_EXAMPLES, len(result.split.test.ids))))
    return single_inputs(result.estimator.preparation_.prepare(series))


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
    return [{part: stored[f"{i}.{part}"] for part in ("x", "dt") if f"{i}.{part}" in stored} for i in range(count)]
