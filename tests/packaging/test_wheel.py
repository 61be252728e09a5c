"""The wheel: its contents, its tag, and its installation on a machine without a compiler."""

import importlib.util
import os
import shutil
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.packaging.conftest import FUSED_CALL, Environment

COMPILERS = ("cc", "c++", "gcc", "g++", "clang", "clang++")


def test_a_wheel_that_auditwheel_refuses_keeps_its_tag_with_the_reason(tool: SimpleNamespace, tmp_path: Path) -> None:
    wheel = tmp_path / "lrcnet-0-cp311-abi3-linux_x86_64.whl"
    wheel.touch()
    refuse = [sys.executable, "-c", "raise SystemExit('too-recent versioned symbols')"]
    assert tool.tag_manylinux(wheel, refuse) == (wheel, "too-recent versioned symbols")
    silent = [sys.executable, "-c", "raise SystemExit(3)"]
    assert tool.tag_manylinux(wheel, silent) == (wheel, "auditwheel ended with exit code 3")
    assert wheel.exists()


@pytest.mark.slow
def test_the_wheel_holds_every_module_and_data_file_but_no_cpp_source(project: Path, wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    sources = [path.relative_to(project / "src") for path in (project / "src").rglob("*") if path.is_file()]
    expected = {path.as_posix() for path in sources if "csrc" not in path.parts and ".egg-info" not in path.parts[0]}
    packages = [path.parent.name for path in (project / "src").glob("*/__init__.py")]
    assert {f"{package}/py.typed" for package in packages} <= expected
    assert expected - names == set()
    extra = {name for name in names - expected if ".dist-info/" not in name}
    assert extra == {"lrcnet/kernels/_native.abi3.so"}


@pytest.mark.slow
def test_the_wheel_serves_every_python_from_the_oldest_one(wheel: Path, tool: SimpleNamespace, tmp_path: Path) -> None:
    assert "-cp311-abi3-" in wheel.name
    if importlib.util.find_spec("auditwheel") is None:
        pytest.skip("auditwheel is not installed: pip install 'lrcnet[wheel]'")
    tagged, reason = tool.tag_manylinux(Path(shutil.copy(wheel, tmp_path)))
    assert reason is None
    assert "-cp311-abi3-manylinux_" in tagged.name
    assert [path.name for path in tmp_path.glob("*.whl")] == [tagged.name]


@pytest.mark.slow
def test_the_wheel_installs_without_a_compiler_and_runs_fused(
    wheel: Path, tool: SimpleNamespace, tmp_path: Path, make_environment: Callable[[], Environment]
) -> None:
    tagged, _ = tool.tag_manylinux(Path(shutil.copy(wheel, tmp_path)))
    environment = make_environment()
    bare = {name: value for name, value in os.environ.items() if name not in ("CC", "CXX")}
    bare["PATH"] = str(environment.bin)
    assert not [name for name in COMPILERS if shutil.which(name, path=bare["PATH"])]
    process = environment.install(tagged, bare)
    assert process.returncode == 0, process.stdout + process.stderr
    process = environment.run("python", "-c", FUSED_CALL, environment=bare)
    assert process.returncode == 0, process.stderr
    assert Path(process.stdout.strip()).is_relative_to(environment.folder)
