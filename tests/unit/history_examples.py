"""Histories for tests: entries and series without measurements."""

from dataclasses import replace
from datetime import datetime, timedelta, timezone

from lossratio.report.history.series import Series, SeriesKey
from lossratio.results import LatencyPoint
from lossratio.values.units import FRAMES_PER_SECOND

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
    return {
        "testbed": testbed,
        "test": test,
        "quantity": quantity,
        "started": started,
        "seconds": 60.0,
        "value": value,
        "lower_bound": bounds[0],
        "upper_bound": bounds[1],
        "outcome": outcome,
        "reason": reason,
        "doubts": list(doubts),
        "lossratio_version": "0.1.0",
        "measured_as": measured_as,
        "unit": FRAMES_PER_SECOND.name,
        "lower_is_better": FRAMES_PER_SECOND.lower_is_better,
        "aggregate_factor": 1.0,
    }


def nightly(day, value, *, run="nightly", **changes):
    """A result of the run of a night."""
    began = START + timedelta(days=day)
    point = LatencyPoint("50 % of PDR", "west>east", 5.0 + day, 7.0, 9.0, 30.0)
    own = ("test", "quantity", "testbed", "outcome", "doubts", "measured_as")
    made = entry(day, value, **{name: changes.pop(name) for name in own if name in changes})
    more = {
        "run_started": began,
        "tags": ("64b", "l2"),
        "frame_size_bytes": 64.0,
        "build": "vpp 24.06",
        "latency": [vars(point)],
    }
    return {**made, "run": run, **more, **changes}


def series(values, kinds=None, measured_as=None):
    """A series of daily results; None: that result failed."""
    default = [() if value is not None else ("failed",) for value in values]
    columns = {
        "started": [START + timedelta(days=day) for day in range(len(values))],
        "value": values,
        "doubts": kinds or default,
        "reason": [None if value is not None else "agent lost" for value in values],
        "measured_as": measured_as or [None] * len(values),
        "aggregate_factor": [1.0] * len(values),
        "unit": [FRAMES_PER_SECOND.name] * len(values),
        "has_device": [True] * len(values),
    }
    return Series(SeriesKey("lab-1", "Suite.64B-ndrpdr", "NDR"), columns)


def with_columns(made, **columns):
    """A series with other columns."""
    return replace(made, columns={**made.columns, **columns})
