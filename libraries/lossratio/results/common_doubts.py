"""The doubts that results of all kinds may have."""

from collections.abc import Iterable, Iterator, Sequence

from lossratio.results import doubts
from lossratio.results.frame_integrity import (
    FrameIntegrity,
    changed_fields_in,
    faults_with_sizes,
    integrity_of,
)
from lossratio.results.model import MEMORY_REMARK, TestResult
from lossratio.results.offered import Offered, unsent_frames, unsent_share
from lossratio.results.trials import Trial
from lossratio.trials import LOOK_AT_DUT, LOOK_FOR_COPIES, LOOK_FOR_WAYS, changes_in_words


def common_doubts(
    result: TestResult,
    trials: Sequence[Trial],
    offered: Iterable[Sequence[Offered]],
    stalls: doubts.Doubt | None,
    *,
    if_unsent: str,
) -> Iterator[doubts.Doubt]:
    """The doubts about a result that do not depend on its kind.

    Args:
        result: The result.
        trials: Its trials that are evidence.
        offered: The traffic on which each of its values is based.
        stalls: The doubt whether stalls of the generator decided it; None: they did not.
        if_unsent: What it means for the result if a load was not offered.
    """
    most_unsent = max(offered, key=unsent_share, default=())
    # A device that stops is not said to drift as well.
    over_time = doubts.stopped_forwarding_in(trials) or doubts.time_dependence_in(trials)
    about_trials = (
        unsent_frames(most_unsent, consequence=if_unsent),
        over_time,
        doubts.two_bands_in(trials),
        doubts.late_frames(trials),
        *doubts.doubts_about_frames(trials),
        stalls,
        doubts.testbed_changed(trials),
    )
    yield from (doubt for doubt in about_trials if doubt is not None)

    for remark in result.remarks:
        if remark.startswith(MEMORY_REMARK):
            yield doubts.Doubt(doubts.DoubtKind.MEMORY, remark)

    damaged = _damaged_frames(result)
    if damaged is not None:
        yield damaged


def _damaged_frames(result: TestResult) -> doubts.Doubt | None:
    """The doubt about frames that came back changed, twice or in another order; None: there were none."""
    seen = integrity_of(result)
    if seen is None or not seen.faults:
        return None

    examined = f"{seen.examined:,}" if seen.is_sample else "all"
    text = f"of {seen.arrived:,} frames that came back, {examined} were examined: {faults_with_sizes(seen)}"
    if seen.before_trials:
        text = (
            f"of {examined} frames examined before the first trial: {faults_with_sizes(seen)}. Trials only count "
            "frames, so as many copies may hide lost ones"
        )

    advice = changes_in_words(changed_fields_in(result)) or _advice_on(seen)
    return doubts.Doubt(doubts.DoubtKind.INTEGRITY, f"{text}. {advice.removesuffix('.')}")


def _advice_on(seen: FrameIntegrity) -> str:
    """What to do about faults if it is not known which fields of the frames changed."""
    if not seen.corrupted and not seen.wrong_length:
        return LOOK_FOR_WAYS if seen.misdelivered else LOOK_FOR_COPIES
    return LOOK_AT_DUT
