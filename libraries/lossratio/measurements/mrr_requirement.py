"""Whether a maximum receive rate is at least the rate that is required."""

from lossratio.errors import SearchError, TesterError
from lossratio.results import TestResult, apart_in_words, ends_of, findings_of, written_in_full
from lossratio.values import format_ratio

MRR_KINDS = ("mrr", "connection_mrr")
"""The kinds of measurement whose results have an MRR."""


def require_mrr(result: TestResult, least: float) -> None:
    """Checks that an MRR is not below a limit.

    Args:
        result: The result of a measurement of an MRR, or of a connection MRR.
        least: The limit: frames per second per interface, or connections per second.

    Raises:
        AssertionError: If the MRR is less, or there is none.
        TesterError: If it is less because of frames that the SUT did not lose, so that nothing is known about the SUT.
        SearchError: If the result has no MRR, or the load of its trials was below the limit.
    """
    if result.kind not in MRR_KINDS:
        raise SearchError(
            f"The result of {result.test.name} is of kind {result.kind!r} and has no MRR. Measure one first, e.g. with "
            "'Measure MRR'."
        )

    (finding,) = findings_of([result])
    written = written_in_full(finding.unit)
    required = f"it should be at least {written(least)}"
    ends = ends_of(finding)
    if ends is None:
        raise AssertionError(f"There is no {finding.quantity} ({finding.reason}); {required}.")
    if ends.least >= least:
        return

    offered = result.max_load.rate.per_interface_fps
    found, wanted = apart_in_words(written, ends.least, least)
    measured, required = f"{finding.quantity} is {found}", f"it should be at least {wanted}"
    if offered < least:
        raise SearchError(
            f"{measured}, measured at a load of {offered:,.0f} fps per interface; {required}. Measure at a higher "
            "max_load."
        )
    if ends.most >= least:
        raise TesterError(
            f"This says nothing about the device: {measured}, but up to "
            f"{format_ratio(ends.share)} of the frames were unsent, late or dropped by the "
            f"generator; {required}. Choose a max_load that the generator can send."
        )
    raise AssertionError(f"{measured}; {required}.")
