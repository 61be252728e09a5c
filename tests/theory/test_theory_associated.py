"""Theorem 1 as a construction: the associated LRC and its certificate."""

import pytest
import torch

import lrcnet
from lrcnet.theory import Domain, associated_lrc, certify, damping, empirical_lipschitz

BOX = Domain((-0.4, 0.4), (-1.0, 1.0))


@pytest.mark.parametrize("elastance", ["symmetric", "asymmetric"])
@pytest.mark.parametrize("parametrisation", ["ab", "sigma-mu"])
def test_associated_lrc_is_the_stc_times_its_elastance(elastance: str, parametrisation: str) -> None:
    stc = lrcnet.STC(3, 5, solver="euler", unfolds=1, output_map=True, parametrisation=parametrisation)
    lrc, certificate = associated_lrc(stc, 0.1, elastance=elastance)
    assert isinstance(lrc, lrcnet.LRC)
    assert certificate.same_network
    x, h = torch.randn(20, 3), torch.randn(20, 5)
    slope, damped = stc.cells[0].derivative(x, h), lrc.cells[0].derivative(x, h)
    eps = damped / slope
    assert bool(((eps > 0) & (eps < 1)).all())
    assert (lrc.cells[0].solver, lrc.cells[0].unfolds, lrc.batch_first) == ("euler", 1, False)


def test_form_of_the_model_is_kept() -> None:
    readout = torch.nn.Linear(5, 1)
    (lrc, same), _ = associated_lrc((lrcnet.STC(3, 5, batch_first=True), readout), 0.1)
    assert isinstance(lrc, lrcnet.LRC)
    assert lrc.batch_first
    assert same is readout
    assert isinstance(associated_lrc(lrcnet.STCCell(0, 5), 0.1).model, lrcnet.LRCCell)


def test_margin_says_how_far_inside_the_limit_the_weights_are() -> None:
    stc = lrcnet.STC(3, 5)
    for margin in (0.0, 0.25, 1.0):
        certificate = associated_lrc(stc, margin).certificate
        assert certificate.condition_holds
        assert certificate.largest_ratio == pytest.approx(1 - margin, abs=1e-5)
    for bad in (-0.1, 1.1, float("nan"), True, "0"):
        with pytest.raises(ValueError, match="margin must be from 0 to 1"):
            associated_lrc(stc, bad)


def test_broken_limit_is_reported_with_its_place() -> None:
    stc = lrcnet.STC(3, 5, solver="euler", unfolds=1, dtype=torch.float64)
    lrc, _ = associated_lrc(stc, 0.5, domain=BOX)
    circuit = lrc.circuit()
    circuit["o"][6, 2] *= 40
    lrc.load_circuit(circuit)
    certificate = certify(stc, lrc, BOX)
    assert not certificate.condition_holds
    assert certificate.broken.tolist() == [[6, 2]]
    assert certificate.largest_ratio == pytest.approx(20, rel=1e-5)
    assert certificate.lrc_bound > certificate.stc_bound
    assert "broken at 1 synapses, first from row 6 to unit 2" in str(certificate)
    assert certificate.same_network
    circuit["o"] *= 1e4
    lrc.load_circuit(circuit)
    worse = certify(stc, lrc, BOX)
    assert not worse.strict
    assert "not certified smaller" in str(worse)


def test_other_synapses_are_reported() -> None:
    certificate = certify(lrcnet.STC(3, 5), lrcnet.LRC(3, 5, unfolds=6), BOX)
    assert not certificate.same_network
    assert not certificate.strict
    assert "the theorem does not apply" in str(certificate)


def test_gap_is_seen_where_the_bounds_round_to_one_number() -> None:
    stc = lrcnet.STC(3, 5, solver="euler", unfolds=1)
    certificate = associated_lrc(stc, 0.1, elastance="asymmetric", bias=60.0).certificate
    assert certificate.lrc_tighter == certificate.stc_bound
    assert 0 < certificate.gap < 1e-20
    assert certificate.strict
    nothing = associated_lrc((stc, torch.zeros(1, 5)), 0.1).certificate
    still = associated_lrc(stc, 0.1, dt=0.0).certificate
    assert not nothing.strict
    assert not still.strict


