"""A run that is killed at any moment and started again ends with the metrics of a run that was never disturbed."""

import json
import random
import signal
import time
from pathlib import Path

import pytest

from lrcnet.cli import main
from lrcnet_paper.training.atomic_files import PAUSE

ODE = ("neural-ode", "--variant", "sinusoid", "--model", "lrc-s", "--iterations", 700)
PERSON = (
    "person", "--variant", "a01-a04-clean", "--model", "lrcu-s", "--epochs", 40, "--samples", 60, "--batch-size", 8,
    "--option", "units=8",
)  # fmt: skip


def end(process) -> tuple[int, str]:
    _, errors = process.communicate(timeout=300)
    return process.returncode, errors


def finish(start, words, folder):
    process = start(*words, "--out", folder)
    code, errors = end(process)
    assert code == 0, errors


def same_numbers(a: Path, b: Path) -> None:
    assert (a / "metrics.csv").read_bytes() == (b / "metrics.csv").read_bytes()
    one, two = (json.loads((folder / "result.json").read_text()) for folder in (a, b))
    del one["seconds_per_epoch"], two["seconds_per_epoch"]
    assert one == two


def wait_for(condition, process, seconds=120.0):
    until = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until, "the run did not get this far"
        time.sleep(0.005)


def kill_inside_a_write(start, words, folder, pattern):
    """Kill a run while a half-written temporary file that matches the pattern exists."""
    process = start(*words, "--out", folder, **{PAUSE: "0.3"})
    wait_for(lambda: list(folder.glob(pattern)), process)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    assert list(folder.glob(pattern)), "it died inside the write"


def kill_after(start, words, folder, seconds):
    """Kill a run `seconds` after it has written a checkpoint; return False if it had finished before."""
    checkpoint = folder / "last.ckpt"
    stamp = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
    process = start(*words, "--out", folder)

    def has_written_or_ended():
        return process.poll() is not None or (checkpoint.exists() and checkpoint.stat().st_mtime_ns != stamp)

    until = time.monotonic() + 120
    while not has_written_or_ended() and time.monotonic() < until:
        time.sleep(0.005)
    time.sleep(seconds)
    process.send_signal(signal.SIGKILL)
    return process.wait() == -signal.SIGKILL


def test_a_run_killed_inside_a_checkpoint_write_ends_like_an_undisturbed_one(start, tmp_path):
    words = (*ODE[:-1], 150)
    assert main(["train", *map(str, words), "--out", str(tmp_path / "whole"), "--threads", "1"]) == 0
    kill_inside_a_write(start, words, tmp_path / "killed", ".last.ckpt.*.part")
    finish(start, words, tmp_path / "killed")
    same_numbers(tmp_path / "whole", tmp_path / "killed")
    assert not list((tmp_path / "killed").glob(".*.part")), "the temporary files of the kill are deleted"


@pytest.mark.slow
def test_ten_kills_at_random_moments_change_no_byte(start, tmp_path, person_data):
    words = (*PERSON, "--data", person_data)
    finish(start, words, tmp_path / "whole")
    folder, chance = tmp_path / "killed", random.Random(20)
    names = [".last.ckpt.*.part", ".metrics.csv.*.part", ".config.json.*.part", ".best.ckpt.*.part"]
    for name in names:
        kill_inside_a_write(start, words, folder, name)
    kills = len(names)
    while kills < 10:
        # Up to about the time of an epoch, so that the run is not over before its tenth kill.
        kills += kill_after(start, words, folder, chance.uniform(0, 0.1))
        assert not (folder / "result.json").exists(), f"the run was over after {kills} kills"
    finish(start, words, folder)
    same_numbers(tmp_path / "whole", folder)


def test_two_processes_do_not_write_into_one_folder(start, tmp_path, monkeypatch):
    from lrcnet_paper.training import run_folder

    with run_folder.lock_folder(tmp_path), pytest.raises(RuntimeError, match="another process is training the run in"):  # noqa: SIM117
        with run_folder.lock_folder(tmp_path, patience=0.3):
            pass
