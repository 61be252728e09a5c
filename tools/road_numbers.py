"""The two ends of `tools/road.py`: a table with gaps, and the comparison of ONNX and C with `lrcnet predict`."""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

CHANNELS = ["heart_rate", "pressure"]
LIMIT = 1e-5


def make(patients: range, seed: int) -> pd.DataFrame:
    """Return series of 12 to 25 readings at irregular times, a fifth of one channel missing; rhythm is class."""
    rng, parts = np.random.default_rng(seed), []
    for patient in patients:
        count, sick = int(rng.integers(12, 26)), patient % 2
        minutes = np.cumsum(rng.exponential(30, count) + 1).round(1)
        rhythm = np.sin(minutes / (20 if sick else 60) + rng.uniform(0, 6))
        pressure = 118 + rng.normal(0, 6, count)
        pressure[rng.random(count) < 0.2] = np.nan
        columns = {
            "patient": f"p{patient}",
            "timestamp": pd.Timestamp("2024-05-01") + pd.to_timedelta(minutes, unit="min"),
            "heart_rate": (70 + 12 * rhythm + rng.normal(0, 2, count)).round(2),
            "pressure": pressure.round(1),
            "label": ["well", "sick"][sick],
        }
        parts.append(pd.DataFrame(columns))
    return pd.concat(parts, ignore_index=True)


def make_tables() -> int:
    """Write readings.csv and new.csv, whose series have other names and no label."""
    make(range(200), 0).to_csv("readings.csv", index=False)
    make(range(1000, 1020), 1).drop(columns="label").to_csv("new.csv", index=False)
    print(*Path("readings.csv").read_text().splitlines()[:4], sep="\n")
    return 0


def inputs(series: pd.DataFrame, extra: dict[str, Any]) -> tuple[Any, Any]:
    """Return x (readings, inputs) and dt of one series, as docs/own-data.md describes them."""
    values = series[CHANNELS].to_numpy(float)
    mean = extra["own_data"]["preparation"]["mean"]
    filled = pd.DataFrame(values).ffill().fillna(dict(enumerate(mean))).to_numpy()
    seconds = pd.to_datetime(series["timestamp"]).diff().dt.total_seconds().fillna(extra["typical_gap"])
    x = np.concatenate([filled, ~np.isnan(values)], 1)
    return np.ascontiguousarray(x, np.float32), seconds.to_numpy(np.float32)


def run_c(library: Any, x: Any, dt: Any) -> Any:
    """Return the last answer of the compiled network to a stream."""
    state, answer, pointer = (ctypes.c_char * 65536)(), np.zeros(2, np.float32), ctypes.POINTER(ctypes.c_float)
    library.net_reset(state)
    for reading, gap in zip(x, dt, strict=True):
        library.net_step(state, reading.ctypes.data_as(pointer), ctypes.c_float(gap), answer.ctypes.data_as(pointer))
    return answer


def compare() -> int:
    """Return 0 if ONNX and C give the probabilities of predictions.csv."""
    import onnxruntime

    extra = json.loads(Path("model/config.json").read_text())["extra"]
    session, library = onnxruntime.InferenceSession("net.onnx"), ctypes.CDLL(str(Path("net.so").resolve()))
    new, predictions = pd.read_csv("new.csv"), pd.read_csv("predictions.csv")
    worst = dict.fromkeys(("onnxruntime", "C"), 0.0)
    for row in predictions.itertuples():
        x, dt = inputs(new[new["patient"] == row.patient], extra)
        (logits,) = session.run(None, {"x": x[None], "dt": dt[None]})
        for name, answer in zip(worst, (logits[0], run_c(library, x, dt)), strict=True):
            error = abs(1 / (1 + np.exp(answer[1] - answer[0])) - row.probability_sick)
            worst[name] = max(worst[name], float(error))
    for name, error in worst.items():
        print(f"{name}: largest difference of a probability {error:.1e}, {len(predictions)} series")
    return int(max(worst.values()) > LIMIT)


if __name__ == "__main__":
    sys.exit(make_tables() if sys.argv[1] == "make" else compare())
