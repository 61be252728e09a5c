"""Fixtures shared by the tests of artefacts: synthetic runs of the whole paper, and every artefact drawn from them."""

import pytest

from lrcnet_paper import artefacts
from tests.lrcnet_paper.artefacts import synthetic_runs


@pytest.fixture(scope="session")
def all_runs(tmp_path_factory):
    return synthetic_runs.whole_paper() + synthetic_runs.driving_runs(tmp_path_factory.mktemp("driving"))


@pytest.fixture(scope="session")
def rendered(all_runs):
    return {name: artefacts.load(name).render(all_runs) for name in artefacts.ARTEFACTS}
