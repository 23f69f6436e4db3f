"""Rates of a history: files have aggregates, and people see rates per interface."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from lossratio.units import FRAMES_PER_SECOND

_RATES = ("value", "lower_bound", "upper_bound", "most", "estimate")


class _Meaning(NamedTuple):
    """What the values of a row are. The fields are columns."""

    testbed: str
    test: str
    quantity: str
    measured_as: str | None
    unit: str | None
    aggregate_factor: float | None

    @property
    def keys(self) -> tuple[tuple[str, ...], ...]:
        """Keys that rows with the same factor share, the most certain key first."""
        return (
            (self.test, self.quantity, self.measured_as or "", "meaning"),
            (self.testbed, self.test, self.quantity),
            (self.test, self.quantity),
        )


def with_rates_per_interface(table: Any) -> Any:
    """A table of entries as in files, but with rates per interface, and the factor of each row.

    Entries of earlier versions lack the factor: it is taken from newer entries that measured the same. If there are
    none, their rates stay aggregates.
    """
    meanings = (table.column(name).to_pylist() for name in _Meaning._fields)
    factors = _factors([_Meaning(*row) for row in zip(*meanings, strict=True)])
    scaled = _with_column(table, "aggregate_factor", factors)
    for name in _RATES:
        aggregates = table.column(name).to_pylist()
        rates = list(map(_per_interface, aggregates, factors))
        scaled = _with_column(scaled, name, rates)
    return scaled


def _per_interface(rate: float | None, factor: float | None) -> float | None:
    """A rate per interface from an aggregate; without a factor, the rate stays as it is."""
    if rate is None or factor is None:
        return rate
    return rate / factor


def _factors(rows: Sequence[_Meaning]) -> list[float | None]:
    """The factor of each row; None: the row has no rates, or no newer entry has the factor."""
    known: dict[tuple[str, ...], float] = {}
    for row in rows:
        if row.aggregate_factor is not None:
            # The newest factors come last, and are kept.
            known.update(dict.fromkeys(row.keys, row.aggregate_factor))

    factors = []
    for row in rows:
        factor = row.aggregate_factor
        if factor is None and row.unit in (None, FRAMES_PER_SECOND.name):
            factor = next((known[key] for key in row.keys if key in known), None)
        factors.append(factor)
    return factors


def _with_column(table: Any, name: str, values: Sequence[Any]) -> Any:
    """The table with other values in a column. Without any value, it is unchanged, because its type is not known."""
    if all(value is None for value in values):
        return table
    index = table.schema.get_field_index(name)
    return table.set_column(index, table.schema.field(index), [values])
