"""The build tells a missing source, a missing compiler and a compile error apart, each in one sentence."""

import os
import runpy
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.packaging.conftest import ROOT

NOTE = "_native_missing.txt"
Build = Callable[..., "subprocess.CompletedProcess[str]"]
# Writes an empty object file, or refuses an argument list that matches REFUSED.
FAKE_COMPILER = """#!/bin/sh
echo "$*" >> {log}
case "$*" in {refused}) echo "refused" >&2; exit 1;; esac
while [ $# -gt 1 ]; do [ "$1" = -o ] && : > "$2"; shift; done
exit 0
"""


@pytest.fixture
def tree(project: Path, tmp_path: Path) -> Path:
    """A copy of the files that the build reads, for a test to change."""
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(project / name, tmp_path)
    shutil.copytree(project / "src", tmp_path / "src")
    return tmp_path


@pytest.fixture
def build(tree: Path) -> Build:
    def run(compiler: str, setting: str | None = None) -> "subprocess.CompletedProcess[str]":
        environment = {**os.environ, "CC": compiler, "CXX": compiler, "LDCXXSHARED": compiler}
        environment.pop("LRCNET_KERNELS", None)
        if setting is not None:
            environment["LRCNET_KERNELS"] = setting
        command = [sys.executable, "setup.py", "build_ext", "--build-lib=built", "--build-temp=objects"]
        return subprocess.run(command, env=environment, cwd=tree, capture_output=True, text=True, check=False)

    return run


@pytest.fixture
def fake(tree: Path) -> Callable[[str], str]:
    """Make a compiler that refuses argument lists matching a shell pattern and accepts all others."""

    def make(refused: str) -> str:
        program = tree / "fake-compiler"
        program.write_text(FAKE_COMPILER.format(log=tree / "calls", refused=refused))
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return str(program)

    return make


def note_of(tree: Path) -> Path:
    return tree / "built/lrcnet/kernels" / NOTE


def sentences(process: "subprocess.CompletedProcess[str]") -> list[str]:
    """Return the messages of our own build, without those of the compiler and of setuptools."""
    return [line.removeprefix("error: ") for line in process.stderr.splitlines() if "lrcnet: " in line]


def test_without_a_compiler_the_build_goes_on_and_leaves_the_reason(tree: Path, build: Build) -> None:
    compiler = str(tree / "no-such-compiler")
    process = build(compiler)
    assert process.returncode == 0, process.stderr
    (sentence,) = sentences(process)
    assert sentence.startswith(f"lrcnet: no C++ compiler ({compiler} was not found); the package is installed without")
    assert "install g++ or clang++" in sentence
    assert not list(tree.rglob("*.so"))
    reason = note_of(tree).read_text()
    assert f"no C++ compiler ({compiler} was not found) when it was installed" in reason


def test_without_a_compiler_the_build_stops_if_kernels_are_required(tree: Path, build: Build) -> None:
    process = build(str(tree / "no-such-compiler"), "required")
    assert process.returncode != 0
    (sentence,) = sentences(process)
    assert "no C++ compiler" in sentence
    assert "the build stops because LRCNET_KERNELS=required" in sentence


@pytest.mark.parametrize("name", ["kernels.cpp", "module.cpp", "simd.h"])
@pytest.mark.parametrize("setting", ["auto", "required"])
def test_a_missing_source_stops_the_build_and_is_named(tree: Path, build: Build, name: str, setting: str) -> None:
    (tree / "src/lrcnet/kernels/csrc" / name).unlink()
    # Not even a missing compiler hides it: the copy of lrcnet is broken on every machine.
    process = build(str(tree / "no-such-compiler"), setting)
    assert process.returncode != 0
    (sentence,) = sentences(process)
    assert sentence.startswith(f"lrcnet: source missing: {name} not found in src/lrcnet/kernels/csrc")
    assert "the build stops; take a complete copy" in sentence
    assert "compiler" not in sentence


