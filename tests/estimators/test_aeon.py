"""The estimators on two sets that aeon ships, and the class for aeon under aeon's own checks.

aeon's numba may lag behind numpy, so aeon never enters this environment: its wheel is downloaded without dependencies
for the data, and its checks run in an environment of their own.
"""

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lrcnet.estimators import LiquidClassifier

pytestmark = pytest.mark.slow
AEON = "aeon==1.6.0"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("aeon")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), AEON]
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode:
        pytest.skip(f"aeon cannot be downloaded here: {ran.stderr.strip().splitlines()[-1]}")
    return zipfile.ZipFile(next(folder.glob("*.whl")))


def read_set(wheel: zipfile.ZipFile, name: str, part: str) -> tuple[list[Any], Any]:
    """Return series (time, channels) and labels of a .ts file: channels and the label are separated by colons."""
    lines = wheel.read(f"aeon/datasets/data/{name}/{name}_{part}.ts").decode().splitlines()
    start = next(i for i, line in enumerate(lines) if line.lower().startswith("@data")) + 1
    series, labels = [], []
    for line in filter(None, lines[start:]):
        *channels, label = line.split(":")
        series.append(np.array([[float(value) for value in channel.split(",")] for channel in channels]).T)
        labels.append(label.strip())
    return series, np.array(labels)


@pytest.mark.parametrize(
    ("name", "least"),
    [
        # Chance is 25 % and 10 %.
        ("BasicMotions", 0.9),
        ("PickupGestureWiimoteZ", 0.5),
    ],
)
def test_default_options_learn_a_set_of_aeons(wheel: zipfile.ZipFile, name: str, least: float) -> None:
    train, test = (read_set(wheel, name, part) for part in ("TRAIN", "TEST"))
    # With 50 series one fit says little: it varies by 30 points from state to state.
    fits = (LiquidClassifier(random_state=state, progress=False).fit(*train) for state in range(3))
    accuracies = [classifier.score(*test) for classifier in fits]
    print(f"{name}: " + ", ".join(f"{accuracy:.1%}" for accuracy in accuracies))
    assert np.mean(accuracies) >= least


def test_the_class_for_aeon_passes_aeons_checks(tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    ran = subprocess.run([python, "-m", "pip", "install", "--quiet", AEON], capture_output=True, text=True)
    if ran.returncode:
        pytest.skip(f"aeon cannot be installed here: {ran.stderr.strip().splitlines()[-1]}")
    # torch comes from this environment; numpy and numba from aeon's own, which come first.
    sites = subprocess.run(
        [python, "-c", "import site; print(site.getsitepackages()[0])"], capture_output=True, text=True
    )
    source = Path(__file__).resolve().parents[2] / "src"
    Path(sites.stdout.strip(), "zz_ours.pth").write_text(f"{sysconfig.get_paths()['purelib']}\n{source}\n")
    code = (
        "from aeon.testing.estimator_checking import check_estimator; "
        "from lrcnet.estimators.aeon import AeonLiquidClassifier; "
        "results = check_estimator(AeonLiquidClassifier); "
        "print({name: result for name, result in results.items() if result != 'PASSED'}, len(results) > 20)"
    )
    ran = subprocess.run([python, "-W", "ignore", "-c", code], capture_output=True, text=True)
    assert ran.stdout.strip().splitlines()[-1:] == ["{} True"], ran.stdout + ran.stderr
