"""Results of many runs: the store of entries, trends, annotations, the archive."""

from lossratio.history.alerts import Alerts
from lossratio.history.analysis import (
    Analysis,
    TrendRequest,
    add_runs,
    analyse,
    analyse_entries,
    known_changes,
    require_no_regression,
)
from lossratio.history.archive import RUNS, ObjectStore, Outbox, fetch_newest, is_url, open_history
from lossratio.history.entries import FAILED, Series
from lossratio.history.page_of_trends import address_of_run, trend_page
from lossratio.history.reading_series import BETWEEN, TELEMETRY, series_of_readings
from lossratio.history.store import History
from lossratio.history.trend import CONFIRM, FRESH, LAST, LEAST_CHANGE, LOOK_AT, Trend, TrendVerdict, describe_trend
from lossratio.history.trend_report import trend_cases, trend_json, trend_text

__all__ = [
    "BETWEEN",
    "CONFIRM",
    "FAILED",
    "FRESH",
    "LAST",
    "LEAST_CHANGE",
    "LOOK_AT",
    "RUNS",
    "TELEMETRY",
    "Alerts",
    "Analysis",
    "History",
    "ObjectStore",
    "Outbox",
    "Series",
    "Trend",
    "TrendRequest",
    "TrendVerdict",
    "add_runs",
    "address_of_run",
    "analyse",
    "analyse_entries",
    "describe_trend",
    "fetch_newest",
    "is_url",
    "known_changes",
    "open_history",
    "require_no_regression",
    "series_of_readings",
    "trend_cases",
    "trend_json",
    "trend_page",
    "trend_text",
]
