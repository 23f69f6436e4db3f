"""What measurements that open connections share (RFC 9693): the request, the checks, and the measurer."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import ceil, floor, lcm
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from lossratio.errors import DutError, SearchError, TrafficError
from lossratio.measurements import NOT_IN_FILES, Request
from lossratio.results import Finding, TestResult, number_of, value_line
from lossratio.trials import Exchange, Integrity, Measurer, TrialInput, TrialOutput, missing_frames
from lossratio.values import FrameRate, Unit

if TYPE_CHECKING:
    from lossratio.dut import ConnectionTable, TcpState
    from lossratio.testbed import LoadRange, Testbed
    from lossratio.traffic import TrafficProfile

CONNECTIONS_PER_SECOND = Unit("connections/s")
"""The unit of connection rates."""
_LOOKED_AT, _LOOK_RATE = 200, 1000.0
"""Number of connections in the check whether a device forgets, and how many of them are opened per second."""


def is_spoilt(output: TrialOutput) -> bool:
    """Whether some connections are missing through no fault of the device: the tester failed, or they are only late."""
    missing = missing_frames(output)
    return missing is not None and (missing.by_tester > 0 or missing.late > 0)


def in_connections(finding: Finding) -> Finding:
    """The finding with its rates in connections per second."""
    names = ("value", "lower_bound", "upper_bound", "deviation")
    rates: dict[str, Any] = {name: number_of(getattr(finding, name)) for name in names}
    return replace(finding, **rates)


def as_cps(exported: Any) -> Any:
    """A result for CSIT in connections per second, without bandwidths; each packet opens a connection."""
    if not isinstance(exported, dict):
        return exported
    if exported.get("unit") == "pps":
        return {**exported, "unit": "cps"}
    return {name: as_cps(value) for name, value in exported.items() if name != "bandwidth"}


def as_packets(exported: Any, frames: int) -> Any:
    """A result for CSIT in packets and bits per second; each connection has this many frames."""
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
    way_to_fewer: ClassVar[str] = "use shorter trials (trial_duration)"
    """How to open fewer connections at the same rates, in the words of error messages."""

    min_load: Annotated[FrameRate | None, NOT_IN_FILES] = 100.0
    """The smallest rate, connections per second."""
    integrity: Annotated[Integrity, NOT_IN_FILES] = Integrity.OFF
    """Received frames are not compared with sent ones, because a device may translate addresses. Each answer must be
    addressed to the end that opened the connection."""
    answer_ratio: Annotated[float, Field(gt=0.0, le=10.0)] = 1.0
    """Rate of the answers, as a multiple of the rate at which connections were opened (RFC 9693, alpha)."""
    data_frames: Annotated[int, Field(ge=0, le=100)] = 0
    """Frames of data in each direction over each open connection. All of them must arrive."""
    closing: Literal["fin", "rst"] | None = None
    """How TCP connections end once all data has arrived; None: they stay open."""
    counts: ClassVar[bool] = False
    """Whether the number of connections matters, and not their rate. If so, connections that are behind schedule are
    still opened, only later."""
    stateless: bool = False
    """Whether no device on the path has to keep connections, as in a measurement of the tester's own limit."""

    @property
    def longest_trial(self) -> float:
        """Seconds of the longest trial; 0: trials have no duration, but a number of connections."""
        return float(getattr(self, "trial_duration", 0.0))

    @property
    def most_load(self) -> float:
        """The rate whose longest trial opens all connections that the traffic has."""
        if self.longest_trial:
            return self.profile.flows // self.longest_trial
        return math.inf

    def check_loads(self, testbed: Testbed, loads: LoadRange) -> None:
        """Checks that traffic and generator have enough connections for the longest trial at the largest rate."""
        from lossratio.traffic import check_connections

        most = floor(loads.max_load * self.longest_trial)
        check_flows(
            self.profile, most, f"Give max_load={self.most_load:.0f} cps, or shorter trials"
        )
        if self.exchange.established and tables_of(testbed):
            most = self.profile.flows
        check_connections(testbed.generator, most)

    def check(self, testbed: Testbed) -> None:
        """Checks, before any traffic, that connections can be opened, and are forgotten before the next trial.

        Raises:
            SearchError: If the profile opens no connections, or no device on the path is known to keep connections.
        """
        if self.closing and not self.profile.is_tcp:
            raise SearchError(
                f"closing={self.closing} applies to TCP only. Use profile=ethip4-tcp-connections, or leave closing "
                "out."
            )
        if self.profile.bidirectional:
            raise SearchError(
                f"Connections are opened in one direction, but {self.profile.name} sends in both. Use "
                "profile=ethip4-udp-connections or bidirectional=False."
            )

        duts = testbed.duts
        if (
            not self.stateless
            and duts
            and not any(dut.connections is not None or dut.resets for dut in duts)
        ):
            names = ", ".join(dict.fromkeys(f"{dut.hop.node_name} ({dut.kind})" for dut in duts))
            raise SearchError(
                f"No device on the path is known to keep connections: {names}. Switch on nat or firewall "
                "(linux_router), or give the device a hook 'reset' (black_box). To measure the tester's own limit, "
                "set stateless=True."
            )

    def look(self, testbed: Testbed, loads: LoadRange) -> tuple[str, ...]:
        """Checks whether the reset before each trial makes devices forget, if their tables cannot be counted.

        Connections are opened, and after a reset they are answered once more. An answer that gets through shows that
        the device still has the connection, unless the device also lets unrequested answers in.

        Raises:
            DutError: If a device does not forget.
        """
        reset = [dut for dut in testbed.duts if dut.connections is None and dut.resets]
        names = " and ".join(dict.fromkeys(dut.hop.node_name for dut in reset))
        if not reset or self.stateless or self.exchange.established:
            return ()

        rate = min(_LOOK_RATE, loads.max_load)
        with self.ready(testbed) as ready:
            opened = _received(ready.measurer, _LOOKED_AT, rate, "opened")
            if not opened:
                return (
                    f"it is not known whether {names} forgets connections: none was established",
                )
            try:
                again = _received(ready.measurer, opened, rate, "again")
                unasked = _received(ready.measurer, opened, rate, "unasked") if again else 0
            except TrafficError as error:
                if getattr(error, "kind", None) != "unsupported":
                    raise
                return (f"whether {names} forgets connections is not known: {error}",)

        if again and not unasked:
            raise DutError(
                f"{names} does not forget connections: after a reset, answers still came back over {again:,} of "
                f"{opened:,} earlier connections. Trials would depend on the trials before them. Make the hook "
                "'reset' delete all connections."
            )
        if again:
            return (
                f"it is not known whether {names} forgets connections: it accepts unsolicited answers",
            )
        return (
            f"{names} forgets connections: after a reset, no answer came back over any of {opened:,} connections",
        )

    @property
    def exchange(self) -> Exchange:
        """The frames that each connection carries."""
        return Exchange(self.answer_ratio, self.data_frames, self.closing, is_complete=self.counts)

    @property
    def rounds(self) -> float:
        """The duration of a trial, as a multiple of the time in which the first frames of all connections are sent."""
        return self.exchange.rounds(is_tcp=self.profile.is_tcp)

    def measurer(self, measurer: Measurer, testbed: Testbed) -> Measurer:
        """Opens connections, and checks before each trial that no device forgets them during the trial."""
        return OpeningMeasurer(measurer, self, testbed)

    def longest_trial_of(self, testbed: Testbed) -> float:
        """Seconds after which a device that is known to keep connections forgets the first connection of a trial."""
        return min(self.timeouts(testbed).values(), default=math.inf) / self.rounds

    def timeouts(self, testbed: Testbed) -> dict[str, float]:
        """Seconds after which devices forget a connection that is being opened."""
        state: TcpState | None = "syn_recv" if self.profile.is_tcp else None
        return {name: table.timeout_of(state) for name, table in tables_of(testbed).items()}

    def check_tables(self, testbed: Testbed, connections: int, rate: float) -> None:
        """Checks, before any trial, that devices have room for connections, and keep them for long enough.

        Args:
            testbed: The testbed whose devices are checked.
            connections: The largest number of connections in a trial.
            rate: Connections per second.

        Raises:
            DutError: If a device has too little room, or forgets too early.
        """
        from lossratio.dut import Established

        seconds = connections / rate * self.rounds
        ranges = self.profile.directions[0].headers.ranges()
        # The number of different destination addresses and ports.
        destinations = lcm(
            *(values.count for name, values in ranges if name.startswith("destination"))
        )
        to_one = ceil(connections / destinations)
        exchange = self.exchange
        if not (self.counts or exchange.established):
            # A connection that is neither counted nor used again may be forgotten after its last frame.
            exchange = replace(exchange, closing=None)
        for dut in testbed.duts:
            if dut.connections is not None:
                state = exchange.end_of_tcp if self.profile.is_tcp else None
                dut.connections.check(Established(connections, to_one, seconds, state))


