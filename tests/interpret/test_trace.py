"""A trace records the forward pass itself: the same bits, the same functions, for every layer and layout."""

import pytest
import torch
from torch import Tensor, nn

import lrcnet
from lrcnet import liquid
from lrcnet.interpret import heat_map, trace
from lrcnet.interpret.trace import COMMON
from lrcnet.models import Classifier, Tagger
from lrcnet_paper.models.policy import Policy

LIQUID = ["LTC", "STC", "LRC", "LRCU"]
HAVE = {
    "LTC": {"forget", "update", "time_constant"},
    "STC": {"forget", "update", "time_constant"},
    "LRC": {"forget", "update", "elastance", "time_constant"},
    "LRCU": {"forget", "update", "elastance", "time_constant"},
    "MGU": {"forget", "candidate", "time_constant"},
    "ResetBeforeGRU": {"update", "reset", "candidate", "time_constant"},
    "CTRNN": {"decay", "drive", "time_constant"},
    "GRUODE": {"decay", "drive", "time_constant"},
    "CfC": {"update", "start", "end", "time_constant"},
    "DiagonalLRC": {"forget", "update", "elastance", "time_constant"},
    "LSTM": {"forget", "update", "candidate", "output_gate", "memory", "time_constant"},
    "GRU": {"update", "reset", "candidate", "time_constant"},
}


def layer_of(name: str, **options) -> nn.Module:
    return getattr(lrcnet, name)(3, 5, **options)


def dt_for(name: str, x: Tensor) -> Tensor | None:
    return None if name in ("LSTM", "GRU", "MGU", "ResetBeforeGRU") else torch.rand(x.shape[:-1])


@torch.no_grad()
def forward(layer: nn.Module, x: Tensor, dt: Tensor | None = None) -> Tensor:
    """Run a layer without gradients, because torch's LSTM rounds differently with them."""
    return (layer(x) if dt is None else layer(x, dt=dt))[0]


def before(states: Tensor, start: Tensor) -> Tensor:
    """Return the states before each step, time-major."""
    return torch.cat([start.unsqueeze(0), states[:-1]])


@pytest.mark.parametrize("name", HAVE)
@pytest.mark.parametrize("options", [{}, {"batch_first": True}, {"num_layers": 2, "bidirectional": True}], ids=str)
def test_no_output_bit_changes_and_every_unit_has_its_quantities(name: str, options: dict) -> None:
    layer, x = layer_of(name, **options), torch.randn(4, 6, 3)
    dt = dt_for(name, x)
    expected = forward(layer, x, dt)
    for reverse in {False, layer.bidirectional}:
        record = trace(layer, x, dt, reverse=reverse)
        assert torch.equal(record.output, expected)
        assert record.by_name().keys() == {"state"} | HAVE[name]
        own = expected[..., 5:] if reverse else expected[..., :5]
        assert torch.equal(record.state, own), "these layers have no output map"
        assert all(value.shape == (4, 6, 5) for value in record.by_name().values())
        assert all(getattr(record, key) is None for key in COMMON if key not in HAVE[name])
    assert torch.equal(forward(layer, x, dt), expected), "nothing is left behind"


@pytest.mark.parametrize("name", HAVE)
def test_first_of_stacked_layers_and_unbatched_sequences(name: str) -> None:
    layer, x = layer_of(name, num_layers=2), torch.randn(6, 3)
    first = layer_of(name)
    if isinstance(layer, nn.RNNBase):
        first.load_state_dict({n: v for n, v in layer.state_dict().items() if n.endswith("_l0")})
    else:
        first.cells[0].load_state_dict(layer.cells[0].state_dict())
    torch.testing.assert_close(trace(layer, x, depth=0).state, forward(first, x))
    assert trace(layer, x, depth=0).state.shape == (6, 5)
    assert torch.equal(trace(layer, x).state, forward(layer, x))


@pytest.mark.parametrize("name", LIQUID)
@pytest.mark.parametrize(
    "options",
    [{}, {"unfolds": 3}, {"constraint": "softplus"}, {"parametrisation": "sigma-mu"}, {"parametrisation": "ab"}],
    ids=str,
)
def test_gates_of_the_kernel_are_those_of_the_equation(name: str, options: dict) -> None:
    fused = layer_of(name, backend="fused", **options)
    plain = layer_of(name, backend="reference", **options)
    plain.load_state_dict(fused.state_dict())
    x, dt, start = torch.randn(7, 2, 3), torch.rand(7, 2), torch.randn(1, 2, 5)
    ours, theirs = trace(fused, x, dt, hx=start), trace(plain, x, dt, hx=start)
    assert ours.by_name().keys() == theirs.by_name().keys()
    for key, value in theirs.by_name().items():
        torch.testing.assert_close(ours.by_name()[key], value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["LRC", "LRCU"])
