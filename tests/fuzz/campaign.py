"""Attack lrcnet a counted number of times and print a table of what happened.

    python -m tests.fuzz.campaign [--kernels 10000] [--calls 1000] [--files 600] [--folders 200] [--commands 200]
        [--kills 50] [--rounds 1]

Each kind of attack runs in processes of its own, so that a crash or a hang ends one process and is counted. The seed is
printed; the same seed gives the same attacks. After that a training run is killed (`tests/fuzz/kills.py`).
`--rounds 0` repeats everything with new seeds until it is interrupted.
"""

import argparse
import itertools
import json
import logging
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.fuzz import kills
from tests.fuzz.outcomes import BAD, KINDS, RIGHT, WRONG, Outcome, watch

ROOT = Path(__file__).parents[2]
# Attacks per process: a crash loses the count of the process's other attacks, which are then done again.
CHUNK = 500
# Seconds that one attack may take on a busy machine.
PATIENCE = 120
CRASH, HANG = "crash", "hang"
COLUMNS = (*KINDS, CRASH, HANG)
TARGETS = {"kernels": 10_000, "calls": 1000, "files": 600, "folders": 200, "commands": 200}
"""Kind of attack -> number of attacks; all but the kernels are bad inputs."""
KILLS = 50
NO_BAD_INPUTS = ("kernels", "kills")


def load(target: str) -> tuple[object, object]:
    """Return the strategy and the attack of a target; imported here, so that the parent starts at once."""
    if target == "kernels":
        from tests.fuzz import kernel_cases as module
    elif target == "calls":
        from tests.fuzz import bad_calls as module
    elif target == "files":
        from tests.fuzz import bad_files as module
    elif target == "folders":
        from tests.fuzz import bad_folders as module
    else:
        from tests.fuzz import command_lines as module
    return module.CASES, module.attack


