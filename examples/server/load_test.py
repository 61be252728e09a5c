"""A load test on loopback: readings per second that the server answers on one core, with torch and with onnxruntime.

    pip install "lrcnet[onnx]" fastapi uvicorn websockets
    python load_test.py --sensors 8 --seconds 5
    python load_test.py --calls        # the calls alone, without a server

Server and sensors are two processes. Each sensor sends its next reading when the last one is answered, so that the rate
includes JSON, the websocket and the event loop. The second number counts the processor time of the server alone, so
that other programs on the machine do not change it (Linux only).
"""

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
import websockets
from server import OnnxStream

import lrcnet
from lrcnet.export import export_onnx

SERVER = Path(__file__).with_name("server.py")
CHANNELS, UNITS = 6, 32


async def run_sensor(port: int, name: str, stop: float, first: int) -> int:
    """Send readings until the time is over; return how many were answered."""
    count = 0
    async with websockets.connect(f"ws://127.0.0.1:{port}/sensors/{name}") as connection:
        while time.monotonic() < stop:
            await connection.send(json.dumps({"time": 0.5 * (first + count), "reading": [0.1] * CHANNELS}))
            reply = json.loads(await connection.recv())
            assert "answer" in reply, reply
            count += 1
    return count


async def run_sensors(port: int, sensors: int, seconds: float, first: int = 0) -> float:
    """Return the readings per second of all sensors together."""
    start = time.monotonic()
    counts = await asyncio.gather(*(run_sensor(port, f"s{i}", start + seconds, first) for i in range(sensors)))
    return sum(counts) / (time.monotonic() - start)


def processor_seconds(process: int) -> float:
    """Return the processor time that a process has used, all its threads together."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(arguments: list[str], sensors: int, seconds: float) -> tuple[float, float]:
    """Start a server, wait until it listens; return its readings per second, and per second of processor time."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([sys.executable, str(SERVER), *arguments, "--port", str(port)])
    try:
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert server.poll() is None, "the server did not start"
            time.sleep(0.1)
        asyncio.run(run_sensors(port, sensors, 0.5))  # the first readings compile and allocate
        start, before = time.monotonic(), processor_seconds(server.pid)
        rate = asyncio.run(run_sensors(port, sensors, seconds, first=10_000))
        elapsed, used = time.monotonic() - start, processor_seconds(server.pid) - before
        return rate, rate * elapsed / used
    finally:
        server.terminate()
        server.wait()


def measure_calls(streams: dict[str, Any], rounds: int = 40, calls: int = 500) -> None:
    """Print the processor time of one call of each stream, in this process; the streams take turns."""
    times: dict[str, list[float]] = {name: [] for name in streams}
    for turn in range(rounds):
        for name, stream in streams.items():
            start = time.process_time()
            for call in range(calls):
                stream([0.1] * CHANNELS, 0.5 * (turn * calls + call), "sensor").tolist()
            times[name].append((time.process_time() - start) / calls * 1e6)
    for name, values in times.items():
        print(f"{name:<22} {statistics.median(values):8.1f} µs per call", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Readings per second on loopback.")
    parser.add_argument("--sensors", type=int, default=8, help="number of websockets")
    parser.add_argument("--seconds", type=float, default=5.0, help="duration of each measurement")
    parser.add_argument("--calls", action="store_true", help="measure calls in this process instead of a server")
    given = parser.parse_args()
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        model = lrcnet.Classifier(lrcnet.LRCU(CHANNELS, UNITS, batch_first=True, time_feature=True), UNITS, 3)
        model.save(folder)
        file = str(export_onnx(model, Path(folder) / "net.onnx", streaming=True))
        if given.calls:
            torch.set_num_threads(1)
            measure_calls({"torch, lrcnet.Stream": lrcnet.Stream(model), "onnxruntime": OnnxStream(file, "seconds")})
            return
        for name, arguments in (("torch, lrcnet.Stream", [folder]), ("onnxruntime", [file, "--onnx"])):
            rate, per_core = measure(arguments, given.sensors, given.seconds)
            print(f"{name:<22} {rate:8.0f} readings/s {per_core:8.0f} readings per second of one core", flush=True)


if __name__ == "__main__":
    main()
