"""Kill a training run at random moments, again and again, and compare its files with those of a run left alone.

    python -m tests.fuzz.kills [--kills 50] [--seed 0]

A pause in the middle of every write (`LRCNET_PAUSE_IN_WRITE`) makes kills inside a write likely. The processes are
forked from a server that has imported the suite: importing it 50 times would take most of the time.
"""

import argparse
import multiprocessing
import os
import random
import sys
import tempfile
import time
from multiprocessing.process import BaseProcess
from pathlib import Path

RUN = ("neural-ode", "--variant", "spiral", "--model", "lrc-s", "--quiet", "--threads", "1")
COMPARED = ("metrics.csv",)
# Long enough for 50 kills, each after a new checkpoint.
ITERATIONS = 6000


_server = multiprocessing.get_context("forkserver")
_server.set_forkserver_preload(["lrcnet.cli", "lrcnet_paper.training", "lrcnet_paper.commands.train"])


def _train(arguments: list[str], environment: dict[str, str]) -> None:
    """Run the command line in this process, without its output."""
    from lrcnet.cli import main

    os.environ.update(environment)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    sys.exit(main(arguments))


def start(folder: Path, iterations: int, **environment: str) -> BaseProcess:
    """Start the run as a process."""
    arguments = ["train", *RUN, "--iterations", str(iterations), "--out", str(folder)]
    process = _server.Process(target=_train, args=(arguments, environment))
    process.start()
    return process


def kill_until(kills: int, folder: Path, iterations: int, seed: int) -> int:
    """Kill the run after it has begun to write, until there were enough kills; return their number."""
    draw, count = random.Random(seed), 0
    while count < kills and not (folder / "result.json").exists():
        process = start(folder, iterations, LRCNET_PAUSE_IN_WRITE="0.02")
        _wait_for_progress(process, folder)
        time.sleep(draw.uniform(0, 0.3))
        if process.is_alive():
            process.kill()
            count += 1
        process.join()
    return count


def _wait_for_progress(process: BaseProcess, folder: Path) -> None:
    """Wait until the process has written a checkpoint, so that every kill meets a run at work."""
    last = folder / "last.ckpt"
    before = last.stat().st_mtime_ns if last.exists() else 0
    while process.is_alive() and (not last.exists() or last.stat().st_mtime_ns == before):
        time.sleep(0.02)


def _finish(process: BaseProcess) -> int | None:
    """Wait for a process and return its exit code."""
    process.join()
    return process.exitcode


def compare(kills: int, iterations: int, seed: int) -> tuple[int, list[str]]:
    """Return the number of kills and the names of files that differ from those of an uninterrupted run."""
    with tempfile.TemporaryDirectory() as name:
        alone, killed = Path(name) / "alone", Path(name) / "killed"
        if _finish(start(alone, iterations)):
            raise RuntimeError("the run that is left alone failed")
        count = kill_until(kills, killed, iterations, seed)
        if _finish(start(killed, iterations)):
            return count, ["the run could not be resumed"]
        differing = [file for file in COMPARED if (alone / file).read_bytes() != (killed / file).read_bytes()]
        return count, differing + [path.name for path in killed.glob(".*.part")]


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50, help="number of kills (default: 50)")
    parser.add_argument("--iterations", type=int, default=ITERATIONS, help=f"length of the run (default: {ITERATIONS})")
    parser.add_argument("--seed", type=int, default=0, help="seed of the moments (default: 0)")
    given = parser.parse_args(arguments)
    count, problems = compare(given.kills, given.iterations, given.seed)
    print(f"{count} kills; {'identical bytes' if not problems else 'differences: ' + ', '.join(problems)}")
    return bool(problems) or count < given.kills


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
