"""Measure how quickly commands answer on a terminal: seconds to the first status line, and to the end after Ctrl-C.

    python tools/answer_times.py

Each command is started twice in a pseudo-terminal: once until it shows anything, once until Ctrl-C has ended it four
seconds after its start. Run it on an idle machine.
"""

from __future__ import annotations

import os
import pty
import select
import signal
import sys
import tempfile
import time
from pathlib import Path

from live_pages import POLICY, ROOT, write_readings

CTRL_C = b"\x03"
SECONDS_OF_WORK = 4.0


def commands(folder: Path) -> dict[str, list[str]]:
    """Return the long commands, with files in a folder."""
    write_readings(folder / "readings.csv")
    columns = ["--id", "sensor", "--time", "minutes", "--target", "label", "--epochs", "1000"]
    ode = ["neural-ode", "--variant", "spiral", "--model", "lrc-s", "--iterations", "100000"]
    return {
        "fit": [str(folder / "readings.csv"), *columns, "--out", str(folder / "model")],
        "train": [*ode, "--out", str(folder / "run")],
        "reproduce": ["neural-ode", "--budget", "quick", "--out", str(folder / "runs")],
        "report": [str(ROOT / "results"), "--html", str(folder / "report.html")],
        "drive": [str(POLICY), "--html", str(folder / "drive.html")],
        "explain": [str(POLICY), "--html", str(folder / "explain.html")],
        "bench": ["latency"],
        "demo": ["--out", str(folder / "demo")],
    }


def run(arguments: list[str], *, interrupt_after: float | None) -> tuple[float, str]:
    """Run `lrcnet` in a terminal; return the seconds to its first text, or from Ctrl-C to its end, and what it says."""
    child, terminal = pty.fork()
    if child == 0:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # ignored by programs that a shell starts in the background
        os.execv(sys.executable, [sys.executable, "-m", "lrcnet", *arguments])
    begin, sent, text = time.monotonic(), 0.0, b""
    while True:
        if select.select([terminal], [], [], 0.005)[0]:
            try:
                text += os.read(terminal, 65536)
            except OSError:  # the command has ended
                break
            if interrupt_after is None:
                first = time.monotonic() - begin
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                os.close(terminal)
                return first, ""
        if interrupt_after is not None and not sent and time.monotonic() - begin > interrupt_after:
            sent = time.monotonic()
            os.write(terminal, CTRL_C)
    os.waitpid(child, 0)
    os.close(terminal)
    said = [line for line in text.decode(errors="replace").splitlines() if "stopped" in line]
    return time.monotonic() - (sent or begin), said[-1].rpartition("\x1b[")[2][2:] if said else "ended before Ctrl-C"


def main() -> None:
    """Print a line per command."""
    with tempfile.TemporaryDirectory() as folder:
        for name, arguments in commands(Path(folder)).items():
            first, _ = run([name, *arguments], interrupt_after=None)
            ended, said = run([name, *arguments], interrupt_after=SECONDS_OF_WORK)
            print(f"{name:<10} status {first:.2f} s, Ctrl-C {ended:.2f} s  {said}", flush=True)


if __name__ == "__main__":
    main()
