"""The bracket of the search by counts is narrow sooner, the later it is."""

from lossratio.plrsearch.bracketing import bracketed
from lossratio.plrsearch.counting import Evidence

PASSED, FAILED = 10e6, 10.1e6
ROWS = [(PASSED, 2.0, 0.0, 1.0, 2.0), (FAILED, 2.0, 2000.0, 3.5, 2.0)]


def test_a_bracket_of_one_per_cent_is_narrow_after_a_quarter_of_the_time():
    evidence = Evidence.of(ROWS, 1e-7)
    assert PASSED < bracketed(evidence, 0.24) < FAILED
    assert bracketed(evidence, 0.26) is None


def test_a_bracket_of_half_a_per_cent_is_narrow_from_the_beginning():
    rows = [ROWS[0], (1.0049 * PASSED, *ROWS[1][1:])]
    assert bracketed(Evidence.of(rows, 1e-7), 0.0) is None
