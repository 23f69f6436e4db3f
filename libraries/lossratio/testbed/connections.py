"""Trials through devices that keep connections: before each trial, all connections are established in their tables."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, get_args

from lossratio.agent import Configuration
from lossratio.dut import ConnectionTable, Dut, DutOptions, Established, TcpState
from lossratio.errors import DutError, TrafficError
from lossratio.traffic import connections_of
from lossratio.trials import Exchange, Measurer, TrialInput, TrialOutput

FILL_RATE = 20_000.0
"""Connections per second at which tables are filled, unless a device is known to take fewer."""
_FIRST_RATE, _MANY = 60_000.0, 500_000
"""The rate that is tried first if there are this many UDP connections. TCP connections take more frames each."""
_FILLS = 3
"""How often all frames are sent until there are as many connections as wanted."""
_FILLS_AT_A_RATE = 4
"""How often all frames are sent at one rate, if the generator leaves frames unsent."""
_LOST = 0.99
"""If a device has a smaller share of the connections than this, the next frames come more slowly."""
_SPARE = 0.8
"""The share of the rate that such a device takes, at which the next frames come."""
_ALL_FILLS = 12
"""How often all frames are then sent in total."""


class Connections:
    """Empties and fills the tables of devices before each trial.

    A table is filled by one frame of each flow and direction, at a rate that the device certainly takes, and its
    entries are counted. So a throughput trial does not test how fast connections are made. Filling a table with very
    many connections takes minutes, so the table is kept for the following trials while all of its connections are
    there.
    """

    def __init__(
        self,
        tables: Mapping[str, ConnectionTable],
        configuration: Configuration,
        *,
        to_nat: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._tables = tables
        self._clock = clock
        self._filling_since: float | None = None
        self._flows = max(direction.frames.flows for direction in configuration.directions)
        self._shares = min(direction.load_share for direction in configuration.directions)
        opening = configuration.directions[::2] if to_nat else configuration.directions
        self._connections, self._to_one = connections_of(replace(configuration, directions=opening))

        for name, table in tables.items():
            if table.is_one_way and len({each.transmit < each.receive for each in opening}) > 1:
                raise TrafficError(
                    f"{name} lets only its west side open connections, as a NAT does, so it "
                    "forwards frames from the east only if they are answers. Send in one "
                    "direction only (bidirectional=False)."
                )
            if to_nat and table.known_ports != self._connections:
                if table.known_ports is None:
                    known = "none"
                else:
                    known = f"{table.known_ports:,}"

                raise TrafficError(
                    f"Frames from the east go to {self._connections:,} ports of a NAT, so these "
                    f"must be known beforehand, but {name} has {known} such ports. Use a traffic "
                    "profile with as many hosts as det44_hosts, 1024 for each of "
                    "det44_addresses, or send in one direction only (bidirectional=False)."
                )

        self._is_tcp = is_tcp = any(
            direction.frames.handshake is not None for direction in configuration.directions
        )
        self._handshake = Exchange(is_complete=True) if is_tcp else None
        self._safe_rate = min(table.safe_rate or FILL_RATE for table in tables.values())
        if self._connections >= _MANY and self._safe_rate == FILL_RATE and not is_tcp:
            self._rate = _FIRST_RATE
        else:
            self._rate = self._safe_rate

    @property
    def facts(self) -> dict[str, Any]:
        """How many connections are established before each trial, how fast, and whether they are kept, for results."""
        return {
            "established_before_each_trial": self._connections,
            "fill_rate_per_second": self._rate,
            "kept_for_the_next_trial_while_complete": self._connections >= _MANY,
            "tables": sorted(self._tables),
        }

    def establish(
        self,
        load: float,
        fill: Callable[[TrialInput], TrialOutput],
        exchange: Exchange | None = None,
        duration: float = math.inf,
    ) -> float:
        """Empties all tables, establishes and counts all connections, and returns the seconds of traffic for this.

        Traffic with the load and duration follows. Without an exchange, a TCP handshake or a frame opens each
        connection.
        """
        round_of_flows = self._flows / min(self._rate, load) / self._shares
        until_used = min(round_of_flows, duration)
        if self._are_kept(until_used):
            return 0.0
        idle = until_used + self._flows / self._rate / self._shares
        for table in self._tables.values():
            state = (exchange or Exchange()).end_of_tcp if self._is_tcp else None
            table.check(Established(self._connections, self._to_one, idle, state))

        seconds = 0.0
        failures = 0
        self.forget()
        filling_since = self._clock()
        for attempt in range(1, _ALL_FILLS + 1):
            duration = self._flows / self._rate / self._shares
            opening = exchange or self._handshake
            trial = TrialInput(duration, self._rate, exchange=opening, keeps_unsent=True)
            output = fill(trial)
            seconds += trial.duration if output.elapsed is None else output.elapsed

            # Frames that were not sent, or that a busy device lost, establish nothing: they are sent again. A single
            # frame opens a connection. In an exchange, a connection may count although a later frame is missing.
            is_sent = opening is None or not output.unsent_frames
            if is_sent and all(
                table.count() == self._connections for table in self._tables.values()
            ):
                self._filling_since = filling_since
                return seconds

            if not output.unsent_frames:
                failures += 1
                self._slow_down()
            if failures == _FILLS:
                break
            # The same rate opens the few connections that were lost. A rate is not tried again after it has failed
            # twice to fill the table, or after `_FILLS_AT_A_RATE` attempts if frames were unsent.
            if failures > 1 or attempt >= _FILLS_AT_A_RATE:
                self._rate = min(self._rate, self._safe_rate)

        self._count()
        return seconds

    def forget(self) -> None:
        """Empties all tables.

        Raises:
            DutError: If connections are left in a table after emptying it.
        """
        self._filling_since = None
        for name, table in self._tables.items():
            table.forget()
            left = table.count()
            if left:
                raise DutError(
                    f"{name} does not forget connections: {left:,} are left in its table after it was emptied. "
                    "Trials would depend on the trials before them. Look for other traffic on its interfaces."
                )

    def _are_kept(self, until_used: float) -> bool:
        """Whether all connections of an earlier fill are there, and will be until the trial has used each of them."""
        if self._filling_since is None or self._connections < _MANY:
            return False
        idle = self._clock() - self._filling_since + until_used
        # A trial that lost frames leaves TCP connections in any state.
        states = get_args(TcpState) if self._is_tcp else (None,)
        return all(
            idle < min(map(table.timeout_of, states)) and table.count() == self._connections
            for table in self._tables.values()
        )

    def _slow_down(self) -> None:
        """Lowers the rate if a device did not take it, such as one with a policer."""
        least = min(table.count() for table in self._tables.values())
        share = least / self._connections
        if 0.0 < share < _LOST:
            self._rate *= _SPARE * share

    def _count(self) -> None:
        for name, table in self._tables.items():
            count = table.count()
            if count != self._connections:
                counters = ", ".join(
                    f"{counter} {value:,}" for counter, value in table.counters().items()
                )
                what = "missing" if count < self._connections else "foreign"
                difference = abs(self._connections - count)
                raise DutError(
                    f"{name} has {count:,} of {self._connections:,} connections after they were established at "
                    f"{self._rate:,.0f} per second, so {difference:,} are {what} "
                    f"({counters or 'no counter says why'}). No trial was measured. Its table may be full, or its "
                    "firewall may refuse connections: use fewer flows, or raise its limits."
                )


class EstablishingMeasurer:
    """Performs trials with another measurer, each with all connections established."""

    def __init__(self, measurer: Measurer, connections: Connections) -> None:
        self._measurer = measurer
        self._connections = connections

    def measure(self, trial: TrialInput) -> TrialOutput:
        """Establishes all connections, unless the trial itself opens them, and performs it; both count as its time."""
        exchange = trial.exchange
        if exchange is not None:
            if not exchange.established:
                return self._measurer.measure(trial)
            exchange = replace(exchange, data_frames=0, established=False, is_complete=True)
        seconds = self._connections.establish(
            trial.load, self._measurer.measure, exchange, trial.duration
        )
        output = self._measurer.measure(trial)
        return replace(output, elapsed=(output.elapsed or trial.duration) + seconds)


def connections_through(
    duts: Sequence[Dut[DutOptions]], configuration: Configuration, *, to_nat: bool
) -> Connections | None:
    """The object that empties and fills the tables of devices; None: no device keeps connections."""
    tables = {dut.hop.node_name: dut.connections for dut in duts}
    kept = {name: table for name, table in tables.items() if table is not None}
    if kept:
        return Connections(kept, configuration, to_nat=to_nat)
    return None
