"""Rates of a history: files have aggregates, and people see rates per interface."""

from collections.abc import Sequence
from typing import Any

_RATES = ("value", "lower_bound", "upper_bound", "most", "estimate")


def with_rates_per_interface(table: Any) -> Any:
    """A table of entries as in files, but with rates per interface."""
    factors = table.column("aggregate_factor").to_pylist()
    scaled = table
    for name in _RATES:
        aggregates = table.column(name).to_pylist()
        rates = list(map(_per_interface, aggregates, factors))
        scaled = _with_column(scaled, name, rates)
    return scaled


def _per_interface(rate: float | None, factor: float | None) -> float | None:
    """A rate per interface from an aggregate; a value without a factor is no rate, and stays as it is."""
    if rate is None or factor is None:
        return rate
    return rate / factor


def _with_column(table: Any, name: str, values: Sequence[Any]) -> Any:
    """The table with other values in a column. Without any value, it is unchanged, because its type is not known."""
    if all(value is None for value in values):
        return table
    index = table.schema.get_field_index(name)
    return table.set_column(index, table.schema.field(index), [values])
