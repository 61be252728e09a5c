"""Estimates are written as people read them."""

import pytest

from lrcnet.pages.tables import format_cell
from lrcnet_paper.results.estimate import Estimate


@pytest.mark.parametrize(
    ("mean", "std", "digits", "text"),
    [
        (0.0379, 0.0372, 4, "0.0379 ± 0.0372"),
        (281.7, 79.6, 1, "281.7 ± 79.6"),
        (2064.3, 198.2, None, "2,064 ± 198"),
        (81920040.0, 7909365.2, 1, "81,920,040 ± 7,909,365"),
        (999.8, 3.2, 1, "1,000 ± 3"),
        (12.5, 2000.0, 1, "12 ± 2,000"),
        (-5602.8, None, 1, "-5,603"),
    ],
)
def test_large_estimates_have_separated_thousands_and_no_decimals(mean, std, digits, text) -> None:
    assert str(Estimate(mean, std, 3, digits=digits)) == text


@pytest.mark.parametrize("number", [1234.5, 81920040.25, 999.9])
def test_a_large_estimate_is_written_as_the_plain_number_is(number) -> None:
    assert str(Estimate(number, digits=1)) == format_cell(number)
