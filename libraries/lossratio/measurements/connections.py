"""What measurements that open connections share (RFC 9693): the request, the checks, and the measurer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import ceil, floor, lcm
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field

from lossratio.errors import DutError, SearchError
from lossratio.measurements import NOT_IN_FILES, Request
from lossratio.quantities import FrameRate
from lossratio.records import Rate
from lossratio.results import Finding
from lossratio.trials import (
    Exchange,
    Integrity,
    Measurer,
    TrialInput,
    TrialOutput,
    TrialResult,
    missing_frames,
)
from lossratio.units import Unit

if TYPE_CHECKING:
    from lossratio.dut import ConnectionTable, TcpState
    from lossratio.testbed import LoadRange, Testbed
    from lossratio.traffic import TrafficProfile

CONNECTIONS_PER_SECOND = Unit("connections/s")
"""The unit of connection rates."""
LONGER, OF_LONGEST = 2.0, 0.9
"""The trial that tells a full table from a limited rate: in trials of the measurement; and at most in those after which
a device forgets."""
LEAST_MORE = 10.0
"""Connections that it must open beyond those that shorter trials established."""
_OF_ROOM = 0.95
"""The share of the connections of a full table that there is room for in any case."""
_NO_MORE = 0.01
"""The share of them up to which they are none."""


def full_table(trials: Sequence[TrialResult], usual_duration: float) -> float | None:
    """The connections that a device keeps at most, by a trial longer than usual (seconds); None: no trial shows it.

    A device that limits the rate of connections establishes more of them in a longer trial. One whose table is full
    does not.
    """
    usual = [
        trial
        for trial in trials
        if trial.duration <= usual_duration and not is_spoilt(trial.output)
    ]
    most = max(map(_established, usual), default=0.0)
    for trial in trials:
        more = trial.load * trial.duration - most
        is_telling = (
            trial.duration > usual_duration and more >= LEAST_MORE and not is_spoilt(trial.output)
        )
        if most and is_telling and abs(_established(trial) - most) <= max(1.0, _NO_MORE * more):
            return most
    return None


def is_spoilt(output: TrialOutput) -> bool:
    """Whether connections are missing for which the device can do nothing: of the tester, or only late."""
    missing = missing_frames(output)
    return missing is not None and (missing.by_tester > 0 or missing.late > 0)


def _established(trial: TrialResult) -> float:
    return trial.load * trial.duration * (1.0 - trial.loss_ratio)


def full_table_error(entries: float, longer: TrialResult, way_out: str) -> DutError:
    """The error of a measurement of rates whose device has a full table."""
    return DutError(
        f"The device keeps {entries:,.0f} connections and takes no more, so these trials show the size of a table, and "
        f"no rate: one of {longer.duration:g} s at {longer.load:,.0f} connections/s established no more than shorter "
        f"ones did. Raise the table's limit, look for entries of others in it, or {way_out}. `Find Connection Table "
        "Capacity` measures its size."
    )


def per_second(rate: Rate | float | None) -> float | None:
    """Connections per second of a rate whose frames open one each."""
    if isinstance(rate, Rate):
        return rate.per_interface_fps
    return rate


def in_connections(finding: Finding) -> Finding:
    """A finding whose rates are connections per second."""
    names = ("value", "lower_bound", "upper_bound", "deviation")
    rates: dict[str, Any] = {name: per_second(getattr(finding, name)) for name in names}
    return replace(finding, **rates)


def as_cps(exported: Any) -> Any:
    """A result for CSIT whose packets open a connection each: without bandwidths, in connections per second."""
    if not isinstance(exported, dict):
        return exported
    if exported.get("unit") == "pps":
        return {**exported, "unit": "cps"}
    return {name: as_cps(value) for name, value in exported.items() if name != "bandwidth"}


def as_packets(exported: Any, frames: int) -> Any:
    """A result for CSIT in packets per second and bits per second, of connections with so many frames each."""
    if not isinstance(exported, dict):
        return exported
    if "unit" in exported:
        return {**exported, "value": exported["value"] * frames}
    return {name: as_packets(value, frames) for name, value in exported.items()}


class OpeningRequest(Request):
    """The settings of every measurement that opens connections."""

    unused = frozenset({"ramp", "warm_up", "integrity"})
    connects = True
    usual_profile = "ethip4-udp-connections"

    min_load: Annotated[FrameRate | None, NOT_IN_FILES] = 100.0
    """The smallest rate, connections per second."""
    integrity: Annotated[Integrity, NOT_IN_FILES] = Integrity.OFF
    """Frames are not compared with what was sent, as a device may translate addresses; answers must be addressed to
    those who opened their connections."""
    answer_ratio: Annotated[float, Field(gt=0.0, le=10.0)] = 1.0
    """Rate of the answers, as a multiple of the rate at which connections were opened (RFC 9693, alpha)."""
    data_frames: Annotated[int, Field(ge=0, le=100)] = 0
    """Frames of data in each direction over each connection that is open, all of which must arrive."""
    closing: Literal["fin", "rst"] | None = None
    """How connections of TCP end, once all data has arrived; None: they stay open."""
    stateless: bool = False
    """Whether it is right that no device on the path keeps connections: the measurement of the tester's own limit."""

    @property
    def longest_trial(self) -> float:
        """Seconds of the longest trial; 0: trials have a number of connections, and no duration."""
        return float(getattr(self, "trial_duration", 0.0))

    @property
    def most_load(self) -> float:
        """The rate whose longest trial opens all connections that the traffic has."""
        if self.longest_trial:
            return self.profile.flows // self.longest_trial
        return math.inf

    def check_loads(self, testbed: Testbed, loads: LoadRange) -> None:
        """Checks that the traffic has enough connections for the longest trial at the largest rate."""
        most = floor(loads.max_load * self.longest_trial)
        check_flows(
            self.profile, most, f"Give max_load={self.most_load:.0f} cps, or shorter trials"
        )

    def check(self, testbed: Testbed) -> None:
        """Checks, before any traffic, that connections can be opened, and forgotten before the next trial.

        Raises:
            SearchError: If the profile opens none, or no device on the path is known to keep any.
        """
        if self.closing and not self.profile.is_tcp:
            raise SearchError(
                f"closing={self.closing} is of TCP. Take profile=ethip4-tcp-connections, or leave it out."
            )
        if self.profile.bidirectional:
            raise SearchError(
                f"Connections are opened one way, and {self.profile.name} sends both ways. Take "
                "profile=ethip4-udp-connections, or bidirectional=False."
            )

        duts = testbed.duts
        if (
            not self.stateless
            and duts
            and not any(dut.connections is not None or dut.resets for dut in duts)
        ):
            names = ", ".join(dict.fromkeys(f"{dut.hop.node_name} ({dut.kind})" for dut in duts))
            raise SearchError(
                f"No device on the path keeps connections, as far as is known: {names}. Give it state (a linux_router: "
                "nat or firewall), or a way to forget (a black_box: a reset). To measure the tester's own limit, say "
                "stateless=True."
            )

    @property
    def exchange(self) -> Exchange:
        """What goes over each connection."""
        return Exchange(self.answer_ratio, self.data_frames, self.closing)

    @property
    def rounds(self) -> float:
        """How many times as long as the first frames of all connections a trial takes."""
        return self.exchange.rounds(is_tcp=self.profile.is_tcp)

    def measurer(self, measurer: Measurer, testbed: Testbed) -> Measurer:
        """Opens connections, and checks before each trial that no device forgets them meanwhile."""
        opening = OpeningMeasurer(measurer, self, testbed)
        # Trials of one duration show only by a longer one whether a table is full.
        if hasattr(self, "trial_duration"):
            return TableMeasurer(opening, self.longest_trial_of(testbed))
        return opening

    def longest_trial_of(self, testbed: Testbed) -> float:
        """Seconds of a trial after which a device that is known to keep connections forgets the first of them."""
        return min(self.timeouts(testbed).values(), default=math.inf) / self.rounds

    def timeouts(self, testbed: Testbed) -> dict[str, float]:
        """Seconds after which devices forget a connection that is being opened."""
        state: TcpState | None = "syn_recv" if self.profile.is_tcp else None
        return {name: table.timeout_of(state) for name, table in tables_of(testbed).items()}

    def check_tables(self, testbed: Testbed, connections: int, rate: float) -> None:
        """Checks, before any trial, that devices have room for connections, and keep them for long enough.

        Args:
            testbed: The testbed whose devices are looked at.
            connections: Most connections of a trial.
            rate: Connections per second.

        Raises:
            DutError: If a device has too little room, or forgets too early.
        """
        from lossratio.dut import Established

        seconds = connections / rate * self.rounds
        ranges = self.profile.directions[0].headers.ranges()
        # Different addresses and ports that connections lead to.
        destinations = lcm(
            *(values.count for name, values in ranges if name.startswith("destination"))
        )
        to_one = ceil(connections / destinations)
        for dut in testbed.duts:
            if dut.connections is not None:
                state = self.exchange.end_of_tcp if self.profile.is_tcp else None
                dut.connections.check(Established(connections, to_one, seconds, state))


