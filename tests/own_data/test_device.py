"""The whole road: a table with gaps and missing values, `lrcnet fit`, ONNX and C, and the numbers of `predict`."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import lrcnet
from lrcnet.commands import export, fit, predict
from lrcnet.export.network import collect
from tests.export.compilers import GCC, Library
from tests.own_data.test_fit_and_predict import QUICK, run, table
from tests.tolerances import ONNX

onnxruntime = pytest.importorskip("onnxruntime")


def inputs_of(part: pd.DataFrame, extra: dict) -> tuple[np.ndarray, np.ndarray]:
    """Return x (readings, inputs) and dt of one patient as docs/own-data.md describes them."""
    mean = extra["own_data"]["preparation"]["mean"]
    columns = [
        part[name.split("=")[0]].eq(name.split("=")[1]).astype(float) if "=" in name else part[name]
        for name in extra["channels"]
    ]
    values = pd.concat(columns, axis=1).to_numpy(float)
    filled = pd.DataFrame(values).ffill().fillna(dict(enumerate(mean))).to_numpy()
    seconds = pd.to_datetime(part["when"]).diff().dt.total_seconds().fillna(extra["typical_gap"]).to_numpy()
    return np.concatenate([filled, ~np.isnan(values)], 1), seconds


@pytest.mark.skipif(GCC is None, reason="gcc is not installed")
def test_onnx_and_c_give_the_numbers_of_predict(tmp_path: Path) -> None:
    frame, new = table().drop(columns="dose"), table(5, seed=1).drop(columns="dose")
    frame.to_csv(tmp_path / "readings.csv", index=False)
    new.to_csv(tmp_path / "new.csv", index=False)
    folder = tmp_path / "model"
    long = ("--id", "patient", "--time", "when", "--target", "label")
    run(fit, tmp_path / "readings.csv", *long, *QUICK, "--out", folder)
    run(predict, folder, tmp_path / "new.csv", "--out", tmp_path / "predictions.csv")
    run(export, "onnx", folder, "--out", tmp_path / "net.onnx")
    run(export, "c", folder, "--out", tmp_path / "net.c")
    extra = json.loads((folder / "config.json").read_text())["extra"]
    session = onnxruntime.InferenceSession(str(tmp_path / "net.onnx"))
    names = session.get_modelmeta().custom_metadata_map
    assert json.loads(names["inputs"])[:2] == ["rate", "pressure"]
    assert json.loads(names["outputs"]) == ["logit of class sick", "logit of class well"]
    library = Library(tmp_path / "net.c", collect(lrcnet.load(folder)))
    wanted = pd.read_csv(tmp_path / "predictions.csv")
    for row in wanted.itertuples():
        x, dt = inputs_of(new[new["patient"] == row.patient], extra)
        given = {"x": x[None].astype(np.float32), "dt": dt[None].astype(np.float32)}
        (logits,) = session.run(None, given)
        for answer in (logits[0], library(x, dt)[-1]):
            share = 1 / (1 + np.exp(answer[1] - answer[0]))
            assert abs(share - row.probability_sick) <= ONNX
