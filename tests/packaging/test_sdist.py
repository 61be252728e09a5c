"""The source distribution holds everything that a build needs, and its installation runs the fused kernels."""

import os
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.packaging.conftest import FUSED_CALL, Environment


def test_the_source_distribution_holds_every_source_and_no_test(project: Path, sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        members = [Path(member.name) for member in archive.getmembers() if member.isfile()]
    names = {path.relative_to(path.parts[0]).as_posix() for path in members}
    sources = {path.relative_to(project).as_posix() for path in (project / "src").rglob("*") if path.is_file()}
    # The build of the archive has left its manifest in the project.
    sources = {name for name in sources if ".egg-info/" not in name}
    assert "src/lrcnet/kernels/csrc/kernels.cpp" in sources
    assert sources - names == set()
    assert {"setup.py", "pyproject.toml", "MANIFEST.in", "LICENSE", "README.md", "CHANGELOG.md"} <= names
    assert not [name for name in names if name.startswith("tests/") or name.endswith(".so")]


@pytest.mark.slow
def test_an_installation_from_the_source_distribution_runs_fused(
    sdist: Path, make_environment: Callable[[], Environment]
) -> None:
    environment = make_environment()
    process = environment.install(sdist, {**os.environ, "LRCNET_KERNELS": "required"})
    assert process.returncode == 0, process.stdout + process.stderr
    process = environment.run("python", "-c", FUSED_CALL)
    assert process.returncode == 0, process.stderr
    assert Path(process.stdout.strip()).is_relative_to(environment.folder)


@pytest.mark.slow
def test_an_installation_without_a_compiler_works_and_says_why_it_is_slow(
    sdist: Path, tmp_path: Path, make_environment: Callable[[], Environment]
) -> None:
    missing = str(tmp_path / "no-such-compiler")
    environment = make_environment()
    process = environment.install(sdist, {**os.environ, "CC": missing, "CXX": missing})
    assert process.returncode == 0, process.stdout + process.stderr
    program = "import torch, lrcnet; lrcnet.LRCU(3, 5)(torch.zeros(2, 1, 3)); print(lrcnet.kernels.unavailable())"
    process = environment.run("python", "-c", program)
    assert process.returncode == 0, process.stderr
    reason = process.stdout.strip()
    assert f"no C++ compiler ({missing} was not found) when it was installed" in reason
    process = environment.run("lrcnet", "info")
    assert reason in process.stdout
