"""What the trials after a rest show: whether the SUT remembers a loss, or passes less after a rest."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from lossratio.mlrsearch import (
    ENOUGH,
    FEWER_AGAIN,
    LARGEST_SHARE,
    LONG_REST,
    RestAnswer,
    failed_since_loss,
    fewer_after_rest,
    rest_answers,
)
from lossratio.trials import TrialResult, sut_loss_ratio
from lossratio.units import counted, format_frame_rate, format_ratio

_ABOUT_REST = ("after a rest", "remembers a loss", "passes less")
"""Each remark on trials after a rest contains at least one of these."""


def rest_answers_in(
    evidence: Sequence[TrialResult], bounds: Iterable[tuple[float | None, float]]
) -> dict[float, RestAnswer]:
    """The answers of the trials after a rest for each goal, by its upper bound (None: there is none) and loss ratio."""
    upper, allowed = max(
        ((upper, allowed) for upper, allowed in bounds if upper is not None), default=(None, 0.0)
    )
    if upper is None:
        return {}
    return rest_answers(evidence, upper, allowed)


def is_about_rest(remark: str) -> bool:
    """Whether a remark is about trials after a rest, or about something that only such trials would show."""
    return any(words in remark for words in _ABOUT_REST)


def remarks_on_rest(
    evidence: Sequence[TrialResult], bounds: Sequence[tuple[float | None, float]]
) -> Iterator[str]:
    """Remarks on the trials after a rest, unless these cause a doubt.

    Args:
        evidence: The trials that count.
        bounds: For each goal, its upper bound in frames per second per interface (None: there is none) and loss ratio.
    """
    yield from _remark_on_less(evidence, min((allowed for _, allowed in bounds), default=0.0))
    upper = max((upper for upper, _ in bounds if upper is not None), default=0.0)
    asked = [trial for trial in evidence if trial.input.rest and trial.load >= upper]
    if not asked:
        yield from _remark_without_rest(evidence, upper)
        return

    answers = rest_answers_in(evidence, bounds)
    loads = {
        wanted: [load for load, answer in answers.items() if answer is wanted]
        for wanted in RestAnswer
    }
    if len(loads[RestAnswer.REMEMBERED]) < ENOUGH:
        yield _answer_in_words(asked[0], loads)


def _answer_in_words(first: TrialResult, loads: Mapping[RestAnswer, Sequence[float]]) -> str:
    """What trials after a rest say about a memory of loss, by their loads; `first` is the first such trial."""
    rest = f"after a rest of {first.input.rest:g} s"
    no_memory = (
        "nothing shows that the SUT remembers a loss; this cannot show a memory of more than "
        f"{first.input.rest:g} s"
    )

    remembered = loads[RestAnswer.REMEMBERED]
    easy = loads[RestAnswer.EASY]
    if remembered:
        return (
            f"above the bounds, trials at {counted(len(remembered), 'load')} passed {rest} and failed right after "
            f"a loss: too few to say that the SUT remembers a loss; memory_rest={first.input.rest:g} s would test "
            "further"
        )
    if easy:
        return (
            f"whole trials of {first.duration:g} s above the bounds, at up to {format_frame_rate(max(easy))} per "
            f"interface, passed {rest}, and likewise right after a loss: {no_memory}"
        )
    if loads[RestAnswer.HARD]:
        return (
            f"a whole trial of {first.duration:g} s above the bounds, at {format_frame_rate(first.load)} per interface "
            f"{rest}, lost {format_ratio(sut_loss_ratio(first))}: {no_memory}"
        )
    return (
        f"it is not known whether the SUT remembers a loss: no trial {rest} gave an answer, because the "
        "generator sent too little or the search ended earlier"
    )


def _remark_without_rest(evidence: Sequence[TrialResult], upper: float) -> Iterator[str]:
    """What is known about a memory of loss without a trial after a rest above the bounds; empty for a quick search."""
    failed = failed_since_loss(evidence, upper, LONG_REST)
    if failed is None:
        if LARGEST_SHARE * sum(trial.elapsed for trial in evidence) >= LONG_REST:
            yield (
                "no trial after a long rest tested whether the SUT remembers a loss for longer than the rest "
                f"between trials; memory_rest={LONG_REST:g} s would test it"
            )
        return
    yield (
        f"after {LONG_REST:g} s without loss or longer, a trial of {failed.duration:g} s above the bounds, at "
        f"{format_frame_rate(failed.load)} per interface, lost {format_ratio(sut_loss_ratio(failed))}, as in the "
        "search: nothing shows that the SUT remembers a loss"
    )


def _remark_on_less(evidence: Sequence[TrialResult], allowed: float) -> Iterator[str]:
    """A remark on the first trial of a search, if this trial asked whether the SUT passes less after a rest."""
    first = next(iter(evidence), None)
    found = fewer_after_rest(evidence, allowed)
    if len(found) >= FEWER_AGAIN or first is None or not first.input.rest:
        return

    trial = (
        f"the first trial, of {first.duration:g} s at {format_frame_rate(first.load)} per interface, after a rest of "
        f"{first.input.rest:g} s, "
    )
    again = [result for result in evidence if result.input.rest and result.load == first.load]
    lost = f"{trial}lost {format_ratio(sut_loss_ratio(first))}, and the same load passed right after that"
    if found and len(again) >= FEWER_AGAIN:
        yield (
            f"{lost}; after another rest this did not happen again, so nothing shows that the SUT passes less after a "
            "rest"
        )
    elif found:
        yield f"{lost}; the search was too short to test this again, and it may be chance"
    elif sut_loss_ratio(first) <= allowed:
        yield f"{trial}passed: nothing shows that the SUT passes less after a rest"
