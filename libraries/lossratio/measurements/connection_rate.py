"""The connection rate (RFC 9693, maximum connection establishment rate), found by MLRsearch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import floor
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator

from lossratio import mlrsearch
from lossratio.errors import SearchError
from lossratio.measurements import NOT_IN_FILES, Suite, connections
from lossratio.measurements.connection_tables import OfConnectionRates
from lossratio.measurements.throughput import (
    HOW_TO_SEARCH,
    GoalSearch,
    GoalSet,
    GoalsResult,
    SearchRequest,
    goals_from,
    require_lower_bounds,
)
from lossratio.measurements.throughput.lines import search_lines
from lossratio.measurements.throughput.sentence import sentences
from lossratio.measurements.throughput.view import ThroughputView
from lossratio.mlrsearch import SearchGoal
from lossratio.results import Finding, number_of, numbers, value_line
from lossratio.trials import Exchange
from lossratio.values import FRAMES_PER_SECOND, Unit

if TYPE_CHECKING:
    from lossratio.testbed import LoadRange, Testbed

ALL_ESTABLISHED = SearchGoal(0.0, 0.5, 1.0, 5.0, 0.005, name="connection rate")
"""All connections are established in at least half of five trials of one second."""


class ConnectionRateRequest(connections.OpeningRequest, SearchRequest):
    """Searches for the largest rate at which a device establishes all connections (RFC 9693), and returns the result.

    A trial of T seconds at the rate R opens R * T connections, each with one UDP frame. Then the Responder answers over
    each connection that reached it. A connection is established if the answer comes back to the connection's own
    address. The devices' tables are emptied before each trial. The search is MLRsearch over connections per second,
    with ``own_goals`` (see the type ``SearchGoal``) or with ``goals``, a set of goals as for `Find NDR And PDR`. The
    longer a trial is, the more connections it opens. No trial ends early. By default, all connections must be
    established in trials of one second.

    | `Find Connection Rate`    frame_size=100B    max_load=50 kcps
    | `Find Connection Rate`    {"loss_ratio": "0.1 %", "final_trial_duration": "2 s"}    frame_size=100B
    """

    way_to_fewer = "choose goals with shorter trials (final_trial_duration)"

    goals: Annotated[tuple[SearchGoal, ...], BeforeValidator(goals_from), NOT_IN_FILES] = (
        ALL_ESTABLISHED,
    )
    """The search goals. A trial opens as many connections as its rate gives in its duration."""
    established: bool = False
    """Whether devices already have all connections before each trial, and keep them (FD.io CSIT's tput). The search
    then measures frames of both ends instead of new entries. The export for CSIT is in packets per second."""

    def check(self, testbed: Testbed) -> None:
        """Also checks that connections end before they are opened again.

        Raises:
            SearchError: If they do not end, or connections cannot be opened.
        """
        super().check(testbed)
        if self.established and self.profile.is_tcp and self.closing is None:
            raise SearchError(
                "Each trial opens the same TCP connections again, so the previous trial must end them: set "
                "closing=fin or closing=rst."
            )

    @property
    def exchange(self) -> Exchange:
        """The frames that each connection carries."""
        return replace(super().exchange, established=self.established)

    @property
    def longest_trial(self) -> float:
        """Seconds of the longest trial of all goals."""
        return max(goal.final_trial_duration for goal in self.goals)

    def check_loads(self, testbed: Testbed, loads: LoadRange) -> None:
        """Checks that the traffic and the devices have enough connections for the longest trial at the largest rate."""
        super().check_loads(testbed, loads)
        self.check_tables(testbed, floor(loads.max_load * self.longest_trial), loads.max_load)


class ConnectionRateResult(GoalsResult):
    """The result of a search for the connection rate. Each frame of the load opens a connection."""

    unit: ClassVar[Unit] = connections.CONNECTIONS_PER_SECOND

    kind: Literal["connection_rate"] = "connection_rate"


class ConnectionRate(OfConnectionRates, GoalSearch[ConnectionRateRequest, ConnectionRateResult]):
    """The kind: searches for the connection rate."""

    keyword = "Find Connection Rate"
    method = "connection_rate"
    algorithm = "MLRsearch over connections per second"
    without = HOW_TO_SEARCH

    def asked(
        self,
        suite: Suite,
        fields: Mapping[str, Any],
        *own_goals: SearchGoal,
        goals: GoalSet | None = None,
    ) -> ConnectionRateRequest:
        """The request with the user's own goals, or with a set of goals."""
        wanted = own_goals or (() if goals is None else goals.goals)
        request: ConnectionRateRequest = suite.request(
            {"goals": wanted, **fields} if wanted else fields
        )
        return request

    def demand(self, result: ConnectionRateResult, *, must_find: bool = True) -> None:
        """Fails if a goal has no lower bound, unless the test allows that."""
        if must_find:
            require_lower_bounds(result)

    def inputs(
        self, request: ConnectionRateRequest, loads: LoadRange, controller: mlrsearch.MLRsearch
    ) -> Mapping[str, Any]:
        """The goals, loads and settings, with the unit of the loads."""
        return {
            **super().inputs(request, loads, controller),
            "load_unit": connections.CONNECTIONS_PER_SECOND.name,
        }


@numbers
def _opened(result: GoalsResult) -> Iterator[str]:
    """The connections of a trial at each lower bound, and how connections ended."""
    frames = _frames_of_transaction(result)
    for report in result.goals:
        bound = number_of(report.bounds[0])
        if bound is not None:
            seconds = report.goal.final_trial_duration_s
            yield f"  a trial of {seconds:g} s at the lower bound opened {bound * seconds:,.0f} connections"
            if frames:
                yield value_line("frames, both ways", bound * frames, FRAMES_PER_SECOND)
    yield from connections.lines_of_losses(result)


class ConnectionRateView(ThroughputView):
    """A search whose rates are connections per second: one frame of the load opens each of them."""

    method = "RFC 9693"
    value_name = "connection rate"
    rules = (sentences, search_lines, _opened, *ThroughputView.rules_beside)
    measured_in = connections.CONNECTIONS_PER_SECOND

    def findings(self, result: GoalsResult) -> Iterator[Finding]:
        """A finding for each goal, in connections per second."""
        yield from map(connections.in_connections, super().findings(result))

    def overviews(self, results: Sequence[GoalsResult]) -> Iterator[str]:
        """None: connection rates over frame sizes are not RFC 2544 throughput."""
        yield from ()

    def conditions(self, result: GoalsResult) -> str:
        """None: RFC 2544 has no goals in connections per second."""
        return ""

    def csit(self, result: GoalsResult) -> dict[str, Any]:
        """NDR and PDR in connections per second; in packets per second if connections are established beforehand."""
        frames = _frames_of_transaction(result)
        exported = super().csit(result)
        return dict(
            connections.as_packets(exported, frames) if frames else connections.as_cps(exported)
        )


def _frames_of_transaction(result: GoalsResult) -> int:
    """Frames of both ends over a connection that was established beforehand; 0: the connections are measured."""
    settings: Any = result.settings
    if not settings.get("established"):
        return 0
    # TCP connections end.
    exchange = Exchange(data_frames=settings["data_frames"], closing=settings["closing"])
    return exchange.passes(is_tcp=exchange.closing is not None)
