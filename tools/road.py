"""Go the road of docs/own-data.md from an empty folder, and print the minutes of each step.

python tools/road.py                  # in a temporary folder
python tools/road.py --folder road    # keep everything that the steps write

A new virtual environment, the installation of this checkout with the extras that the README names, a table with
irregular times, gaps and missing values, and the commands of the README: fit, predict, explain, export onnx, export c.
At the end the ONNX file under onnxruntime and the C source, compiled by a C compiler, answer the new series, and their
probabilities must be those of `lrcnet predict` to 1e-5. The exit status says whether they are.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
CHECK = Path(__file__).with_name("road_numbers.py")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--folder", type=Path, help="folder for everything that is written (default: a temporary one)")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(given.folder or temporary).resolve()
        folder.mkdir(parents=True, exist_ok=True)
        return walk(folder)


def walk(folder: Path) -> int:
    """Take all steps in a folder; return the exit status of the first one that fails, or 0."""
    programs = folder / "venv" / "bin"
    python, lrcnet = str(programs / "python"), str(programs / "lrcnet")
    columns = ["--id", "patient", "--time", "timestamp", "--target", "label"]
    install = [python, "-m", "pip", "install", "-q", "-c", str(ROOT / "constraints.txt"), f"{ROOT}[fit,onnx]"]
    steps = {
        "virtual environment": [sys.executable, "-m", "venv", str(folder / "venv")],
        "pip install": install,
        "a table": [python, str(CHECK), "make"],
        "lrcnet fit": [lrcnet, "fit", "readings.csv", *columns, "--out", "model"],
        "lrcnet predict": [lrcnet, "predict", "model", "new.csv", "--out", "predictions.csv"],
        "lrcnet explain": [lrcnet, "explain", "model", "--html", "page.html"],
        "lrcnet export onnx": [lrcnet, "export", "onnx", "model", "--out", "net.onnx"],
        "lrcnet export c": [lrcnet, "export", "c", "model", "--out", "net.c"],
        "cc": ["cc", "-std=c99", "-O2", "-shared", "-fPIC", "net.c", "-o", "net.so", "-lm"],
        "same numbers": [python, str(CHECK), "compare"],
    }
    return time_steps(steps, lambda command: subprocess.run(command, cwd=folder, check=False).returncode)


def time_steps(steps: dict[str, list[str]], run: Callable[[list[str]], int]) -> int:
    """Run one command after the other and print the seconds of each, until one fails."""
    start, lines = time.monotonic(), []
    for name, command in steps.items():
        print(f"\n== {name}", flush=True)
        before = time.monotonic()
        status = run(command)
        lines.append(f"{name:<20} {time.monotonic() - before:6.1f} s" + (f"  failed, exit {status}" if status else ""))
        if status:
            break
    print("\n" + "\n".join(lines) + f"\n{'all':<20} {time.monotonic() - start:6.1f} s")
    return status


if __name__ == "__main__":
    sys.exit(main())
