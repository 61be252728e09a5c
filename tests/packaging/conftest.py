"""A clean copy of the project, its source distribution and wheel, and empty environments to install them into."""

import os
import runpy
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import setuptools
import torch

ROOT = Path(__file__).parents[2]
FUSED_CALL = """
import torch, lrcnet
from lrcnet import kernels
assert kernels.unavailable() is None, kernels.unavailable()
fused = lrcnet.LRCU(3, 5, backend="fused")
plain = lrcnet.LRCU(3, 5, backend="reference")
plain.load_state_dict(fused.state_dict())
x = torch.randn(7, 2, 3)
torch.testing.assert_close(fused(x), plain(x), rtol=1e-4, atol=1e-5)
fused(x)[0].sum().backward()
print(lrcnet.__file__)
"""


def copy_project(target: Path) -> Path:
    """Copy the files that a fresh clone has, without what a build leaves behind: a manifest, modules, notes."""
    left_behind = shutil.ignore_patterns("*.so", "*.egg-info", "__pycache__", "_native_missing.txt")
    for name in ("src", "tests", "tools"):
        shutil.copytree(ROOT / name, target / name, ignore=left_behind)
    for path in ROOT.iterdir():
        if path.is_file() and path.name != ".git":
            shutil.copy(path, target)
    return target


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project that no test changes."""
    return copy_project(tmp_path_factory.mktemp("project"))


@pytest.fixture(scope="session")
def tool() -> SimpleNamespace:
    """The functions of tools/build_wheel.py."""
    return SimpleNamespace(**runpy.run_path(str(ROOT / "tools/build_wheel.py")))


@pytest.fixture(scope="session")
def sdist(project: Path, tool: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tool.build_sdist(project, tmp_path_factory.mktemp("sdist"))
    return path


@pytest.fixture(scope="session")
def wheel(sdist: Path, tool: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel with the plain tag of this machine."""
    path: Path = tool.build_wheel(sdist, tmp_path_factory.mktemp("wheel"))
    return path


class Environment:
    """A virtual environment that holds nothing but what a test installs, and can see the torch that runs the tests."""

    def __init__(self, folder: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
        self.folder = folder
        self.bin = folder / "bin"
        self.python = self.bin / "python"
        self.backend = folder / "backend"
        self.backend.mkdir()
        for name in ("setuptools", "_distutils_hack", f"setuptools-{setuptools.__version__}.dist-info"):
            (self.backend / name).symlink_to(Path(setuptools.__file__).parents[1] / name)

    def install(self, archive: Path, environment: Mapping[str, str] = os.environ) -> "subprocess.CompletedProcess[str]":
        """Install an archive with the tests' setuptools; nothing is downloaded."""
        # The running interpreter's pip works on the other environment, which has none.
        pip = [sys.executable, "-m", "pip", "--python", str(self.python), "install", "--verbose"]
        offline = ["--no-index", "--no-deps", "--no-build-isolation", "--no-cache-dir"]
        process = subprocess.run(
            [*pip, *offline, str(archive)],
            env={**environment, "PYTHONPATH": str(self.backend)},
            capture_output=True,
            text=True,
            check=False,
        )
        # Only now: pip must not see the lrcnet that stands beside torch.
        packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(self.folder)}))
        ready = {str(Path(str(module.__file__)).parents[1]) for module in (torch, np)}
        (packages / "ready.pth").write_text("\n".join(sorted(ready)) + "\n")
        return process

    def run(self, *command: str, environment: Mapping[str, str] = os.environ) -> "subprocess.CompletedProcess[str]":
        """Run a program of the environment outside the project."""
        inherited = {name: value for name, value in environment.items() if name != "PYTHONPATH"}
        return subprocess.run(
            [str(self.bin / command[0]), *command[1:]],
            cwd=self.folder,
            env=inherited,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def make_environment(tmp_path: Path) -> Callable[[], Environment]:
    return lambda: Environment(tmp_path / "environment")
