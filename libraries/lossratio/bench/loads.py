"""Between which loads a measurement goes, and where these came from."""

from __future__ import annotations

from dataclasses import dataclass

from lossratio.errors import SearchError
from lossratio.report.conditions import LoadOrigin
from lossratio.topology import TrafficPath
from lossratio.units import format_frame_rate

DEFAULT_MIN_LOAD = 9001.0
"""Frames per second per interface: the minimum load of FD.io CSIT's searches."""

MIN_LOAD_SHARE = 0.1
"""Share of the maximum load that is the default minimum load where the maximum is below CSIT's minimum."""


@dataclass(frozen=True)
class LoadRange:
    """The loads of a measurement, per interface, in frames per second.

    Attributes:
        min_load: The smallest load.
        max_load: The largest load.
        origin: Where the largest load came from.
        remarks: What a reader of the numbers should know about them.
    """

    min_load: float
    max_load: float
    origin: LoadOrigin
    remarks: tuple[str, ...] = ()


def load_range(generator_limit: float | None, *, min_load: float | None, max_load: float | None) -> LoadRange:
    """Fills in what was not asked for.

    Args:
        generator_limit: The most that the generator can send, per interface; None: not known.
        min_load: The smallest load that was asked for; None: CSIT's, or a tenth of a maximum load below that.
        max_load: The largest load that was asked for; None: the generator's limit.

    Raises:
        SearchError: If no maximum load is known, or it is below the minimum load.
    """
    if max_load is not None:
        origin, highest = LoadOrigin.GIVEN, max_load
    elif generator_limit is not None:
        origin, highest = LoadOrigin.GENERATOR, generator_limit
    else:
        raise SearchError(
            "The maximum load is not known. Say max_load= with the measurement, "
            "or max_rate with the TG's generator in the topology file."
        )
    lowest = _default_min_load(highest) if min_load is None else min_load
    if lowest > highest:
        raise SearchError(
            f"The minimum load ({format_frame_rate(lowest)}) is above the maximum load ({format_frame_rate(highest)})."
        )
    return LoadRange(lowest, highest, origin, _remarks(highest, generator_limit))


def link_speed(path: TrafficPath) -> float | None:
    """The slowest speed that the topology gives an interface on the path, in bits per second; None: it gives none."""
    ports = (path.west, path.east, *(port for hop in path.hops for port in (hop.west, hop.east)))
    return min((port.interface.speed for port in ports if port.interface.speed is not None), default=None)


def _default_min_load(max_load: float) -> float:
    return DEFAULT_MIN_LOAD if max_load > DEFAULT_MIN_LOAD else max_load * MIN_LOAD_SHARE


def _remarks(max_load: float, generator_limit: float | None) -> tuple[str, ...]:
    if generator_limit is None or max_load <= generator_limit:
        return ()
    return (
        f"the maximum load ({format_frame_rate(max_load)}) is above what the generator can send "
        f"({format_frame_rate(generator_limit)})",
    )
