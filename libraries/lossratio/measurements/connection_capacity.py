"""Connections that a device's table holds (RFC 9693, capacity of the connection tracking table)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from lossratio.measurements import (
    FoundResult,
    MeasuredKind,
    Measurement,
    Progress,
    SettingsOf,
    TestPlace,
)
from lossratio.measurements.connections import (
    CONNECTIONS_PER_SECOND,
    OpeningRequest,
    check_flows,
    lines_of_losses,
    percentiles,
)
from lossratio.measurements.repeated_search import RepeatedSearch, SizeFound, ending_where_unknown
from lossratio.results import (
    OF_ALL_KINDS,
    OF_STALLS,
    OVER_TIME,
    MaxLoad,
    NoteKind,
    Trial,
    View,
    doubt,
    head,
    headline,
    numbers,
    stalls_that_decided,
    value_line,
)
from lossratio.trials import TrialInput, TrialResult, known_missing
from lossratio.values import Record, Repeats, Unit, counted

if TYPE_CHECKING:
    from lossratio.testbed import LoadRange, Testbed

CONNECTIONS = Unit("connections")
"""The unit of capacities; a larger capacity is better."""

Connections = Annotated[int, Field(ge=1)]


class CapacityRequest(OpeningRequest):
    """Searches for the largest number of connections that a device keeps at once (RFC 9693), and returns the result.

    Connections are opened at the rate ``max_load``, which must be safely below the device's connection rate. The number
    of connections doubles until some are lost, and then a bisection follows. There are several such searches, and the
    result contains their median and percentiles.

    | `Find Connection Table Capacity`    frame_size=100B    max_load=20 kcps
    """

    unused = frozenset({"ramp", "warm_up", "integrity", "min_load"})
    counts = True

    first: Connections = 1000
    """Connections of the first trial of a search."""
    most: Connections | None = None
    """Largest number of connections to try; None: all connections of the traffic."""
    step: Connections = 1
    """A search ends when its bounds are this close."""
    repeats: Repeats = 10
    """Number of searches (RFC 9693 wants ten)."""


class CapacityFound(Record):
    """The outcome of one search."""

    established: int = Field(ge=0)
    """The largest number of connections in a trial that lost none."""
    lossy: int | None
    """The smallest number of connections in a trial that lost some; null: no trial lost any, so the table may hold
    more."""
    trials: int = Field(ge=1)
    """Trials of the search."""


class CapacityValues(Record):
    """The capacities of all searches, and the values that follow from them."""

    searches: tuple[CapacityFound, ...] = Field(min_length=1)
    """The searches, each independent of the others."""
    median_connections: float = Field(ge=0.0)
    """The benchmark: median of the capacities."""
    percentile_1_connections: float = Field(ge=0.0)
    """1st percentile."""
    percentile_99_connections: float = Field(ge=0.0)
    """99th percentile."""
    is_at_limit: bool
    """Whether a search ended without loss, so that the values are "at least"."""


class ConnectionCapacityResult(FoundResult):
    """The result of a search for the capacity of a table of connections."""

    found = "capacity"
    unit = CONNECTIONS_PER_SECOND
    kind: Literal["connection_capacity"] = "connection_capacity"
    max_load: MaxLoad
    """The rate at which connections were opened; each frame opens one connection."""
    settings: SettingsOf[CapacityRequest]
    """The parameters of the search."""
    most_connections: int
    """The largest number of connections that was tried."""
    capacity: CapacityValues | None
    """The capacities; null if the measurement failed."""
    reason: str | None
    """Why the result is irregular; null: it is not."""


def capacity_values(searches: Sequence[SizeFound]) -> CapacityValues:
    """Median, 1st and 99th percentile of the capacities (RFC 9693)."""
    found = [
        CapacityFound(established=lossless, lossy=lossy, trials=trials)
        for lossless, lossy, trials in searches
    ]
    return CapacityValues(
        searches=tuple(found),
        is_at_limit=any(search.lossy is None for search in searches),
        **percentiles((search.lossless for search in searches), "connections"),
    )


def _was_full(trial: Trial, search: CapacityFound) -> bool:
    """Whether a trial established as many connections as the table of a search holds, so that it lost the others."""
    if search.lossy is None or trial.sent_frames is None or trial.lost_frames is None:
        return False
    return search.established <= trial.sent_frames - trial.lost_frames < search.lossy


def _not_opened(trial: TrialResult) -> str:
    missing = known_missing(trial.output)
    return (
        f"The generator could not open {missing.by_tester:,} of {trial.load * trial.duration:,.0f} connections at "
        f"{trial.load:,.0f} per second, or answer over them. Open them at a "
        "lower rate (max_load)."
    )


def capacity_search(
    rate: float, first: int, most: int, *, step: int = 1, repeats: int = 1
) -> RepeatedSearch:
    """Searches for the largest number of connections without loss at a rate, by doubling, then bisection.

    Args:
        rate: Connections per second.
        first: Connections of the first trial of a search.
        most: The largest number of connections.
        step: A search ends when its bounds are this close to each other.
        repeats: Number of searches.
    """

    def opening(size: int) -> TrialInput:
        return TrialInput(size / rate, rate)

    return RepeatedSearch(opening, most, first=first, step=step, repeats=repeats)


class ConnectionCapacity(
    MeasuredKind[CapacityRequest, RepeatedSearch, Progress, ConnectionCapacityResult]
):
    """The kind: the capacity of a table of connections."""

    keyword = "Find Connection Table Capacity"
    method = "connection_capacity"
    title = "Searching for the capacity of the connection table"
    algorithm = "capacity of the table of connections"

    def prepare(self, testbed: Testbed, request: CapacityRequest, place: TestPlace) -> None:
        """Checks the traffic, and that no table is full at the start."""
        request.check_tables(testbed, 1, math.inf)
        check_flows(request.profile, request.most or 1, f"Give most={request.profile.flows}")

    def controller(self, request: CapacityRequest, loads: LoadRange) -> RepeatedSearch:
        """Doublings and bisections over the number of connections."""
        most = request.most or request.profile.flows
        return capacity_search(
            loads.max_load, request.first, most, step=request.step, repeats=request.repeats
        )

    def watch(self, request: CapacityRequest, loads: LoadRange) -> Callable[[TrialResult], None]:
        """Ends a search if the generator repeatedly fails to open connections: it shows nothing about the device."""
        return ending_where_unknown(_not_opened)

    def fields(
        self, measured: Measurement[Any], request: CapacityRequest, max_load: MaxLoad
    ) -> Mapping[str, Any]:
        """The largest number of connections that were tried."""
        return {"most_connections": request.most or request.profile.flows}

    def found_in(
        self, result: ConnectionCapacityResult, trials: Sequence[TrialResult]
    ) -> CapacityValues:
        """The capacities of the trials."""
        search = capacity_search(
            result.max_load.rate.per_interface_fps,
            result.settings.first,
            result.most_connections,
            step=result.settings.step,
            repeats=result.settings.repeats,
        )
        return capacity_values(
            search.all_found(trials, f"The table capacity of {result.test.full_name}")
        )

    def irregular(self, result: ConnectionCapacityResult, found: CapacityValues) -> str | None:
        """The reason: the capacity is larger than all numbers that were tried."""
        if found.is_at_limit:
            return "no connection was lost, and the table may have room for more: raise 'most', or use more flows"
        if not found.median_connections:
            return "connections were lost even at the smallest number: open them at a lower rate (max_load)"
        return None


@headline
def _found(result: ConnectionCapacityResult) -> Iterator[str]:
    """How many connections the table holds."""
    values = result.capacity
    if values is not None and not values.median_connections:
        yield "Connection table: connections are missing even at the smallest number."
    elif values is not None:
        least = "at least " if values.is_at_limit else ""
        held = counted(round(values.median_connections), "connection")
        yield f"Connection table: holds {least}{held}."


@numbers
def _numbers(result: ConnectionCapacityResult) -> Iterator[str]:
    """The median, and the percentiles."""
    searches = counted(result.settings.repeats, "search", "searches")
    yield head(result, f"capacity of the table of connections (RFC 9693), {searches}")
    yield value_line("opened at", f"{result.max_load.rate.per_interface_fps:,.0f} connections/s")
    values = result.capacity

    if values is not None:
        yield value_line(
            "at least" if values.is_at_limit else "median", values.median_connections, CONNECTIONS
        )
        ends = f"{values.percentile_1_connections:,.6g}, {values.percentile_99_connections:,.6g} connections"
        yield value_line("1st, 99th percentile", ends)
    yield from lines_of_losses(result)


@doubt(NoteKind.GENERATOR_STALLS, OF_STALLS)
def _stalls(result: ConnectionCapacityResult) -> Iterator[str]:
    """Stalls decided the result: not in trials that filled the table to its known capacity."""
    searches = () if result.capacity is None else result.capacity.searches
    unexplained = list(result.evidence)
    for search in searches:
        unexplained = [trial for trial in unexplained if not _was_full(trial, search)]
    yield from stalls_that_decided(unexplained, [0.0])


class ConnectionCapacityView(View[ConnectionCapacityResult]):
    """How the capacity of a table of connections is shown."""

    quantity = "connection table"
    has_value = True
    measured_in = CONNECTIONS
    method = "RFC 9693"
    rules = (_found, _numbers, _stalls, *OF_ALL_KINDS, *OVER_TIME)

    def values(self, result: ConnectionCapacityResult) -> Mapping[str, Any]:
        """The median; only a lower bound if no connection was lost."""
        values = result.capacity
        if values is None:
            return {}
        return {"lower_bound" if values.is_at_limit else "value": values.median_connections}
