"""The keyword that demands that nothing has regressed."""

from __future__ import annotations

from pathlib import Path

from robot.api import logger
from robot.api.deco import keyword

from lossratio.history import FRESH, LEAST_CHANGE
from lossratio.keywords.session import Keywords


class RegressionKeywords(Keywords):
    """Demands against the history of results."""

    @keyword
    def throughput_should_not_have_regressed(
        self, history: Path, goal: str | None = None, fresh: int = FRESH, least_change: float = 100 * LEAST_CHANGE
    ) -> None:
        """Fails if what was measured last in this suite is lower than it used to be on this testbed.

        ``history`` is the folder that ``lossratio trend --add`` keeps; it is read, and not changed. ``goal`` names
        a goal, e.g. ``PDR``, or ``MRR``; left out, it is everything that was measured. A change is found as
        ``lossratio trend`` finds it: it counts if it began among the ``fresh`` newest results, is of ``least_change``
        per cent or more, and no known change explains it. With too few results in the history, there is a warning, and
        no verdict.

        | `Find NDR And PDR`    frame_size=64B
        | `Throughput Should Not Have Regressed`    /srv/history    goal=PDR
        """
        # Imported here because pyarrow and DuckDB are an extra, and most suites need none of them.
        from lossratio.history import History, TrendVerdict, describe_trend, require_no_regression

        result = self.session.last_result
        trends = require_no_regression(History(history), result, goal, fresh=fresh, least_change=least_change / 100)
        for trend in trends:
            log = logger.warn if trend.verdict is TrendVerdict.TOO_FEW else logger.info
            log(describe_trend(trend))
