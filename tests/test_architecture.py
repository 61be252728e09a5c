"""The layout keeps its promises: imports go down only, importing is light, files stay small."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))

from architecture import PACKAGES, SOURCE, read_imports, read_levels, read_modules  # noqa: E402

RANK = {(level.package, module): rank for rank, level in enumerate(read_levels()) for module in level.modules}
# The library offers its public names at the top of the package; they count as its highest level that is no command.
PUBLIC = max(rank for (package, module), rank in RANK.items() if (package, module) == ("lrcnet", "models"))
# These know no network at all; tasks may use the worlds to make their recordings.
INDEPENDENT = {"tasks": {"archive_sets", "tasks", "driving", "road_seeds"}, "driving": {"driving", "road_seeds"}}
ALLOWED_BELOW_TASKS = {("lrcnet", "errors"), ("lrcnet", "version"), ("lrcnet", "pages"), ("lrcnet", "plugins")}
FILES = list(read_modules())


def name(path: Path) -> str:
    return str(path.relative_to(SOURCE))


def test_the_page_lists_every_module_once() -> None:
    listed = [(level.package, module) for level in read_levels() for module in level.modules]
    assert len(listed) == len(set(listed))
    assert set(listed) == {(package, module) for _, package, module in FILES}


def test_imports_go_down_only() -> None:
    for path, package, module in FILES:
        for other in read_imports(path):
            rank = RANK[other] if other[1] else PUBLIC
            assert rank <= RANK[package, module], f"{name(path)} imports {'.'.join(other)}, which stands above it"


def test_the_library_never_names_the_suite() -> None:
    for path in (SOURCE / "lrcnet").rglob("*"):
        if path.suffix in (".py", ".h", ".cpp"):
            assert "lrcnet_paper" not in path.read_text(), f"{name(path)} names the suite"


def test_tasks_and_worlds_know_no_network() -> None:
    for path, package, module in FILES:
        if package == "lrcnet_paper" and module in INDEPENDENT:
            allowed = ALLOWED_BELOW_TASKS | {("lrcnet_paper", other) for other in INDEPENDENT[module]}
            assert read_imports(path) <= allowed, f"{name(path)} must not import {read_imports(path) - allowed}"


def test_relative_imports_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("architecture.SOURCE", tmp_path)
    for package in ("cells", "kernels"):
        (tmp_path / "lrcnet" / package).mkdir(parents=True)
    file = tmp_path / "lrcnet" / "kernels" / "cpu.py"
    file.write_text("from ..cells import base\nfrom .. import cells\n")
    assert read_imports(file) == {("lrcnet", "cells")}


def test_files_stay_small() -> None:
    sizes = {name(path): len(path.read_text().splitlines()) for path, _, _ in FILES}
    assert {file: size for file, size in sizes.items() if size > 400} == {}


def test_commands_are_arguments_and_printing() -> None:
    sizes = {name(path): len(path.read_text().splitlines()) for path, _, module in FILES if module == "commands"}
    assert {file: size for file, size in sizes.items() if size > 60} == {}


def test_every_file_says_what_it_holds() -> None:
    for path in SOURCE.rglob("*.py"):
        assert ast.get_docstring(ast.parse(path.read_text())), f"{name(path)} has no docstring"


@pytest.mark.parametrize("package", PACKAGES)
def test_importing_a_package_imports_torch_and_numpy_at_most(package: str) -> None:
    code = (
        f"import sys, torch, numpy; before = set(sys.modules); import {package}; "
        "new = {name.split('.')[0] for name in set(sys.modules) - before} - set(sys.stdlib_module_names); print(*new)"
    )
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert set(printed.split()) <= {"lrcnet", "lrcnet_paper", "torch", "numpy"}
