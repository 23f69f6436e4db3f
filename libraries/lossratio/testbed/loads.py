"""Between which loads a measurement goes, and where these came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from lossratio.errors import SearchError
from lossratio.results import Conditions, LoadOrigin, MaxLoad
from lossratio.testbed.limits import LoadLimit
from lossratio.units import format_frame_rate

DEFAULT_MIN_LOAD = 9001.0
"""Frames per second per interface: the minimum load of FD.io CSIT's searches."""

MAX_LOAD_REMARK = "the maximum load"
"""How a remark begins that is a warning: the maximum load is above a limit."""

MIN_LOAD_SHARE = 0.1
"""Share of the maximum load that is the default minimum load where the maximum is below CSIT's minimum."""

_NAMES: Mapping[LoadOrigin, str] = MappingProxyType(
    {
        LoadOrigin.GENERATOR: "what the generator can send",
        LoadOrigin.LINK: "what a link can carry",
        LoadOrigin.NIC: "what a NIC can do",
    }
)


@dataclass(frozen=True)
class LoadRange:
    """The loads of a measurement, per interface, in frames per second.

    Attributes:
        min_load: The smallest load.
        max_load: The largest load.
        origin: Where the largest load came from.
        limits: What limits the load, from the smallest limit on.
        remarks: What a reader of the numbers should know about them.
    """

    min_load: float
    max_load: float
    origin: LoadOrigin
    limits: tuple[LoadLimit, ...] = ()
    remarks: tuple[str, ...] = ()

    def describe(self, conditions: Conditions) -> MaxLoad:
        """The largest load in the words of test reports.

        Args:
            conditions: What it was measured under.
        """
        links = [limit.load for limit in self.limits if limit.origin is LoadOrigin.LINK]
        reasons = [limit.reason for limit in self.limits]
        return conditions.max_load(self.max_load, self.origin, link_limit=min(links, default=None), limits=reasons)


def load_range(limits: Sequence[LoadLimit], *, min_load: float | None, max_load: float | None) -> LoadRange:
    """Fills in what was not asked for.

    Args:
        limits: What limits the load, from the smallest limit on; see `lossratio.testbed.limits.load_limits`.
        min_load: The smallest load that was asked for; None: CSIT's, or a tenth of a maximum load below that.
        max_load: The largest load that was asked for; None: the smallest limit.

    Raises:
        SearchError: If no maximum load is known, or it is below the minimum load.
    """
    if max_load is not None:
        origin, highest = LoadOrigin.GIVEN, max_load
    elif limits:
        origin, highest = limits[0].origin, limits[0].load
    else:
        raise SearchError(
            "The maximum load is not known. Say max_load= with the measurement; or in the topology file max_rate with "
            "the TG's generator, or the speed or the NIC model of interfaces."
        )
    lowest = _default_min_load(highest) if min_load is None else min_load
    if lowest > highest:
        raise SearchError(
            f"The minimum load ({format_frame_rate(lowest)}) is above the maximum load ({format_frame_rate(highest)})."
        )
    return LoadRange(lowest, highest, origin, tuple(limits), _remarks(highest, limits))


def _default_min_load(max_load: float) -> float:
    return DEFAULT_MIN_LOAD if max_load > DEFAULT_MIN_LOAD else max_load * MIN_LOAD_SHARE


def _remarks(max_load: float, limits: Sequence[LoadLimit]) -> tuple[str, ...]:
    exceeded = [limit for limit in limits if max_load > limit.load]
    return tuple(
        f"{MAX_LOAD_REMARK} ({format_frame_rate(max_load)}) is above {_NAMES[limit.origin]} ({limit.reason})"
        for limit in exceeded[:1]
    )