def _received(measurer: Measurer, connections: int, rate: float, answers: str) -> int:
    """Answers that come back over this many connections."""
    exchange = Exchange(is_complete=True, answers=answers)
    output = measurer.measure(TrialInput(connections / rate, rate, exchange=exchange))
    return sum(way.received_frames for way in output.directions)


def check_flows(profile: TrafficProfile, connections: int, way_out: str) -> None:
    """Checks that traffic has addresses and ports for this many connections.

    Args:
        profile: The traffic.
        connections: The largest number of connections that one trial opens.
        way_out: What to change instead of the profile, e.g. ``Give connections=1000``, for the
            error.

    Raises:
        SearchError: If it has too few.
    """
    if connections > profile.flows:
        raise SearchError(
            f"The addresses and ports of {profile.name} allow {profile.flows:,} connections, but one trial would "
            f"open {connections:,}. {way_out}, or use a traffic profile with more flows, such as "
            "ethip4-udp-connections."
        )


_FIRST_PASSES = {
    True: ("the SYN", "the SYN-ACK", "the ACK"),
    False: ("the first frame", "the answer"),
}
"""The first frames over each connection: of TCP (True), and of other protocols (False)."""


def lines_of_losses(result: TestResult) -> Iterator[str]:
    """A line on how connections ended, and on anything else that came back over them; nothing if all was well.

    It counts only trials in which the generator sent everything, so that no frame is missing for another reason.
    """
    whole = [trial for trial in result.trials if not trial.unsent_frames]
    ways = [way for trial in whole for way in trial.directions if way.left_frames]
    names = _FIRST_PASSES["TCP" in result.conditions.traffic.frame_format]
    lost = Counter[int]()
    for way in ways:
        before = (way.sent_frames, *way.left_frames)
        lost.update({place: before[place] - left for place, left in enumerate(way.left_frames)})

    ends = [
        f"{count:,} with {names[place] if place < len(names) else f'frame {place + 1}'}"
        for place, count in sorted(lost.items())
        if count > 0
    ]
    # Table: frames that came back besides answers, in words, and their number.
    besides = {
        "answered from other addresses": sum(way.misdelivered_frames for way in ways),
        "late, not lost": sum(trial.late_frames or 0 for trial in whole),
        "frames that came twice": sum(way.duplicated_frames for way in ways),
        "rejections (RST or ICMP) by the device": sum(way.rejection_frames or 0 for way in ways),
    }
    ends += [f"{count:,} {what}" for what, count in besides.items() if count]
    if ends:
        yield value_line("connections ended", "; ".join(ends))


