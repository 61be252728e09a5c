"""The example server: answers, errors, snapshots; and its load test, which really runs."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import lrcnet

SERVER = Path(__file__).parent.parent / "examples" / "server"
testclient = pytest.importorskip("fastapi.testclient", reason="fastapi is not installed")


def load_server() -> Any:
    spec = importlib.util.spec_from_file_location("example_server", SERVER / "server.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the test client's own packages
def test_sensors_get_answers_errors_and_keep_their_state() -> None:
    model = lrcnet.LRC(2, 4, solver="exponential", time_scale=60.0)
    stream, twin = lrcnet.Stream(model), lrcnet.Stream(model)
    with testclient.TestClient(load_server().build_app(stream)) as client:
        for number in range(2):  # the second connection continues the stream
            with client.websocket_connect("/sensors/pump") as socket:
                socket.send_json({"time": f"2024-05-01T12:0{number}:00", "reading": [0.5, 1.0]})
                expected = twin([0.5, 1.0], 60.0 * number)
                assert expected is not None
                torch.testing.assert_close(torch.tensor(socket.receive_json()["answer"]), expected)
        with client.websocket_connect("/sensors/pump") as socket:
            socket.send_json({"time": "2024-05-01T11:00:00", "reading": [0.5, 1.0]})
            assert "time must not run backwards" in socket.receive_json()["error"]
            socket.send_json({"time": "2024-05-01T13:00:00", "reading": [0.5]})
            assert "must have 2 numbers" in socket.receive_json()["error"]
        snapshot = client.get("/snapshot").content
        stream.reset("pump")
        assert client.put("/snapshot", content=snapshot).json() == {"streams": 1}
        assert stream.names == ["pump"]


@pytest.mark.slow
def test_the_load_test_prints_two_rates() -> None:
    pytest.importorskip("websockets", reason="websockets is not installed")
    command = [sys.executable, str(SERVER / "load_test.py"), "--seconds", "1", "--sensors", "2"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert len(re.findall(r"\d+ readings per second of one core", printed)) == 2
    printed = subprocess.run([*command, "--calls"], capture_output=True, text=True, check=True).stdout
    assert len(re.findall(r"\d+\.\d µs per call", printed)) == 2
