"""Keywords that require a minimum throughput, or no regression."""

from pathlib import Path

from robot.api import logger

from lossratio.keywords.arguments import FrameRate, typed_keyword
from lossratio.keywords.groups import Keywords
from lossratio.measurements.mrr_requirement import MRR_KINDS, require_mrr
from lossratio.measurements.throughput import require_throughput
from lossratio.results import TestResult


class CheckKeywords(Keywords):
    """Checks of a result against a rate or the history of results."""

    @typed_keyword()
    def throughput_should_be_at_least(
        self, least: FrameRate, goal: str | None = None, *, result: TestResult | None = None
    ) -> None:
        """Fails if the conditional throughput of a search is below ``least``.

        ``result`` is what the keyword of the search returned; by default, it is the last search of this suite.
        ``goal`` is the name of a goal of that search, e.g. ``PDR``; by default, it is the first one (NDR after
        `Find NDR And PDR`). Both rates are per transmitting interface. The keyword also fails if the search has no
        conditional throughput. It does not fail if the search is irregular because even the maximum load was forwarded.
        If the generator did not offer ``least``, nothing is known about the device: the infrastructure has failed
        (exit status 69).

        | `Find NDR And PDR`    frame_size=64B
        | `Throughput Should Be At Least`    50 kfps    goal=PDR

        | ${small} =    `Find NDR And PDR`    frame_size=64B
        | ${large} =    `Find NDR And PDR`    frame_size=1518B
        | `Throughput Should Be At Least`    50 kfps    result=${small}
        """
        require_throughput(result or self.session.last_with_goals, least, goal)

    @typed_keyword("MRR Should Be At Least")
    def mrr_should_be_at_least(self, least: FrameRate, *, result: TestResult | None = None) -> None:
        """Fails if an MRR is below ``least``.

        ``result`` is what `Measure MRR` or `Measure Connection MRR` returned; by default, it is the last MRR of this
        suite. Both rates are per transmitting interface, or connections per second. If the MRR is below ``least`` only
        because of frames that the generator did not send, nothing is known about the device: the infrastructure has
        failed (exit status 69). A load below ``least`` is an error.

        | `Measure MRR`    frame_size=64B
        | `MRR Should Be At Least`    50 kfps
        """
        require_mrr(result or self.session.last_of_kinds(MRR_KINDS), least)

    @typed_keyword()
    def throughput_should_not_have_regressed(
        self,
        history: Path,
        goal: str | None = None,
        fresh: int = 5,
        least_change: float = 1.0,
        *,
        result: TestResult | None = None,
    ) -> None:
        """Fails if a result is lower than earlier results on this testbed.

        ``result`` is what the keyword of a measurement returned; by default, it is the last result of this suite.
        ``history`` is the folder that ``lossratio trend --add`` keeps. It is read, and not changed. ``goal`` names a
        goal, e.g. ``PDR``, or ``MRR``; by default, everything that was measured is judged. The keyword uses
        the rule of ``lossratio trend``: a change counts if it began among the ``fresh`` newest results, is
        ``least_change`` per cent or more, and no known change explains it. Unlike ``lossratio trend``, the keyword
        does not wait for a second result that confirms the change. If the history has too few results, or the
        generator did not send enough, you get a warning, and no verdict.

        | `Find NDR And PDR`    frame_size=64B
        | `Throughput Should Not Have Regressed`    /srv/history    goal=PDR
        """
        # Imported here, because few suites have a history; a test compares the defaults with those of `TrendRequest`.
        from lossratio.report.history import History, describe_trend, require_no_regression

        trends = require_no_regression(
            History(history),
            result or self.session.last_result,
            goal,
            fresh=fresh,
            least_change=least_change / 100,
        )
        for trend in trends:
            log = logger.warn if trend.verdict.is_open else logger.info
            log(describe_trend(trend))
