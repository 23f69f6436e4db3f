from datetime import datetime, timedelta, timezone

import pytest

from lossratio.measurements import measurement
from lossratio.measurements.measurement import Span

NOON = datetime(2026, 10, 25, 12, tzinfo=timezone.utc)


@pytest.mark.parametrize("jump", [timedelta(hours=-1), timedelta(hours=1)])
def test_a_clock_that_is_set_meanwhile_changes_no_length(monkeypatch, jump):
    class SetClock(datetime):
        times = iter([NOON, NOON + jump])

        @classmethod
        def now(cls, tz=None):
            return next(cls.times)

    monkeypatch.setattr(measurement, "datetime", SetClock)
    monkeypatch.setattr(measurement.time, "monotonic", iter([7.0, 67.0]).__next__)
    measured = Span()
    assert (measured.started, measured.end()) == (NOON, NOON + timedelta(minutes=1))
