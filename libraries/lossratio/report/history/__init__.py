"""Results of many runs: the store of entries, trends, annotations, the archive."""

from lossratio.report.history.alerts import Alerts
from lossratio.report.history.analysis import (
    Analysis,
    TrendRequest,
    add_runs,
    analyse,
    explain_alarms,
    require_no_regression,
)
from lossratio.report.history.archive import (
    ObjectStore,
    Outbox,
    fetch_newest,
    is_url,
    open_history,
    put_annotations,
)
from lossratio.report.history.entries import FAILED
from lossratio.report.history.page_of_trends import address_of_run, trend_page
from lossratio.report.history.series import Series
from lossratio.report.history.store import History
from lossratio.report.history.trend import LOOK_AT, Trend
from lossratio.report.history.trend_formats import trend_cases, trend_json, trend_text
from lossratio.report.history.trend_words import describe_trend
