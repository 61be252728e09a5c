"""The rule by which claims are judged."""

import math

import pytest

from lrcnet_paper.results.estimate import Estimate, mean_over_seeds
from lrcnet_paper.results.verdict import RULES, Conditions, Verdict, judge_comparison, judge_number

PAPER = Estimate(84.0, 0.3, 3)


def number(mean, std=0.2, seeds=3, **conditions):
    under = Conditions(**conditions) if conditions else None
    return judge_number(PAPER, Estimate(mean, std, seeds), larger_is_better=True, under=under)


@pytest.mark.parametrize(
    ("mean", "word"),
    [(84.0, "reproduced"), (84.5, "reproduced"), (83.5, "reproduced"), (84.51, "better"), (83.49, "not reached")],
)
def test_a_number_is_reproduced_within_both_standard_deviations(mean, word):
    assert number(mean).word == word


def test_a_smaller_loss_is_better():
    paper, ours = Estimate(0.019, 0.005, 3), Estimate(0.005, 0.001, 3)
    assert judge_number(paper, ours, larger_is_better=False).word == "better"
    assert judge_number(ours, paper, larger_is_better=False).word == "not reached"


def test_one_seed_takes_the_papers_spread_and_says_so():
    judged = judge_number(PAPER, Estimate(84.6, None, 1), larger_is_better=True)
    assert judged == Verdict("reproduced", ("1 seed",))
    assert judge_number(PAPER, Estimate(84.61, None, 1), larger_is_better=True).word == "better"


def test_seeds_that_scatter_widely_reproduce_no_sharp_number():
    sharp, wide = Estimate(0.005, 0.001, 3), Estimate(0.040, 0.036, 3)
    assert judge_number(sharp, wide, larger_is_better=False).word == "not reached"
    assert judge_number(sharp, Estimate(0.0079, 0.002, 3), larger_is_better=False).word == "reproduced"
    assert judge_number(Estimate(0.0, 0.0, 3), Estimate(0.01, 0.02, 3), larger_is_better=False).word == "reproduced"
    assert judge_number(wide, Estimate(0.001, 0.036, 3), larger_is_better=False).word == "reproduced"


def test_nothing_measured_is_open():
    assert judge_number(PAPER, None, larger_is_better=True) == Verdict("open", ("not measured",))


def test_smoke_runs_are_never_judged():
    assert number(99.0, smoke=True).word == "open"
    claimed = Estimate(84.0, 0.3, 3), Estimate(82.0, 0.3, 3)
    assert judge_comparison(claimed, claimed, larger_is_better=True, under=Conditions(smoke=True)).word == "open"


def test_conditions_are_named():
    assert str(number(84.0, notes=("on coarse data",))) == "reproduced (on coarse data)"


def test_diverged_runs_are_named():
    ours = Estimate(84.0, 0.1, 2, diverged=1)
    assert judge_number(PAPER, ours, larger_is_better=True).conditions == ("1 diverged",)


def test_a_number_that_is_nan_is_not_reached():
    assert number(math.nan).word == "not reached"


def compare(first, second, std=0.3, **changes):
    claimed = Estimate(84.2, 0.26, 3), Estimate(82.9, 0.31, 3)  # a margin of 1.3
    ours = Estimate(first, std, 3), Estimate(second, std, 3)
    return judge_comparison(claimed, ours, larger_is_better=True, **changes).word


@pytest.mark.parametrize(
    ("first", "word"),
    # The spread of the difference is hypot(0.3, 0.3) = 0.424.
    [(82.0, "better"), (81.3, "reproduced"), (80.9, "reproduced"), (80.5, "not reached"), (79.7, "not reached"),
     (79.5, "refuted")],
)  # fmt: skip
def test_a_comparison_is_judged_by_its_margin(first, word):
    assert compare(first, 80.0) == word


def test_a_margin_within_the_spread_still_needs_the_right_sign():
    assert compare(80.0, 80.1, std=3.0) == "not reached"


def test_a_wide_spread_is_no_substitute_for_half_the_margin():
    assert compare(80.6, 80.0, std=3.0) == "not reached"
    assert compare(80.7, 80.0, std=3.0) == "reproduced"


def test_a_shorter_run_refutes_nothing():
    assert compare(70.0, 80.0, under=Conditions(shorter=True)) == "not reached"
    assert compare(70.0, 80.0) == "refuted"


def test_different_lengths_are_not_compared():
    assert compare(82.0, 80.0, comparable=False) == "open"


def test_the_claim_must_have_the_first_ahead():
    claimed = Estimate(80.0, 0.1, 3), Estimate(82.0, 0.1, 3)
    with pytest.raises(ValueError, match="swap them"):
        judge_comparison(claimed, claimed, larger_is_better=True)


def test_the_rule_is_printed_with_every_word():
    text = " ".join(RULES).lower()
    assert all(word in text for word in ("reproduced", "better", "not reached", "refuted", "open"))


def test_the_mean_over_seeds_has_the_sample_standard_deviation():
    mean = mean_over_seeds([1.0, 2.0, 3.0], diverged=1)
    assert mean == Estimate(2.0, 1.0, 3, diverged=1)
    assert mean_over_seeds([5.0]) == Estimate(5.0, None, 1)
    assert mean_over_seeds([]) is None


@pytest.mark.parametrize(
    ("estimate", "text"),
    [(Estimate(0.019, 0.005, 3, digits=3), "0.019 ± 0.005"), (Estimate(84.213, 0.264), "84.21 ± 0.26"),
     (Estimate(69.123, digits=2), "69.12"), (Estimate(0.0, 0.0), "0.000 ± 0.000")],
)  # fmt: skip
def test_an_estimate_shows_as_many_digits_as_make_sense(estimate, text):
    assert str(estimate) == text
