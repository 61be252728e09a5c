"""`lrcnet.interpret.page`: what the page holds for classifiers, taggers, estimators and modules of a user."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import lrcnet
from lrcnet.estimators import LiquidClassifier
from lrcnet.interpret import page, trace
from lrcnet.interpret.inside import Example, answers, class_probabilities, order_by_similarity, score
from lrcnet.models import Classifier, Tagger


def read_data(path):
    return json.loads(re.search(r'id="data">(.*?)</script>', path.read_text(encoding="utf-8")).group(1))


@pytest.fixture
def tagger():
    torch.manual_seed(0)
    return Tagger(lrcnet.LRCU(3, 5, batch_first=True), 5, 4)


class OwnNetwork(nn.Module):
    """A user's network that reads the last hidden state of torch's LSTM and answers with one logit."""

    def __init__(self):
        super().__init__()
        self.rnn, self.head = nn.LSTM(3, 6, batch_first=True), nn.Linear(6, 1)

    def forward(self, x):
        return self.head(self.rnn(x)[1][0][-1])


def test_the_page_holds_the_models_own_probabilities(tagger, tmp_path):
    x, dt = torch.randn(6, 20, 3), torch.rand(6, 20)
    labels = torch.randint(0, 4, (6, 20))
    data = read_data(page(tagger, x, dt, labels, path=tmp_path / "a.html", sequences=2))
    assert data["numbers"] == [1, 6]
    wanted = tagger(x, dt=dt).softmax(-1)
    for part, i in zip(data["models"][0]["sequences"], (0, 5), strict=True):
        np.testing.assert_allclose(part["answers"]["values"], wanted[i].detach().numpy(), atol=1e-4)
        assert part["truth"] == labels[i].tolist()


LAYERS = {
    "lrcu": lambda: lrcnet.LRCU(3, 5, batch_first=True),
    "output map": lambda: lrcnet.LRCU(3, 5, batch_first=True, output_map=True),
    "stack": lambda: lrcnet.LRC(3, 5, 2, batch_first=True),
    "lstm": lambda: nn.LSTM(3, 5, batch_first=True),
    "gru": lambda: nn.GRU(3, 5, batch_first=True),
}


@pytest.mark.parametrize("name", LAYERS)
def test_an_ablated_neuron_is_held_inside_the_recurrence(name):
    torch.manual_seed(0)
    layer, head = LAYERS[name](), nn.Linear(5, 4)
    model = nn.Sequential(layer, _FirstOf(), head)
    x, rest = torch.randn(1, 9, 3), torch.arange(5) / 10.0
    given = answers(model, Example(x, None, None), rest, classes=True)
    for k in range(5):
        state, outputs = None, []
        for t in range(9):
            _, state = layer(x[:, t : t + 1], state)
            (state[0] if isinstance(state, tuple) else state)[-1, 0, k] = rest[k]
            # A step of no inputs and no time does not exist, so the output is read from the state by hand.
            hidden = (state[0] if isinstance(state, tuple) else state)[-1]
            outputs.append(layer.cells[-1].read_out(hidden) if hasattr(layer, "cells") else hidden)
        wanted = head(torch.cat(outputs)).softmax(-1).detach().numpy()
        np.testing.assert_allclose(given.ablated[k], wanted, atol=1e-6)
    assert np.abs(given.ablated - given.values).max() > 0.001


class _FirstOf(nn.Module):
    def forward(self, answer):
        return answer[0]


def test_a_neuron_that_feeds_others_changes_them_too(tagger):
    x = torch.randn(1, 9, 3)
    states = trace(tagger, x).state[0]
    rest = states.median(0).values
    ablated = answers(tagger, Example(x, None, None), rest, classes=True).ablated
    for k in range(5):
        changed = states.clone()
        changed[:, k] = rest[k]
        only_read_out = tagger.head(changed).softmax(-1).detach().numpy()
        assert np.abs(ablated[k] - only_read_out).max() > 1e-4


def test_gaps_reach_an_ablated_recurrence(tagger):
    x, dt = torch.randn(1, 9, 3), torch.rand(1, 9)
    state, outputs = None, []
    for t in range(9):
        _, state = tagger.layer(x[:, t : t + 1], state, dt=dt[:, t : t + 1])
        state[-1, 0, 2] = 0.3
        outputs.append(state[-1])
    given = answers(tagger, Example(x, dt, None), torch.full((5,), 0.3), classes=True)
    wanted = tagger.head(torch.cat(outputs)).softmax(-1).detach().numpy()
    np.testing.assert_allclose(given.ablated[2], wanted, atol=1e-6)


def test_a_bidirectional_layer_is_ablated_at_the_read_out(tmp_path):
    torch.manual_seed(0)
    model = Tagger(lrcnet.LRCU(3, 5, batch_first=True, bidirectional=True), 10, 4)
    x, rest = torch.randn(1, 9, 3), torch.arange(5) / 10.0
    given = answers(model, Example(x, None, None), rest, classes=True)
    output = model.layer(x)[0][0].detach().clone()
    output[:, 1] = rest[1]
    np.testing.assert_allclose(given.ablated[1], model.head(output).softmax(-1).detach().numpy(), atol=1e-6)
    assert "only where the read-out reads it" in page(model, x, path=tmp_path / "a.html").read_text(encoding="utf-8")


def test_an_answer_after_n_readings_is_that_of_a_sequence_that_ends_there(tmp_path):
    torch.manual_seed(1)
    network = OwnNetwork()
    x = torch.randn(4, 40, 3)
    data = read_data(page(network, x, labels=torch.tensor([0, 1, 1, 0]), path=tmp_path / "a.html"))
    part = data["models"][0]["sequences"][0]["answers"]
    assert part["readings"][-1] == 40
    for reading, (_, positive) in zip(part["readings"], part["values"], strict=True):
        assert positive == pytest.approx(float(network(x[:1, :reading]).sigmoid().detach()), abs=1e-4)
    # The network reads the last state and not the output; ablation reaches it all the same.
    ablated = np.array(part["ablated"])
    assert np.abs(ablated - np.array(part["values"])).max() > 0.001


def test_a_model_that_always_gives_the_majority_class_is_warned_of(tagger, tmp_path):
    with torch.no_grad():
        tagger.head.weight.zero_()
        tagger.head.bias.copy_(torch.tensor([0.0, 9.0, 0.0, 0.0]))
    labels = torch.tensor([[1, 1, 1, 2]] * 3)
    result = score(tagger, [Example(torch.randn(1, 4, 3), None, row) for row in labels])
    assert (result.accuracy, result.majority, result.majority_class, result.single) == (0.75, 0.75, 1, True)
    text = page(tagger, torch.randn(3, 4, 3), labels=labels, path=tmp_path / "a.html").read_text(encoding="utf-8")
    assert "It gives the same answer everywhere" in text
    assert "accuracy 75.0 % of 12 answers; always answering “class 1” would give 75.0 %" in text


def test_a_model_that_is_better_than_the_majority_class_is_not(tmp_path):
    torch.manual_seed(0)
    tagger = Tagger(lrcnet.LRCU(3, 5, batch_first=True), 5, 2)
    x = torch.randn(3, 8, 3)
    labels = tagger(x).argmax(-1)
    assert 0 < labels.float().mean() < 1
    text = page(tagger, x, labels=labels, path=tmp_path / "a.html").read_text(encoding="utf-8")
    assert "accuracy 100.0 %" in text
    assert 'class="warning"' not in text


def test_an_estimator_and_a_second_one_beside_it(tmp_path):
    from lrcnet.estimators import LiquidClassifier

    rng = np.random.default_rng(0)
    series = [rng.normal(size=(length, 2)) + k % 2 for k, length in enumerate((9, 12, 9, 15, 12, 9, 9, 12))]
    names = np.array(["still", "moving"])[np.arange(8) % 2]
    first, second = (
        LiquidClassifier(cell, units=4, epochs=1, random_state=0, progress=False) for cell in ("lrcu", "lstm")
    )
    first.fit(series, names)
    second.fit(series, names)
    path = page(first, series, None, names, beside=second, path=tmp_path / "a.html", channels=["x", "y"])
    data = read_data(path)
    assert [model["name"] for model in data["models"]] == ["LRCU (A)", "LSTM (B)"]
    assert data["models"][0]["classes"] == ["moving", "still"]
    assert [trace["name"] for trace in data["inputs"][0][0]] == ["x", "y"]
    shown = data["models"][0]["sequences"][0]["answers"]["values"][-1]
    np.testing.assert_allclose(shown, first.predict_proba(series)[0], atol=2e-4)


def test_neurons_are_ordered_by_their_time_constants_and_likeness(tagger, tmp_path):
    x = torch.randn(2, 30, 3)
    orders = read_data(page(tagger, x, path=tmp_path / "a.html"))["models"][0]["orders"]
    median = trace(tagger, x).time_constant.flatten(0, 1).median(0).values
    assert (median[orders["time constant"]].diff() >= -1e-6).all()
    wave = np.sin(np.linspace(0, 9, 50))
    states = np.stack([wave, np.cos(np.linspace(0, 9, 50)), wave * 2 + 1, -np.cos(np.linspace(0, 9, 50))], 1)
    order = order_by_similarity(states)
    assert abs(order.index(0) - order.index(2)) in (1, 3), "equal neurons are neighbours on the circle of angles"


def test_a_layer_without_a_read_out_has_no_answers(tmp_path):
    data = read_data(page(lrcnet.LRCU(3, 5, batch_first=True), torch.randn(2, 7, 3), path=tmp_path / "a.html"))
    assert data["models"][0]["sequences"][0]["answers"] is None


def test_names_that_look_like_html_stay_text(tagger, tmp_path):
    bad = "</script><script>alert(1)</script>"
    x, labels = torch.randn(2, 5, 3), torch.zeros(2, 5, dtype=torch.long)
    path = page(tagger, x, None, labels, path=tmp_path / "a.html", classes=[bad] * 4, channels=[bad] * 3, title=bad)
    assert "<script>alert" not in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"x": torch.randn(2, 5, 3), "labels": torch.zeros(3)}, "labels must be"),
        ({"x": [1, 2]}, "x must be a tensor"),
        ({"x": torch.randn(0, 5, 3)}, "at least one sequence"),
        ({"x": torch.randn(2, 5, 3), "sequences": 0}, "sequences must be at least 1"),
    ],
)
def test_bad_arguments_get_one_sentence(tagger, tmp_path, arguments, words):
    with pytest.raises(ValueError, match=words):
        page(tagger, **arguments, path=tmp_path / "a.html")
    with pytest.raises(TypeError, match="must be a torch module or an estimator"):
        page("tagger", torch.randn(2, 5, 3), path=tmp_path / "a.html")


def test_probabilities_are_recognised():
    logits = torch.randn(3, 4)
    probabilities = logits.softmax(-1)
    torch.testing.assert_close(class_probabilities(logits), probabilities)
    torch.testing.assert_close(class_probabilities(probabilities), probabilities)


def test_a_classifier_of_whole_sequences_takes_gaps(tmp_path):
    torch.manual_seed(0)
    model = Classifier(lrcnet.LRC(3, 4, batch_first=True), 4, 3)
    x, dt = torch.randn(3, 11, 3), torch.rand(3, 11)
    part = read_data(page(model, x, dt, torch.tensor([0, 1, 2]), path=tmp_path / "a.html"))["models"][0]["sequences"][1]
    np.testing.assert_allclose(part["answers"]["values"][-1], model(x, dt=dt).softmax(-1)[1].detach(), atol=1e-4)


def test_names_labels_and_readings_must_fit_the_model(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, x = lrcnet.models.Classifier(lrcnet.LRCU(3, 4, batch_first=True), 4, 2), torch.randn(2, 5, 3)
    for given, sentence in (
        ({"labels": [0, 2]}, "fit the model's 2 classes"),
        ({"classes": ["a"]}, "fit the model's 2 classes"),
        ({"labels": [0, 0.7]}, "no whole number"),
        ({"channels": ["a"]}, "name each of the 3 channels, but has 1"),
        ({"x": x.clone().fill_(torch.nan)}, "x must be finite"),
    ):
        with pytest.raises(ValueError, match=sentence):
            page(model, **{"x": x, **given}, path=tmp_path / "page.html")
    series = np.random.default_rng(0).normal(size=(6, 5, 2))
    fitted = LiquidClassifier(units=4, epochs=1, progress=False).fit(series, np.array(["b", "d"] * 3))
    with pytest.raises(ValueError, match="labels must be classes of the model"):
        page(fitted, series, labels=np.array(["b", "c"] * 3), path=tmp_path / "page.html")
