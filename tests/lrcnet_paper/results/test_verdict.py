"""The rule by which claims are judged, held to account by its properties."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lrcnet_paper.results.estimate import Estimate, mean_over_seeds
from lrcnet_paper.results.interval import interval_of
from lrcnet_paper.results.verdict import (
    NOT_MEASURED,
    ORDER,
    RULES,
    SYMBOLS,
    WORDS,
    Conditions,
    Verdict,
    css_class,
    judge_comparison,
    judge_count,
    judge_fact,
    judge_rivals,
    summarise,
)

# A leads B by one point.
PAPER = Estimate(84.0, 0.3, 3), Estimate(83.0, 0.3, 3)
AGREEING = ("agrees", "agrees, weaker")
numbers = st.floats(-50, 50, allow_nan=False)
samples = st.lists(numbers, min_size=2, max_size=6)
conditions = st.builds(
    Conditions, smoke=st.booleans(), shorter=st.booleans(), other_data=st.booleans(), notes=st.just(("a note",))
)


def estimates(differences: list[float], level: float = 100.0) -> tuple[Estimate, Estimate]:
    """Return A and B over seeds whose differences are these."""
    first = mean_over_seeds({seed: level + difference for seed, difference in enumerate(differences)})
    second = mean_over_seeds(dict.fromkeys(range(len(differences)), level))
    assert first is not None
    assert second is not None
    return first, second


def judge(differences: list[float], under: Conditions | None = None, **changes) -> Verdict:
    """Judge A against B, larger is better, by the differences over seeds."""
    return judge_comparison(PAPER, estimates(differences), larger_is_better=True, under=under, **changes)


@pytest.mark.parametrize(
    ("differences", "word"),
    [
        ([1.0, 1.1, 0.9], "agrees"),
        ([0.3, 0.31, 0.29], "agrees, weaker"),
        ([0.5, -0.4, 0.2], "no difference seen"),
        ([0.0, 0.0, 0.0], "no difference seen"),
        ([-1.0, -1.1, -0.9], "contradicts"),
        ([-1.0, -1.0], "not measurable here"),
        ([3.0], "not measurable here"),
    ],
)
def test_each_word_has_its_place(differences: list[float], word: str) -> None:
    assert judge(differences).word == word


@given(samples, st.floats(1.0, 20.0))
def test_more_noise_never_turns_no_difference_into_agreement(differences: list[float], factor: float) -> None:
    mean = sum(differences) / len(differences)
    noisier = [mean + factor * (value - mean) for value in differences]
    before, after = judge(differences).word, judge(noisier).word
    if before == "no difference seen":
        # Where the interval ends at 0 exactly, rounding decides; a millionth is far below any of our measurements.
        interval = interval_of(differences)
        assert interval is not None
        assume(interval.low < -1e-6 and interval.high > 1e-6)
        assert after == before
    if after in AGREEING:
        assert before == after or before == "no difference seen"


@given(samples, st.floats(0, 30), conditions)
def test_a_larger_lead_never_weakens_the_verdict(differences: list[float], lead: float, under: Conditions) -> None:
    assume(not under.smoke)
    before, after = judge(differences, under).word, judge([value + lead for value in differences], under).word
    assert ORDER.index(after) >= ORDER.index(before)


@given(samples, conditions)
def test_contradiction_needs_the_papers_data_its_updates_and_three_seeds(
    differences: list[float], under: Conditions
) -> None:
    if judge(differences, under).word == "contradicts":
        assert [under.smoke, under.shorter, under.other_data] == [False] * 3
        assert len(differences) >= 3


@given(samples, conditions)
def test_worse_conditions_never_change_agreement_and_never_make_a_contradiction(
    differences: list[float], under: Conditions
) -> None:
    assume(not under.smoke)
    free, bound = judge(differences).word, judge(differences, under).word
    assert bound == free or (free == "contradicts" and bound == "not measurable here")


@given(samples)
def test_swapping_the_models_swaps_the_side(differences: list[float]) -> None:
    first, second = estimates(differences)
    forwards = judge_comparison(None, (first, second), larger_is_better=True)
    backwards = judge_comparison(None, (second, first), larger_is_better=True)
    smaller = judge_comparison(None, (first, second), larger_is_better=False)
    assert smaller.word == backwards.word
    assert not (forwards.word == backwards.word == "agrees")
    if forwards.word == "agrees" and len(differences) >= 3:
        assert backwards.word == "contradicts"


@given(st.lists(st.floats(0.01, 100), min_size=2, max_size=5), st.floats(0.01, 100))
def test_ratios_do_not_depend_on_the_unit(ratios: list[float], unit: float) -> None:
    def word(scale: float) -> str:
        first = mean_over_seeds({seed: scale * ratio for seed, ratio in enumerate(ratios)})
        second = mean_over_seeds(dict.fromkeys(range(len(ratios)), scale))
        return judge_comparison(None, (first, second), larger_is_better=False, by_ratio=True).word

    logarithms = interval_of([math.log(ratio) for ratio in ratios])
    assert logarithms is not None
    assume(min(abs(logarithms.low), abs(logarithms.high)) > 1e-6)
    assert word(1.0) == word(unit)


@given(numbers, conditions)
def test_one_seed_has_no_verdict(difference: float, under: Conditions) -> None:
    assert judge([difference], under).word == "not measurable here"


@given(samples, conditions)
def test_smoke_runs_and_unequal_lengths_have_no_verdict(differences: list[float], under: Conditions) -> None:
    assert judge(differences, Conditions(smoke=True)).word == "not measurable here"
    assert judge(differences, under, comparable=False).word == "not measurable here"


rivals = st.dictionaries(st.sampled_from(["LSTM", "GRU", "MGU", "LTC"]), samples, min_size=1)


@given(rivals, conditions)
def test_a_claim_about_several_rivals_is_never_better_than_any_of_its_comparisons(
    differences: dict[str, list[float]], under: Conditions
) -> None:
    verdicts = {rival: judge(values, under) for rival, values in differences.items()}
    deciding, whole = judge_rivals(verdicts)
    assert ORDER.index(whole.word) == min(ORDER.index(verdict.word) for verdict in verdicts.values())
    assert verdicts[deciding].word == whole.word
    assert all(rival in whole.certainty for rival, verdict in verdicts.items() if verdict.certainty)


@given(rivals, samples)
def test_a_further_rival_never_makes_a_verdict_more_favourable(
    differences: dict[str, list[float]], more: list[float]
) -> None:
    verdicts = {rival: judge(values) for rival, values in differences.items()}
    before, after = judge_rivals(verdicts)[1], judge_rivals({**verdicts, "another": judge(more)})[1]
    assert ORDER.index(after.word) <= ORDER.index(before.word)


@given(rivals, conditions)
def test_the_order_of_the_rivals_does_not_matter(differences: dict[str, list[float]], under: Conditions) -> None:
    verdicts = {rival: judge(values, under) for rival, values in differences.items()}
    backwards = dict(reversed(verdicts.items()))
    assert judge_rivals(verdicts)[1].word == judge_rivals(backwards)[1].word


def test_the_rival_with_the_smallest_lead_decides_and_the_others_are_named() -> None:
    verdicts = {"LSTM": judge([1.2, 1.3, 1.1]), "GRU": judge([0.5, -0.4, 0.2]), "MGU": judge([0.2, -0.4, 0.1])}
    deciding, whole = judge_rivals(verdicts)
    assert deciding == "MGU"
    assert whole.others == ("against LSTM: agrees",)
    assert whole.certainty.startswith("3 seeds; against LSTM: +1.2, 95 % interval")


def test_rivals_that_were_not_measured_are_named_and_warnings_stand_once() -> None:
    warned = Conditions(warnings=("LRCU-S is undertrained",), notes=("on coarse data",))
    verdicts = {"LSTM": judge([1.0], warned), "GRU": NOT_MEASURED, "MGU": NOT_MEASURED}
    deciding, whole = judge_rivals(verdicts)
    assert deciding == "LSTM"
    assert whole.conditions == ("on coarse data", "1 seed in common")
    assert whole.others == ("against GRU, MGU: not measured",)
    assert (
        judge_rivals({"LSTM": judge([1.0, 1.1], warned), "GRU": judge([1.0, 1.1], warned)})[1].warnings
        == warned.warnings
    )


@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=6))
def test_a_table_agrees_only_if_every_measurable_claim_does(words: list[str]) -> None:
    verdicts = [Verdict(word) for word in words]  # type: ignore[arg-type]
    whole = summarise(verdicts).word
    measured = [word for word in words if word != "not measurable here"]
    enough = 2 * len(measured) >= len(words)
    assert (whole == "contradicts") == ("contradicts" in measured)
    assert (whole == "not measurable here") == (not enough and whole != "contradicts")
    assert (whole == "agrees") == (enough and set(measured) == {"agrees"})
    assert all(
        summarise([verdicts[i] for i in order]).word == whole for order in list(permutations(range(len(words))))[:6]
    )


def test_seeds_are_paired_by_number() -> None:
    first, second = mean_over_seeds({0: 1.0, 1: 2.0, 2: 3.0}), mean_over_seeds({2: 2.5, 1: 1.5, 0: 0.5})
    verdict = judge_comparison(None, (first, second), larger_is_better=True)
    assert verdict.word == "agrees"
    assert verdict.certainty == "3 seeds; +0.5, 95 % interval +0.5 to +0.5"
    apart = mean_over_seeds({3: 1.0, 4: 2.0})
    assert judge_comparison(None, (first, apart), larger_is_better=True) == Verdict(
        "not measurable here", ("0 seeds in common",)
    )


def test_ratios_are_described_as_factors() -> None:
    first, second = mean_over_seeds({0: 1.0, 1: 1.0, 2: 1.0}), mean_over_seeds({0: 4.0, 1: 4.0, 2: 4.0})
    verdict = judge_comparison(None, (first, second), larger_is_better=False, by_ratio=True)
    assert verdict.word == "agrees"
    assert verdict.certainty == "3 seeds; a factor of 4, 95 % interval 4 to 4"


def test_the_interval_is_students() -> None:
    interval = interval_of([1.0, 2.0, 3.0])
    assert interval is not None
    # 4.303 standard errors of 1 / sqrt(3) on either side of 2.
    assert (interval.mean, interval.seeds) == (2.0, 3)
    assert interval.high - 2.0 == pytest.approx(4.303 / math.sqrt(3))
    assert interval_of([1.0]) is None
    assert interval_of([1.0, math.nan]) is None
    assert interval_of([0.0, 2.0] * 50) is not None


def crash_rates(crashes: list[int], drives: int) -> Estimate:
    """Return the share of drives that crash over seeds."""
    rate = mean_over_seeds({seed: count / drives for seed, count in enumerate(crashes)}, trials=drives)
    assert rate is not None
    return rate


def test_one_crash_less_in_every_seed_is_no_difference() -> None:
    paper = Estimate(0.0, 0.0, 3), Estimate(0.133, 0.189, 3)
    few = judge_comparison(paper, (crash_rates([1, 0], 68), crash_rates([2, 1], 68)), larger_is_better=False)
    assert few.word == "no difference seen"
    many = judge_comparison(paper, (crash_rates([1, 0], 68), crash_rates([20, 19], 68)), larger_is_better=False)
    assert many.word == "agrees"
    # A rate of 0 is not certain: 136 drives without a crash leave a likelihood of about 1 in 138.
    none = crash_rates([0, 0], 68)
    assert none.counting_variance == pytest.approx(1 / 138 * 137 / 138 / 68)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=2, max_size=5), st.integers(20, 400))
def test_counting_only_widens_an_interval(crashes: list[tuple[int, int]], drives: int) -> None:
    first, second = (crash_rates([pair[i] for pair in crashes], drives) for i in (0, 1))
    differences = [(b - a) / drives for a, b in crashes]
    counted = interval_of(differences, first.counting_variance + second.counting_variance)
    plain = interval_of(differences)
    assert counted is not None
    assert plain is not None
    assert counted.mean == plain.mean
    assert counted.high - counted.low >= plain.high - plain.low
    assert counted.high - counted.low >= 2 * 1.96 * math.sqrt(first.counting_variance / len(crashes))


def test_a_diverged_run_of_the_leader_rules_out_agreement() -> None:
    first, second = estimates([2.0, 2.1, 1.9])
    lost = Estimate(first.mean, first.std, 3, diverged=1, by_seed=first.by_seed)
    verdict = judge_comparison(PAPER, (lost, second), larger_is_better=True)
    assert verdict.word == "no difference seen"
    assert verdict.conditions == ("1 diverged",)


def test_a_baseline_below_the_papers_is_a_warning() -> None:
    first = mean_over_seeds({0: 82.0, 1: 82.1, 2: 82.2})
    weak = mean_over_seeds({0: 79.0, 1: 79.1, 2: 79.2})
    verdict = judge_comparison(PAPER, (first, weak), larger_is_better=True, same_scale=True)
    assert verdict.word == "agrees"
    assert "too easy" in verdict.warnings[0]
    assert "warning: the baseline is worse" in str(verdict)
    assert "⚠" in verdict.to_html()
    level = mean_over_seeds({0: 82.9, 1: 83.0, 2: 83.1})
    assert judge_comparison(PAPER, (first, level), larger_is_better=True, same_scale=True).warnings == ()
    assert judge_comparison(PAPER, (first, weak), larger_is_better=True).warnings == ()


def test_an_opposite_order_names_what_a_contradiction_lacks() -> None:
    verdict = judge([-1.0, -1.1, -0.9], Conditions(shorter=True, other_data=True, notes=("on coarse data",)))
    reason = "opposite order, but the data are not the paper's and training is shorter"
    assert verdict.conditions == ("on coarse data", reason)


def test_the_paper_must_have_the_first_model_ahead() -> None:
    with pytest.raises(ValueError, match="swap them"):
        judge_comparison((PAPER[1], PAPER[0]), estimates([1.0, 1.0]), larger_is_better=True)


def test_nothing_measured_has_no_verdict() -> None:
    assert judge_comparison(PAPER, (None, PAPER[1]), larger_is_better=True).conditions == ("not measured",)


@given(st.integers(1, 9), st.integers(0, 6), conditions, st.data())
def test_a_statement_about_single_networks_follows_the_same_rule(
    total: int, seeds: int, under: Conditions, data: st.DataObject
) -> None:
    holds = data.draw(st.integers(0, total))
    word = judge_count(holds, total, seeds=seeds, under=under).word
    if seeds < 2 or under.smoke:
        assert word == "not measurable here"
        return
    assert (word == "agrees") == (holds == total)
    assert (word == "no difference seen") == (0 < holds < total)
    if word == "contradicts":
        assert not under.shorter
        assert not under.other_data
        assert seeds >= 3
    if holds < total:
        better = judge_count(holds + 1, total, seeds=seeds, under=under).word
        assert ORDER.index(better) >= ORDER.index(word)


def test_a_statement_may_need_fewer_networks_than_all() -> None:
    assert judge_count(1, 3, seeds=3, under=Conditions(), enough=1).word == "agrees"
    assert judge_count(0, 3, seeds=3, under=Conditions(), enough=1).word == "contradicts"
    open_ = judge_count(0, 3, seeds=3, under=Conditions(other_data=True))
    assert str(open_) == "not measurable here (opposite order, but the data are not the paper's)"


def test_one_exception_contradicts_a_theorem_on_any_data() -> None:
    under = Conditions(other_data=True, shorter=True)
    assert judge_count(5, 5, seeds=5, under=under, proved=True).word == "agrees"
    assert judge_count(4, 5, seeds=5, under=under, proved=True).word == "contradicts"
    assert judge_count(4, 5, seeds=5, under=replace(under, smoke=True), proved=True).word == "not measurable here"


def test_facts_need_no_seeds() -> None:
    assert judge_fact(True).word == "agrees"
    assert judge_fact(False).word == "contradicts"


def test_every_word_has_a_symbol_a_class_and_a_rule() -> None:
    rules = " ".join(RULES).lower()
    assert set(SYMBOLS) == set(WORDS)
    assert len(set(SYMBOLS.values())) == len(WORDS)
    assert all(word in rules for word in WORDS)
    assert [css_class(word) for word in WORDS][:2] == ["agrees", "agrees-weaker"]


def test_estimates_are_means_over_seeds() -> None:
    assert mean_over_seeds({}) is None
    assert mean_over_seeds({4: 2.0}) == Estimate(2.0, None, 1, by_seed=((4, 2.0),))
    both = mean_over_seeds({1: 3.0, 0: 1.0}, diverged=1)
    assert both is not None
    assert both.by_seed == ((0, 1.0), (1, 3.0))
    assert both.to_text() == "2.0 ± 1.4 (1 NaN)"
