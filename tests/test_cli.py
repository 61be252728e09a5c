"""The command line: help with examples, clear errors, exit codes."""

import argparse
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import lrcnet
from lrcnet.cli import main
from lrcnet.command_parser import COMMANDS, build_parser
from lrcnet.plugins import find_entry_points

# `python -S` leaves the site packages out, which import some modules themselves.
_SOURCE = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1] / "src")}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert stop.value.code == 0
    assert f"example:\n  lrcnet {command}" in capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_the_example_in_the_help_parses(command: str) -> None:
    example = find_entry_points("lrcnet.commands")[command].load().EXAMPLE
    build_parser().parse_args(shlex.split(example)[1:])


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for sub in action.choices.values():
                yield from _parsers(sub)


def _command_parsers() -> list[argparse.ArgumentParser]:
    return list(_parsers(build_parser()))[1:]


@pytest.mark.parametrize("parser", _command_parsers(), ids=lambda parser: parser.prog)
def test_help_has_groups_defaults_and_an_example_within_80_columns(
    parser: argparse.ArgumentParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = parser.format_help()
    assert max(map(len, text.splitlines())) <= 80
    assert f"example:\n  {parser.prog}" in text
    ungrouped = [*parser._positionals._group_actions, *parser._optionals._group_actions]
    assert [action.dest for action in ungrouped] == ["help"]
    for action in parser._actions:
        assert action.help or isinstance(action, argparse._SubParsersAction), action.dest
        if action.default not in (None, False, "", argparse.SUPPRESS) and action.default != []:
            assert "default:" in str(action.help), action.dest


def test_a_long_example_is_continued_as_a_shell_reads_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    drive = next(parser for parser in _command_parsers() if parser.prog == "lrcnet drive")
    shown = drive.format_help().split("example:\n", 1)[1]
    assert "\\\n" in shown
    example = find_entry_points("lrcnet.commands")["drive"].load().EXAMPLE
    assert shlex.split(shown.replace("\\\n", "")) == shlex.split(example)


def test_a_mistyped_required_flag_is_recognised(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train", "person", "--modle", "lrcu-s"])
    assert "required: --model; did you mean --model? see" in capsys.readouterr().err


def test_info_tells_what_is_here(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["info"]) == 0
    assert lrcnet.__version__ in capsys.readouterr().out
    assert main(["info", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["kernels"].keys() == lrcnet.info()["kernels"].keys()


def test_the_package_runs_as_a_module() -> None:
    ran = subprocess.run([sys.executable, "-m", "lrcnet", "--version"], capture_output=True, text=True, check=True)
    assert lrcnet.__version__ in ran.stdout


def test_errors_are_one_line_and_an_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "get", "nothing"]) == 1
    output = capsys.readouterr().err
    assert output.startswith("lrcnet data: ")
    assert output.count("\n") == 1
    with pytest.raises(SystemExit) as stop:
        main(["fly"])
    assert stop.value.code == 2


def test_data_list_names_every_task(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "list"]) == 0
    output = capsys.readouterr().out
    assert all(name in output for name in ("person", "imdb", "psmnist"))


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["bench", "--help"]], ids=" ".join)
def test_help_imports_neither_torch_nor_any_other_package(arguments: list[str]) -> None:
    code = (
        "import sys, atexit; before = set(sys.modules); "
        "new = lambda: {m.split('.')[0] for m in set(sys.modules) - before} - set(sys.stdlib_module_names); "
        "atexit.register(lambda: print('imported:', [m for m in sorted(new()) if not m.startswith('lrcnet')])); "
        f"from lrcnet.cli import main; main({arguments})"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert output.splitlines()[-1] == "imported: []"


def test_the_first_status_waits_for_few_imports() -> None:
    slow = {"argparse", "importlib.metadata", "shutil", "socket"}
    code = f"import lrcnet.cli, sys; print(sorted({slow} & set(sys.modules)))"
    output = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, env=_SOURCE, check=True)
    assert output.stdout == "[]\n"


def test_demo_trains_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--out", str(tmp_path), "--iterations", "4"]) == 0
    output = capsys.readouterr().out
    assert "0.009 ± 0.004" in output
    assert (tmp_path / "trajectories.png").stat().st_size > 10_000
    assert main(["demo", "--out", str(tmp_path), "--iterations", "4"]) == 0, "finished runs are read, not trained again"
    assert capsys.readouterr().out == output
