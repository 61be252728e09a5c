"""Names that every doctest may use, and determinism for every test."""

import os

# Before torch loads OpenMP: threads that wait by spinning take a core each, and two processes share two of them.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import pytest
import torch
from hypothesis import settings

import lrcnet

# The same examples on every machine: a failure seen in CI is one that `make test` shows too.
settings.register_profile("lrcnet", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("lrcnet")

# Test networks are so small that waiting for other threads costs more time than they save. This call is for the
# fixtures of a module or a session; each test sets the number again, because a training run changes it.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _doctest_names(doctest_namespace: dict[str, object]) -> None:
    doctest_namespace["lrcnet"] = lrcnet
    doctest_namespace["torch"] = torch


@pytest.fixture(autouse=True)
def _doctest_folder(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Examples write their files into the working directory, which is the project's otherwise.
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.chdir(tmp_path_factory.mktemp("doctest"))
