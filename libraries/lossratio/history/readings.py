"""Series of readings: latency at each load, and numbers of the devices' telemetry. They explain values."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from lossratio.history.devices import Identity, lines_of
from lossratio.history.result_readings import CLOCKS, OF_NODES, Reading, latency_readings
from lossratio.history.series import Series, groups_of, made_series

_LATENCY, _TELEMETRY = "latency", "telemetry"
TOP_NODES = 8
"""How many graph nodes of a device are followed: those with the most clocks per packet."""
_OF_READINGS = [
    "started",
    "measured_as",
    "generator",
    "device",
    "build",
    "run",
    "tags",
    "frame_size_bytes",
    "latency",
    "readings",
]
_Key = tuple[str, str]
_Result = tuple[Mapping[str, Any], Mapping[str, Mapping[_Key, Reading]]]


def series_of_readings(table: Any, last: int, fresh: int) -> Iterator[Series]:
    """The series of the readings in a table of entries.

    Readings that the newest results do not have are left out, and so are graph nodes beyond the first `TOP_NODES`.
    """
    for key, rows in groups_of(table, ("testbed", "test")):
        results_of_test = _results_of_test(rows)
        # The quantities of a result belong to one device, whatever their goals are.
        identities = [Identity(one["device"], None, one["generator"]) for one, _ in results_of_test]
        lines: dict[int, list[_Result]] = {}
        numbers = lines_of(identities, [one["started"] for one, _ in results_of_test])
        for number, result in zip(numbers, results_of_test, strict=True):
            lines.setdefault(number, []).append(result)

        for line in lines.values():
            found = _of_test(key, line[-last:], fresh)
            yield from (
                (replace(series, mark=series.key.device) for series in found)
                if len(lines) > 1
                else found
            )


def _results_of_test(rows: Any) -> list[_Result]:
    """The results of a test. All entries of a result have its latency, and one of them has its readings."""
    by_time: dict[datetime, dict[str, Any]] = {}
    for entry in rows.select(_OF_READINGS).to_pylist():
        known = by_time.setdefault(entry["started"], entry)
        known["readings"] = known["readings"] or entry["readings"]
    return [(entry, _by_source(entry)) for _, entry in sorted(by_time.items())]


def _by_source(entry: Mapping[str, Any]) -> dict[str, dict[_Key, Reading]]:
    """The readings of a result: of its latency and of its telemetry."""
    telemetry = [Reading(**reading) for reading in entry["readings"] or ()]
    latency = latency_readings(entry["latency"] or ())
    return {_LATENCY: _by_key(latency), _TELEMETRY: _by_key(telemetry)}


def _by_key(readings: Iterable[Reading]) -> dict[_Key, Reading]:
    return {(reading.quantity, reading.place): reading for reading in readings}


def _of_test(test: tuple[str, str], rows: Sequence[_Result], fresh: int) -> Iterator[Series]:
    for source in (_LATENCY, _TELEMETRY):
        found = [(entry, by_source[source]) for entry, by_source in rows if by_source[source]]
        newest: dict[_Key, Reading] = {}
        for _, readings in found[-fresh:]:
            newest.update(readings)
        # The graph nodes with the most clocks per packet, of each device.
        clocks = sorted(
            (each for each in newest.values() if each.quantity == CLOCKS),
            key=lambda each: -each.value,
        )
        by_device: dict[str, list[str]] = {}
        for reading in clocks:
            by_device.setdefault(reading.place.rpartition(" ")[0], []).append(reading.place)
        top = {node for nodes in by_device.values() for node in nodes[:TOP_NODES]}

        for key, reading in newest.items():
            if reading.quantity not in OF_NODES or reading.place in top:
                yield _reading_series(
                    test, reading, [(entry, readings.get(key)) for entry, readings in found]
                )


def _reading_series(
    test: tuple[str, str],
    reading: Reading,
    found: Sequence[tuple[Mapping[str, Any], Reading | None]],
) -> Series:
    columns: dict[str, list[Any]] = {
        name: [entry[name] for entry, _ in found] for name in _OF_READINGS[:-2]
    }
    columns["value"] = [None if each is None else each.value for _, each in found]
    columns["reason"] = ["it has no such reading" if each is None else None for _, each in found]
    columns["unit"] = [reading.unit] * len(found)
    return made_series((*test, f"{reading.quantity}, {reading.place}"), columns, is_reading=True)
