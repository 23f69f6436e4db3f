"""Compares the findings of one quantity: whether they are comparable, their difference, and what readers must know."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from lossratio import results
from lossratio.report.comparison.differences import difference
from lossratio.report.comparison.quantity import ComparedQuantity
from lossratio.report.verdict import Verdict


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
        if all(map(_was_interrupted, findings)):
            return f"{side} was interrupted: resume it with lossratio run --resume"

    differing = results.differing_aspects([*before, *after])
    if differing:
        return f"the runs differ in {', '.join(differing)}"

    for side, findings in (("B", after), ("A", before)):
        for finding in findings:
            if finding.is_as_before:
                return f"{side} was not searched: {finding.reason}"

    return None


def _was_interrupted(finding: results.Finding) -> bool:
    return finding.result.error in (results.INTERRUPTED, results.TERMINATED)


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

    if all(map(_has_failed, after)) and not all(map(_has_failed, before)):
        return b_lacks_a_value
    if not after[0].has_value:
        note = f"{after[0].quantity} has no single value: see the reports"
        return Verdict.NOT_COMPARABLE, note
    if not compared.before.values:
        return Verdict.NOT_COMPARABLE, f"A has no value: {before[-1].reason}"
    if not compared.after.values:
        return b_lacks_a_value
    return None


def _has_failed(finding: results.Finding) -> bool:
    return finding.outcome is results.Outcome.FAILED


def _notes(compared: ComparedQuantity) -> Iterator[str]:
    """Notes for readers of the difference. Notes that may explain it come first."""
    yield from _other_generators(compared)
    yield from _missing_frames(compared)
    yield from _caveats("A", compared.findings_before)
    yield from _caveats("B", compared.findings_after)


def _other_generators(compared: ComparedQuantity) -> Iterator[str]:
    """A note that the traffic generators differ, if they do."""
    before = _generators_of(compared.findings_before)
    after = _generators_of(compared.findings_after)
    if len(before | after) > 1:
        yield (
            f"the traffic generators differ (A: {_in_words(before)}; B: {_in_words(after)}), "
            "which may explain the difference"
        )


def _generators_of(findings: Sequence[results.Finding]) -> set[str]:
    """The traffic generators that are known."""
    generators = (finding.result.conditions.generator_kind for finding in findings)
    return {generator for generator in generators if generator is not None}


def _in_words(generators: set[str]) -> str:
    return " and ".join(sorted(generators)) or "not known"


def _missing_frames(compared: ComparedQuantity) -> Iterator[str]:
    """The share of missing frames that the SUT did not lose, for each side that has such frames."""
    for side, ends in zip("AB", compared.ends, strict=True):
        words = results.share_in_words(one.share for one in ends)
        if words:
            yield f"{side}: up to {words}"


def _caveats(side: str, findings: Sequence[results.Finding]) -> Iterator[str]:
    """The caveats of the findings, each with the number of findings that have it."""
    counts = Counter(caveat for finding in findings for caveat in results.caveats_of(finding))
    for caveat, count in counts.items():
        yield f"{side}, {count} of {len(findings)} {caveat}"
