"""The connection MRR: how many connections per second a device establishes when more are opened than it can take."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from lossratio.measurements import FoundResult, PlannedKind, PlannedTrials
from lossratio.measurements.connection_tables import OfConnectionRates
from lossratio.measurements.connections import (
    CONNECTIONS_PER_SECOND,
    OpeningRequest,
    lines_of_losses,
)
from lossratio.measurements.mrr import MaximumRateView, MrrRequest
from lossratio.results import (
    USUAL,
    MaxLoad,
    headline,
    in_trials_of,
    load_in_words,
    numbers,
    offered_in,
    rate_in_words,
    value_line,
)
from lossratio.trials import TrialInput, TrialResult
from lossratio.values import Record, counted, trials_counted

if TYPE_CHECKING:
    from lossratio.testbed import LoadRange


class ConnectionMrrRequest(OpeningRequest, MrrRequest):
    """Measures how many connections per second a device establishes at ``max_load``, and returns the result.

    Each trial begins with an empty table, and gives one value: the number of established connections divided by the
    time in which they were opened. The result contains all values, their mean and their standard deviation.

    | `Measure Connection MRR`    frame_size=100B    max_load=50 kcps
    """

    unused = frozenset({"ramp", "warm_up", "integrity", "min_load"})


class ConnectionMrrValues(Record):
    """The connections of all trials."""

    values: tuple[float, ...] = Field(min_length=1)
    """Connections established per second, of each trial."""
    mean_per_second: float
    """Their mean."""
    stdev_per_second: float
    """Their population standard deviation."""
    lost_connections: int = Field(ge=0)
    """Connections that were opened and not established, in all trials."""
    unsent_connections: int = Field(ge=0)
    """Connections that the generator could not open or answer in time, in all trials."""


class ConnectionMrrResult(FoundResult):
    """The result of a measurement of the connection MRR."""

    found = "connections"
    unit = CONNECTIONS_PER_SECOND
    kind: Literal["connection_mrr"] = "connection_mrr"
    max_load: MaxLoad
    """The rate at which connections were opened: each frame opens one."""
    connections: ConnectionMrrValues | None
    """The connections; null if the measurement failed."""


class ConnectionMrr(OfConnectionRates, PlannedKind[ConnectionMrrRequest, ConnectionMrrResult]):
    """The kind: the connection MRR."""

    keyword = "Measure Connection MRR"
    method = "connection_mrr"
    noun = "connection MRR"
    algorithm = "MRR of connections"

    def controller(self, request: ConnectionMrrRequest, loads: LoadRange) -> PlannedTrials:
        """Trials at the same rate, as many as requested."""
        return PlannedTrials([TrialInput(request.trial_duration, loads.max_load)] * request.trials)

    def found_in(
        self, result: ConnectionMrrResult, trials: Sequence[TrialResult]
    ) -> ConnectionMrrValues:
        """The connections of the trials, per second in which they were opened."""
        values = [_established_per_second(trial) for trial in trials]
        return ConnectionMrrValues(
            values=tuple(values),
            mean_per_second=statistics.fmean(values),
            stdev_per_second=statistics.pstdev(values),
            lost_connections=sum(trial.output.lost_frames or 0 for trial in trials),
            unsent_connections=sum(trial.output.unsent_frames or 0 for trial in trials),
        )


def _established_per_second(trial: TrialResult) -> float:
    """Connections per second of the time in which they were opened; never more than the load."""
    directions = trial.output.directions
    if not directions:
        return trial.forwarding_rate
    return sum(
        way.received_frames
        / max(way.intended_frames / (trial.load * way.load_ratio), way.elapsed_s or 0.0)
        for way in directions
    )


@headline
def _found(result: ConnectionMrrResult) -> Iterator[str]:
    """What is established while connections are opened at the maximum load."""
    if result.connections is not None:
        mean = rate_in_words(result.connections.mean_per_second, "connections/s")
        opened = _opened_in_words(result)
        more, length = "", in_trials_of(result.trials)
        if not result.connections.lost_connections:
            more = ": no connection is lost, so a higher rate may be possible"
        yield f"Connection MRR: establishes {mean} when {opened} are opened each second{length}{more}."


@numbers
def _numbers(result: ConnectionMrrResult) -> Iterator[str]:
    """Mean, standard deviation, and lost connections."""
    found = result.connections
    if found is not None:
        rate = _opened_in_words(result, "connections/s")
        yield f"connections established ({trials_counted(len(found.values))}, opened at {rate})"
        yield value_line("mean", found.mean_per_second, CONNECTIONS_PER_SECOND)
        if len(found.values) > 1:
            yield value_line("standard deviation", found.stdev_per_second, CONNECTIONS_PER_SECOND)
        lost = counted(found.lost_connections, "connection")
        yield value_line(
            "lost", f"{lost}; {found.unsent_connections:,} unsent, which does not count as loss"
        )
    yield from lines_of_losses(result)


def _opened_in_words(result: ConnectionMrrResult, unit: str = "") -> str:
    """The rate at which connections were opened, as far as the generator opened them."""
    return load_in_words(result.max_load.rate.per_interface_fps, offered_in(result.trials), unit)


class ConnectionMrrView(MaximumRateView[ConnectionMrrResult]):
    """The view of a connection MRR."""

    quantity = "connection MRR"
    value_fields = MappingProxyType({"value": "mean_per_second", "deviation": "stdev_per_second"})
    measured_in = CONNECTIONS_PER_SECOND
    method = "RFC 9693"
    rules = (_found, _numbers, *USUAL)

    def received(self, found: ConnectionMrrValues) -> dict[str, Any]:
        """Connections per second."""
        rate = {"avg": found.mean_per_second, "stdev": found.stdev_per_second, "unit": "cps"}
        return {"rate": {"values": [*found.values], **rate}}
