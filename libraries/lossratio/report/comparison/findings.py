"""Compares the findings of one quantity: whether they are comparable, their difference, and what readers must know."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from lossratio import results
from lossratio.report.comparison.differences import difference
from lossratio.report.comparison.quantity import ComparedQuantity
from lossratio.report.verdict import Verdict

_STOPPED = (results.INTERRUPTED, results.TERMINATED)
"""The errors of measurements that somebody interrupted."""


def compared_findings(
    number: int,
    key: tuple[str, str],
    before: Sequence[results.Finding],
    after: Sequence[results.Finding],
    absent: tuple[str, str],
) -> ComparedQuantity:
    """Compares the findings of one quantity. Values that can be compared have `Verdict.TOO_FEW` until they are judged.

    Args:
        number: Position among the quantities of the comparison.
        key: The name of the test, and the quantity.
        before: The findings before.
        after: The findings after; one of the two may be empty.
        absent: The texts for a quantity that is missing in A, and for a quantity that is missing in B.
    """
    compared = ComparedQuantity(*key, tuple(before), tuple(after), number=number)
    absent_in_a, absent_in_b = absent
    if not before:
        return replace(compared, note=absent_in_a)
    if not after:
        return replace(compared, note=absent_in_b)

    obstacle = _obstacle(before, after)
    if obstacle is not None:
        return replace(compared, note=obstacle)

    lack = _lack_of_values(compared)
    if lack is not None:
        verdict, note = lack
        return replace(compared, verdict=verdict, note=note)

    return replace(
        compared,
        difference=difference(compared.before, compared.after),
        verdict=Verdict.TOO_FEW,
        note="; ".join(_notes(compared)),
    )


def _obstacle(before: Sequence[results.Finding], after: Sequence[results.Finding]) -> str | None:
    """Why the two sides cannot be compared, whatever their values are; None: they can be compared."""
    for side, findings in (("A", before), ("B", after)):
        if all(one.result.error in _STOPPED for one in findings):
            return f"{side} was interrupted: resume it with lossratio run --resume"

    differing = results.differing_aspects([*before, *after])
    if differing:
        return f"the runs differ in {', '.join(differing)}"

    for side, findings in (("B", after), ("A", before)):
        for finding in findings:
            if finding.is_as_before:
                return f"{side} was not searched: {finding.reason}"

    return None


def _lack_of_values(compared: ComparedQuantity) -> tuple[Verdict, str] | None:
    """The verdict and its reason if a side has no value; None: both have values."""
    before = compared.findings_before
    after = compared.findings_after
    # Frames that the generator could not send, or a TG that failed, say nothing about the SUT.
    if all(map(results.unsent_share_of, after)):
        without_value = Verdict.NOT_COMPARABLE
    else:
        without_value = Verdict.REGRESSION
    b_lacks_a_value = (without_value, f"B has no value: {after[-1].reason}")

    all_failed = {results.Outcome.FAILED}
    if {one.outcome for one in after} == all_failed != {one.outcome for one in before}:
        return b_lacks_a_value
    if not after[0].has_value:
        note = f"{after[0].quantity} has no single value: see the reports"
        return Verdict.NOT_COMPARABLE, note
    if not compared.before.values:
        return Verdict.NOT_COMPARABLE, f"A has no value: {before[-1].reason}"
    if not compared.after.values:
        return b_lacks_a_value
    return None


def _notes(compared: ComparedQuantity) -> Iterator[str]:
    """Notes for readers of the difference. Notes that may explain it come first."""
    by_side: dict[str, list[str]] = {}
    for side, findings in compared.sides:
        generators = (one.result.conditions.generator_kind for one in findings)
        by_side[side] = sorted(set(filter(None, generators)))
    if len(set().union(*by_side.values())) > 1:
        named = "; ".join(
            f"{side}: {' and '.join(generators) or 'not known'}"
            for side, generators in by_side.items()
        )
        yield f"the traffic generators differ ({named}), which may explain the difference"

    for side, ends in zip("AB", compared.ends, strict=True):
        words = results.share_in_words(one.share for one in ends)
        if words:
            yield f"{side}: up to {words}"
    for side, findings in compared.sides:
        counts = Counter(caveat for finding in findings for caveat in results.caveats_of(finding))
        for caveat, count in counts.items():
            yield f"{side}, {count} of {len(findings)} {caveat}"
