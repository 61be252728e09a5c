"""A liquid layer in place of torch.nn.GRU learns with the same lines of training code and Adam's usual rate."""

import pytest
import torch

from lrcnet.benchmarks.learning import LAYERS, accuracy_after_training


@pytest.fixture(scope="module")
def gru_accuracy() -> float:
    torch.manual_seed(0)
    return accuracy_after_training(LAYERS["GRU"]())


@pytest.mark.parametrize("name", ["LRCU-S", "LRCU-A", "LRC-S"])
def test_a_liquid_layer_learns_as_well_as_the_gru_it_replaces(name: str, gru_accuracy: float) -> None:
    assert accuracy_after_training(LAYERS[name]()) > gru_accuracy - 0.02


def test_the_papers_initial_values_and_parameters_learn_more_slowly() -> None:
    """The reason for the defaults; if this fails, the test above says nothing."""
    paper, default = (LAYERS[name]() for name in ("LRCU-S, init='paper', 'sigma-mu'", "LRCU-S"))
    assert accuracy_after_training(paper) < accuracy_after_training(default) - 0.1
