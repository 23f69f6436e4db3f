"""Results of many runs: the store of entries, trends, annotations, the archive."""

from lossratio.history.analysis import TrendRequest, add_runs, analyse, require_no_regression
from lossratio.history.archive import ObjectStore, Outbox, fetch_newest, is_url, open_history
from lossratio.history.entries import FAILED
from lossratio.history.store import History
from lossratio.history.trend import CONFIRM, FRESH, LAST, LEAST_CHANGE, LOOK_AT, TrendVerdict, describe_trend
from lossratio.history.trend_report import trend_cases, trend_page, trend_text

__all__ = [
    "CONFIRM",
    "FAILED",
    "FRESH",
    "LAST",
    "LEAST_CHANGE",
    "LOOK_AT",
    "History",
    "ObjectStore",
    "Outbox",
    "TrendRequest",
    "TrendVerdict",
    "add_runs",
    "analyse",
    "describe_trend",
    "fetch_newest",
    "is_url",
    "open_history",
    "require_no_regression",
    "trend_cases",
    "trend_page",
    "trend_text",
]
