"""A server for sensors: one websocket each, an answer for every reading.

    pip install "lrcnet[export]" fastapi uvicorn websockets
    python server.py model/ --unit minutes

A sensor connects to ws://HOST:8000/sensors/NAME and sends JSON texts {"time": ..., "reading": [...]}, where time is a
number or an ISO date; it receives {"answer": [...]}, or {"error": "..."} for a reading that cannot be used. The state
of a sensor stays when it disconnects. GET /snapshot returns the state of all sensors as bytes, PUT /snapshot restores
it.

With --onnx FILE the same server runs a stream exported by `lrcnet export onnx --stream` under onnxruntime instead.
"""

import argparse
import json
from datetime import datetime
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response, WebSocket, WebSocketDisconnect

import lrcnet
from lrcnet.timestamps import Moment, elapsed, read_moment


class OnnxStream:
    """The part of `lrcnet.Stream` that the server uses, around onnxruntime."""

    def __init__(self, path: str, unit: str) -> None:
        import numpy as np
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session, self.unit, self.numpy = onnxruntime.InferenceSession(path, options), unit, np
        start = json.loads(self.session.get_modelmeta().custom_metadata_map["initial_state"])
        shapes = {
            given.name: [1 if isinstance(n, str) else n for n in given.shape] for given in self.session.get_inputs()
        }
        self.timed = "dt" in shapes
        self.start = {name: np.full(shapes[name], float(value), np.float32) for name, value in start.items()}
        self.places: dict[str, tuple[Moment, dict[str, Any]]] = {}

    def __call__(self, reading: Any, time: Any, name: str) -> Any:
        np, moment = self.numpy, read_moment(time)
        before, states = self.places.get(name, (None, self.start))
        gap = 1.0 if before is None else elapsed(before, moment, self.unit)
        if gap < 0:
            raise ValueError(f"time must not run backwards, but {time} is older than the last reading")
        feed = {"x": np.asarray([reading], np.float32), **states}
        if self.timed:
            feed["dt"] = np.asarray([gap], np.float32)
        answer, *after = self.session.run(None, feed)
        self.places[name] = (moment, dict(zip(self.start, after, strict=True)))
        return answer[0]


def read_time(given: Any) -> Any:
    """Return a time as it comes in JSON: a number, or an ISO date."""
    return datetime.fromisoformat(given) if isinstance(given, str) else given


def build_app(stream: Any) -> FastAPI:
    """Build the server around a stream."""
    app = FastAPI()

    @app.websocket("/sensors/{name}")
    async def serve_sensor(socket: WebSocket, name: str) -> None:
        await socket.accept()
        try:
            while True:
                message = json.loads(await socket.receive_text())
                try:
                    answer = stream(message["reading"], read_time(message["time"]), name)
                    reply = {"answer": None if answer is None else answer.tolist()}
                except (ValueError, TypeError, KeyError) as error:
                    reply = {"error": str(error)}
                await socket.send_text(json.dumps(reply))
        except (WebSocketDisconnect, json.JSONDecodeError):
            return

    @app.get("/snapshot")
    def take_snapshot() -> Response:
        return Response(stream.snapshot(), media_type="application/octet-stream")

    @app.put("/snapshot")
    async def restore_snapshot(request: Request) -> dict[str, int]:
        stream.restore(await request.body())
        return {"streams": len(stream.names)}

    return app


def main() -> None:
    parser = argparse.ArgumentParser(description="A websocket server for sensors.")
    parser.add_argument("model", help="folder of a model, or with --onnx a file")
    parser.add_argument("--onnx", action="store_true", help="onnxruntime instead of torch")
    parser.add_argument("--unit", default="seconds", help="unit of dt in training (default: seconds)")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, default=8000, help="port to listen on")
    arguments = parser.parse_args()
    if arguments.onnx:
        stream: Any = OnnxStream(arguments.model, arguments.unit)
    else:
        import torch

        torch.set_num_threads(1)
        stream = lrcnet.Stream(lrcnet.load(arguments.model), unit=arguments.unit)
    uvicorn.run(build_app(stream), host=arguments.host, port=arguments.port, log_level="warning")


if __name__ == "__main__":
    main()