def check_flows(profile: TrafficProfile, connections: int, way_out: str) -> None:
    """Checks that traffic has addresses and ports for so many connections.

    Args:
        profile: What the traffic is.
        connections: Most connections that one trial opens.
        way_out: What to change instead of the profile, e.g. ``Give connections=1000``, for the
            error.

    Raises:
        SearchError: If it has too few.
    """
    if connections > profile.flows:
        raise SearchError(
            f"The addresses and ports of {profile.name} make {profile.flows:,} connections, and {connections:,} would "
            f"be opened in one trial. {way_out}, or take a profile with more flows, such as ethip4-udp-connections."
        )


def percentiles(values: Iterable[float]) -> tuple[float, float, float]:
    """1st percentile, median and 99th percentile, interpolated between neighbours."""
    low, middle, high = (float(value) for value in np.percentile([*values], (1.0, 50.0, 99.0)))
    return low, middle, high


def tables_of(testbed: Testbed) -> dict[str, ConnectionTable]:
    """The tables of the devices that are known to keep connections, by name."""
    return {
        dut.hop.node_name: dut.connections for dut in testbed.duts if dut.connections is not None
    }


class TableMeasurer:
    """Performs trials of one duration, and more after the first that loses connections: is a table full?

    A longer one takes so many seconds at most, and opens as many connections. If it establishes as many as the shorter
    one, the table may be full, or the same share of all connections is lost. So there is a control, which opens as many
    as were established: a table has room for them.
    """

    def __init__(self, measurer: Measurer, longest_trial: float) -> None:
        self._measurer, self._longest_trial = measurer, longest_trial
        self._is_answered = False

    def measure(self, trial: TrialInput) -> TrialOutput:
        """Performs a trial. The longer one behind it opens as many connections, and is part of its time.

        Raises:
            DutError: If the device's table is full.
        """
        output = self._measurer.measure(trial)
        duration = LONGER * trial.duration
        is_clear = (
            self._is_answered or is_spoilt(output) or duration > OF_LONGEST * self._longest_trial
        )
        if is_clear or output.loss_ratio * trial.load * trial.duration < LEAST_MORE:
            return output

        asked = TrialInput(duration, trial.load / LONGER)
        longer = TrialResult(asked, self._measurer.measure(asked))
        self._is_answered = not is_spoilt(longer.output)
        entries = full_table((TrialResult(trial, output), longer), trial.duration)
        elapsed = (output.elapsed or trial.duration) + longer.elapsed

        if entries is not None:
            room = TrialInput(duration, _OF_ROOM * entries / duration)
            control = TrialResult(room, self._measurer.measure(room))
            elapsed += control.elapsed
            has_room = control.loss_ratio * room.load * duration < LEAST_MORE
            if has_room and not _came_late(control.output):
                raise full_table_error(entries, longer, "take shorter trials (trial_duration)")

        return replace(output, elapsed=elapsed)


