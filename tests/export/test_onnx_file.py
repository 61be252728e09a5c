"""ONNX files under onnxruntime: whole sequences of any batch and length, streams, and bad input."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import lrcnet
from lrcnet.export import export_onnx
from lrcnet.export.forms import find_layer, first_states
from lrcnet.models import SequenceModel
from tests.export import networks
from tests.tolerances import ONNX

onnxruntime = pytest.importorskip("onnxruntime")
onnxruntime.set_default_logger_severity(3)

# (batch, time): not those of the traced example, one of each, and a long one.
SIZES = [(2, 7), (1, 1), (3, 600)]


def open_session(path: Path) -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(path), options)


def random_series(model: Any, batch: int, steps: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Return readings on the model's scale and gaps, in the model's layout."""
    layer = find_layer(model)
    x = torch.randn(batch, steps, layer.input_size)
    if getattr(model, "takes_tokens", False):
        x = torch.randint(9, (batch, steps))
    if getattr(model, "input_mean", None) is not None:
        x = x * model.input_scale + model.input_mean
    dt = torch.rand(batch, steps) * (float(layer.time_scale) if hasattr(layer, "time_scale") else 1.0)
    if isinstance(model, SequenceModel) or layer.batch_first:
        return x, dt
    return x.transpose(0, 1).contiguous(), dt.t().contiguous()


def run_session(session: Any, **values: torch.Tensor) -> list[np.ndarray]:
    wanted = {given.name for given in session.get_inputs()}
    return session.run(None, {name: value.numpy() for name, value in values.items() if name in wanted})


def check_sequences(model: Any, path: Path) -> None:
    session = open_session(export_onnx(model, path))
    timed = "dt" in {given.name for given in session.get_inputs()}
    for size in SIZES:
        x, dt = random_series(model, *size)
        with torch.no_grad():
            expected = model(x, dt=dt) if timed else model(x)
        answers = [expected] if isinstance(expected, torch.Tensor) else [expected[0], *states_of(expected[1])]
        for got, want in zip(run_session(session, x=x, dt=dt), answers, strict=True):
            scale = max(1.0, want.abs().max().item())
            assert np.abs(got - want.numpy()).max() <= ONNX * scale, f"{size}"


def states_of(state: Any) -> list[torch.Tensor]:
    return list(state) if isinstance(state, tuple) else [state]


def check_stream(model: Any, path: Path) -> None:
    session = open_session(export_onnx(model, path, streaming=True))
    assert session.get_modelmeta().custom_metadata_map["form"] == "step"
    timed = "dt" in {given.name for given in session.get_inputs()}
    x, dt = random_series(model, 3, 9)
    if not isinstance(model, SequenceModel) and not find_layer(model).batch_first:
        x, dt = x.transpose(0, 1), dt.t()
    state, states = None, first_states(model, 3)
    for t in range(9):
        with torch.no_grad():
            want, state = model.step(x[:, t], state, dt[:, t] if timed else None)
        got, *new = run_session(session, x=x[:, t], dt=dt[:, t], **states)
        states = {name: torch.from_numpy(value) for name, value in zip(states, new, strict=True)}
        assert np.abs(got - want.numpy()).max() <= ONNX * max(1.0, want.abs().max().item())


@pytest.mark.parametrize("name", ["forecaster"])
def test_whole_sequences_of_any_size(name: str, tmp_path: Path) -> None:
    check_sequences(networks.build(name), tmp_path / "net.onnx")


@pytest.mark.parametrize("name", ["lrcu"])
def test_one_reading_at_a_time(name: str, tmp_path: Path) -> None:
    check_stream(networks.build(name), tmp_path / "net.onnx")


@pytest.mark.slow
@pytest.mark.parametrize("name", networks.ALL)
def test_every_network_over_whole_sequences(name: str, tmp_path: Path) -> None:
    check_sequences(networks.build(name), tmp_path / "net.onnx")


@pytest.mark.slow
@pytest.mark.parametrize("name", networks.ALL)
def test_every_network_one_reading_at_a_time(name: str, tmp_path: Path) -> None:
    check_stream(networks.build(name), tmp_path / "net.onnx")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lrcu", "gru", "ctrnn"])
def test_both_directions(name: str, tmp_path: Path) -> None:
    check_sequences(networks.layer(name, bidirectional=True, batch_first=True).eval(), tmp_path / "net.onnx")


@pytest.mark.slow
def test_torchs_own_exporter_needs_no_other_backend(tmp_path: Path) -> None:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn, self.head = lrcnet.LRCU(3, 6, 2, batch_first=True), nn.Linear(6, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.rnn(x)[0])

    model = Own().eval()
    axes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("time")}
    # torch's exporter warns of its own deprecated functions.
    with torch.no_grad(), pytest.warns():
        program = torch.onnx.export(model, (torch.randn(5, 13, 3),), dynamo=True, dynamic_shapes=(axes,), verbose=False)
    program.save(str(tmp_path / "own.onnx"))
    session, x = open_session(tmp_path / "own.onnx"), torch.randn(2, 40, 3)
    (got,) = session.run(None, {session.get_inputs()[0].name: x.numpy()})
    with torch.no_grad():
        assert np.abs(got - model(x).numpy()).max() <= ONNX


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lstm", "gru"])
def test_one_layer_of_torchs_own(name: str, tmp_path: Path) -> None:
    check_sequences(networks.layer(name, layers=1, batch_first=True, bias=False).eval(), tmp_path / "net.onnx")


def test_networks_that_have_no_such_form_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "net.onnx"
    with pytest.raises(ValueError, match="chooses them at run time"):
        export_onnx(lrcnet.LRC(3, 4, solver="dopri5"), file)
    with pytest.raises(ValueError, match="export whole sequences"):
        export_onnx(lrcnet.LRC(3, 4, bidirectional=True), file, streaming=True)
    with pytest.raises(ValueError, match="cannot use dt"):
        export_onnx(lrcnet.GRU(3, 4), file, timed=True)
    with pytest.raises(TypeError, match="given a Linear"):
        export_onnx(nn.Linear(3, 4), file)
    assert not file.exists()
