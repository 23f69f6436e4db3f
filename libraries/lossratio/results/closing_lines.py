"""The last lines about a result of any kind: the scope of its numbers, their caveats, and their provenance."""

from collections.abc import Iterator, Sequence

from lossratio.results.frame_integrity import fault_lines, integrity_lines
from lossratio.results.model import TestResult
from lossratio.trials import STALL
from lossratio.units import counted, trials_counted


def closing_lines(result: TestResult, notes: Sequence[str]) -> Iterator[str]:
    """The last lines about a result of any kind: its scale, and what readers must know about the numbers.

    Args:
        result: The result.
        notes: The remarks that are not provenance.
    """
    load = result.conditions.load
    links = result.conditions.testbed.links
    over = f" over {links} parallel links" if links > 1 else ""
    traffic = result.conditions.traffic
    average = " on average" if len(traffic.frame_sizes) > 1 else ""
    trials = trials_counted(len(result.trials))
    took = sum(trial.elapsed_s for trial in result.trials)

    for sentence in () if result.loss_places is None else result.loss_places.sentences:
        yield f"Where losses sit: {sentence}."
    if result.queues_in_words is not None:
        yield f"Receive queues: {result.queues_in_words}."
    yield (
        f"Aggregate is per interface x {load.aggregate_factor:g} ({load.directions_in_words}){over}; "
        f"frames of {traffic.average_frame_size_bytes:.6g} bytes{average}; {trials} in {took:.1f} s."
    )
    short = [trial.unsent_frames for trial in result.trials if trial.unsent_frames]
    if short:
        yield f"The generator could not send {counted(sum(short), 'frame')}, in {_of_the_trials(len(short))}."
    dropped = [frames for trial in result.trials if (frames := trial.missing.generator_drops)]

    if dropped:
        yield (
            f"The generator dropped {counted(sum(dropped), 'frame')} that came back, in "
            f"{_of_the_trials(len(dropped))}: the SUT did not lose {'it' if sum(dropped) == 1 else 'them'}."
        )

    reasons = [trial.set_aside for trial in result.trials if trial.set_aside is not None]
    if reasons:
        yield (
            f"Set aside, as no evidence about the SUT: {trials_counted(len(reasons))} (the last one "
            f"because {reasons[-1]})."
        )

    stalled = any(trial.lateness_s > STALL for trial in result.trials)
    if stalled and short:
        yield (
            "The generator would send more if its machine had less other work to do, or if its catch_up in the "
            "topology file were larger."
        )
    yield from fault_lines(result)
    yield from (f"Note: {note}" for note in notes)
    if result.conditions.testbed.is_simulated:
        yield "Simulated: no frame was sent, and the numbers come from a model."


def _of_the_trials(number: int) -> str:
    return "one of the trials" if number == 1 else f"{number:,} of the trials"


def provenance_lines(result: TestResult, notes: Sequence[str]) -> Iterator[str]:
    """How a result of any kind was measured: pages fold these lines, and the console shows them on request.

    Args:
        result: The result.
        notes: The remarks that are provenance.
    """
    if result.max_load.limits:
        yield f"Maximum load from: {result.max_load.origin.value}. Limits: {'; '.join(result.max_load.limits)}."
    stalled = [trial.lateness_s for trial in result.trials if trial.lateness_s > STALL]
    if stalled:
        yield (
            f"The generator was stalled for up to {max(stalled) * 1e3:.3g} ms, in {_of_the_trials(len(stalled))}. "
            "It then sent faster than the load to catch up."
        )

    yield from integrity_lines(result)
    repeats = sum(trial.repeats for trial in result.trials)
    if repeats:
        because = "because the generator faltered or miscounted, or the testbed changed"
        yield f"Attempts measured again {because}: {repeats}."

    repairs = sum(len(trial.repairs) for trial in result.trials)
    if repairs:
        yield f"Attempts to repair the infrastructure before a trial was measured again: {repairs}."
    yield from (f"Note: {note}" for note in notes)
