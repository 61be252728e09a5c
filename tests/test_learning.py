"""A liquid layer in place of torch.nn.GRU learns with the same lines of training code and Adam's usual rate."""

import re
from pathlib import Path

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


def accuracy_of_first_example(code: str) -> float:
    """Run the README's first example and return its network's accuracy on the half that it was not trained on."""
    torch.manual_seed(0)
    names: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), names)
    rnn, head, series, labels = (names[name] for name in ("rnn", "head", "series", "labels"))
    with torch.no_grad():
        answers = head(rnn(series[256:])[0][:, -1]).argmax(-1)
    return float((answers == labels[256:]).double().mean())


def test_the_first_example_of_the_readme_is_as_accurate_as_the_gru_that_it_replaces() -> None:
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    code = re.search(r"^```python\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)[1]
    replaced = code.replace("rnn = lrcnet.LRCU(", "rnn = torch.nn.GRU(")
    assert replaced != code
    ours = accuracy_of_first_example(code)
    assert ours > 0.9
    assert ours > accuracy_of_first_example(replaced) - 0.02
