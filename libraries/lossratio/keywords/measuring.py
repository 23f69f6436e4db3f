"""One measurement of a test: what is announced, what is seen while it runs, and what stays of it in the log."""

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from robot.api import logger
from robot.libraries.BuiltIn import BuiltIn

from lossratio.keywords.live_view import Show, live_view, say
from lossratio.keywords.session import Session
from lossratio.measurements import TestPlace
from lossratio.results import MEMORY_REMARK, RunDirectory, TestResult, faults_with_sizes, integrity_of, view_of
from lossratio.testbed import MAX_LOAD_REMARK, Testbed
from lossratio.traffic import TrafficProfile

ResultT = TypeVar("ResultT", bound=TestResult)


def announce(text: str) -> None:
    """Shows on the console what begins now, on a line of its own."""
    say(f"\n{text}")


def describe_profile(profile: TrafficProfile) -> str:
    """The traffic in a few words."""
    size = profile.frame_size if isinstance(profile.frame_size, str) else f"{profile.frame_size}B"
    ways = "both ways" if profile.bidirectional else "one way"
    return f"{profile.name}, {size}, {ways}"


def show_result(result: TestResult, directory: RunDirectory) -> None:
    """Puts a result into the log and the test's message."""
    text, view = str(result), view_of(result)
    for entry in view.log(result):
        if isinstance(entry, str):
            logger.info(entry)
        else:
            logger.info(entry.svg, html=True)
    for warning in view.warnings(result):
        logger.warn(f"{result.test.full_name}: {warning}")
    seen = integrity_of(result)
    if seen is not None and seen.faults:
        logger.warn(f"{result.test.full_name}: frames did not come back as they were sent: {faults_with_sizes(seen)}")
    for remark in result.remarks:
        if remark.startswith((MAX_LOAD_REMARK, MEMORY_REMARK)):
            logger.warn(f"{result.test.full_name}: {remark}")
    name = result.test.full_name
    files = {"result": directory.result_path(name), "journal of trials": directory.journal_path(name)}
    # As seen from the run's directory, where the log is.
    links = {what: quote(file.relative_to(directory.path).as_posix()) for what, file in files.items()}
    logger.info("Files: " + ", ".join(f'<a href="{link}">{what}</a>' for what, link in links.items()), html=True)
    if BuiltIn().get_variable_value("${TEST NAME}") is None:
        logger.info(text)
    else:
        # This puts it into the log, too.
        BuiltIn().set_test_message(text)


def measured(
    session: Session, what: str, measure: Callable[[Testbed, TestPlace, Show], ResultT], resume: Path | None = None
) -> ResultT:
    """Measures something, keeps the result as the suite's last one, and shows it.

    Raises:
        LossRatioError: If no testbed is set up, or the measurement fails.
    """
    place = session.place(resume)
    announce(what)
    testbed = session.ready_testbed()
    with live_view(testbed) as show:
        result = measure(testbed, place, show)
    session.last_result = result
    show_result(result, place.directory)
    return result
