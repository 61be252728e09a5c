"""On its first call a liquid layer names two silent faults: a state that cannot leave zero, inputs out of range."""

import itertools
import warnings
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

import lrcnet
from lrcnet.errors import DeadLayerWarning, InputRangeWarning
from lrcnet.first_call import is_dead

MODELS: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "ltc": (lrcnet.LTC, {}),
    "stc": (lrcnet.STC, {}),
    "lrc-s": (lrcnet.LRC, {}),
    "lrc-a": (lrcnet.LRC, {"elastance": "asymmetric"}),
    "lrcu-s": (lrcnet.LRCU, {}),
    "lrcu-a": (lrcnet.LRCU, {"elastance": "asymmetric"}),
}
LETTERS = ("e_l", "k", "g_l", "k_eps", "output_scale")


def make(model: str, **options: Any) -> Any:
    kind, own = MODELS[model]
    return kind(3, 5, **{**own, **options})


def initialise_as_the_tutorial_does(model: nn.Module) -> None:
    """The loop that many programs copy for nn.LSTM."""
    for name, parameter in model.named_parameters():
        if "weight" in name:
            nn.init.orthogonal_(parameter)
        else:
            nn.init.zeros_(parameter)


@pytest.mark.parametrize("model", MODELS)
def test_dead_means_that_the_output_is_zero_and_all_gradients_are(model: str) -> None:
    x = torch.randn(6, 4, 3, dtype=torch.float64)
    layer = make(model, dtype=torch.float64, output_map=True, backend="reference")
    for count in range(len(LETTERS) + 1):
        for zeroed in itertools.combinations(LETTERS, count):
            layer.reset_parameters()
            circuit = layer.circuit()
            if any(circuit[name] is None for name in zeroed):
                continue
            for name in zeroed:
                circuit[name].zero_()
            layer.load_circuit(circuit)
            layer.zero_grad()
            layer._parameters_checked = True
            output, _ = layer(x)
            (output * torch.randn_like(output)).sum().backward()
            learnable = [p.grad for name, p in layer.named_parameters() if not name.endswith("output_shift")]
            really = not output.any() and not any(bool(gradient.any()) for gradient in learnable)
            cell = layer.cells[0]
            assert is_dead(cell.values(), cell.switches()) == really, zeroed


@pytest.mark.parametrize("model", MODELS)
def test_the_tutorials_loop_is_named_once(model: str) -> None:
    layer = make(model)
    network = nn.Sequential(layer)
    initialise_as_the_tutorial_does(network)
    x = torch.randn(6, 4, 3)
    with pytest.warns(DeadLayerWarning, match=r"layer 0\) cannot leave zero.*reset_parameters\(\).*leave"):
        output, _ = network(x)
    assert not output.any()
    layer(x)
    layer.reset_parameters()
    assert layer(x)[0].any()


def test_a_loop_by_dimensions_is_named_where_it_kills() -> None:
    x = torch.randn(6, 4, 3)
    for model in MODELS:
        layer = make(model)
        for parameter in layer.parameters():
            nn.init.xavier_uniform_(parameter) if parameter.dim() > 1 else nn.init.zeros_(parameter)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            layer(x)[0].sum().backward()
        alive = any(bool(parameter.grad.any()) for parameter in layer.parameters())
        assert [warning.category for warning in caught] == ([] if alive else [DeadLayerWarning])
        # Without a symmetric elastance, e_l alone vanishes, and descent revives it.
        assert alive == (not model.endswith("-s"))


def test_the_message_names_the_dead_cells_of_a_stack() -> None:
    layer = lrcnet.LRCU(3, 5, num_layers=2, bidirectional=True)
    initialise_as_the_tutorial_does(layer.cells[3])
    with pytest.warns(DeadLayerWarning, match=r"LRCU \(layer 1, reverse\) cannot"):
        layer(torch.randn(6, 4, 3))


def test_a_state_that_starts_elsewhere_is_not_dead() -> None:
    layer = lrcnet.LRCU(3, 5)
    initialise_as_the_tutorial_does(layer)
    layer(torch.randn(6, 4, 3), torch.ones(1, 4, 5))


def test_softplus_keeps_a_layer_alive() -> None:
    layer = lrcnet.LRCU(3, 5, constraint="softplus")
    initialise_as_the_tutorial_does(layer)
    layer(torch.randn(6, 4, 3))[0].sum().backward()
    assert layer.cells[0].e_l.grad.any()


def test_warnings_point_at_the_line_that_called_the_layer() -> None:
    layer = lrcnet.LRCU(3, 5)
    with pytest.warns(InputRangeWarning) as caught:
        layer(1000 * torch.randn(6, 4, 3))
    assert caught[0].filename == __file__


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("scale", [0.0, 0.01, 1.0, 5.0])
def test_healthy_layers_say_nothing(model: str, scale: float) -> None:
    for options in ({}, {"num_layers": 2, "bidirectional": True}, {"parametrisation": "sigma-mu", "output_map": True}):
        layer = make(model, **options)
        layer(scale * torch.randn(6, 4, 3))[0].sum().backward()


@pytest.mark.parametrize("model", MODELS)
def test_inputs_out_of_range_are_named_once_and_calibrate_is_the_remedy(model: str) -> None:
    x = torch.randn(50, 8, 3) * torch.tensor([1.0, 300.0, 1.0]) + torch.tensor([0.0, 0.0, 50.0])
    layer = make(model)
    with pytest.warns(InputRangeWarning, match=r"2 of 3 channels \(1, 2\); channel 1 has mean.*calibrate\(x\)"):
        layer(x)
    layer(x)
    make(model).calibrate(x)(x)
    with pytest.warns(InputRangeWarning, match="input_map=True"):
        make(model, input_map=False)(x)


def test_the_check_of_inputs_waits_for_training() -> None:
    x, layer = 1000 * torch.randn(6, 4, 3), lrcnet.LRCU(3, 5).eval()
    layer(x)
    layer.train()
    with pytest.warns(InputRangeWarning):
        layer(x)


def test_padding_does_not_hide_inputs_out_of_range() -> None:
    x, lengths = 1000 * torch.randn(50, 4, 3), torch.tensor([50, 1, 1, 2])
    with pytest.warns(InputRangeWarning):
        lrcnet.LRCU(3, 5)(pack_padded_sequence(x, lengths, enforce_sorted=False))
    lrcnet.LRCU(3, 5)(torch.empty(0, 4, 3))


def test_missing_values_do_not_count_as_saturated() -> None:
    x = torch.randn(50, 4, 3)
    x[..., 1] = float("nan")
    layer = lrcnet.LRCU(3, 5)
    layer(x)
    assert layer._input_checked


def test_compilers_exporters_and_transforms_are_left_alone() -> None:
    x = 1000 * torch.randn(6, 4, 3)
    torch.compile(lrcnet.LRCU(3, 5), backend="eager", fullgraph=True)(x)
    torch.export.export(lrcnet.LRCU(3, 5), (x,))
    layer = lrcnet.LRCU(3, 5, backend="reference")
    torch.func.vmap(lambda one: layer(one)[0], in_dims=1)(x)
    layer.to("meta")(x.to("meta"))
    assert not layer._input_checked


def test_a_compiled_layer_is_not_compiled_again_after_an_eager_call() -> None:
    layer, x = lrcnet.LRCU(3, 5), torch.randn(6, 4, 3)
    graphs = []

    def count(graph: Any, _: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    compiled = torch.compile(layer, backend=count, fullgraph=True)
    compiled(x)
    layer(x)
    compiled(x)
    assert len(graphs) == 1