@pytest.mark.parametrize(
    "function", ["synapses", "forget_gate", "update_gate", "elastance_gate", "input_currents", "currents", "gates"]
)
def test_trace_and_forward_use_the_same_functions(name: str, function: str, monkeypatch) -> None:
    layer, x = layer_of(name, backend="reference"), torch.randn(4, 2, 3)
    plain = trace(layer, x)
    own = getattr(liquid, function)

    def halve_answer(*arguments):
        answer = own(*arguments)
        if isinstance(answer, Tensor):
            return 0.5 * answer
        return type(answer)(*(None if part is None else 0.5 * part for part in answer))

    monkeypatch.setattr(liquid, function, halve_answer)
    record = trace(layer, x)
    assert not torch.allclose(record.output, plain.output)
    assert torch.equal(record.output, layer(x)[0])
    gates = [n for n in ("forget", "update", "elastance") if not torch.allclose(getattr(record, n), getattr(plain, n))]
    assert gates


@pytest.mark.parametrize("backend", ["fused", "reference"])
def test_an_lrcu_moves_as_its_gates_say(backend: str) -> None:
    layer, x, dt = layer_of("LRCU", backend=backend).double(), torch.randn(6, 2, 3).double(), torch.rand(6, 2).double()
    record = trace(layer, x, dt)
    h = before(record.state, torch.zeros(2, 5))
    e_l = layer.circuit()["e_l"]
    slope = record.elastance * (record.update * e_l - record.forget * h)
    torch.testing.assert_close(record.state, h + dt.unsqueeze(-1) * slope)
    torch.testing.assert_close(record.time_constant, 1 / (record.elastance * record.forget))


def test_gated_units_move_as_their_gates_say() -> None:
    x, zeros = torch.randn(6, 2, 3), torch.zeros(2, 5)
    for name in ("LSTM", "GRU", "MGU", "ResetBeforeGRU"):
        record = trace(layer_of(name), x)
        more, h = record.more, before(record.state, zeros)
        if name == "LSTM":
            c = before(more["memory"], zeros)
            torch.testing.assert_close(more["memory"], record.forget * c + record.update * more["candidate"])
            torch.testing.assert_close(record.state, more["output_gate"] * torch.tanh(more["memory"]))
        elif name == "GRU":
            torch.testing.assert_close(record.state, record.update * h + (1 - record.update) * more["candidate"])
        else:
            update = record.forget if name == "MGU" else record.update
            torch.testing.assert_close(record.state, (1 - update) * h + update * more["candidate"])


@pytest.mark.parametrize("name", ["LSTM", "GRU", "MGU", "ResetBeforeGRU"])
def test_time_as_an_input_is_seen(name: str) -> None:
    layer, x, dt = layer_of(name, time_feature=True), torch.randn(6, 2, 3), torch.rand(6, 2)
    record = trace(layer, x, dt)
    assert torch.equal(record.output, forward(layer, x, dt))
    assert not torch.allclose(record.time_constant, trace(layer, x, dt * 3).time_constant)


def test_whole_models_are_run_as_they_are() -> None:
    tagger = Tagger(lrcnet.LRCU(3, 5, batch_first=True), 5, 4)
    assert torch.equal(trace(tagger, torch.ones(2, 6, 3)).output, tagger(torch.ones(2, 6, 3)))
    classifier = Classifier(lrcnet.GRU(8, 5, batch_first=True), 5, 1, vocabulary=9, embedding=8)
    assert trace(classifier, torch.tensor([[1, 2, 3]])).state.shape == (1, 3, 5)
    policy = Policy("lstm")
    assert trace(policy, torch.zeros(1, 3, 48, 160, 3)).more["memory"].shape == (1, 3, 23)
    plain = nn.Sequential(nn.Linear(2, 3), nn.LSTM(3, 4))
    assert trace(plain, torch.randn(5, 2, 2)).state.shape == (5, 2, 4)


def test_every_layer_of_the_library_can_be_traced() -> None:
    assert {layer.__name__ for layer in lrcnet.LAYERS.values()} == HAVE.keys()


def test_bad_models_and_places_are_named() -> None:
    x = torch.randn(4, 2, 3)
    with pytest.raises(ValueError, match="must have one recurrent layer"):
        trace(nn.Linear(3, 3), x)
    with pytest.raises(ValueError, match="depth must be from 0 to 0"):
        trace(layer_of("LRCU"), x, depth=1)
    with pytest.raises(ValueError, match="needs a bidirectional layer"):
        trace(layer_of("GRU"), x, reverse=True)
    with pytest.raises(ValueError, match="packed sequences cannot be looked into"):
        trace(layer_of("GRU"), nn.utils.rnn.pack_sequence([torch.randn(4, 3)]))


def test_a_trace_is_drawn_with_a_bar_for_each_quantity() -> None:
    record = trace(layer_of("LRCU", batch_first=True), torch.randn(2, 9, 3))
    events = torch.zeros(9, dtype=torch.bool)
    events[3:5] = True
    figure = heat_map(
        record, sample=1, events=events, event="a fall", order=torch.arange(5).flip(0), title="T", note="N"
    )
    labels = [axes.get_ylabel() for axes in figure.axes]
    assert [text for text in labels if text] == [
        "state h",
        "forget gate",
        "update gate",
        "elastance",
        "time constant (steps)",
    ]
    assert figure.get_suptitle() == "T; bar: a fall"
