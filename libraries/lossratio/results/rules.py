"""The rules for results of all kinds."""

from collections.abc import Iterator

from lossratio.results import doubts, offered
from lossratio.results.frame_integrity import (
    FrameIntegrity,
    changed_fields_in,
    faults_with_sizes,
    integrity_lines,
    integrity_of,
    out_of_order,
)
from lossratio.results.losses import LEVEL
from lossratio.results.model import TestResult
from lossratio.results.note import NoteKind, Weight, caveat, doubt, numbers, rule
from lossratio.results.offered import LESS_WORK, against_stalls
from lossratio.results.quantity import shown_in
from lossratio.results.wording import value_line
from lossratio.trials import LOOK_AT_DUT, LOOK_FOR_COPIES, LOOK_FOR_WAYS, STALL, changes_in_words
from lossratio.values import counted, trials_counted


@rule(Weight.HEADLINE, NoteKind.FAILURE)
def failure(result: TestResult) -> Iterator[str]:
    """Why there is no result."""
    if result.error is not None:
        yield f"failed, no result: {result.error}"


@numbers
def declared(result: TestResult) -> Iterator[str]:
    """The quantities that the class of the result declares."""
    for shown, value in shown_in(result):
        yield value_line(shown.quantity, value, shown.unit)


@doubt(
    NoteKind.INTEGRITY,
    "Frames that came back are compared with those that were sent, byte by byte. One fault is enough.",
)
def damaged_frames(result: TestResult) -> Iterator[str]:
    """Frames came back changed, twice or misdelivered."""
    seen = integrity_of(result)
    if seen is None or not seen.faults:
        return

    examined = f"{seen.examined:,}" if seen.is_sample else "all"
    among = f"of {seen.arrived:,} frames that came back, {examined} were examined"
    effect = "; none of these count as received"
    if seen.before_trials:
        among = f"of {examined} frames examined before the first trial"
        effect = ". Trials only count frames, so as many copies may hide lost ones"
    advice = changes_in_words(changed_fields_in(result)) or _advice_on(seen)
    yield f"{among}: {faults_with_sizes(seen)}{effect}. {advice.removesuffix('.')}"


def _advice_on(seen: FrameIntegrity) -> str:
    """What to do about faults if it is not known which fields of the frames changed."""
    if not seen.corrupted and not seen.wrong_length:
        return LOOK_FOR_WAYS if seen.misdelivered else LOOK_FOR_COPIES
    return LOOK_AT_DUT


@rule(
    Weight.REMARK,
    NoteKind.LOSS_PLACES,
    "The shares lost at the loads that decide differ by direction, flow, size or moment, as they would by chance in "
    f"fewer than one in {1.0 / LEVEL:,.0f} results.",
)
def loss_places(result: TestResult) -> Iterator[str]:
    """What lost frames have in common, or what they would have shown."""
    for sentence in () if result.loss_places is None else result.loss_places.sentences:
        yield f"Where losses sit: {sentence}."


@rule(
    Weight.REMARK,
    NoteKind.QUEUES,
    "The devices count the drops of each receive queue. One drop is enough.",
)
def queues(result: TestResult) -> Iterator[str]:
    """The receive queues that dropped lost frames."""
    if result.queues_in_words is not None:
        yield f"Receive queues: {result.queues_in_words}."


@rule(Weight.REMARK, NoteKind.SCOPE)
def scope(result: TestResult) -> Iterator[str]:
    """What the numbers count, and how long the trials took."""
    load = result.conditions.load
    traffic = result.conditions.traffic
    links = result.conditions.testbed.links
    over = f" over {links} parallel links" if links > 1 else ""
    average = " on average" if len(traffic.frame_sizes) > 1 else ""
    took = sum(trial.elapsed_s for trial in result.trials)
    yield (
        f"Aggregates are rates per interface times {load.aggregate_factor:g} ({load.directions_in_words}){over}; "
        f"frames of {traffic.average_frame_size_bytes:.6g} bytes{average}; {trials_counted(len(result.trials))} in "
        f"{took:.1f} s."
    )


