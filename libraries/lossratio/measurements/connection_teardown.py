"""How fast a device forgets connections by its own command (RFC 9693, connection tear-down rate)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from lossratio.errors import DutError, SearchError, TesterError
from lossratio.measurements import FoundResult, PlannedKind, PlannedTrials, SettingsOf, TestPlace
from lossratio.measurements.connections import (
    CONNECTIONS_PER_SECOND,
    OpeningRequest,
    check_flows,
    percentiles,
    tables_of,
)
from lossratio.results import USUAL, MaxLoad, NoteKind, View, doubt, headline, numbers, value_line
from lossratio.trials import Measurer, TrialInput, TrialOutput, TrialResult, missing_frames
from lossratio.values import (
    Record,
    Repeats,
    Seconds,
    counted,
    format_precise_time,
    range_in_words,
    trials_counted,
)

if TYPE_CHECKING:
    from lossratio.dut import ConnectionTable
    from lossratio.testbed import LoadRange, Ready, Testbed


UNSTEADY = 2.0
"""If the longest repetition takes more than this many times as long as the shortest one, there is a doubt."""


class TeardownRequest(OpeningRequest):
    """Measures how many connections per second a device deletes by its own command (RFC 9693), and returns the result.

    All connections are opened at the rate ``max_load``, which must be safely below the device's connection rate, and
    are verified. Then the device deletes them, and reports how long that took. The result has the median and
    percentiles of several repetitions.

    | `Measure Connection Teardown Rate`    frame_size=100B    max_load=20 kcps    connections=50000
    """

    unused = frozenset({"ramp", "warm_up", "integrity", "min_load"})
    counts = True

    connections: Annotated[int, Field(ge=1)] = 10_000
    """Number of connections that are deleted at once."""
    repeats: Repeats = 10
    """Number of repetitions."""


class TeardownValues(Record):
    """The tear-down rates of all repetitions, and the values that follow from them."""

    times: tuple[Seconds, ...] = Field(min_length=1)
    """Seconds that the device took to delete all connections, in each repetition."""
    median_per_second: float = Field(gt=0.0)
    """The benchmark: median of the rates."""
    percentile_1_per_second: float = Field(gt=0.0)
    """1st percentile."""
    percentile_99_per_second: float = Field(gt=0.0)
    """99th percentile."""


class ConnectionTeardownResult(FoundResult):
    """The result of a measurement of the tear-down rate."""

    found = "teardown"
    unit = CONNECTIONS_PER_SECOND
    kind: Literal["connection_teardown"] = "connection_teardown"
    max_load: MaxLoad
    """The rate at which connections were opened: each frame opens one."""
    settings: SettingsOf[TeardownRequest]
    """The parameters of the measurement."""
    teardown: TeardownValues | None
    """The tear-down rates; null if the measurement failed."""


class TeardownMeasurer:
    """Opens connections, and has the device delete them."""

    def __init__(self, measurer: Measurer, name: str, table: ConnectionTable) -> None:
        self._measurer = measurer
        self._name = name
        self._table = table

    def measure(self, trial: TrialInput) -> TrialOutput:
        """Performs a trial.

        Raises:
            DutError: If the device does not have all connections before the deletion, or keeps some.
            TesterError: If the device does not have all connections because of the generator.
        """
        output = self._measurer.measure(trial)
        wanted = round(trial.load * trial.duration)
        opened = self._table.count()
        missing = missing_frames(output)
        # If the device has all connections, lost or late answers do not matter.
        if opened != wanted and missing is not None and missing.by_tester:
            raise TesterError(
                f"The generator did not open or did not count {missing.by_tester:,} of {wanted:,} connections, "
                "so their tear-down cannot be measured. Open them at a lower "
                "rate (max_load)."
            )
        if opened != wanted:
            raise DutError(
                f"{self._name} has only {opened:,} of {wanted:,} connections ({output.lost_frames or 0:,} were "
                "lost), so their tear-down cannot be measured. Open fewer (connections), or open them at a lower "
                "rate (max_load)."
            )

        seconds = self._table.forget()
        left = self._table.count()
        if left:
            raise DutError(
                f"{self._name} does not forget connections: {left:,} of {wanted:,} connections are left in "
                "its table after it was emptied. Look for other traffic on its interfaces."
            )
        return replace(output, forgotten=seconds)


class ConnectionTeardown(PlannedKind[TeardownRequest, ConnectionTeardownResult]):
    """The kind: the tear-down rate."""

    keyword = "Measure Connection Teardown Rate"
    method = "teardown_rate"
    noun = "connection teardown rate"
    work = "Measuring the"
    algorithm = "tear-down rate of connections"

    def prepare(self, testbed: Testbed, request: TeardownRequest, place: TestPlace) -> None:
        """Checks devices and traffic.

        Raises:
            SearchError: If the traffic has too few flows, or the path does not have exactly one table that lossratio
                can empty.
        """
        check_flows(
            request.profile, request.connections, f"Give connections={request.profile.flows}"
        )
        if len(tables_of(testbed)) != 1:
            raise SearchError(
                "The tear-down rate needs a single device whose table lossratio can empty, such as a linux_router "
                f"with nat or firewall. {testbed.request.topology.name} does not have exactly one on its path."
            )

    def controller(self, request: TeardownRequest, loads: LoadRange) -> PlannedTrials:
        """The same trial in each repetition."""
        return PlannedTrials(
            [TrialInput(request.connections / loads.max_load, loads.max_load)] * request.repeats
        )

    def measurer(self, request: TeardownRequest, testbed: Testbed, ready: Ready) -> Measurer:
        """Opens connections, and has them deleted."""
        return TeardownMeasurer(ready.measurer, *tables_of(testbed).popitem())

    def found_in(
        self, result: ConnectionTeardownResult, trials: Sequence[TrialResult]
    ) -> TeardownValues:
        """Median, 1st and 99th percentile of the rates: connections divided by their deletion time (RFC 9693).

        Raises:
            SearchError: If there are no trials, or a trial lacks the time of the deletion.
        """
        times = tuple(seconds for trial in trials if (seconds := trial.output.forgotten))
        if len(times) < max(1, len(trials)):
            raise SearchError(
                f"The tear-down rate of {result.test.full_name} is not known: its result has "
                f"{trials_counted(len(trials))}, but the time in which the device deleted the "
                f"connections is known for only {len(times)} of them. Measure it again."
            )
        rates = (result.settings.connections / seconds for seconds in times)
        return TeardownValues(times=times, **percentiles(rates, "per_second"))


@headline
def _found(result: ConnectionTeardownResult) -> Iterator[str]:
    """How fast the device deletes connections."""
    if result.teardown is not None:
        rate = f"{result.teardown.median_per_second:,.0f} connections/s"
        yield f"Tear-down: {rate} are deleted, measured with {result.settings.connections:,} connections."


@numbers
def _numbers(result: ConnectionTeardownResult) -> Iterator[str]:
    """The median, and the percentiles."""
    settings, values = result.settings, result.teardown
    repetitions = counted(settings.repeats, "repetition")
    yield f"tear-down of {settings.connections:,} connections (RFC 9693), {repetitions}"
    if values is not None:
        yield value_line("median", values.median_per_second, CONNECTIONS_PER_SECOND)
        ends = (values.percentile_1_per_second, values.percentile_99_per_second)
        yield value_line(
            "1st, 99th percentile", ", ".join(map(CONNECTIONS_PER_SECOND.format, ends))
        )
        times = (min(values.times), max(values.times))
        yield value_line("in", range_in_words(*map(format_precise_time, times)))


@doubt(
    NoteKind.UNSTEADY,
    f"The longest time of a repetition is more than {UNSTEADY:g} times the shortest.",
)
def _unsteady(result: ConnectionTeardownResult) -> Iterator[str]:
    """The repetitions took very different times, so that their median means little."""
    times = () if result.teardown is None else result.teardown.times
    if times and max(times) > UNSTEADY * min(times):
        yield (
            f"the device took {format_precise_time(min(times))} to {format_precise_time(max(times))} for the "
            f"same {result.settings.connections:,} connections. Delete more at once (connections), and look for "
            "other programs on the device"
        )


class ConnectionTeardownView(View[ConnectionTeardownResult]):
    """How a tear-down rate is shown."""

    quantity = "tear-down"
    has_value = True
    value_fields = MappingProxyType({"value": "median_per_second"})
    goal_fields = MappingProxyType({"connections": "settings.connections"})
    measured_in = CONNECTIONS_PER_SECOND
    method = "RFC 9693"
    rules = (_found, _numbers, _unsteady, *USUAL)
