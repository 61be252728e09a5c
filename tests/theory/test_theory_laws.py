"""Laws that the bounds obey on random networks and boxes; the large runs are in the slow half."""

import pytest
import torch
from hypothesis import given, settings

from lrcnet.cells.liquid import STCCell
from lrcnet.theory import associated_lrc, empirical_lipschitz, lipschitz_bound
from tests.theory.networks import Case, cases

# The measured value and the bound are computed by different formulas in float64.
ROUNDING = 1 + 1e-9
FEW, MANY = 20, 1000


def measure(case: Case) -> float:
    return empirical_lipschitz(case.model, domain=case.domain, dt=case.dt, starts=6, steps=6).value


def check_one_unfolding(case: Case) -> None:
    paper = lipschitz_bound(case.model, case.domain, case.dt).value
    tighter = lipschitz_bound(case.model, case.domain, case.dt, kind="tighter").value
    measured = measure(case)
    assert measured <= tighter * ROUNDING
    assert tighter <= paper * ROUNDING
    sharper = lipschitz_bound(case.model, case.domain, case.dt, propagate=True).value
    assert measured <= sharper * ROUNDING <= paper * ROUNDING**2


def check_unfoldings(case: Case) -> None:
    paper = lipschitz_bound(case.model, case.domain, case.dt)
    tighter = lipschitz_bound(case.model, case.domain, case.dt, kind="tighter")
    assert paper.source == "paper, propagated"
    assert measure(case) <= tighter.value * ROUNDING <= paper.value * ROUNDING**2


def check_theorem_1(case: Case) -> None:
    assert isinstance(case.cell, STCCell)
    for elastance in ("symmetric", "asymmetric"):
        for margin in (0.0, 0.5):
            associated = associated_lrc(case.model, margin, elastance=elastance, domain=case.domain, dt=case.dt)
            certificate = associated.certificate
            assert certificate.condition_holds
            assert certificate.same_network
            assert certificate.strict
            # 1 - sigma(w) underflows above w = 745; the inequality is strict all the same.
            assert 0 <= certificate.gap < 1
            assert certificate.lrc_bound == pytest.approx(certificate.stc_bound, rel=1e-12)
            # As a difference of two rounded numbers, a gap below 1e-12 cannot be seen.
            assert certificate.lrc_tighter <= certificate.stc_bound * (1 - certificate.gap) * (1 + 1e-12)


@given(cases())
@settings(max_examples=FEW)
def test_measured_is_below_tighter_is_below_the_papers_bound(case: Case) -> None:
    check_one_unfolding(case)


@pytest.mark.slow
@given(cases())
@settings(max_examples=MANY)
def test_measured_is_below_tighter_is_below_the_papers_bound_in_1000_networks(case: Case) -> None:
    check_one_unfolding(case)


@given(cases(unfolds=(2, 3, 6)))
@settings(max_examples=FEW)
def test_measured_is_below_the_propagated_bound(case: Case) -> None:
    check_unfoldings(case)


@pytest.mark.slow
@given(cases(unfolds=(2, 3, 6)))
@settings(max_examples=MANY)
def test_measured_is_below_the_propagated_bound_in_1000_networks(case: Case) -> None:
    check_unfoldings(case)


@given(cases(unfolds=(1, 1, 4), elastances=("none",)))
@settings(max_examples=FEW)
def test_every_associated_lrc_has_theorem_1s_conclusion(case: Case) -> None:
    check_theorem_1(case)


@pytest.mark.slow
@given(cases(unfolds=(1, 1, 4), elastances=("none",)))
@settings(max_examples=MANY)
def test_every_associated_lrc_has_theorem_1s_conclusion_in_1000_networks(case: Case) -> None:
    check_theorem_1(case)


@pytest.mark.parametrize("k", [None, 0.0, 1e-3, 0.1, 1.0, 3.0, 10.0, 30.0])
def test_elastance_slope_is_at_most_eps_times_one_minus_eps(k: float | None) -> None:
    """The proof's inequality |eps'| / (1 - eps) <= eps, with 1 - eps as sigma(-w), on a grid of step 0.01."""
    w = torch.linspace(-60, 60, 12001, dtype=torch.float64)
    if k is None:
        eps, rest = torch.sigmoid(w), torch.sigmoid(-w)
        slope = eps * rest
    else:
        eps = torch.sigmoid(w + k) * torch.sigmoid(k - w) * -torch.expm1(torch.tensor(-2 * k, dtype=torch.float64))
        rest = torch.sigmoid(-w - k) + torch.sigmoid(w - k)
        slope = eps * (torch.sigmoid(-w - k) - torch.sigmoid(w - k))
    assert bool((slope.abs() / rest <= eps * (1 + 1e-12)).all())
    # The closed forms above against autograd, where rounding leaves something to compare.
    w = w[w.abs() < 15].requires_grad_(True)
    gate = torch.sigmoid(w) if k is None else torch.sigmoid(w + k) - torch.sigmoid(w - k)
    (automatic,) = torch.autograd.grad(gate.sum(), w)
    middle = slope[(torch.linspace(-60, 60, 12001, dtype=torch.float64)).abs() < 15]
    torch.testing.assert_close(middle, automatic, rtol=1e-6, atol=1e-15)
