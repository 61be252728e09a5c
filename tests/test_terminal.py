"""Commands on a terminal and in a pipe: status, progress that fits 80 columns, colours, Ctrl-C."""

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lrcnet import progress
from lrcnet.cli import main
from lrcnet.errors import one_of
from lrcnet.pages.content import Table
from lrcnet.pages.tables import to_text
from lrcnet.progress import Bar
from lrcnet.terminal import cut

SOURCE = Path(__file__).parents[1] / "src"
LONG_RUN = [sys.executable, "-m", "lrcnet", "train", "neural-ode", "--model", "lrc-s", "--iterations", "100000"]


class Terminal:
    """A program in a pseudo-terminal of 80 columns."""

    def __init__(self, command: list[str], folder: Path, **environment: str) -> None:
        self.controller, device = pty.openpty()
        variables = {**os.environ, "COLUMNS": "80", "LINES": "24", "TERM": "xterm", **environment}
        self.process = subprocess.Popen(
            command,
            stdin=device,
            stdout=device,
            stderr=device,
            cwd=folder,
            env=variables,
            start_new_session=True,
            # A shell's background job, such as `make test &`, passes an ignored Ctrl-C on to its programs.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        os.close(device)
        self.text = ""

    def read_until(self, pattern: str, seconds: float = 120) -> str:
        """Read until the text has a pattern; fail if it does not appear in time."""
        deadline = time.monotonic() + seconds
        while not re.search(pattern, self.text):
            assert time.monotonic() < deadline, f"no {pattern!r} in {self.text!r}"
            if select.select([self.controller], [], [], 0.1)[0]:
                try:
                    self.text += os.read(self.controller, 65536).decode()
                except OSError:  # the program has ended and closed the terminal
                    assert re.search(pattern, self.text), f"no {pattern!r} in {self.text!r}"
        return self.text

    def close(self) -> int:
        """Wait for the program, close the terminal and return the exit code."""
        code = self.process.wait(timeout=60)
        os.close(self.controller)
        return code


def test_a_run_shows_a_status_then_a_bar_and_says_where_it_was_stopped(tmp_path: Path) -> None:
    terminal = Terminal(LONG_RUN, tmp_path)
    terminal.read_until("loading torch and the data …")
    text = terminal.read_until("train loss")
    lines = re.sub(r"\x1b\[\d*[FKJ]", "\n", text).splitlines()
    assert max(map(len, lines)) < 80
    bars = [line for line in lines if "░" in line]
    assert all(len(re.findall("[█░]", bar)) >= 20 for bar in bars)
    assert re.search(r"iteration \d+ of 100000  .* left  MAE [\d.]+", bars[-1])
    terminal.process.send_signal(signal.SIGINT)
    assert re.search(
        r"lrcnet train: stopped in iteration \d+ of 100000; the same command continues it \(runs/neural-ode_\S+\)",
        terminal.read_until("continues"),
    )
    assert terminal.close() == 130


def test_ctrl_c_ends_a_program_that_python_cannot_interrupt(tmp_path: Path) -> None:
    # Python ignores the signal until the sum is done, which takes far longer than the test.
    code = (
        "from lrcnet.interruption import answer_at_once\n"
        "with answer_at_once(lambda: 'stopped'):\n"
        "    print('begun', flush=True)\n"
        "    import numpy\n"
        "    while True: numpy.linalg.svd(numpy.ones((3000, 3000)))\n"
    )
    terminal = Terminal([sys.executable, "-c", code], tmp_path, PYTHONPATH=str(SOURCE), OMP_NUM_THREADS="1")
    terminal.read_until("begun")
    time.sleep(1)
    terminal.process.send_signal(signal.SIGINT)
    terminal.read_until("stopped|KeyboardInterrupt")
    assert terminal.close() in (130, 1, -signal.SIGINT)


def test_no_colour_and_no_cursor_movement_without_a_terminal(tmp_path: Path) -> None:
    ran = subprocess.run(
        [*LONG_RUN[:-1], "3"], cwd=tmp_path, capture_output=True, text=True, check=True, env={**os.environ, "TERM": ""}
    )
    assert "\x1b" not in ran.stdout + ran.stderr
    assert ran.stderr == "neural-ode sinusoid lrc-s seed 0, 3 iterations\n"


@pytest.mark.parametrize(("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_verdicts_have_colours_unless_no_color_is_set(tmp_path, environment, coloured) -> None:
    command = [sys.executable, "-m", "lrcnet", "reproduce", "elastance", "--budget", "smoke"]
    terminal = Terminal(command, tmp_path, **environment)
    text = terminal.read_until("next: lrcnet report")
    assert terminal.close() == 0
    assert ("\x1b[32magrees" in text) is coloured
    plain = re.sub(r"\x1b\[[\d;]*\w", "", text)
    rows = [line for line in plain.splitlines() if "agrees" in line and "claims" not in line]
    assert rows
    assert max(map(len, rows)) <= 80


def test_a_table_wraps_texts_then_leaves_out_columns_but_never_the_verdict() -> None:
    row = ("a claim that is longer than every terminal", "0.12 ± 0.01", "0.13 ± 0.02", "agrees", "3 seeds")
    table = Table("claims", "Claims", ("claim", "paper", "ours", "verdict", "how sure"), [row])
    assert row[0] in to_text(table)
    wrapped = to_text(table, 76).splitlines()
    assert max(map(len, wrapped)) <= 76
    assert wrapped[3].startswith("a claim that is longer")
    assert wrapped[4].endswith("terminal"), "the rest of the claim stands alone on its second line"
    assert "how sure" in wrapped[1]
    for width in (60, 50, 40):
        narrow = to_text(table, width)
        assert max(map(len, narrow.splitlines())) <= width
        assert "agrees" in narrow
        assert "how sure" not in narrow.splitlines()[1]
        assert "--wide shows" in narrow


def test_a_bar_tells_position_and_time_and_fits_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    bar = Bar("person coarse lrcu-s seed 0", 400, done=100, unit="epoch", per_unit=4, folder="runs/x")
    bar.advance(8)
    bar.show("accuracy 83.12 %", {"train loss": 0.512, "validation_accuracy": 0.8312})
    first, second = bar.lines()
    assert "epoch 28 of 100" in first
    assert first.endswith("left  accuracy 83.12 %")
    assert len(first) < 80
    assert second == "person coarse lrcu-s seed 0  train loss 0.512  validation accuracy 0.8312"


def test_nothing_is_shown_outside_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(progress.track([1, 2], "drawing")) == [1, 2]
    progress.status("loading")
    assert capsys.readouterr() == ("", "")


def test_help_is_printed_if_nothing_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    output = capsys.readouterr().out
    assert "your own data:\n  fit" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["trian"], "lrcnet: 'trian' is none of"),
        (["train", "person", "--model", "gru", "--epoch", "x"], "lrcnet train: argument --epochs: invalid int value"),
        (["info", "--jsn"], "lrcnet info: there is no argument --jsn; did you mean --json? see lrcnet info --help"),
        (["train"], "lrcnet train: the following arguments are required"),
    ],
)
def test_mistakes_in_the_command_line_look_like_other_errors(arguments, message, capsys) -> None:
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith(message)
    assert error.count("\n") == 1


def test_a_wrong_name_gets_the_nearest_valid_one() -> None:
    with pytest.raises(ValueError, match=r"did you mean lrcu-s\?"):
        one_of("model", "lrcus", ["lrcu-a", "lrcu-s", "lstm"])


def test_long_texts_are_cut() -> None:
    assert [cut("abc", width) for width in (0, 1, 2, 3)] == ["…", "…", "a…", "abc"]


def test_an_interrupted_loop_says_how_far_it_came() -> None:
    with progress.shown():
        with pytest.raises(KeyboardInterrupt):
            _interrupt_the_third_item()
        assert progress.position() == "in figure 3 of 5"
        for _ in progress.track(range(2), "writing", unit="page"):
            assert progress.position() == "in page 1 of 2"
            break
        assert list(progress.track(range(2), "writing", unit="page")) == [0, 1]
        assert progress.position() == ""
        progress.status("reading the runs")
        assert progress.position() == "while reading the runs"
        with progress.Bar("drawing", 3):
            pass
        assert progress.position() == "", "a stage that is over has replaced the status"


def _interrupt_the_third_item() -> None:
    for item in progress.track(range(5), "drawing", unit="figure"):
        if item == 2:
            raise KeyboardInterrupt
