"""The report's tests share the paper's made-up runs."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "paper"))


@pytest.fixture(scope="session")
def whole_paper():
    import synthetic_runs

    return synthetic_runs.whole_paper()


@pytest.fixture(scope="session")
def sections(whole_paper):
    from lrcnet import report

    return report.assemble(whole_paper)


@pytest.fixture(scope="session")
def page(sections, whole_paper, tmp_path_factory):
    from lrcnet import report

    return report.write_page(sections, whole_paper, tmp_path_factory.mktemp("report") / "report.html")
