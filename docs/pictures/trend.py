"""Draws the trend of made-up nights with a regression into a file: trend.py PICTURE."""

import sys
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import numpy as np

from lossratio.report.history.annotations import KnownChange
from lossratio.report.history.page_of_trends import draw_trend
from lossratio.report.history.series import Series, SeriesKey
from lossratio.report.history.trend import trends_of
from lossratio.values.units import FRAMES_PER_SECOND

NIGHTS, NEW_KERNEL, FALL = 90, 30, 84
FIRST = datetime(2026, 1, 1, 3, tzinfo=timezone.utc)


def main(picture: Path) -> None:
    """Draws NDR of 90 nights: a known change that helped, and a fall that is an alarm."""
    values = 1.12e6 * (1.0 + 0.002 * np.random.default_rng(1).standard_normal(NIGHTS))
    values[NEW_KERNEL:] *= 1.04
    values[FALL:] *= 0.93
    columns = {
        "started": [FIRST + timedelta(days=night) for night in range(NIGHTS)],
        "value": values,
        "lower_bound": values,
        "upper_bound": 1.005 * values,
        "unit": [FRAMES_PER_SECOND.name] * NIGHTS,
    }
    series = Series(SeriesKey("lab-1", "64B-1c-eth-l2bdbase-ndrpdr", "NDR"), columns)
    known = [KnownChange(date=date(2026, 1, 31), note="kernel 6.12", by="ann")]
    picture.write_text(draw_trend(trends_of([series], known)[0], known) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
