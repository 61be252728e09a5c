"""Every Python example in the README and the docs runs, top to bottom; every link leads somewhere; commands exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import lrcnet
from lrcnet.command_parser import COMMANDS

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
# `make docs` makes these pages.
MADE = {"contributing.md", "security.md", "changelog.md", "api/commands.md"}
MADE_FOLDERS = ("live/",)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    names: dict[str, object] = {}
    for example in examples:
        exec(compile(example, page.name, "exec"), names)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text()
    for target in [*re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", text), *re.findall(r'src="([^"]+)"', text)]:
        if "://" not in target and not target.startswith(MADE_FOLDERS) and not _is_made(page, target):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def _is_made(page: Path, target: str) -> bool:
    path = (page.parent / target).resolve()
    return path.is_relative_to(DOCS) and str(path.relative_to(DOCS)) in MADE


def test_every_page_is_in_the_navigation_of_the_site_and_every_entry_is_a_page() -> None:
    listed = re.findall(r"(\S+\.md)\s*$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    assert pages | MADE == set(listed), "add the page to `nav` in mkdocs.yml"


def test_every_public_name_is_in_the_reference() -> None:
    reference = "\n".join(page.read_text() for page in (DOCS / "api").glob("*.md"))
    documented = {line.rpartition(".")[2] for line in re.findall(r"^::: (\S+)", reference, re.MULTILINE)}
    data = {"CELLS", "LAYERS", "SOLVERS", "__version__"}
    assert set(lrcnet.__all__) - data <= documented


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_exist(page: Path) -> None:
    for command in re.findall(r"(?:^|`|\s{4})lrcnet ([a-z]+)", page.read_text(), re.MULTILINE):
        assert command in COMMANDS, f"{page.name} speaks of `lrcnet {command}`"


def test_the_badges_say_what_pyproject_says(tmp_path: Path) -> None:
    badges = ROOT / "docs" / "images" / "badges"
    subprocess.run([sys.executable, ROOT / "tools" / "badges.py", tmp_path], check=True)
    made = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert made == {path.name: path.read_text() for path in badges.iterdir()}, (
        "run python tools/badges.py docs/images/badges"
    )
