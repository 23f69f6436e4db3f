"""What is seen while a measurement runs, and what stays of it in the log."""

from __future__ import annotations

from urllib.parse import quote

from robot.api import logger
from robot.libraries.BuiltIn import BuiltIn

from lossratio.measurements import Progress, progress_line, soak_progress_line
from lossratio.measurements.frame_loss import draw_frame_loss
from lossratio.measurements.latency import draw_latency
from lossratio.measurements.soak import SoakProgress, draw_soak
from lossratio.measurements.throughput import draw_loss, draw_spectra, search_picture
from lossratio.results import (
    FrameLossResult,
    LatencyResult,
    Result,
    RunDirectory,
    SoakResult,
    ThroughputResult,
    bounds_history,
    faults_with_sizes,
    format_regularity,
    integrity_of,
    message,
    trials_in_words,
)
from lossratio.testbed import MAX_LOAD_REMARK
from lossratio.traffic import TrafficProfile


def announce(text: str) -> None:
    """Tells on the console what begins now, on a line of its own."""
    logger.console(f"\n{text}")


def show_progress(progress: Progress) -> None:
    """Tells on the console where a search is after a trial, in one line."""
    line = progress_line(
        progress.number,
        progress.trial,
        progress.bounds,
        progress.time_left,
        progress.purpose,
        rule=progress.rule,
    )
    logger.console(line)


def show_soak_progress(progress: SoakProgress) -> None:
    """Tells on the console where a soak test is after a trial, in one line."""
    latest = progress.latest
    interval = None if latest is None else (latest.mean, latest.low, latest.high)
    line = soak_progress_line(progress.number, progress.trial, interval, progress.time_left)
    logger.console(line if progress.set_aside is None else f"{line}  (set aside: {progress.set_aside})")


def describe_profile(profile: TrafficProfile) -> str:
    """What the traffic is, in a few words."""
    size = profile.frame_size if isinstance(profile.frame_size, str) else f"{profile.frame_size}B"
    ways = "both ways" if profile.bidirectional else "one way"
    return f"{profile.name}, {size}, {ways}"


def show_result(result: Result, directory: RunDirectory) -> None:
    """Puts a result into the log and the test's message."""
    text = message(result)
    if isinstance(result, LatencyResult) or (isinstance(result, ThroughputResult) and result.latency):
        logger.info(draw_latency(result.latency, result.test.name), html=True)
    elif isinstance(result, ThroughputResult):
        logger.info(trials_in_words(result.trials))
        for picture in (search_picture(result), draw_loss(result, bounds_history(result)), draw_spectra(result)):
            logger.info(picture, html=True)
        for report in result.goals:
            if report.result is not None and not report.result.regular:
                logger.warn(f"{result.test.full_name}: {report.goal.name} is {format_regularity(report)}")
    elif isinstance(result, FrameLossResult) and result.frame_loss is not None:
        logger.info(draw_frame_loss(result.frame_loss, result.test.name), html=True)
    elif isinstance(result, SoakResult):
        logger.info(draw_soak(result), html=True)
        if result.critical_load is not None and result.critical_load.reason is not None:
            logger.warn(f"{result.test.full_name}: irregular: {result.critical_load.reason}")
    seen = integrity_of(result)
    if seen is not None and seen.faults:
        logger.warn(f"{result.test.full_name}: frames did not come back as they were sent: {faults_with_sizes(seen)}")
    for remark in result.remarks:
        if remark.startswith(MAX_LOAD_REMARK):
            logger.warn(f"{result.test.full_name}: {remark}")
    logger.info(_links(result.test.full_name, directory), html=True)
    if BuiltIn().get_variable_value("${TEST NAME}") is None:
        logger.info(text)
    else:
        # This puts it into the log, too.
        BuiltIn().set_test_message(text)


def _links(test_name: str, directory: RunDirectory) -> str:
    """Links to the files of a test, as seen from the run's directory, where the log is."""
    files = {"result": directory.result_path(test_name), "journal of trials": directory.journal_path(test_name)}
    links = {what: quote(file.relative_to(directory.path).as_posix()) for what, file in files.items()}
    return "Files: " + ", ".join(f'<a href="{link}">{what}</a>' for what, link in links.items())