@rule(Weight.REMARK, NoteKind.UNSENT, "The generator counts unsent frames. One is enough.")
def not_sent(result: TestResult) -> Iterator[str]:
    """Frames that the generator could not send; if it stood still, what lets it send more."""
    short = [trial.unsent_frames for trial in result.trials if trial.unsent_frames]
    if not short:
        return
    yield f"The generator could not send {counted(sum(short), 'frame')}, in {_of_the_trials(len(short))}."
    is_late = any(trial.lateness_s > STALL for trial in result.trials)
    if is_late and against_stalls(result.trials) == LESS_WORK:
        yield (
            "The generator could send more if other programs on its machine used less CPU time, or with a larger "
            "catch_up in the topology file."
        )


@rule(Weight.REMARK, NoteKind.SET_ASIDE)
def set_aside(result: TestResult) -> Iterator[str]:
    """Trials that are no evidence."""
    reasons = [trial.set_aside for trial in result.trials if trial.set_aside is not None]
    if len(reasons) == 1:
        yield f"One trial says nothing about the SUT and was set aside, because {reasons[0]}."
    elif reasons:
        yield (
            f"Set aside because they say nothing about the SUT: {trials_counted(len(reasons))} (the last one "
            f"because {reasons[-1]})."
        )


reordered = rule(Weight.REMARK, NoteKind.INTEGRITY, damaged_frames.evidence)(out_of_order)
examined = rule(Weight.PROVENANCE, NoteKind.INTEGRITY, damaged_frames.evidence)(integrity_lines)


@rule(Weight.REMARK, NoteKind.INTEGRITY)
def without_numpy(result: TestResult) -> Iterator[str]:
    """The generator made frames one by one, and examined none."""
    generator = result.conditions.generator
    if generator.get("kind") == "afpacket" and generator.get("numpy", "") is None:
        yield (
            "The generator has no numpy (at one end at least): it sends less there, and examines no frames. Debian "
            "package: python3-numpy."
        )


@caveat
def early_verdicts(result: TestResult) -> Iterator[str]:
    """Trials that ended early."""
    if result.conditions.timing.has_early_verdicts:
        yield "with early verdicts: not comparable with full-length trials"


@rule(Weight.REMARK, NoteKind.SIMULATED)
def simulated(result: TestResult) -> Iterator[str]:
    """No frame was sent."""
    if result.conditions.testbed.is_simulated:
        yield "Simulated: no frame was sent, and the numbers come from a model."


@rule(Weight.PROVENANCE, NoteKind.MAX_LOAD)
def max_load(result: TestResult) -> Iterator[str]:
    """What limits the load."""
    if result.max_load.limits:
        yield f"Maximum load from: {result.max_load.origin.value}. Limits: {'; '.join(result.max_load.limits)}."


@rule(
    Weight.PROVENANCE,
    NoteKind.GENERATOR_STALLS,
    "The generator reports its longest delay in each trial.",
)
def stalled(result: TestResult) -> Iterator[str]:
    """The generator stood still."""
    late = [trial.lateness_s for trial in result.trials if trial.lateness_s > STALL]
    if late:
        yield (
            f"The generator was stalled for up to {max(late) * 1e3:.3g} ms, in {_of_the_trials(len(late))}. "
            "It then sent faster than the load to catch up."
        )


@rule(Weight.PROVENANCE, NoteKind.REPEATS)
def repeats(result: TestResult) -> Iterator[str]:
    """Attempts that were measured again, and repairs before them."""
    again = sum(trial.repeats for trial in result.trials)
    if again:
        because = "because the generator faltered or miscounted, or the testbed changed"
        yield f"Attempts measured again {because}: {again}."
    repairs = sum(len(trial.repairs) for trial in result.trials)
    if repairs:
        yield f"Attempts to repair the infrastructure before a trial was measured again: {repairs}."


def _of_the_trials(number: int) -> str:
    return "one of the trials" if number == 1 else f"{number:,} of the trials"


OF_ALL_KINDS = (
    failure,
    declared,
    offered.unsent,
    doubts.late_frames,
    doubts.foreign_frames,
    doubts.full_rings,
    doubts.generator_drops,
    doubts.testbed_changed,
    doubts.outside,
    damaged_frames,
    loss_places,
    queues,
    scope,
    not_sent,
    set_aside,
    reordered,
    without_numpy,
    early_verdicts,
    simulated,
    max_load,
    stalled,
    examined,
    repeats,
)
"""The rules for all kinds, in the order in which notes of one weight are shown."""
OVER_TIME = (doubts.drift, doubts.spells)
"""Rules for all kinds without rules of their own about changes over time."""
USUAL = (*OF_ALL_KINDS, *OVER_TIME, doubts.generator_stalls)
"""The rules of a kind that has none of its own."""