def test_a_compile_error_stops_the_build_and_blames_no_missing_compiler(tree: Path, build: Build) -> None:
    process = build("false")
    assert process.returncode != 0
    (sentence,) = sentences(process)
    assert sentence.startswith("lrcnet: compile error: false is installed but failed on the kernels (")
    assert "exit code 1" in sentence
    assert "the build stops; read the compiler's messages" in sentence
    assert "no C++ compiler" not in sentence
    assert not note_of(tree).exists()


def test_a_link_error_stops_the_build(build: Build, fake: Callable[[str], str]) -> None:
    process = build(fake("*_native*.so*"))
    assert process.returncode != 0
    assert sentences(process)[0].startswith("lrcnet: compile error: ")


def test_kernels_can_be_switched_off(tree: Path, build: Build) -> None:
    process = build("false", "off")
    assert process.returncode == 0, process.stderr
    (sentence,) = sentences(process)
    assert sentence.startswith("lrcnet: LRCNET_KERNELS was off; the package is installed without fused kernels")
    assert "LRCNET_KERNELS was off when it was installed" in note_of(tree).read_text()


def test_an_unknown_setting_lists_the_known_ones(build: Build) -> None:
    process = build("false", "maybe")
    assert process.returncode != 0
    assert "LRCNET_KERNELS must be one of auto, required, off, but is 'maybe'" in process.stderr


def test_a_module_that_was_built_removes_an_old_reason_and_a_failure_an_old_module(
    tree: Path, build: Build, fake: Callable[[str], str]
) -> None:
    build("false", "off")
    assert note_of(tree).exists()
    process = build(fake("nothing"))
    assert process.returncode == 0, process.stderr
    assert not note_of(tree).exists()
    assert list((tree / "built").rglob("_native*.so"))
    build("false", "off")
    assert not list((tree / "built").rglob("_native*.so"))


x86_only = pytest.mark.skipif(
    not runpy.run_path(str(ROOT / "setup.py"))["X86"], reason="only x86 has instruction sets beside the baseline"
)


@x86_only
def test_an_instruction_set_unknown_to_the_compiler_is_left_out(
    tree: Path, build: Build, fake: Callable[[str], str]
) -> None:
    process = build(fake("*-mavx512f*"))
    assert process.returncode == 0, process.stderr
    for name, sentence in zip(("avx512", "zen4"), sentences(process), strict=True):
        assert sentence.startswith(f"lrcnet: built without {name} kernels: the compiler does not know -mavx512f")
    calls = (tree / "calls").read_text()
    assert "-DLRCNET_HAVE_BASELINE=1" in calls
    assert "-DLRCNET_HAVE_AVX2=1" in calls
    assert "-DLRCNET_HAVE_AVX512" not in calls
    assert "-DLRCNET_HAVE_ZEN4" not in calls


@x86_only
def test_an_error_in_the_kernels_of_a_known_instruction_set_stops_the_build(
    build: Build, fake: Callable[[str], str]
) -> None:
    process = build(fake("*kernels.cpp*-mavx2*"))
    assert process.returncode != 0
    assert sentences(process)[0].startswith("lrcnet: compile error: ")


def test_missing_python_headers_are_no_compile_error(tmp_path: Path) -> None:
    diagnose: Callable[..., Any] = runpy.run_path(str(ROOT / "setup.py"))["diagnose"]
    failure = diagnose(RuntimeError("exit code 1"), sys.executable, [str(tmp_path)])
    assert failure.problem == "no Python headers (Python.h was not found)"
    assert "python3-dev" in failure.remedy
    assert failure.tolerable
    (tmp_path / "Python.h").touch()
    assert not diagnose(RuntimeError("exit code 1"), sys.executable, [str(tmp_path)]).tolerable


def test_a_compiler_of_another_family_counts_as_none() -> None:
    diagnose: Callable[..., Any] = runpy.run_path(str(ROOT / "setup.py"))["diagnose"]
    failure = diagnose(RuntimeError(), None, [])
    assert failure.problem == "no C++ compiler (the kernels need g++ or clang++)"
    assert failure.tolerable
