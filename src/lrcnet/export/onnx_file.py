"""ONNX files: a network over whole sequences with dynamic batch and time axes, or one reading at a time.

Axes: T time, B batch, n inputs.
"""

import json
import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lrcnet.export.forms import Layer, SingleStep, WholeSequence, find_layer, first_states, network_of, takes_dt
from lrcnet.export.names import Names
from lrcnet.models import SequenceModel
from lrcnet.version import __version__

# Sizes of the example with which a network is traced. No two axes have the same size: torch would make them one.
_BATCH, _TIME = 5, 13


def export_onnx(
    model: Any,
    path: str | os.PathLike[str],
    *,
    streaming: bool = False,
    timed: bool | None = None,
    names: Names | None = None,
) -> Path:
    """Write a network as an ONNX file that needs no lrcnet to run, and return its path.

    Whole sequences: inputs x and dt, output `output`, for a layer also its last states `h_n` (and `c_n`). The batch and
    the number of readings, at least 1, are free. A layer keeps its layout; a model takes x (B, T, n) and dt (B, T).

    Streaming: inputs x (B, n), the states and dt (B,); outputs `output` and the states after the reading, `new_h` and
    so on. The file's metadata `initial_state` says, as JSON, what each state starts with.

    The scaling of inputs, answers and time is part of the network. Nothing else has to be switched: torch.onnx.export
    with dynamo=True can also be called directly, on models of your own that have layers of lrcnet inside.

    Args:
        model: a layer, a Classifier, Regressor, Tagger or Forecaster, or a fitted estimator. An estimator that was
            trained with missing values takes the filled values and then a mask (1 for measured) of each channel.
        path: the file.
        streaming: whether to write one step instead of a loop over whole sequences.
        timed: whether dt is an input; None means yes if the layer can use it. Without it every step is 1.
        names: what the numbers of a reading and of an answer are; the file's metadata `inputs` and `outputs`, as JSON.

    Raises:
        TypeError, ValueError: for a network that has no such form; see `lrcnet.export.forms.find_layer`.
        ImportError: without the extra [onnx].
    """
    model = network_of(model)
    layer = find_layer(model)
    _import_onnx()
    timed = takes_dt(layer) if timed is None else timed
    if timed and not takes_dt(layer):
        raise ValueError(f"{layer.mode} cannot use dt, but timed=True was given; leave it out")
    if streaming and layer.bidirectional:
        raise ValueError(
            f"a stream needs a layer that only looks back, but this {layer.mode} is bidirectional; export whole "
            "sequences"
        )
    mode, model = model.training, model.eval()
    try:
        program = _trace_step(model, timed) if streaming else _trace_sequence(model, layer, timed)
    finally:
        model.train(mode)
    metadata = {"producer": f"lrcnet {__version__}", "form": "step" if streaming else "sequence"}
    if streaming:
        starts = {name: float(state.flatten()[0]) for name, state in first_states(model, 1).items()}
        metadata["initial_state"] = json.dumps({name: str(value) for name, value in starts.items()})
    if names is not None:
        metadata |= {"inputs": json.dumps(list(names.inputs)), "outputs": json.dumps(list(names.outputs))}
    program.model.metadata_props.update(metadata)
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    # One file: networks of this library are far below the 2 GB at which weights need a file of their own.
    program.save(str(target), external_data=False)
    return target


def _trace_sequence(model: nn.Module, layer: Layer, timed: bool) -> Any:
    batch_first = isinstance(model, SequenceModel) or layer.batch_first
    shape = (_BATCH, _TIME) if batch_first else (_TIME, _BATCH)
    axes = {0: "batch", 1: "time"} if batch_first else {0: "time", 1: "batch"}
    like = next(layer.parameters())
    if isinstance(model, SequenceModel) and model.takes_tokens:
        arguments = [torch.zeros(shape, dtype=torch.long)]
    else:
        arguments = [torch.zeros(*shape, layer.input_size, dtype=like.dtype)]
    names = ["x"]
    if timed:
        arguments.append(torch.ones(shape, dtype=like.dtype))
        names.append("dt")
    outputs = ["output"]
    if not isinstance(model, SequenceModel):
        outputs += ["h_n", "c_n"] if len(first_states(model, 1)) == 2 else ["h_n"]
    return _trace(WholeSequence(model, timed), arguments, names, outputs, [axes] * len(names))


def _trace_step(model: nn.Module, timed: bool) -> Any:
    layer = find_layer(model)
    like = next(layer.parameters())
    states = first_states(model, _BATCH)
    if isinstance(model, SequenceModel) and model.takes_tokens:
        x = torch.zeros(_BATCH, dtype=torch.long)
    else:
        x = torch.zeros(_BATCH, layer.input_size, dtype=like.dtype)
    arguments: dict[str, Tensor] = {"x": x, **states}
    if timed:
        arguments["dt"] = torch.ones(_BATCH, dtype=like.dtype)
    # States are (layers, batch, hidden); the number of readings has no axis.
    axes = [{1: "batch"} if value.dim() == 3 else {0: "batch"} if value.dim() else None for value in arguments.values()]
    outputs = ["output", *(f"new_{name}" for name in states)]
    return _trace(SingleStep(model, timed), list(arguments.values()), list(arguments), outputs, axes)


def _trace(
    network: nn.Module, arguments: list[Tensor], names: list[str], outputs: list[str], axes: list[dict[int, str] | None]
) -> Any:
    dims = {name: torch.export.Dim(name) for name in ("batch", "time")}
    shapes: list[Any] = [None if a is None else {axis: dims[name] for axis, name in a.items()} for a in axes]
    if isinstance(network, SingleStep):
        shapes = [shapes[0], tuple(shapes[1:])]  # the arguments after x are one variadic argument
    with _silence(), torch.no_grad():
        return torch.onnx.export(
            network.eval(),
            tuple(arguments),
            dynamo=True,
            verbose=False,
            input_names=names,
            output_names=outputs,
            dynamic_shapes=tuple(shapes),
        )


@contextmanager
def _silence() -> Iterator[None]:
    """Keep messages about torch's own inside, which no user can act on, from the terminal."""
    log = logging.getLogger("torch.onnx")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        log.setLevel(level)


def _import_onnx() -> None:
    try:
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise ImportError(
            "ONNX files need onnx and onnxscript, which are not installed; run: pip install 'lrcnet[onnx]'"
        ) from error
