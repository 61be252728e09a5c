"""Every model name builds, has the exact number of parameters, and learns from every one of its parameters."""

from types import SimpleNamespace

import pytest
import torch

from lrcnet.models import Classifier, Tagger
from lrcnet_paper.models import FIELDS, RECURRENT, build, parameter_count, parse_solver
from lrcnet_paper.tasks import find

PERSON = find("person", "full")
COARSE = find("person", "coarse")
IMDB = find("imdb")
PSMNIST = find("psmnist")
ODE = find("neural-ode")


def liquid_count(m: int, n: int, *, symmetric: bool) -> int:
    """Count the parameters of a liquid cell with m units, n inputs, an input map and an output map."""
    return 5 * m * m + 5 * m * n + 5 * m + 2 * n + (m if symmetric else 0)


def gated_count(m: int, n: int, gates: int, biases: int) -> int:
    """Count the parameters of a gated cell with m units and n inputs."""
    return gates * m * (m + n + biases)


@pytest.mark.parametrize(
    ("model", "count"),
    [
        # torch keeps two biases per gate; MGU and the paper's GRU have one. dt is one more input of the gated ones.
        ("lstm", gated_count(100, 8, 4, 2)),
        ("gru", gated_count(100, 8, 3, 1)),
        ("torch-gru", gated_count(100, 8, 3, 2)),
        ("mgu", gated_count(100, 8, 2, 1)),
        ("lrcu-a", liquid_count(64, 7, symmetric=False)),
        ("lrcu-s", liquid_count(64, 7, symmetric=True)),
        ("lrc-s", liquid_count(64, 7, symmetric=True)),
        # No elastance: o, p are missing.
        ("stc", liquid_count(64, 7, symmetric=False) - (64 + 7) * 64 - 64),
        ("ltc", liquid_count(64, 7, symmetric=False) - (64 + 7) * 64 - 64),
        ("ctrnn", gated_count(100, 7, 1, 1) + 100),
        ("gru-ode", gated_count(100, 7, 3, 1)),
    ],
)
def test_recurrent_parameters_are_counted_exactly(model, count):
    network = build(model, PERSON)
    assert parameter_count(network.layer) == count
    width = RECURRENT[model].units
    assert parameter_count(network) == count + width * 7 + 7


@pytest.mark.parametrize(
    ("task", "model", "count"),
    [
        (COARSE, "lstm", gated_count(100, 7, 4, 2) + 707),
        (COARSE, "lrcu-s", 23_573),
        (IMDB, "lrcu-a", 20_000 * 64 + liquid_count(64, 64, symmetric=False) + 65),
        (IMDB, "gru", 20_000 * 64 + gated_count(100, 64, 3, 1) + 101),
        (PSMNIST, "lrcu-s", liquid_count(64, 1, symmetric=True) + 650),
        (PSMNIST, "mgu", gated_count(100, 1, 2, 1) + 1010),
        (ODE, "lrc-s", 1426),
        (ODE, "lrc-a", 1410),
        (ODE, "neural-ode", 1218),
    ],
)
def test_whole_models_have_the_protocols_parameters(task, model, count):
    assert parameter_count(build(model, task)) == count


@pytest.mark.parametrize("model", RECURRENT)
def test_every_parameter_of_every_tagger_gets_a_gradient(model):
    torch.manual_seed(0)
    network = build(model, PERSON, units=6)
    assert isinstance(network, Tagger)
    dt = torch.rand(3, 5)
    dt[1, 2] = -0.05  # the faithful protocol has such gaps
    output = network(torch.randn(3, 5, 7), dt)
    assert output.shape == (3, 5, 7)
    output.square().sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.isfinite().all(), name


def test_the_classifier_reads_tokens_and_padding_counts():
    network = build("lrcu-s", IMDB, units=4)
    assert isinstance(network, Classifier)
    assert network.embedding.weight.abs().max() <= 0.05
    front = torch.tensor([[0, 0, 5, 6]])
    assert network(front).shape == (1, 1)
    assert not torch.equal(network(front), network(torch.tensor([[0, 5, 6]]))), "padding is not masked"


def test_the_classifier_answers_from_the_last_mapped_output():
    network = build("lrcu-s", PSMNIST, units=4)
    x = torch.randn(2, 9, 1)
    output, _ = network.layer(x)
    torch.testing.assert_close(network(x), network.head(output[:, -1]))


@pytest.mark.parametrize("model", FIELDS)
def test_ode_models_roll_out_a_batch(model):
    network = build(model, ODE)
    assert network(torch.randn(4, 2) * 0.1, torch.linspace(0, 0.1, 5)).shape == (5, 4, 2)
    assert network.solver == ("dopri5" if model == "neural-ode" else "euler")


def test_liquid_models_use_the_papers_parametrisation_and_maps():
    cell = build("lrcu-s", COARSE).layer.cells[0]
    assert cell.parametrisation == "sigma-mu"
    assert cell.input_scale is not None
    assert cell.output_scale is not None
    assert build("lrc-s", ODE).field.liquid.parametrisation == "sigma-mu"


def test_solver_and_unfoldings_come_from_the_variant():
    cell = build("lrc-s", COARSE, solver="rk4-3").layer.cells[0]
    assert (cell.solver, cell.unfolds) == ("rk4", 3)
    assert parse_solver("exponential-1") == ("exponential", 1)


@pytest.mark.parametrize(("solver", "expected"), [("hybrid-1", "clamp"), ("euler-2", "allow")])
def test_negative_gaps_are_clamped_where_a_solver_cannot_step_back(solver, expected):
    assert build("lrc-s", PERSON, solver=solver).layer.negative_dt == expected


@pytest.mark.parametrize("solver", ["hybrid", "6", "hybrid-0", "hybrid-x", "magic-1", "euler--1"])
def test_a_bad_solver_is_refused_with_a_sentence(solver):
    with pytest.raises(ValueError, match="solver"):
        build("lrc-s", COARSE, solver=solver)


def test_models_and_options_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="model must be one of ltc, "):
        build("rnn", COARSE)
    with pytest.raises(ValueError, match="needs a recurrent model"):
        build("neural-ode", COARSE)
    with pytest.raises(ValueError, match="model of a trajectory must be one of"):
        build("lstm", ODE)
    with pytest.raises(ValueError, match="takes no solver"):
        build("gru", COARSE, solver="euler-1")
    with pytest.raises(ValueError, match="one step per grid time"):
        build("lrc-s", ODE, solver="euler-2")
    with pytest.raises(TypeError, match="has no option colour"):
        build("lrcu-s", COARSE, colour="red")


def test_anything_with_the_sizes_of_a_task_will_do():
    sizes = SimpleNamespace(
        kind="label-per-step", input_size=3, vocabulary=0, output_size=2, irregular=False, negative_dt="error"
    )
    assert build("mgu", sizes, units=5)(torch.randn(1, 4, 3), None).shape == (1, 4, 2)
    sizes.kind = "ranking"
    with pytest.raises(
        ValueError, match=r"must be one of label-per-step, label-per-sequence, .*trajectory, but is 'ranking'"
    ):
        build("mgu", sizes)
