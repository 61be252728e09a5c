"""GRU-D: the equations of its paper, decays that learn, and gaps that it sees from the first one on."""

import pytest
import torch

from lrcnet_paper.models import build
from lrcnet_paper.models.gru_d import GRUD
from lrcnet_paper.models.padded import choose_gaps
from lrcnet_paper.tasks import find


def masked_batch(variables, others=0, samples=16, steps=12):
    """Return last values and masks of a third of them, and gaps; every variable is missing somewhere."""
    torch.manual_seed(0)
    masks = (torch.rand(samples, steps, variables) < 0.3).float()
    parts = [torch.randn(samples, steps, variables), masks, torch.randn(samples, steps, others)]
    return torch.cat(parts, -1), 0.1 + 3 * torch.rand(samples, steps)


def test_time_is_counted_since_each_variable_was_seen():
    masks = torch.tensor([[[1.0, 0.0], [0.0, 0.0], [0.0, 1.0], [1.0, 0.0]]])
    x = torch.cat([torch.zeros(1, 4, 2), masks], -1)
    elapsed = GRUD(4, 3, masked=2).time_since_measured(x, torch.tensor([[1.0, 2.0, 4.0, 8.0]]))
    assert elapsed[0].tolist() == [[1, 1], [2, 3], [6, 7], [14, 8]]


@torch.no_grad()
@pytest.mark.parametrize("time_feature", [False, True])
def test_the_layer_is_the_papers_equation_with_the_reset_before_the_product(time_feature):
    k, m = 2, 3
    x, dt = masked_batch(k, others=1, samples=2, steps=5)
    layer = GRUD(2 * k + 1, m, masked=k, time_feature=time_feature)
    layer.bias.normal_()
    w_z, w_r, w_c = layer.weight_ih.split(m)
    u_z, u_r, u_c = layer.weight_hh.split(m)
    b_z, b_r, b_c = layer.bias.split(m)
    h, delta, mask = torch.zeros(2, m), torch.zeros(2, k), torch.ones(2, k)
    for t in range(5):
        delta = dt[:, t, None] + (1 - mask) * delta
        value, mask = x[:, t, :k], x[:, t, k : 2 * k]
        decayed = torch.exp(-torch.relu(layer.input_decay[0] * delta + layer.input_decay[1])) * value
        now = torch.cat([mask * value + (1 - mask) * decayed, x[:, t, k:]], -1)
        if time_feature:
            now = torch.cat([now, dt[:, t, None]], -1)
        h = torch.exp(-torch.relu(delta / k @ layer.state_decay.weight.t() + layer.state_decay.bias)) * h
        z, r = (torch.sigmoid(now @ w.t() + h @ u.t() + b) for w, u, b in ((w_z, u_z, b_z), (w_r, u_r, b_r)))
        h = (1 - z) * h + z * torch.tanh(now @ w_c.t() + (r * h) @ u_c.t() + b_c)
    torch.testing.assert_close(layer(x, dt=dt)[1][0], h)


@pytest.mark.parametrize(("task", "variables"), [("xor", 0), ("physionet", 37)])
def test_every_unit_of_every_decay_learns_from_the_first_step_on(task, variables):
    shape = find(task)
    x, dt = masked_batch(variables, others=shape.input_size - 2 * variables)
    network = build("gru-d", shape, units=32)
    network(torch.cat([x, torch.ones_like(x[..., :1])], -1), dt).square().sum().backward()
    assert all(parameter.grad.any() for parameter in network.parameters())
    decay = network.layer.state_decay
    assert decay.weight.grad.all()
    assert decay.bias.grad.all()
    if variables:
        assert network.layer.input_decay.grad.all()


@torch.no_grad()
def test_a_stream_of_events_shows_its_first_duration_unless_gaps_are_only_the_step():
    x, short, long = torch.ones(1, 1, 2), torch.tensor([[1.0]]), torch.tensor([[3.0]])
    for gaps, sees in (("", True), ("both", True), ("step", False), ("none", False)):
        network = build("gru-d", find("xor"), units=4, gaps=gaps).eval()
        assert torch.equal(network(x, short), network(x, long)) != sees


def test_missing_values_leave_the_gap_to_the_decay():
    assert choose_gaps("gru-d", find("physionet")) == "step"
    assert choose_gaps("gru-d", find("thinned")) == choose_gaps("gru-d", find("event-mnist")) == "both"
    assert choose_gaps("gru-d", find("xor"), "none") == "none"
