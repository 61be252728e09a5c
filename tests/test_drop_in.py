"""Models written for torch.nn.GRU run, and learn, with the class name replaced."""

import inspect

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import lrcnet

# An LSTM's state is a pair, so code for a GRU does not run with torch's own LSTM either.
SWAPS = {name: layer for name, layer in lrcnet.LAYERS.items() if name != "lstm"}


class PackedClassifier(nn.Module):
    def __init__(self, rnn_type):
        super().__init__()
        self.rnn = rnn_type(6, 10, batch_first=True)
        self.out = nn.Linear(10, 2)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        _, h = self.rnn(packed)
        return self.out(h[-1])


class Seq2Seq(nn.Module):
    def __init__(self, rnn_type):
        super().__init__()
        self.encoder = rnn_type(6, 10, num_layers=2)
        self.decoder = rnn_type(2, 10, num_layers=2)
        self.out = nn.Linear(10, 2)

    def forward(self, x, steps=4):
        _, h = self.encoder(x)
        token = x.new_zeros(1, x.shape[1], 2)
        outputs = []
        for _ in range(steps):
            y, h = self.decoder(token, h)
            token = self.out(y)
            outputs.append(token)
        return torch.cat(outputs)


class Tagger(nn.Module):
    def __init__(self, rnn_type):
        super().__init__()
        self.rnn = rnn_type(6, 10, 2, True, True, 0.1, True)
        self.rnn.flatten_parameters()
        self.out = nn.Linear(20, 3)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        y, h = self.rnn(packed)
        y, _ = pad_packed_sequence(y, batch_first=True)
        assert h.shape == (self.rnn.num_layers * 2, x.shape[0], self.rnn.hidden_size)
        return self.out(y)


def learns(model: nn.Module, loss) -> None:
    optimiser = torch.optim.Adam(model.parameters(), 3e-3)
    losses = []
    for _ in range(25):
        optimiser.zero_grad()
        value = loss(model)
        value.backward()
        optimiser.step()
        losses.append(value.item())
    assert losses[-1] < losses[0]
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize("name", SWAPS)
def test_a_packed_classifier_learns(name: str) -> None:
    x, lengths = torch.randn(8, 12, 6), torch.tensor([12, 3, 7, 1, 12, 5, 9, 2])
    y = (x[:, 0].sum(-1) > 0).long()
    learns(PackedClassifier(SWAPS[name]), lambda m: nn.functional.cross_entropy(m(x, lengths), y))


@pytest.mark.parametrize("name", SWAPS)
def test_a_seq2seq_model_learns(name: str) -> None:
    x, target = torch.randn(7, 4, 6), torch.randn(4, 4, 2)
    learns(Seq2Seq(SWAPS[name]), lambda m: nn.functional.mse_loss(m(x), target))


@pytest.mark.parametrize("name", SWAPS)
def test_a_stacked_bidirectional_tagger_learns(name: str) -> None:
    x, lengths = torch.randn(6, 9, 6), torch.tensor([9, 3, 7, 1, 9, 5])
    y = (x.sum(-1) > 0).long()
    learns(Tagger(SWAPS[name]), lambda m: nn.functional.cross_entropy(m(x, lengths).flatten(0, 1), y.flatten()))


@pytest.mark.parametrize("name", lrcnet.LAYERS)
def test_layers_have_torchs_signature_and_attributes(name: str) -> None:
    theirs = list(inspect.signature(nn.RNNBase.__init__).parameters)[2:]
    ours = [
        p.name
        for p in inspect.signature(lrcnet.LAYERS[name]).parameters.values()
        if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    ]
    assert ours == [parameter for parameter in theirs if parameter != "proj_size"]
    layer, gru = lrcnet.LAYERS[name](3, 4, 2, bidirectional=True), nn.GRU(3, 4, 2, bidirectional=True)
    for attribute in (
        "input_size",
        "hidden_size",
        "num_layers",
        "bias",
        "batch_first",
        "dropout",
        "bidirectional",
        "proj_size",
    ):
        assert getattr(layer, attribute) == getattr(gru, attribute)
    assert len(layer.all_weights) == len(gru.all_weights)
    assert layer.mode
    layer.flatten_parameters()
    assert "3, 4" in repr(layer)


def test_contract_of_the_lrcu_signature() -> None:
    defaults = {name: p.default for name, p in inspect.signature(lrcnet.LRCU).parameters.items()}
    for name, default in (("input_map", True), ("output_map", False), ("negative_dt", "error"), ("backend", "auto")):
        assert defaults[name] == default
    assert lrcnet.LRCU(3, 4).cells[0].elastance == "symmetric"
    solvers = {
        name: (c.solver, c.unfolds) for name in ("ltc", "stc", "lrc", "lrcu") for c in [lrcnet.CELLS[name](3, 4)]
    }
    assert solvers == {"ltc": ("hybrid", 6), "stc": ("hybrid", 6), "lrc": ("hybrid", 1), "lrcu": ("euler", 1)}


@pytest.mark.parametrize("name", [name for name in SWAPS if name != "gru"])
def test_torchs_weights_are_refused_with_the_name_of_what_is_there(name: str) -> None:
    layer = SWAPS[name](3, 4, num_layers=2, bidirectional=True)
    liquid = name in ("ltc", "stc", "lrc", "lrcu")
    for weight in ("weight_ih_l0", "weight_hh_l1", "bias_ih_l0", "bias_hh_l0_reverse", "weight_hr_l0"):
        assert not hasattr(layer, weight)
        with pytest.raises(AttributeError, match=rf"has no {weight};.*{'circuit' if liquid else 'cells'}"):
            getattr(layer, weight)
    with pytest.raises(AttributeError, match="has no attribute 'weight_ih_lx'"):
        layer.weight_ih_lx  # noqa: B018


@pytest.mark.parametrize("name", lrcnet.LAYERS)
@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
def test_torchscript_is_refused_in_one_sentence(name: str) -> None:
    for module in (lrcnet.LAYERS[name](3, 4), lrcnet.CELLS[name](3, 4)):
        for model in (module, nn.Sequential(nn.Linear(3, 3), module)):
            with pytest.raises(NotImplementedError, match=r"cannot compile \w+, .*torch.export"):
                torch.jit.script(model)


def test_only_torchs_own_layers_are_instances_of_rnnbase() -> None:
    assert {name for name, kind in lrcnet.LAYERS.items() if issubclass(kind, nn.RNNBase)} == {"lstm", "gru"}


@pytest.mark.parametrize("sorted_first", [False, True])
@pytest.mark.parametrize("backend", ["auto", "reference"])
def test_input_and_dt_may_be_packed_in_different_ways(backend: str, sorted_first: bool) -> None:
    # From 17 samples on, torch sorts equal lengths in another order than the given one.
    samples = 40
    layer, lengths = lrcnet.LRCU(3, 4, backend=backend), torch.full((samples,), 6)
    x, dt = torch.randn(6, samples, 3), torch.rand(6, samples)
    ways = (sorted_first, not sorted_first)
    packed, gaps = (
        pack_padded_sequence(values, lengths, enforce_sorted=way) for values, way in zip((x, dt), ways, strict=True)
    )
    output, _ = pad_packed_sequence(layer(packed, dt=gaps)[0])
    torch.testing.assert_close(output, layer(x, dt=dt)[0])
