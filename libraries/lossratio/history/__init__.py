"""Results of many runs: the store of entries, trends, annotations, the archive."""

from lossratio.history.alerts import Alerts
from lossratio.history.analysis import (
    Analysis,
    TrendRequest,
    add_runs,
    analyse,
    explain_alarms,
    require_no_regression,
)
from lossratio.history.archive import (
    ObjectStore,
    Outbox,
    fetch_newest,
    is_url,
    open_history,
    put_annotations,
)
from lossratio.history.entries import FAILED
from lossratio.history.page_of_trends import address_of_run, trend_page
from lossratio.history.series import Series
from lossratio.history.store import History
from lossratio.history.trend import LOOK_AT, NO_VERDICT, Trend, TrendVerdict
from lossratio.history.trend_formats import trend_cases, trend_json, trend_text
from lossratio.history.trend_words import describe_trend
