"""Series: one quantity of one test on one testbed, in the order of time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt

from lossratio.units import FRAMES_PER_SECOND, Unit

MEASURED = "measured"
"""Outcome of a result that was measured as requested."""

FAILED = "failed"
"""Outcome of a result that could not be measured."""


@dataclass(frozen=True)
class SeriesKey:
    """The testbed, test and quantity of a series.

    Attributes:
        testbed: Name of the testbed.
        test: Full name of the test.
        quantity: Name of the goal, or MRR.
    """

    testbed: str
    test: str
    quantity: str

    def __str__(self) -> str:
        return f"{self.test}, {self.quantity}, on {self.testbed}"


@dataclass(frozen=True)
class Series:
    """One quantity of one test on one testbed.

    Attributes:
        key: Its testbed, test and quantity.
        times: When its results were measured.
        values: Values in the unit, rates as aggregates; NaN: the result has no value.
        kinds: Of each result: ``irregular`` or ``failed``, and kinds of doubts.
        reasons: Why a result is irregular or failed; None: it was measured.
        measured_as: Distinguishes results of other traffic, paths, goals or units; None: not known.
        unit: The unit of the newest result.
    """

    key: SeriesKey
    times: tuple[datetime, ...]
    values: npt.NDArray[np.float64]
    kinds: tuple[frozenset[str], ...]
    reasons: tuple[str | None, ...]
    measured_as: tuple[str | None, ...]
    unit: Unit = FRAMES_PER_SECOND

    def chosen(self, places: Sequence[int]) -> Series:
        """The series of some of the results, by their indices."""
        return replace(
            self,
            times=tuple(self.times[place] for place in places),
            values=self.values[list(places)],
            kinds=tuple(self.kinds[place] for place in places),
            reasons=tuple(self.reasons[place] for place in places),
            measured_as=tuple(self.measured_as[place] for place in places),
        )

    def like_newest(self) -> Series:
        """The results with the traffic, path and goal of the newest one, as far as these are known."""
        newest = self.measured_as[-1]
        if newest is None:
            return self
        return self.chosen([place for place, meaning in enumerate(self.measured_as) if meaning in (None, newest)])


def series_of(table: Any, last: int) -> Iterator[Series]:
    """The series of a table of entries.

    Args:
        table: Entries from `lossratio.history.History.read`, sorted by testbed, test, quantity and time.
        last: How many of the newest results of each series are kept.
    """
    names = [table.column(name).to_pylist() for name in ("testbed", "test", "quantity")]
    keys = list(zip(*names, strict=True))
    starts = [index for index, key in enumerate(keys) if index == 0 or key != keys[index - 1]]
    for start, end in zip(starts, [*starts[1:], len(keys)], strict=True):
        first = max(start, end - last)
        yield _series(SeriesKey(*keys[start]), table.slice(first, end - first))


def _series(key: SeriesKey, rows: Any) -> Series:
    outcomes, doubts = rows.column("outcome").to_pylist(), rows.column("doubts").to_pylist()
    values = rows.column("value").to_numpy(zero_copy_only=False).astype(np.float64)
    return Series(
        key,
        tuple(rows.column("started").to_pylist()),
        values,
        tuple(
            frozenset((*(kinds or ()), *(() if outcome == MEASURED else (outcome,))))
            for outcome, kinds in zip(outcomes, doubts, strict=True)
        ),
        tuple(rows.column("reason").to_pylist()),
        tuple(rows.column("measured_as").to_pylist()),
        _unit(rows),
    )


def _unit(rows: Any) -> Unit:
    """The unit of the newest row. Earlier versions had one unit only, and did not write it."""
    name, lower_is_better = (rows.column(column)[-1].as_py() for column in ("unit", "lower_is_better"))
    return FRAMES_PER_SECOND if name is None else Unit(name, bool(lower_is_better))
