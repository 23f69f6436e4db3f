"""The result of a reconfiguration test: the frames lost while the SUT is reconfigured under traffic."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator

from lossratio import measurements
from lossratio.errors import DutError, SearchError, TesterError, TrafficError
from lossratio.measurements.throughput import (
    HOW_TO_SEARCH,
    SearchRequest,
    ThroughputResult,
    find_conditional_throughput,
    goals_from,
)
from lossratio.mlrsearch import SearchGoal
from lossratio.results import (
    USUAL,
    TestRun,
    View,
    differences,
    frames_in_words,
    headline,
    noted,
    numbers,
    rate_in_words,
    search_name,
    value_line,
)
from lossratio.trials import MissingFrames, TrialResult, read_journal
from lossratio.values import (
    FrameCount,
    Rate,
    Record,
    Seconds,
    counted,
    format_precise_time,
    format_ratio,
)

if TYPE_CHECKING:
    from lossratio.dut import Dut, DutOptions
    from lossratio.testbed import Testbed
    from lossratio.traffic import Answer


class ReconfigurationLoss(Record):
    """Loss while the SUT was reconfigured."""

    load: Rate
    """The load during the reconfiguration."""
    lost_frames: FrameCount
    """Frames lost, without those that the generator could not send."""
    lost_time_s: Seconds
    """Lost frames divided by the aggregate load: an outage of this length would lose the same number of frames."""


class ReconfigurationResult(measurements.FoundResult):
    """The result of a test that reconfigures the SUT under traffic."""

    found = "loss"
    kind: Literal["reconfiguration"] = "reconfiguration"
    loss: ReconfigurationLoss | None
    """The loss; null if the measurement failed."""


def reconfiguration_loss(load: Rate, lost_frames: int) -> ReconfigurationLoss:
    """Makes the loss, with the lost time."""
    return ReconfigurationLoss(
        load=load, lost_frames=lost_frames, lost_time_s=lost_frames / load.aggregate_fps
    )


RECONFIGURATION_GOAL = SearchGoal(
    name="RECONF",
    loss_ratio=0.0,
    exceed_ratio=0.0,
    final_trial_duration=1.0,
    initial_trial_duration=1.0,
    duration_sum=11.0,
    width=0.001,
)
"""FD.io CSIT's goal of the search before a reconfiguration: no loss in any trial."""

LEAD = 0.5
"""Seconds of traffic before the reconfiguration begins, and after it has ended."""


class ReconfigurationRequest(SearchRequest):
    """The reconfiguration, and the search for its load, which is the relevant lower bound of one goal."""

    unused = HOW_TO_SEARCH | {"goals", "ramp", "warm_up"}

    goals: Annotated[
        tuple[SearchGoal, ...], BeforeValidator(goals_from), measurements.NOT_IN_FILES
    ] = (RECONFIGURATION_GOAL,)
    """The search goal."""
    reconfigure: Annotated[
        Callable[[], object], measurements.NOT_IN_FILES, measurements.Audience.SCRIPTS
    ]
    """Reconfigures the DUTs. Traffic flows all the time."""


class Reconfiguration(measurements.RequestedKind[ReconfigurationRequest, ReconfigurationResult]):
    """The kind: frames lost while the SUT is reconfigured. The journal is the journal of the search for the load."""

    keyword = "Measure Reconfiguration Loss"
    method = "reconfiguration"
    noun = "reconfiguration loss"

    def perform(
        self,
        testbed: Testbed,
        request: ReconfigurationRequest,
        place: measurements.TestPlace,
        on_progress: measurements.OnProgress | None = None,
    ) -> ReconfigurationResult:
        """Measures as `measure_reconfiguration_loss` does."""
        return measure_reconfiguration_loss(testbed, request, place, on_progress)

    def contradictions(
        self, result: ReconfigurationResult, trials: Sequence[TrialResult]
    ) -> Iterator[str]:
        """A lost time that does not follow from the lost frames."""
        if result.loss is not None:
            yield from differences(
                result.loss, reconfiguration_loss(result.loss.load, result.loss.lost_frames), "loss"
            )


def _ours(testbed: Testbed) -> Sequence[Dut[DutOptions]]:
    if not testbed.duts:
        raise DutError(
            "There is no DUT that lossratio can reconfigure: name its kind when you set up the testbed."
        )
    return testbed.duts


def reconfigure_duts(testbed: Testbed, entries: int) -> None:
    """Adds entries (routes, rules, addresses) to each DUT's tables.

    Raises:
        DutError: If a DUT refuses them, or has no such table.
    """
    for dut in _ours(testbed):
        dut.reconfigure(entries)


def check_reconfigurable(testbed: Testbed, entries: int) -> None:
    """Checks before a search that this number of entries can be added to all DUTs."""
    for dut in _ours(testbed):
        dut.check_reconfigure(entries)


