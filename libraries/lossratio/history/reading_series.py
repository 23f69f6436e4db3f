"""Series of readings: latency and telemetry of each test over its nights.

Their trends are computed as the trends of values are, and are no alarms (`lossratio.history.trend`).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, TypeAlias

import numpy as np

from lossratio.history.entries import Series, SeriesKey, groups_of
from lossratio.history.readings import CLOCKS, OF_NODES, Reading, latency_readings
from lossratio.units import Unit

LATENCY, TELEMETRY = "latency", "telemetry"
"""Where readings come from."""

BETWEEN = ", "
"""What is between the quantity and the place in the name of a series of readings."""

TOP_NODES = 8
"""How many graph nodes of a device are followed: those with the most clocks per packet."""

_COLUMNS = ["started", "measured_as", "generator", "run", "tags", "frame_size_bytes", "latency", "readings"]
_Key: TypeAlias = tuple[str, str]
_Result: TypeAlias = tuple[Mapping[str, Any], Mapping[str, Mapping[_Key, Reading]]]
"""The entry of a result, and its readings by their sources."""


def series_of_readings(
    table: Any, last: int, fresh: int, sources: Sequence[str] = (LATENCY, TELEMETRY)
) -> Iterator[Series]:
    """The series of the readings in a table of entries.

    Those that the newest results have not are left out, and so are graph nodes beyond the first `TOP_NODES`.
    """
    for key, rows in groups_of(table, ("testbed", "test")):
        yield from _of_test(key, _results(rows, last), fresh, sources)


def _results(rows: Any, last: int) -> list[_Result]:
    """The newest results of a test. The entries of a result all have its latency, and one has its readings."""
    by_time: dict[datetime, dict[str, Any]] = {}
    for entry in rows.select(_COLUMNS).to_pylist():
        known = by_time.setdefault(entry["started"], entry)
        known["readings"] = known["readings"] or entry["readings"]
    return [
        (
            entry,
            {
                LATENCY: _by_key(latency_readings(entry["latency"] or ())),
                TELEMETRY: _by_key(Reading(**reading) for reading in entry["readings"] or ()),
            },
        )
        for _, entry in sorted(by_time.items())[-last:]
    ]


def _by_key(readings: Iterable[Reading]) -> dict[_Key, Reading]:
    return {(reading.quantity, reading.place): reading for reading in readings}


def _of_test(test: tuple[str, str], results: Sequence[_Result], fresh: int, sources: Sequence[str]) -> Iterator[Series]:
    for source in sources:
        found = [(entry, by_source[source]) for entry, by_source in results if by_source[source]]
        newest: dict[_Key, Reading] = {}
        for _, readings in found[-fresh:]:
            newest.update(readings)
        # The graph nodes with the most clocks per packet, of each device.
        clocks = sorted((each for each in newest.values() if each.quantity == CLOCKS), key=lambda each: -each.value)
        by_device: dict[str, list[str]] = {}
        for reading in clocks:
            by_device.setdefault(reading.place.rpartition(" ")[0], []).append(reading.place)
        top = {node for nodes in by_device.values() for node in nodes[:TOP_NODES]}
        for key, reading in newest.items():
            if reading.quantity not in OF_NODES or reading.place in top:
                yield _series(test, reading, [(entry, readings.get(key)) for entry, readings in found])


def _series(
    test: tuple[str, str], reading: Reading, found: Sequence[tuple[Mapping[str, Any], Reading | None]]
) -> Series:
    entries = [entry for entry, _ in found]
    return Series(
        SeriesKey(*test, f"{reading.quantity}{BETWEEN}{reading.place}"),
        tuple(entry["started"] for entry in entries),
        np.array([np.nan if each is None else each.value for _, each in found]),
        (frozenset(),) * len(found),
        tuple("it has no such reading" if each is None else None for _, each in found),
        tuple(entry["measured_as"] for entry in entries),
        Unit(reading.unit),
        tuple(entry["generator"] for entry in entries),
        runs=tuple(entry["run"] for entry in entries),
        tags=tuple(entries[-1]["tags"] or ()),
        frame_size_bytes=entries[-1]["frame_size_bytes"],
        is_reading=True,
    )
