"""Keywords of RFC 2544 beside throughput, latency and frame loss rate: back-to-back frames, system recovery, reset."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from robot.api import logger
from robot.libraries.BuiltIn import BuiltIn

from lossratio.errors import SearchError, TrafficError
from lossratio.keywords.arguments import DEFAULT_PROFILE, FrameRate, FrameSize, typed_keyword
from lossratio.keywords.catalogue import RFC2544_FRAME_SIZES
from lossratio.keywords.live_view import live_view
from lossratio.keywords.measuring import announce, describe_profile, measured
from lossratio.keywords.session import Keywords
from lossratio.measurements import seconds_in_words
from lossratio.measurements.back_to_back import (
    BURST_REPEATS,
    LONGEST_BURST,
    SETTLE_TIME,
    BackToBackRequest,
    BackToBackResult,
    measure_back_to_back,
)
from lossratio.measurements.recovery import (
    OVERLOAD_DURATION,
    OVERLOAD_RATIO,
    RECOVERY_LIMIT,
    RECOVERY_REPEATS,
    RecoveryRequest,
    RecoveryResult,
    measure_recovery,
)
from lossratio.measurements.reset import (
    DEVICES,
    RESET_LEAD,
    RESET_LIMIT,
    RESET_REPEATS,
    ResetRequest,
    ResetResult,
    command_reset,
    measure_reset,
)
from lossratio.measurements.rfc2544 import (
    ALL_TESTS,
    FULL,
    QUICK,
    Modifier,
    Rfc2544Part,
    Rfc2544Request,
    Rfc2544Run,
    Rfc2544Test,
    modified,
    run_rfc2544,
    write_rfc2544_report,
)
from lossratio.mlrsearch import Forecast
from lossratio.results import message
from lossratio.testbed import describe_traffic
from lossratio.traffic import TrafficProfile, load_profile
from lossratio.trials import Integrity

_FRAME_SIZES = tuple(FrameSize(size) for size in RFC2544_FRAME_SIZES)


class Rfc2544Keywords(Keywords):
    """The tests of RFC 2544 that need the throughput."""

    @typed_keyword("Measure Back-To-Back Frames")
    def measure_back_to_back_frames(
        self,
        frame_size: FrameSize,
        profile: str = DEFAULT_PROFILE,
        *,
        throughput: FrameRate | None = None,
        repeats: int = BURST_REPEATS,
        longest_burst: timedelta = timedelta(seconds=LONGEST_BURST),
        step: int = 1,
        settle: timedelta = timedelta(seconds=SETTLE_TIME),
        loss_verification: bool = False,
        integrity: Integrity = Integrity.DOUBT,
        bidirectional: bool | None = None,
        max_load: FrameRate | None = None,
        resume: Path | None = None,
    ) -> BackToBackResult:
        """Measures the longest burst without loss (RFC 2544, section 26.4, by RFC 9004), and returns the result.

        Bursts have the rate ``max_load``. Each search is a bisection over the length of the burst, from
        ``longest_burst`` (30 s at most) to a difference of ``step`` frames. There are as many searches as ``repeats``;
        the result has their average, minimum, maximum and standard deviation, and the buffer time. After each burst
        there is no traffic for at least the time ``settle``, or for as long as the burst took. With
        ``loss_verification`` a burst with loss is sent once more, and only loss in both counts.

        The buffer time needs the ``throughput`` of the same traffic without loss. Left out, it is that of the last
        search of this suite, if that had the same traffic and a goal without loss. If no burst loses a frame, the
        result is "at least", and irregular. The other arguments are described under `Arguments of measurements`.

        | `Find Conditional Throughput`    RFC2544    frame_size=64B
        | `Measure Back-To-Back Frames`    frame_size=64B
        | `Measure Back-To-Back Frames`    64B    throughput=1 Mpps    repeats=50
        """
        traffic = load_profile(profile, frame_size=frame_size, bidirectional=bidirectional)
        request = BackToBackRequest(
            traffic,
            self._throughput(traffic, throughput),
            max_load,
            repeats,
            step,
            longest_burst.total_seconds(),
            loss_verification,
            settle.total_seconds(),
            integrity,
        )
        return measured(
            self.session,
            f"Measuring back-to-back frames: {describe_profile(traffic)}",
            lambda testbed, place, show: measure_back_to_back(testbed, request, place, show),
            resume,
        )

    @typed_keyword()
    def measure_system_recovery(
        self,
        frame_size: FrameSize,
        profile: str = DEFAULT_PROFILE,
        *,
        throughput: FrameRate | None = None,
        repeats: int = RECOVERY_REPEATS,
        overload: float = OVERLOAD_RATIO,
        duration: timedelta = timedelta(seconds=OVERLOAD_DURATION),
        limit: timedelta = timedelta(seconds=RECOVERY_LIMIT),
        rest: timedelta = timedelta(),
        integrity: Integrity = Integrity.DOUBT,
        bidirectional: bool | None = None,
        max_load: FrameRate | None = None,
        resume: Path | None = None,
    ) -> RecoveryResult:
        """Measures how long frames are lost after an overload (RFC 2544, section 26.5), and returns the result.

        The load is ``overload`` times the throughput (``max_load`` at most) for ``duration``, which RFC 2544 wants to
        be 60 s at least. Then it drops to half without a gap, for the time ``limit``. The recovery time is that from
        the change to the sending of the last lost frame. There are as many repetitions as ``repeats``.

        The ``throughput`` is that of the same traffic without loss. Left out, it is that of the last search of this
        suite, if that had the same traffic and a goal without loss. A device that still loses frames at the end of the
        limit has no recovery time, and the result is irregular; so it is where there is no overload, because the
        throughput is the maximum load. The other arguments are described under `Arguments of measurements`.

        | `Find Conditional Throughput`    RFC2544    frame_size=64B
        | `Measure System Recovery`    frame_size=64B
        | `Measure System Recovery`    64B    throughput=1 Mpps    duration=5 s    limit=2 s
        """
        traffic = load_profile(profile, frame_size=frame_size, bidirectional=bidirectional)
        request = RecoveryRequest(
            traffic,
            self._throughput(traffic, throughput),
            max_load,
            repeats,
            duration.total_seconds(),
            overload,
            limit.total_seconds(),
            integrity,
            rest.total_seconds(),
        )
        return measured(
            self.session,
            f"Measuring system recovery: {describe_profile(traffic)}",
            lambda testbed, place, show: measure_recovery(testbed, request, place, show),
            resume,
        )

    @typed_keyword()
    def measure_reset_time(
        self,
        frame_size: FrameSize,
        profile: str = DEFAULT_PROFILE,
        *,
        throughput: FrameRate | None = None,
        command: str | None = None,
        keyword: str | None = None,
        hitless: bool = False,
        repeats: int = RESET_REPEATS,
        lead: timedelta = timedelta(seconds=RESET_LEAD),
        limit: timedelta = timedelta(seconds=RESET_LIMIT),
        rest: timedelta = timedelta(),
        integrity: Integrity = Integrity.DOUBT,
        bidirectional: bool | None = None,
        max_load: FrameRate | None = None,
        resume: Path | None = None,
    ) -> ResetResult:
        """Measures how long a device forwards nothing after a reset (RFC 6201), and returns the result.

        Traffic flows at ``throughput`` for the time ``lead``; then comes the reset, and the time ``limit``. The result
        has the time without forwarding by time stamps and by frame loss, for as many repetitions as ``repeats``.

        The reset is a software reset of each device that lossratio has set up: programs are killed and started anew,
        a bridge goes down and up. ``command`` is a command of your own on this machine, such as a switchable socket or
        a login on the device; it is an error if it fails. ``keyword`` is a keyword of yours. A reset after which no
        frame is lost is an error, unless ``hitless`` says that the device forwards through resets.

        The ``throughput`` is that of the same traffic without loss, or less. Left out, it is that of the last search of
        this suite, if that had the same traffic and a goal without loss. The other arguments are described under
        `Arguments of measurements`.

        | `Measure Reset Time`    frame_size=64B    throughput=100 kpps
        | `Measure Reset Time`    64B    throughput=1 Mpps    command=ssh admin@box reload    limit=2 min
        """
        reset, name = _reset(command, keyword)
        traffic = load_profile(profile, frame_size=frame_size, bidirectional=bidirectional)
        request = ResetRequest(
            traffic,
            self._throughput(traffic, throughput),
            max_load,
            reset,
            name,
            hitless=hitless,
            repeats=repeats,
            lead=lead.total_seconds(),
            limit=limit.total_seconds(),
            integrity=integrity,
            rest=rest.total_seconds(),
        )
        return measured(
            self.session,
            f"Measuring the reset time: {describe_profile(traffic)}",
            lambda testbed, place, show: measure_reset(testbed, request, place, show),
            resume,
        )

    @typed_keyword("Run RFC 2544")
    def run_rfc_2544(
        self,
        *tests: Rfc2544Test,
        frame_sizes: tuple[FrameSize, ...] = _FRAME_SIZES,
        profile: str = DEFAULT_PROFILE,
        quick: bool = False,
        command: str | None = None,
        keyword: str | None = None,
        modifier: Modifier | None = None,
        modifier_commands: tuple[str, ...] = (),
        integrity: Integrity = Integrity.DOUBT,
        bidirectional: bool | None = None,
        max_load: FrameRate | None = None,
        resume: Path | None = None,
    ) -> Rfc2544Run:
        """Performs the tests of RFC 2544 over ``frame_sizes``, and writes the report that the RFC asks for.

        ``tests`` are ``throughput``, ``latency``, ``frame loss``, ``back-to-back``, ``recovery`` and ``reset``; left
        out, all of them. Throughput is always measured, as the others need it; the reset is made at the first frame
        size. ``command`` and ``keyword`` are the reset, as of `Measure Reset Time`. ``quick`` takes a hundredth of the
        time, to try things out.

        ``modifier`` is one of RFC 2544, sections 11 and 12: ``addresses`` has random destinations, ``broadcast`` 1 % of
        broadcast frames, ``management`` a query in each second, ``routing updates`` one of two updates every 30 s, and
        ``filters`` those that the testbed was set up with. A query and both updates are ``modifier_commands`` on this
        machine. The RFC wants all tests without any modifier first, and then with each one alone: call the keyword
        again.

        Before the first test, the console has the time that all will take. Each test of each frame size has a result of
        its own; a run that was interrupted continues in the middle. A test that fails does not end the others, and the
        keyword fails at the end. The report is in ``rfc2544.html`` (one page, which prints well), ``rfc2544.json`` and
        ``rfc2544.csv`` in the output directory. The other arguments are described under `Arguments of measurements`.

        | `Run RFC 2544`
        | `Run RFC 2544`    throughput    back-to-back    frame_sizes=["64B", "1518B", "9000B"]    quick=True
        | `Run RFC 2544`    modifier=management    modifier_commands=["snmpget -v2c -c public box sysUpTime.0"]
        """
        profiles = [
            modified(load_profile(profile, frame_size=size, bidirectional=bidirectional), modifier)
            for size in frame_sizes
        ]
        reset, name = _reset(command, keyword)
        request = Rfc2544Request(
            profiles,
            tests or ALL_TESTS,
            QUICK if quick else FULL,
            max_load,
            reset,
            name,
            modifier,
            modifier_commands,
            integrity,
        )
        place = self.session.place(resume)
        testbed = self.session.ready_testbed()
        with live_view(testbed) as show:
            run = run_rfc2544(
                testbed,
                request,
                place,
                on_forecast=_show_forecast,
                on_progress=show,
                on_part=_show_part,
            )
        for path in write_rfc2544_report(run, place.directory.path):
            logger.info(f'Report: <a href="{path.name}">{path.name}</a>', html=True)
            logger.console(f"lossratio: {path}")
        if run.problems:
            raise TrafficError(
                f"{len(run.problems)} of {len(run.parts)} tests have no result: {'; '.join(run.problems)}"
            )
        return run

    def _throughput(self, traffic: TrafficProfile, given: float | None) -> float | None:
        """The throughput without loss, given or of the last search with the same traffic; None: not known."""
        search = self.session.last_search
        if given is not None or search is None or describe_traffic(search.profile) != describe_traffic(traffic):
            return given
        for report in search.result.goals:
            if report.goal.loss_ratio == 0.0 and report.result is not None and report.result.conditional_throughput:
                return report.result.conditional_throughput.per_interface_fps
        return None


def _reset(command: str | None, keyword: str | None) -> tuple[Callable[[], object] | None, str]:
    """The reset, and its name in results.

    Raises:
        SearchError: If both are given.
    """
    if command is not None and keyword is not None:
        raise SearchError("A reset is a command or a keyword; give one of them.")
    if command is not None:
        return command_reset(command), f"command: {command}"
    if keyword is not None:
        return lambda: BuiltIn().run_keyword(keyword), f"keyword: {keyword}"
    return None, DEVICES


def _show_forecast(measurements: int, forecast: Forecast) -> None:
    expected, low, high = (seconds_in_words(seconds) for seconds in (forecast.seconds, forecast.low, forecast.high))
    announce(f"RFC 2544: {measurements} measurements, {expected} ({low} to {high})")


def _show_part(part: Rfc2544Part) -> None:
    text = f"no result: {part.problem}" if part.result is None else message(part.result)
    logger.info(f"{part.frame_size} {part.test.value}\n{text}")
    announce(f"{part.frame_size} {part.test.value}: {text.splitlines()[0]}")
    if part.problem is not None:
        logger.warn(f"RFC 2544, {part.frame_size} {part.test.value}: {part.problem}")
