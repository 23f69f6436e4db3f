"""The keyword for all tests of RFC 2544, with their report."""

from pathlib import Path

from robot.api import logger

from lossratio.errors import TrafficError
from lossratio.keywords.arguments import (
    DEFAULT_PROFILE,
    FrameRate,
    FrameSize,
    FrameSizes,
    typed_keyword,
)
from lossratio.keywords.course import announce
from lossratio.keywords.groups import Keywords
from lossratio.keywords.live_view import live_view, say
from lossratio.keywords.measurements import run_keyword
from lossratio.keywords.session import Doubts
from lossratio.measurements import rfc2544
from lossratio.measurements.reset import reset_of
from lossratio.mlrsearch import Forecast
from lossratio.results import message
from lossratio.traffic import RFC2544_FRAME_SIZES, load_profile
from lossratio.trials import Integrity
from lossratio.values import counted, format_duration, range_in_words, tests_counted

_FRAME_SIZES = FrameSizes(FrameSize(f"{size}B") for size in RFC2544_FRAME_SIZES)


class Rfc2544Keywords(Keywords):
    """All tests of RFC 2544."""

    @typed_keyword("Run RFC 2544")
    def run_rfc_2544(
        self,
        *tests: rfc2544.Rfc2544Test,
        frame_sizes: FrameSizes = _FRAME_SIZES,
        profile: str = DEFAULT_PROFILE,
        quick: bool = False,
        command: str | None = None,
        keyword: str | None = None,
        integrity: Integrity = Integrity.DOUBT,
        bidirectional: bool | None = None,
        max_load: FrameRate | None = None,
        doubts: Doubts | None = None,
        resume: Path | None = None,
    ) -> rfc2544.Rfc2544Run:
        """Performs the tests of RFC 2544 over ``frame_sizes``, and writes the report that the RFC asks for.

        ``tests`` are ``throughput``, ``latency``, ``frame loss``, ``back-to-back``, ``recovery`` and ``reset``; the
        default is all of them. Throughput is always measured, because the others need it. The reset is only measured at
        the first frame size; ``command`` and ``keyword`` choose how to reset, as for `Measure Reset Time`. ``quick``
        takes a hundredth of the time, to try things out.

        Before the first test, the console shows how long all tests will take. Each test of each frame size has its own
        result, so an interrupted run can continue in the middle. If a test fails, the others still run, and the keyword
        fails at the end. The report is in ``rfc2544.html`` (one page, which prints well), ``rfc2544.json`` and
        ``rfc2544.csv`` in the output directory. The other arguments are described under `Arguments of measurements`.

        | `Run RFC 2544`
        | `Run RFC 2544`    throughput    back-to-back    frame_sizes=64B,1518B,9000B    quick=True
        """
        profiles = [
            load_profile(profile, frame_size=size, bidirectional=bidirectional)
            for size in frame_sizes
        ]
        request = rfc2544.Rfc2544Request(
            profiles,
            tests or rfc2544.ALL_TESTS,
            rfc2544.QUICK if quick else rfc2544.FULL,
            max_load,
            integrity=integrity,
            **reset_of(command, keyword, run_keyword),
        )

        def show_part(part: rfc2544.Rfc2544Part) -> None:
            _show_part(part)
            if part.result is not None:
                self.session.notes_shown(part.result)

        place = self.session.place(resume)
        testbed = self.session.ready_testbed()
        with live_view(testbed) as show:
            run = rfc2544.run_rfc2544(
                testbed,
                request,
                place,
                on_forecast=_show_forecast,
                on_progress=show,
                on_part=show_part,
            )
        for path in rfc2544.write_rfc2544_report(run, place.directory.path):
            logger.info(f'Report: <a href="{path.name}">{path.name}</a>', html=True)
            say(f"Report: {path}")
        if run.problems:
            listed = "; ".join(run.problems)
            raise TrafficError(
                f"{len(run.problems)} of {tests_counted(len(run.parts))} have no result: {listed}"
            )
        self.session.judge([part.result for part in run.parts if part.result is not None], doubts)
        return run


def _show_forecast(measurements: int, forecast: Forecast) -> None:
    expected, low, high = (
        format_duration(seconds) for seconds in (forecast.seconds, forecast.low, forecast.high)
    )
    announce(
        f"RFC 2544: {counted(measurements, 'measurement')}, {expected} ({range_in_words(low, high)})"
    )


def _show_part(part: rfc2544.Rfc2544Part) -> None:
    text = f"no result: {part.problem}" if part.result is None else message(part.result)
    logger.info(f"{part.frame_size} {part.test.value}\n{text}")
    announce(f"{part.frame_size} {part.test.value}: {text.splitlines()[0]}")
    if part.problem is not None:
        logger.warn(f"RFC 2544, {part.frame_size} {part.test.value}: {part.problem}")
