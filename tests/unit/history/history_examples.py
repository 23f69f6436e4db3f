"""Histories for tests: entries and series without measurements."""

from datetime import datetime, timedelta, timezone

import numpy as np

from lossratio.history.entries import Entry, Series, SeriesKey

START = datetime(2026, 1, 1, 3, 0, tzinfo=timezone.utc)


def entry(
    day,
    value,
    *,
    test="Suite.64B-ndrpdr",
    quantity="NDR",
    testbed="lab-1",
    outcome="measured",
    doubts=(),
    measured_as=None,
):
    reason = None if outcome == "measured" else "a reason"
    started = START + timedelta(days=day)
    bounds = (None, None) if value is None else (value, value * 1.005)
    return Entry(
        testbed, test, quantity, started, 60.0, value, *bounds, outcome, reason, tuple(doubts), "0.1.0", measured_as
    )


def series(values, kinds=None, measured_as=None):
    """A series of daily results; None: that result failed."""
    default = [frozenset() if value is not None else frozenset({"failed"}) for value in values]
    return Series(
        SeriesKey("lab-1", "Suite.64B-ndrpdr", "NDR"),
        tuple(START + timedelta(days=day) for day in range(len(values))),
        np.array([np.nan if value is None else value for value in values], dtype=float),
        tuple(kinds or default),
        tuple(None if value is not None else "agent lost" for value in values),
        measured_as or (None,) * len(values),
    )
