"""Fixtures shared by the tests of pages: synthetic runs of the whole paper, and a browser."""

import os
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "artefacts"))

ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


def refuse(reason):
    """Skip the test, or fail it where CI requires that every test runs."""
    if os.environ.get("CI") == "true":
        pytest.fail(f"with CI=true the browser tests must run, but {reason}")
    pytest.skip(reason)


@pytest.fixture(scope="session")
def browser():
    chromium = next((path for name in ("chromium", "chromium-browser") if (path := shutil.which(name))), None)
    if chromium is None:
        refuse("there is no chromium on this machine; install Debian's package chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        refuse("playwright is not installed; run: pip install playwright")
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield running
        running.close()


@pytest.fixture
def open_page(browser):
    """Open a page offline; any console message and any request other than the page itself fails the test."""
    contexts, complaints = [], []

    def open_at(page, width=1280, scheme="light", *, fragment="", **options):
        size = {"width": width, "height": 844}
        context = browser.new_context(viewport=size, color_scheme=scheme, offline=True, **options)
        contexts.append(context)
        tab = context.new_page()
        tab.on("console", lambda message: complaints.append(message.text))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on("request", lambda r: complaints.append(r.url) if not r.url.startswith(("file:", "data:")) else None)
        tab.goto(Path(page).as_uri() + fragment)
        return tab

    yield open_at
    for context in contexts:
        context.close()
    assert not complaints


@pytest.fixture(scope="session")
def whole_paper():
    from tests.lrcnet_paper.artefacts import synthetic_runs

    return synthetic_runs.whole_paper()


@pytest.fixture(scope="session")
def sections(whole_paper):
    from lrcnet_paper import report

    return report.assemble(whole_paper)


@pytest.fixture(scope="session")
def page(sections, whole_paper, tmp_path_factory):
    from lrcnet_paper import report

    return report.write_html(sections, whole_paper, tmp_path_factory.mktemp("report") / "report.html")
