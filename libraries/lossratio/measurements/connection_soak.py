"""The rate of connections at which a device loses a given share of them."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import Field

from lossratio.measurements.connection_tables import OfConnectionRates
from lossratio.measurements.connections import (
    CONNECTIONS_PER_SECOND,
    OpeningRequest,
    as_cps,
    in_connections,
    lines_of_losses,
)
from lossratio.measurements.soak.measure import SoakRequest, SoakSearch
from lossratio.measurements.soak.result import CriticalLoad, SoakResult
from lossratio.measurements.soak.view import SoakView
from lossratio.quantities import Duration
from lossratio.records import Rate
from lossratio.results import Finding, value_line
from lossratio.units import LONGEST_TRIAL


class ConnectionSoakRequest(OpeningRequest, SoakRequest):
    """Searches for the rate at which a device loses ``target_loss_ratio`` of its connections.

    All trials are equally long, and begin with an empty table. The result is as for `Find Critical Load`.

    | `Find Critical Connection Rate`    frame_size=100B    timeout=10 min
    """

    trial_duration: Annotated[Duration, Field(gt=0.0, le=LONGEST_TRIAL)] = 1.0
    """Seconds of each trial."""


class ConnectionSoakResult(SoakResult):
    """The result of a search for the critical rate of connections. Each frame of the load opens a connection."""

    unit = CONNECTIONS_PER_SECOND
    kind: Literal["connection_soak"] = "connection_soak"  # type: ignore[assignment]
    """The kind of the result."""


class ConnectionSoak(OfConnectionRates, SoakSearch[ConnectionSoakRequest]):
    """The kind: searches for the critical rate of connections."""

    keyword = "Find Critical Connection Rate"
    method = "critical_connection_rate"
    noun = "critical connection rate"
    title = "Searching for the critical connection rate"
    algorithm = "search by counts over connections per second"
    unit = CONNECTIONS_PER_SECOND
    result = ConnectionSoakResult


class ConnectionSoakView(SoakView):
    """A soak test whose rates are connections per second."""

    measured_in = CONNECTIONS_PER_SECOND
    value_name = "critical connection rate"
    varied = "rate"

    def rates_in(self, result: SoakResult) -> str:
        """Connections per second."""
        return "connections/s"

    def rate_line(self, name: str, rate: Rate) -> str:
        """The line of one rate of connections."""
        return value_line(name, rate.per_interface_fps, self.measured_in)

    def lines(self, result: SoakResult) -> Iterator[str]:
        """The critical rate, and how connections ended."""
        yield from super().lines(result)
        if result.critical_load is not None:
            yield from lines_of_losses(result)

    def statements(self, result: SoakResult, found: CriticalLoad) -> Iterator[tuple[str, str]]:
        """Nothing, because the statements are about frames."""
        yield from ()

    def findings(self, result: SoakResult) -> Iterator[Finding]:
        """The critical rate, with its bounds."""
        yield from map(in_connections, super().findings(result))

    def csit(self, result: SoakResult) -> dict[str, Any]:
        """The critical rate, as connections."""
        exported: dict[str, Any] = as_cps(super().csit(result))
        return exported