def test_theorem_1_orders_bounds_and_not_the_constants_themselves() -> None:
    """Without synapses, the STC contracts by 1 - sigma(g_l), but its LRC only by 1 - eps sigma(g_l)."""
    stc = lrcnet.STCCell(0, 1, solver="euler", unfolds=1, input_map=False, dtype=torch.float64)
    stc.load_circuit(
        {n: torch.full_like(v, float(n in ("g_l", "e_l"))) for n, v in stc.circuit().items() if v is not None}
    )
    lrc, certificate = associated_lrc(stc, 0.0)
    domain = Domain.invariant(stc)
    own, damped = (empirical_lipschitz(model, domain=domain, steps=5).value for model in (stc, lrc))
    forget = torch.sigmoid(torch.tensor(1.0, dtype=torch.float64))
    eps = torch.tanh(torch.tensor(0.5, dtype=torch.float64))
    assert own == pytest.approx(float(1 - forget))
    assert damped == pytest.approx(float(1 - eps * forget))
    assert certificate.strict
    assert certificate.lrc_tighter < certificate.stc_bound
    assert damped > 2 * own


def test_a_model_that_is_not_an_stc_is_refused() -> None:
    for model in (lrcnet.LRCU(3, 5), lrcnet.LTC(3, 5), torch.nn.Linear(3, 5)):
        with pytest.raises(ValueError, match="is made from an STC layer or cell"):
            associated_lrc(model, 0.1)
    with pytest.raises(ValueError, match="a stack of 2 layers"):
        associated_lrc(lrcnet.STC(3, 5, num_layers=2), 0.1)
    with pytest.raises(ValueError, match="compares an STC with an LRC, in this order"):
        certify(lrcnet.LRC(3, 5), lrcnet.STC(3, 5), BOX)
    with pytest.raises(ValueError, match="must agree in outputs, units, inputs, solver and unfoldings"):
        certify(lrcnet.STC(3, 5), lrcnet.LRC(3, 5), BOX)
    with pytest.raises(ValueError, match="k_eps finite and >= 0"):
        associated_lrc(lrcnet.STC(3, 5), 0.1, k_eps=-1.0)


def test_damping_shows_an_elastance_between_0_and_1() -> None:
    layer = lrcnet.LRCU(2, 4, dtype=torch.float64)
    sweep = damping(layer, Domain((-1.0, 1.0), (-20.0, 20.0)), unit=1, channel=1, points=41)
    assert sweep.stc.shape == sweep.lrc.shape == sweep.elastance.shape == (41, 41)
    assert bool(((sweep.elastance >= 0) & (sweep.elastance <= 1)).all())
    torch.testing.assert_close(sweep.lrc, sweep.elastance * sweep.stc)
    assert bool((sweep.lrc.abs() <= sweep.stc.abs()).all())
    # The damping depends on input and state: the elastance varies along both axes.
    assert float(sweep.elastance.std(0).max()) > 1e-4
    assert float(sweep.elastance.std(1).max()) > 1e-4
    h = torch.zeros(1, 4, dtype=torch.float64)
    h[0, 1] = sweep.states[3]
    slope = layer.cells[0].derivative(torch.tensor([[0.0, sweep.inputs[7]]], dtype=torch.float64), h)
    assert sweep.lrc[3, 7].item() == pytest.approx(slope[0, 1].item())
    assert damping(lrcnet.LRCUCell(0, 4), Domain((-1.0, 1.0))).stc.shape == (101, 1)
    with pytest.raises(ValueError, match="needs a model with an elastance"):
        damping(lrcnet.STC(2, 4), BOX)
    with pytest.raises(ValueError, match="unit must be below 4 and channel below 2"):
        damping(layer, BOX, unit=4)
