"""Boxes of states and inputs: errors for invalid boxes, and the invariant box."""

import pytest
import torch

import lrcnet
from lrcnet.theory import Domain, empirical_lipschitz, lipschitz_bound
from lrcnet.theory.network import read_model


@pytest.mark.parametrize(
    ("states", "words"),
    [
        ((1.0, -1.0), "the domain of states must not be empty, but its low end 1 is above its high end -1"),
        ((-float("inf"), 1.0), "the domain of states must be finite"),
        ((-1.0, float("nan")), "the domain of states must be finite"),
        ((torch.zeros(3), torch.tensor([1.0, -2.0, 1.0])), "low end 0 is above its high end -2"),
        ((torch.zeros(3), torch.ones(2)), "both ends of the domain of states must have one shape"),
        ((torch.zeros(2, 2), 1.0), "numbers or one-dimensional tensors"),
    ],
)
def test_bad_boxes_get_one_sentence(states: object, words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        Domain(states)
    assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match=words.replace("states", "inputs")):
        Domain((-1.0, 1.0), states)


def test_boxes_that_are_no_pairs_of_numbers_are_refused() -> None:
    with pytest.raises(TypeError, match=r"must be a pair \(low, high\), but is 1.0"):
        Domain(1.0)
    with pytest.raises(TypeError, match="must be numbers or tensors, but is given '0'"):
        Domain(("0", "1"))


def test_a_box_that_does_not_fit_the_model_is_refused() -> None:
    with pytest.raises(ValueError, match=r"shape \(5,\) for this model, but has shape \(4,\)"):
        lipschitz_bound(lrcnet.LRCU(3, 5), Domain((torch.zeros(4), 1.0), (0.0, 1.0)))
    with pytest.raises(ValueError, match="must say where the 3 inputs lie, but has no inputs"):
        lipschitz_bound(lrcnet.LRCU(3, 5), Domain((-1.0, 1.0)))


def test_numbers_keep_their_64_bits() -> None:
    low, high = Domain((-0.1, 0.1)).ends(read_model(lrcnet.LRCUCell(0, 2)))
    assert low.tolist() == [-0.1, -0.1]
    assert high.tolist() == [0.1, 0.1]


def test_a_single_point_is_a_domain() -> None:
    box, layer = Domain((0.2, 0.2), (0.5, 0.5)), lrcnet.LRCU(3, 5, dtype=torch.float64)
    point = torch.full((1, 5), 0.2, dtype=torch.float64), torch.full((1, 3), 0.5, dtype=torch.float64)
    climbed = empirical_lipschitz(layer, domain=box)
    assert climbed.value == pytest.approx(empirical_lipschitz(layer, point).value, rel=1e-12)


@pytest.mark.parametrize("solver", ["euler", "hybrid", "exponential"])
def test_states_stay_in_the_invariant_box(solver: str) -> None:
    layer = lrcnet.LRC(3, 6, solver=solver, elastance="asymmetric", dtype=torch.float64)
    low, high = Domain.invariant(layer, inputs=(-9.0, 9.0)).ends(read_model(layer))
    h = low[:6] + torch.rand(64, 6, dtype=torch.float64) * (high - low)[:6]
    output, _ = layer(18 * torch.rand(200, 64, 3, dtype=torch.float64) - 9, h.unsqueeze(0))
    assert bool(((output >= low[:6]) & (output <= high[:6])).all())


def test_invariant_box_is_refused_from_outside() -> None:
    layer = lrcnet.LRCU(3, 5)
    edge = 2 * layer.circuit()["e_l"].abs()
    Domain.invariant(layer, h0=edge, inputs=(0.0, 1.0))
    Domain.invariant(layer, h0=edge.expand(7, 5), inputs=(0.0, 1.0))
    outside = edge.clone()
    outside[3] += 0.01
    for bad in (outside, outside.expand(7, 5)):
        with pytest.raises(ValueError, match=r"h0 must lie inside the invariant box .* leaves it at unit 3"):
            Domain.invariant(layer, h0=bad)
    with pytest.raises(ValueError, match="h0 must lie inside"):
        Domain.invariant(layer, h0=float("nan"))
    with pytest.raises(ValueError, match="5 entries in its last dimension"):
        Domain.invariant(layer, h0=torch.zeros(4))


def test_invariant_box_is_refused_for_a_large_explicit_step() -> None:
    stc = lrcnet.STC(3, 5, solver="euler", unfolds=1)
    Domain.invariant(stc, inputs=(-1.0, 1.0), dt=1.0)
    with pytest.raises(ValueError, match=r"an explicit step must be at most .* but is 3; use more unfolds"):
        Domain.invariant(stc, inputs=(-1.0, 1.0), dt=3.0)
    Domain.invariant(lrcnet.STC(3, 5, solver="euler", unfolds=3), inputs=(-1.0, 1.0), dt=3.0)
    Domain.invariant(lrcnet.STC(3, 5, solver="hybrid"), inputs=(-1.0, 1.0), dt=100.0)
    # tanh(1/2) is the largest symmetric elastance with k = 1, so a step of 2 still mixes two states of the box.
    lrc = lrcnet.LRCU(3, 5, init="paper")
    Domain.invariant(lrc, inputs=(-1.0, 1.0), dt=2.0)
    with pytest.raises(ValueError, match="an explicit step must be at most 2"):
        Domain.invariant(lrc, inputs=(-1.0, 1.0), dt=3.0)
    with pytest.raises(ValueError, match="whose gates are bounded"):
        Domain.invariant(lrcnet.LTC(3, 5), inputs=(-1.0, 1.0))


def test_domain_around_data_is_their_hull() -> None:
    states, inputs = torch.randn(50, 4), torch.randn(50, 2)
    box = Domain.around(states, inputs)
    assert bool((box.states[0] == states.amin(0)).all())
    assert bool((box.inputs[1] == inputs.amax(0)).all())
    with pytest.raises(ValueError, match=r"states \(N, m\) and inputs \(N, n\)"):
        Domain.around(states, inputs[:3])
