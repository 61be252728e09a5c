"""Networks for sequences of unequal lengths: padding changes nothing, gaps do."""

from dataclasses import replace

import pytest
import torch

from lrcnet_paper.models import build, parameter_count
from lrcnet_paper.models.padded import PADDED
from lrcnet_paper.tasks import find

XOR, PHYSIONET, SCP = find("xor"), find("physionet"), find("uea")


def batch(channels, lengths=(6, 3)):
    torch.manual_seed(0)
    valid = (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).float()
    x = torch.cat([torch.randn(len(lengths), max(lengths), channels) * valid[..., None], valid[..., None]], -1)
    return x, (0.1 + torch.rand(len(lengths), max(lengths))) * valid


@pytest.mark.parametrize("model", PADDED)
def test_padding_changes_nothing_and_every_parameter_learns(model):
    network = build(model, XOR, parameters=300)
    x, dt = batch(1)
    output = network(x, dt)
    assert output.shape == (2, 2)
    output.square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() and p.grad.any() for p in network.parameters())
    network.eval()
    with torch.no_grad():
        torch.testing.assert_close(network(x[1:, :3], dt[1:, :3]), network(x, dt)[1:])


@pytest.mark.parametrize("model", PADDED)
def test_gaps_are_seen_unless_they_are_hidden(model):
    x, dt = batch(1)
    with torch.no_grad():
        for gaps, differs in (("", True), ("none", False)):
            network = build(model, XOR, parameters=300, gaps=gaps)
            network(x, dt)
            assert torch.equal(network(x, dt), network(x, dt.flip(1).clamp(min=0.2))) != differs


def test_the_unit_of_time_is_the_median_gap_and_is_saved():
    network = build("lrc-s", XOR, units=3)
    x, dt = batch(1)
    network(x, dt)
    assert network.time_unit == dt[dt > 0].median()
    twin = build("lrc-s", XOR, units=3)
    twin.load_state_dict(network.state_dict())
    assert torch.equal(twin.eval()(x, dt), network.eval()(x, dt))
    dt[:, 0] = 0
    assert not torch.equal(network(x, dt), network(torch.cat([0 * x[:, :1], x[:, 1:]], 1), dt)), "a first gap of 0"


def test_widths_match_a_number_of_parameters_without_changing_initial_values():
    torch.manual_seed(0)
    wanted = build("torch-gru", PHYSIONET, parameters=20_000)
    torch.manual_seed(0)
    same = build("torch-gru", PHYSIONET, units=wanted.layer.hidden_size)
    assert torch.equal(wanted.head.weight, same.head.weight)
    assert abs(parameter_count(wanted) - 20_000) < 300


def test_the_network_of_the_protocol_has_its_sizes():
    network = build("lrc-ssm", SCP, solver="euler-1", units=64, states=16, blocks=2, dropout=0.05)
    assert parameter_count(network) == 24_258
    assert network(torch.randn(2, 10, 7).abs()).shape == (2, 2)


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        ("mgu", {}, "model of a label-per-padded-sequence task must be one of"),
        ("cfc", {"solver": "euler-1"}, "takes no solver"),
        ("torch-gru", {"gaps": "step"}, "takes no step of time"),
        ("gru-d", {"gaps": "feature"}, "takes gaps as its step"),
        ("torch-gru", {"gaps": "both"}, "takes no step of time"),
        ("cfc", {"gaps": "both"}, "only gru-d takes gaps as both"),
        ("cfc", {"gaps": "maybe"}, "gaps must be one of"),
        ("cfc", {"units": 3, "parameters": 100}, "give units or parameters"),
    ],
)
def test_bad_choices_are_named(model, options, message):
    with pytest.raises(ValueError, match=message):
        build(model, XOR, **options)


def test_regular_data_needs_no_gaps():
    regular = replace(XOR, irregular=False)
    assert build("lrcu-s", regular, units=4)(batch(1)[0]).shape == (2, 2)
