"""How a search for the connection rate is shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lossratio.measurements.connections import CONNECTIONS_PER_SECOND, as_cps, as_packets, in_connections, per_second
from lossratio.measurements.throughput.result import GoalsResult, format_regularity
from lossratio.measurements.throughput.view import ThroughputView
from lossratio.results import Finding, Offered, value_line
from lossratio.trials import Exchange
from lossratio.units import FRAMES_PER_SECOND, format_ratio


class ConnectionRateView(ThroughputView):
    """A search whose rates are connections per second: one frame of the load opens each of them."""

    method = "RFC 9693"
    value_name = "connection rate"
    measured_in = CONNECTIONS_PER_SECOND

    def lines(self, result: GoalsResult) -> Iterator[str]:
        """Each goal, with its bounds and the connections of a trial at the lower one."""
        for report in result.goals:
            allowed = f"at most {format_ratio(report.goal.loss_ratio)} lost"
            yield f"{report.goal.name} ({allowed}): {format_regularity(report)}"
            found = report.result
            if found is None:
                continue
            bound = per_second(found.relevant_lower_bound)
            yield value_line("relevant lower bound", bound, self.measured_in)
            yield value_line("relevant upper bound", per_second(found.relevant_upper_bound), self.measured_in)
            yield value_line("connection rate", per_second(found.conditional_throughput), self.measured_in)
            if bound is not None:
                seconds = report.goal.final_trial_duration_s
                yield f"  a trial of {seconds:g} s at the lower bound opened {bound * seconds:,.0f} connections"
                if frames := _frames_of_transaction(result):
                    yield value_line("frames, both ways", bound * frames, FRAMES_PER_SECOND)

    def findings(self, result: GoalsResult) -> Iterator[Finding]:
        """A finding for each goal, in connections per second."""
        yield from map(in_connections, super().findings(result))

    def offered(self, result: GoalsResult, finding: Finding) -> Sequence[Offered]:
        """The trials at the upper bound if the generator made it one."""
        rates = next(rates for rates in super().findings(result) if rates.quantity == finding.quantity)
        return super().offered(result, rates)

    def overviews(self, results: Sequence[GoalsResult]) -> Iterator[str]:
        """None: connection rates over frame sizes are no throughput of RFC 2544."""
        yield from ()

    def conditions(self, result: GoalsResult) -> str:
        """None: goals in connections per second comply with nothing of RFC 2544."""
        return ""

    def csit(self, result: GoalsResult) -> dict[str, Any]:
        """NDR and PDR in connections per second; in packets per second where connections are established before."""
        frames = _frames_of_transaction(result)
        exported = super().csit(result)
        return dict(as_packets(exported, frames) if frames else as_cps(exported))


def _frames_of_transaction(result: GoalsResult) -> int:
    """Frames of both ends over a connection that was established before; 0: connections are what is measured."""
    settings: Any = result.settings
    if not settings.get("established"):
        return 0
    # Those of TCP end.
    exchange = Exchange(data_frames=settings["data_frames"], closing=settings["closing"])
    return exchange.passes(is_tcp=exchange.closing is not None)
