"""How a search for the connection rate is shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from lossratio.measurements.connections import CONNECTIONS_PER_SECOND
from lossratio.measurements.throughput.result import GoalsResult, format_regularity
from lossratio.measurements.throughput.view import ThroughputView
from lossratio.records import Rate
from lossratio.results import Finding, Offered, value_line
from lossratio.units import format_ratio


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
            bound = _per_second(found.relevant_lower_bound)
            yield value_line("relevant lower bound", bound, self.measured_in)
            yield value_line("relevant upper bound", _per_second(found.relevant_upper_bound), self.measured_in)
            yield value_line("connection rate", _per_second(found.conditional_throughput), self.measured_in)
            if bound is not None:
                seconds = report.goal.final_trial_duration_s
                yield f"  a trial of {seconds:g} s at the lower bound opened {bound * seconds:,.0f} connections"

    def findings(self, result: GoalsResult) -> Iterator[Finding]:
        """A finding for each goal, in connections per second."""
        for finding in super().findings(result):
            yield replace(
                finding,
                value=_per_second(finding.value),
                lower_bound=_per_second(finding.lower_bound),
                upper_bound=_per_second(finding.upper_bound),
            )

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
        """NDR and PDR in connections per second."""
        exported = super().csit(result)
        for goal in ("ndr", "pdr"):
            exported[goal] = {
                bound: {"rate": {"value": rate["rate"]["value"], "unit": "cps"}}
                for bound, rate in exported[goal].items()
            }
        return exported


def _per_second(rate: Rate | float | None) -> float | None:
    return rate.per_interface_fps if isinstance(rate, Rate) else rate