def measure_reconfiguration_loss(
    testbed: Testbed,
    request: ReconfigurationRequest,
    place: measurements.TestPlace,
    on_progress: measurements.OnProgress | None = None,
) -> ReconfigurationResult:
    """Searches for a load, sends traffic at this load while the DUTs are reconfigured, and writes the result file.

    The search has a result file of its own, with `` search`` after the test's name. If anything fails after the search,
    the result file has the error, even if the generator just could not send the load.

    Raises:
        TrafficError: If the generator could not send the load during the reconfiguration.
        TesterError: If the search found no load because of the generator.
        LossRatioError: If the search or the reconfiguration failed.
    """
    searched = replace(
        place, test=place.test.model_copy(update={"name": search_name(place.test.name)})
    )
    goal_search = find_conditional_throughput(testbed, request, searched, on_progress)
    load = _found_load(goal_search)
    irregular = [
        goal.result.reason for goal in goal_search.goals if goal.result and not goal.result.regular
    ]
    found = (f"the load comes from an irregular search: {reason}" for reason in irregular)
    about_search = (*goal_search.remarks, *map(noted, found))
    span = measurements.Span()

    def write(stopped: Answer | None, error: str | None) -> ReconfigurationResult:
        loss = None
        remarks = about_search
        if stopped is not None:
            lost = stopped.lost - _dropped_by_generator(stopped)
            loss = reconfiguration_loss(goal_search.conditions.rate(load), lost)
            remarks = (*about_search, *map(noted, _doubts(stopped)))

        run = TestRun(place.test, span.started, span.end(), goal_search.conditions, remarks, error)
        entries = read_journal(place.directory.journal_path(searched.test.full_name)).entries
        measurement = measurements.Measurement(run, None, entries, None)
        result = ReconfigurationResult(**measurement.stated(goal_search.max_load), loss=loss)
        place.directory.write(result)
        return result

    try:
        stopped = _reconfigure_under_traffic(testbed, request, load)
    except BaseException as error:
        # After an interrupt, too, there is a result file with the error.
        write(None, measurements.what_stopped(error))
        raise
    return write(stopped, None)


def _reconfigure_under_traffic(
    testbed: Testbed, request: ReconfigurationRequest, load: float
) -> Answer:
    """Reconfigures the DUTs while traffic flows at a load, in frames per second per interface.

    Raises:
        TrafficError: If the generator could not send the load.
    """
    # Imported here because other commands read results, and need no testbed.
    from lossratio.testbed import start_traffic
    from lossratio.traffic import FALTERING

    with start_traffic(testbed, request.profile, load, request.integrity) as traffic:
        time.sleep(LEAD)
        request.reconfigure()
        time.sleep(LEAD)
        stopped = traffic.stop()

    if stopped.unsent > FALTERING * (stopped.sent + stopped.unsent):
        raise TrafficError(
            f"The generator sent {stopped.sent:,} frames during the reconfiguration and could not send "
            f"{stopped.unsent:,}. It is not known how many of these the DUTs would have lost. Look for other "
            "programs on the generator's node."
        )
    return stopped


def _dropped_by_generator(stopped: Answer) -> int:
    """How many of the missing frames came back, but were dropped by the generator."""
    drops = sum(way.generator_drop_frames for way in stopped.directions)
    return max(0, min(drops, stopped.lost))


def _doubts(stopped: Answer) -> Iterator[str]:
    """Why more frames could have been lost than are reported."""
    if stopped.unsent:
        share = format_ratio(stopped.unsent / (stopped.sent + stopped.unsent))
        yield (
            f"the generator left {stopped.unsent:,} frames unsent during the reconfiguration ({share}); as many "
            "more could have been lost"
        )

    dropped = _dropped_by_generator(stopped)
    if dropped:
        yield (
            f"the generator dropped {dropped:,} frames that came back; the lost frames do not include them, and "
            "as many more could have been lost"
        )


def _found_load(searched: ThroughputResult) -> float:
    """The load that the search found.

    Raises:
        TesterError: If it found none because of the generator.
    """
    try:
        _, load = searched.relevant_load(None)
    except SearchError as error:
        missing = sum((trial.missing for trial in searched.trials), MissingFrames())
        if missing.by_tester <= missing.lost_by_sut + missing.late:
            raise
        raise TesterError(
            f"{error} Of {missing.total:,} missing frames, {missing.by_tester:,} were not sent or were dropped by "
            "the generator, and prove nothing about the SUT. Look for other programs on the TG."
        ) from error
    return load


@headline
def _found(result: ReconfigurationResult) -> Iterator[str]:
    """The loss in frames, and in time."""
    lost = result.loss
    if lost is None:
        return
    load = rate_in_words(lost.load.per_interface_fps, frames_in_words(result.conditions))
    if not lost.lost_frames:
        yield f"Reconfiguration: no frame is lost at {load}."
        return
    yield (
        f"Reconfiguration: {counted(lost.lost_frames, 'frame is', 'frames are')} lost at {load}, as many as are "
        f"sent in {format_precise_time(lost.lost_time_s)}."
    )


@numbers
def _numbers(result: ReconfigurationResult) -> Iterator[str]:
    """The load."""
    if result.loss is not None:
        yield value_line("load", result.loss.load)


class ReconfigurationView(View[ReconfigurationResult]):
    """How the loss during a reconfiguration is shown. The only finding is the outcome."""

    csit_type = "reconf"
    rules = (_found, _numbers, *USUAL)

    def csit(self, result: ReconfigurationResult) -> dict[str, Any]:
        """The loss, and the load.

        Raises:
            CsitExportError: If nothing was measured.
        """
        if result.loss is None:
            raise measurements.CsitExportError(f"{result.test.full_name} has no result to export.")
        packet = {"value": result.loss.lost_frames, "unit": "packets"}
        lost_time = {"value": result.loss.lost_time_s, "unit": "s"}
        return {
            "type": "reconf",
            "aggregate_rate": measurements.csit_rate(result.loss.load),
            "loss": {"packet": packet, "time": lost_time},
        }
