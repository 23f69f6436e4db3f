"""Results of many runs: the store of entries, trends, annotations, the archive."""

from lossratio.history.alerts import Alerts
from lossratio.history.analysis import (
    Analysis,
    TrendRequest,
    add_runs,
    analyse,
    analyse_entries,
    explain_alarms,
    known_changes,
    require_no_regression,
)
from lossratio.history.archive import (
    RUNS,
    ObjectStore,
    Outbox,
    fetch_newest,
    is_url,
    open_history,
    put_annotations,
)
from lossratio.history.devices import LINE
from lossratio.history.entries import FAILED, IRREGULAR
from lossratio.history.page_of_trends import address_of_run, trend_page
from lossratio.history.readings import BETWEEN, TELEMETRY, series_of_readings
from lossratio.history.series import Series, with_rates_per_interface
from lossratio.history.store import History
from lossratio.history.trend import LOOK_AT, NO_VERDICT, Trend, TrendVerdict
from lossratio.history.trend_formats import trend_cases, trend_json, trend_text
from lossratio.history.trend_words import describe_trend