def percentiles(values: Iterable[float], unit: str) -> dict[str, Any]:
    """The fields of the 1st percentile, median and 99th percentile, interpolated between neighbouring values.

    Args:
        values: The values.
        unit: The end of the names of these fields.
    """
    import numpy as np

    names = (f"percentile_1_{unit}", f"median_{unit}", f"percentile_99_{unit}")
    return dict(zip(names, np.percentile([*values], (1.0, 50.0, 99.0)).tolist(), strict=True))


def tables_of(testbed: Testbed) -> dict[str, ConnectionTable]:
    """The tables of the devices that are known to keep connections, by name."""
    return {
        dut.hop.node_name: dut.connections for dut in testbed.duts if dut.connections is not None
    }


class OpeningMeasurer:
    """Performs, through another measurer, trials whose frames open connections and are answered."""

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
            DutError: If a device does not keep the connections that were established through that device.
        """
        seconds = trial.duration * self._rounds
        for name, timeout in self._timeouts.items():
            if seconds >= timeout:
                raise SearchError(
                    f"Opening {trial.load * trial.duration:,.0f} connections and answering over them takes "
                    f"{seconds:.3g} s, but {name} forgets a connection after {timeout:g} s. Raise its time-out "
                    "(udp_timeout), open them faster (max_load), or try fewer (most)."
                )

        exchange = trial.exchange or self._exchange
        began = time.monotonic()
        output = self._measurer.measure(replace(trial, exchange=exchange, certain_above=None))
        established = sum(direction.received_frames for direction in output.directions)
        if established and self._unseen and self._exchange.closing is None:
            # The entries of each device are counted only once.
            for name, table in self._unseen.items():
                count = table.count()
                if count < established:
                    took = time.monotonic() - began
                    raise _missing_entries(name, count, established, took, self._timeouts[name])

            self._unseen = {}

        return output


def _missing_entries(
    name: str, count: int, established: int, seconds: float, timeout: float
) -> DutError:
    """The error for a table that has fewer entries than connections were established through it.

    Args:
        name: The device.
        count: Its entries.
        established: The connections.
        seconds: Time from the opening of the first connection until the count of the entries.
        timeout: Seconds after which the device forgets a connection.
    """
    found = f"{name} has {count:,} entries after {established:,} connections were established through it"
    if seconds >= timeout:
        return DutError(
            f"{found}. They were counted {seconds:.3g} s after the first one was opened, and {name} forgets a "
            f"connection after {timeout:g} s, so it may or may not have kept them. Raise its time-out (udp_timeout)."
        )
    return DutError(
        f"{found}: it forwards without state. Look for rules that exempt this traffic (notrack), or "
        "measure it as a stateless device (stateless=True)."
    )
