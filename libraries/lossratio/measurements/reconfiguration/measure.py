"""Reconfiguration test: frames lost at the load that a strict search found, while the DUTs are being reconfigured."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lossratio.errors import DutError, TrafficError
from lossratio.measurements import OnProgress, Span, TestPlace, what_stopped
from lossratio.measurements.reconfiguration.result import (
    ReconfigurationResult,
    reconfiguration_contradictions,
    reconfiguration_loss,
    reconfiguration_result,
)
from lossratio.measurements.throughput import SearchRequest, ThroughputResult, find_conditional_throughput
from lossratio.mlrsearch import SearchGoal
from lossratio.results import Kind, TestRun, View, search_name
from lossratio.trials import TrialResult, read_journal
from lossratio.units import format_ratio

if TYPE_CHECKING:
    from lossratio.testbed import Testbed
    from lossratio.traffic import StoppedTraffic

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


@dataclass(frozen=True)
class ReconfigurationRequest:
    """The reconfiguration, and the search for its load.

    Attributes:
        search: The search for the load, with one goal; the load is its relevant lower bound.
        reconfigure: Reconfigures the DUTs; traffic flows all the time.
    """

    search: SearchRequest
    reconfigure: Callable[[], object]


class Reconfiguration(Kind[ReconfigurationResult]):
    """The kind: frames lost while the SUT is reconfigured. The journal is that of the search for the load."""

    name = "reconfiguration"
    result = ReconfigurationResult

    def contradictions(self, result: ReconfigurationResult, trials: Sequence[TrialResult]) -> Iterator[str]:
        """Differences of the lost time from that of the lost frames."""
        return reconfiguration_contradictions(result)

    def view(self) -> View[ReconfigurationResult]:
        """How the loss is shown."""
        from lossratio.measurements.reconfiguration.view import ReconfigurationView

        return ReconfigurationView()


def reconfigure_duts(testbed: Testbed, entries: int) -> None:
    """Adds entries (routes, rules, addresses) to the tables by which each DUT forwards.

    Raises:
        DutError: If a DUT refuses, has no such table, or there is no DUT that lossratio configures.
    """
    if not testbed.duts:
        raise DutError("There is no DUT of ours to reconfigure: say which kind it is when the testbed is set up.")
    for dut in testbed.duts:
        dut.reconfigure(entries)


def check_reconfigurable(testbed: Testbed, entries: int) -> None:
    """Checks before a search that the DUTs can be reconfigured at all.

    Args:
        testbed: The testbed.
        entries: Number of entries that are to be added.

    Raises:
        DutError: If there is no DUT that lossratio configures, or its kind has no table.
    """
    if not testbed.duts:
        raise DutError("There is no DUT of ours to reconfigure: say which kind it is when the testbed is set up.")
    for dut in testbed.duts:
        dut.check_reconfigure(entries)


def measure_reconfiguration_loss(
    testbed: Testbed, request: ReconfigurationRequest, place: TestPlace, on_progress: OnProgress | None = None
) -> ReconfigurationResult:
    """Searches for a load, sends at it while the DUTs are being reconfigured, and writes the result file.

    The search has a result file of its own, with `` search`` behind the test's name.

    Returns:
        The result, as it was written.

    Raises:
        LossRatioError: If the search, the traffic or the reconfiguration failed, or the generator could not send the
            load meanwhile. Unless the search failed, the result file has the error.
    """
    searched = replace(place, test=place.test.model_copy(update={"name": search_name(place.test.name)}))
    goal_search = find_conditional_throughput(testbed, request.search, searched, on_progress)
    _, load = goal_search.relevant_load(None)
    about_search = (*goal_search.remarks, *_search_remarks(goal_search))
    span = Span()

    def write(stopped: StoppedTraffic | None, error: str | None) -> ReconfigurationResult:
        remarks = about_search if stopped is None else (*about_search, *_remarks(stopped))
        run = TestRun(place.test, span.started, span.end(), goal_search.conditions, remarks, error)
        loss = None if stopped is None else reconfiguration_loss(goal_search.conditions.rate(load), stopped.lost)
        entries = read_journal(place.directory.journal_path(searched.test.full_name)).entries
        result = reconfiguration_result(run, goal_search.max_load, loss, entries)
        place.directory.write(result)
        return result

    try:
        stopped = _traffic_meanwhile(testbed, request, load)
    except BaseException as error:
        # An interrupt, too, leaves a result file with the error.
        write(None, what_stopped(error))
        raise
    return write(stopped, None)


def _traffic_meanwhile(testbed: Testbed, request: ReconfigurationRequest, load: float) -> StoppedTraffic:
    # Imported here because paramiko takes a while, and reports of results need none of it.
    from lossratio.testbed import start_traffic
    from lossratio.traffic import FALTERING

    with start_traffic(testbed, request.search.profile, load, request.search.integrity) as traffic:
        time.sleep(LEAD)
        request.reconfigure()
        time.sleep(LEAD)
        stopped = traffic.stop()
    if stopped.unsent > FALTERING * (stopped.sent + stopped.unsent):
        raise TrafficError(
            f"The generator sent {stopped.sent:,} frames during the reconfiguration and could not send "
            f"{stopped.unsent:,}. What the DUTs would have lost of these is not known. Look for other work on its node."
        )
    return stopped


def _search_remarks(result: ThroughputResult) -> Iterator[str]:
    """Remarks on the load, for the reader of the loss."""
    for report in result.goals:
        if report.result is not None and not report.result.regular:
            yield f"the load was found by a search that is irregular: {report.result.reason}"


def _remarks(stopped: StoppedTraffic) -> Iterator[str]:
    """Remarks on the traffic, for the reader of the loss."""
    if stopped.unsent:
        share = format_ratio(stopped.unsent / (stopped.sent + stopped.unsent))
        yield (
            f"the generator left {stopped.unsent:,} frames unsent during the reconfiguration ({share}); so many more "
            "could have been lost"
        )
    dropped = sum(direction.generator_drops for direction in stopped.directions)
    if dropped:
        yield f"the generator dropped {dropped:,} frames that came back; so many of those lost, at most, are its own"