def work(target: str, cases: int, seed_number: int, log: Path) -> None:
    """Run attacks in this process, and write one line before and one after each."""
    import torch
    from hypothesis import HealthCheck, Phase, given, seed, settings

    logging.getLogger("lrcnet").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    strategy, attack = load(target)
    with log.open("w") as file:

        @seed(seed_number)
        @settings(
            max_examples=cases,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(strategy)
        def run(case: object) -> None:
            file.write(json.dumps({"case": repr(case)}) + "\n")
            file.flush()
            outcome = watch(lambda: attack(case))
            file.write(json.dumps(outcome._asdict()) + "\n")
            file.flush()

        run()


def run_chunk(target: str, cases: int, seed_number: int) -> tuple[Counter[str], list[str]]:
    """Run attacks in a process of its own; return how many led to what, and what was bad."""
    counts: Counter[str] = Counter()
    details: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log"
        log.touch()
        child = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.campaign", "--worker", target, str(cases), str(seed_number), str(log)],
            cwd=ROOT,
            # Threads that wait by spinning would take most of the time on a machine with other work.
            env={**os.environ, "OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "0"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        hung = _wait(child, log)
        _, error = child.communicate()
        last = ""
        for line in log.read_text().splitlines():
            row = json.loads(line)
            if "case" in row:
                last = row["case"]
                continue
            outcome = Outcome(**row)
            counts[outcome.kind] += 1
            last = ""
            if outcome.kind in BAD:
                details.append(f"{target}, {outcome.kind}: {outcome.detail}")
    if hung or child.returncode:
        kind = HANG if hung else CRASH
        counts[kind] += 1
        details.append(f"{target}, {kind} (exit code {child.returncode}): {last or error.strip()[-400:]}")
    return counts, details


def _wait(child: "subprocess.Popen[str]", log: Path) -> bool:
    """Wait for a child; kill it and return True if its log does not grow any more."""
    size, since = -1, time.monotonic()
    while child.poll() is None:
        time.sleep(0.2)
        now = log.stat().st_size
        if now != size:
            size, since = now, time.monotonic()
        elif time.monotonic() - since > PATIENCE:
            child.kill()
            return True
    return False


def run_target(target: str, cases: int, seed_number: int, jobs: int = 1) -> tuple[Counter[str], list[str]]:
    """Run at least a number of attacks of one kind, in `jobs` processes at a time."""
    counts: Counter[str] = Counter()
    details: list[str] = []
    seeds = itertools.count(seed_number)
    with ThreadPoolExecutor(jobs) as pool:
        # A second round only if a process ended early.
        while (left := cases - counts.total()) > 0:
            sizes = [min(CHUNK, left - done) for done in range(0, left, CHUNK)]
            for more, bad in pool.map(run_chunk, [target] * len(sizes), sizes, itertools.islice(seeds, len(sizes))):
                counts += more
                details += bad
    return counts, details


def run_kills(number: int, seed_number: int) -> tuple[Counter[str], list[str]]:
    """Kill a run again and again; a file that differs afterwards counts as a wrong number."""
    count, problems = kills.compare(number, kills.ITERATIONS, seed_number)
    if count < number:
        problems.append(f"the run ended after {count} kills of {number}")
    return Counter({RIGHT: count, WRONG: len(problems)}), [f"kills, {WRONG}: {problem}" for problem in problems]


def format_table(rows: dict[str, Counter[str]]) -> str:
    """Return the counts as a table for a terminal."""
    lines = [f"{'attack':<10}{'number':>8}" + "".join(f"{column:>15}" for column in COLUMNS)]
    for name, counts in rows.items():
        lines.append(f"{name:<10}{counts.total():>8}" + "".join(f"{counts[column]:>15}" for column in COLUMNS))
    bad = sum((counts for name, counts in rows.items() if name not in NO_BAD_INPUTS), Counter())
    if bad:
        lines.append(f"unclear errors: {100 * bad['unclear error'] / bad.total():.2f} % of {bad.total()} bad inputs")
    return "\n".join(lines)


def is_good(rows: dict[str, Counter[str]]) -> bool:
    """Return whether no number was wrong, nothing crashed or hung, and at most 1 % of the errors were unclear."""
    every = sum(rows.values(), Counter())
    kernels = rows.get("kernels", Counter())
    bad_inputs = sum(counts.total() for name, counts in rows.items() if name not in NO_BAD_INPUTS)
    return not (
        every["wrong number"]
        or every[CRASH]
        or every[HANG]
        or kernels["unclear error"]
        or kernels["clear error"]
        or 100 * every["unclear error"] > bad_inputs
    )


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--worker"]:
        target, cases, seed_number, log = arguments[1:]
        work(target, int(cases), int(seed_number), Path(log))
        return 0
    parser = argparse.ArgumentParser(description=__doc__)
    for target, number in TARGETS.items():
        parser.add_argument(f"--{target}", type=int, default=number, help=f"number of attacks (default: {number})")
    parser.add_argument("--seed", type=int, default=None, help="seed of the attacks (default: the time)")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time (default: 2)")
    parser.add_argument("--kills", type=int, default=KILLS, help=f"kills of a training run (default: {KILLS})")
    parser.add_argument("--rounds", type=int, default=1, help="repetitions with new seeds; 0 for endless (default: 1)")
    given = parser.parse_args(arguments)
    seed_number = int(time.time()) if given.seed is None else given.seed
    print(f"seed {seed_number}", flush=True)
    rows: dict[str, Counter[str]] = {}

    def add(target: str, answer: tuple[Counter[str], list[str]]) -> None:
        rows[target] = rows.get(target, Counter()) + answer[0]
        for detail in answer[1]:
            print(detail, flush=True)

    try:
        for _ in range(given.rounds) if given.rounds else itertools.count():
            for target in TARGETS:
                if getattr(given, target):
                    add(target, run_target(target, getattr(given, target), seed_number, given.jobs))
            if given.kills:
                add("kills", run_kills(given.kills, seed_number))
            print(format_table(rows), flush=True)
            seed_number += 1_000_000
    except KeyboardInterrupt:
        print(format_table(rows))
    return 0 if is_good(rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
