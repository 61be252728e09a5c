"""Make the live pages of the documentation site: the report, two drives, a fit, and a look into its network.

    python tools/live_pages.py docs/live

Nothing is trained on the paper's data: the report is drawn from the collected results, the policies that drive
are those in examples/policies, and the sensor network is fitted to generated readings on the spot.
"""

from __future__ import annotations

import csv
import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

from lrcnet.cli import main

ROOT = Path(__file__).parents[1]
POLICY, RIVAL = (next((ROOT / "examples" / "policies").glob(f"driving_own_{model}_*")) for model in ("lrcu-s", "lstm"))
SENSORS, READINGS = 160, 40


def write_readings(path: Path) -> None:
    """Write a table of irregular readings: the class of a sensor is how fast its pressure decays."""
    random = np.random.default_rng(0)
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["sensor", "minutes", "pressure", "temperature", "label"])
        for sensor in range(SENSORS):
            fast = sensor % 2
            times = (0.1 + random.exponential(10, READINGS)).cumsum()
            pressure = np.exp(-times / (60 if fast else 120)) + random.normal(0, 0.05, READINGS)
            for minutes, value, degrees in zip(times, pressure, random.normal(20, 2, READINGS), strict=True):
                label = "fast" if fast else "slow"
                table.writerow([f"s{sensor}", f"{minutes:.2f}", f"{value:.4f}", f"{degrees:.2f}", label])


def make_pages(folder: Path) -> None:
    """Write every live page into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    _run("report", str(ROOT / "results"), "--html", str(folder / "report.html"))
    _run("drive", str(POLICY), "--html", str(folder / "drive.html"), "--length", "300")
    _run("drive", str(POLICY), str(RIVAL), "--length", "300", "--html", str(folder / "drive-two.html"))
    with tempfile.TemporaryDirectory() as scratch:
        readings, model = Path(scratch) / "readings.csv", Path(scratch) / "model"
        write_readings(readings)
        columns = ["--id", "sensor", "--time", "minutes", "--target", "label"]
        _run("fit", str(readings), *columns, "--epochs", "40", "--units", "16", "--out", str(model))
        shutil.copy(model / "report.html", folder / "fit.html")
        _run("explain", str(model), "--html", str(folder / "explain.html"))


def _run(*arguments: str) -> None:
    code = main(arguments)
    if code:
        sys.exit(code)


if __name__ == "__main__":
    make_pages(Path(sys.argv[1]))