def _came_late(output: TrialOutput) -> bool:
    """Whether connections of the trials before were not lost, but late, as is seen in this one."""
    return any(way.late_frames or any(way.earlier_late_frames) for way in output.directions)


class OpeningMeasurer:
    """Performs trials whose frames open connections, and are answered; by way of another measurer."""

    def __init__(self, measurer: Measurer, request: OpeningRequest, testbed: Testbed) -> None:
        self._measurer = measurer
        self._exchange, self._rounds = request.exchange, request.rounds
        self._unseen = tables_of(testbed)
        self._timeouts = request.timeouts(testbed)

    def measure(self, trial: TrialInput) -> TrialOutput:
        """Performs a trial.

        Raises:
            SearchError: If a device would forget the first connection before the last one is
                answered.
            DutError: If a device does not keep the connections that were established through it.
        """
        seconds = trial.duration * self._rounds
        for name, timeout in self._timeouts.items():
            if seconds >= timeout:
                raise SearchError(
                    f"To open {trial.load * trial.duration:,.0f} connections and answer over them takes "
                    f"{seconds:.3g} s, and {name} forgets one after {timeout:g} s. Raise its time-out (udp_timeout), "
                    "open them faster (max_load), or try fewer (most)."
                )

        output = self._measurer.measure(replace(trial, exchange=self._exchange, certain_above=None))
        established = sum(direction.received_frames for direction in output.directions)
        if established and self._unseen and self._exchange.closing is None:
            # The entries of each device are counted once.
            for name, table in self._unseen.items():
                count = table.count()
                if count < established:
                    raise DutError(
                        f"{name} has {count:,} entries after {established:,} connections were established through it: "
                        "it forwards without state. Look for rules that exempt this traffic (notrack), or measure it "
                        "as a device without state, with stateless=True."
                    )

            self._unseen = {}

        return output
