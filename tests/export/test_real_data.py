"""Generated C on real data: a classifier of scanned digits, trained here, in float32 and in int16."""

from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn import datasets
from torch import nn

import lrcnet
from lrcnet.export import export_c
from lrcnet.export.network import collect
from lrcnet.export.vectors import run_stream
from tests.export.compilers import GCC, Library
from tests.tolerances import INT16

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(GCC is None, reason="gcc is not installed"),
]


def load_digits() -> tuple[torch.Tensor, torch.Tensor]:
    """Return 1797 scanned digits as series (digits, 8 rows, 8 pixels from 0 to 16), and their classes."""
    x, y = datasets.load_digits(return_X_y=True)
    return torch.from_numpy(x).float().reshape(-1, 8, 8), torch.from_numpy(y)


def train(name: str, x: torch.Tensor, y: torch.Tensor) -> lrcnet.Classifier:
    torch.manual_seed(0)
    model = lrcnet.Classifier(lrcnet.LAYERS[name](8, 16, batch_first=True), 16, 10)
    model.set_input_scaling(x.mean((0, 1)), x.std((0, 1)).clamp(min=1))
    optimiser = torch.optim.Adam(model.parameters(), 2e-2)
    for _ in range(100):
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimiser.step()
    return model.eval()


@pytest.mark.parametrize("name", ["lrcu", "ltc", "gru", "lstm"])
def test_int16_stays_within_its_stated_error(name: str, tmp_path: Path) -> None:
    x, y = load_digits()
    model = train(name, x[:1500], y[:1500])
    x, y = x[1500:], y[1500:]
    network = collect(model, timed=False)
    answers: dict[str, np.ndarray] = {}
    for arithmetic in ("float32", "int16"):
        (tmp_path / arithmetic).mkdir()
        export_c(model, tmp_path / arithmetic / "net.c", arithmetic=arithmetic, timed=False)
        library = Library(tmp_path / arithmetic / "net.c", network)
        answers[arithmetic] = np.stack([library(series.numpy(), None) for series in x])
    truth = np.stack([run_stream(model, series.double().numpy(), None) for series in x])
    largest = np.abs(truth).max()
    errors = {arithmetic: np.abs(answer - truth).max() / largest for arithmetic, answer in answers.items()}
    accuracy = {arithmetic: float((a[:, -1].argmax(1) == y.numpy()).mean()) for arithmetic, a in answers.items()}
    print(name, {key: f"{value:.2g}" for key, value in errors.items()}, accuracy)
    assert errors["int16"] <= INT16
    assert abs(accuracy["int16"] - accuracy["float32"]) < 0.005
    assert accuracy["float32"] > 0.7
