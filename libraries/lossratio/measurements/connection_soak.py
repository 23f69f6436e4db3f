"""The rate of connections at which a device loses a given share of them, by PLRsearch."""

from collections.abc import Iterator
from typing import Any, Literal

from lossratio.measurements.connection_tables import OfConnectionRates
from lossratio.measurements.connections import (
    CONNECTIONS_PER_SECOND,
    OpeningRequest,
    as_cps,
    in_connections,
    lines_of_losses,
)
from lossratio.measurements.soak.measure import SoakRequest, SoakSearch
from lossratio.measurements.soak.result import SoakResult
from lossratio.measurements.soak.view import SoakView
from lossratio.plrsearch import target_in_words
from lossratio.quantities import Duration
from lossratio.results import Finding, value_line


class ConnectionSoakRequest(OpeningRequest, SoakRequest):
    """Searches for the rate at which a device loses ``target_loss_ratio`` of its connections.

    All trials are equally long, and begin with an empty table. As with `Find Critical Load`, the result is an estimate
    with its 95 % interval.

    | `Find Critical Connection Rate`    frame_size=100B    timeout=10 min
    """

    trial_duration: Duration = 1.0
    """Seconds of each trial."""


class ConnectionSoakResult(SoakResult):
    """The result of a search for the critical rate of connections. Each frame of the load opens a connection."""

    kind: Literal["connection_soak"] = "connection_soak"  # type: ignore[assignment]
    """The kind of the result."""


class ConnectionSoak(OfConnectionRates, SoakSearch[ConnectionSoakRequest]):
    """The kind: searches for the critical rate of connections."""

    keyword = "Find Critical Connection Rate"
    method = "critical_connection_rate"
    noun = "critical connection rate"
    title = "Searching for the critical connection rate"
    algorithm = "PLRsearch over connections per second"
    unit = CONNECTIONS_PER_SECOND
    result = ConnectionSoakResult


class ConnectionSoakView(SoakView):
    """A soak test whose rates are connections per second."""

    measured_in = CONNECTIONS_PER_SECOND
    value_name = "critical connection rate"

    def rates_in(self, result: SoakResult) -> str:
        """Connections per second."""
        return "connections/s"

    def lines(self, result: SoakResult) -> Iterator[str]:
        """The critical rate, with its interval."""
        found = result.critical_load
        if found is None:
            return
        state = "regular" if found.reason is None else f"irregular: {found.reason}"
        target = target_in_words(result.target_loss_ratio, found.guard, found.trial_s)
        yield f"critical connection rate ({target}): {state}"
        for name, rate in ((found.stated_as, found.stated), ("standard deviation", found.stdev)):
            yield value_line(name, rate.per_interface_fps, self.measured_in)
        yield value_line("95 % interval, from", found.least_95.per_interface_fps, self.measured_in)
        yield value_line("95 % interval, to", found.most_95.per_interface_fps, self.measured_in)
        yield from lines_of_losses(result)

    def findings(self, result: SoakResult) -> Iterator[Finding]:
        """The critical rate, with its interval as bounds."""
        yield from map(in_connections, super().findings(result))

    def csit(self, result: SoakResult) -> dict[str, Any]:
        """The critical rate, as connections."""
        exported: dict[str, Any] = as_cps(super().csit(result))
        return exported
