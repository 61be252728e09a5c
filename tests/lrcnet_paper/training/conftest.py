"""Tiny files in the official format, and a way to start a run as a process of its own."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from lrcnet_paper.tasks import find
from lrcnet_paper.tasks.person_files import ACTIVITIES, TAGS

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture(scope="session")
def person_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file of the person task: four sequences that give as many windows as the real ones; runs take a
    few of them by `samples`. Labels follow from the place, so that there is something to learn."""
    generator = np.random.default_rng(0)
    lines, tags, activities = [], list(TAGS), list(ACTIVITIES)
    splits = find("person", "a01-a04-clean").splits
    windows = {"A01": 300, "A02": splits["train"] - 300, "A03": splits["validation"], "A04": splits["test"]}
    for name, count in windows.items():
        ticks = 633790226051280329
        for _ in range(16 * count + 32):
            ticks += int(generator.integers(1, 5)) * 10**5
            place = generator.normal(size=3)
            activity = activities[int(place[0] > 0) * 3]
            numbers = ",".join(f"{value:.6f}" for value in place)
            tag = tags[int(generator.integers(len(tags)))]
            lines.append(f"{name},{tag},{ticks},27.05.2009 14:03:25:127,{numbers},{activity}")
    folder = tmp_path_factory.mktemp("person")
    (folder / "ConfLongDemo_JSI_A01-A04.csv").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture
def start() -> Iterator[Start]:
    """Start `lrcnet train ...` as a process; processes that still run are killed at the end."""
    processes: list[subprocess.Popen[str]] = []

    def begin(*words: object, **environment: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-m", "lrcnet.cli", "train", *map(str, words), "--threads", "1"],
            env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        return process

    yield begin
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.communicate()
