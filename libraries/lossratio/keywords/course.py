"""The course of a measurement that a keyword makes, from its announcement to the log."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

from robot.api import logger

from lossratio import results
from lossratio.keywords.live_view import Show, live_view, say, wants_provenance
from lossratio.keywords.session import Doubts, Session
from lossratio.measurements import TestPlace
from lossratio.traffic import TrafficProfile

if TYPE_CHECKING:
    from lossratio.testbed import Testbed

ResultT = TypeVar("ResultT", bound=results.TestResult)


def announce(text: str) -> None:
    """Shows on the console, on a separate line, what begins now."""
    say(f"\n{text}")


def describe_profile(profile: TrafficProfile) -> str:
    """The traffic in a few words."""
    ways = "both ways" if profile.bidirectional else "one way"
    return f"{profile.size_name} frames, {ways} (profile {profile.name})"


def show_result(
    session: Session, result: results.TestResult, directory: results.RunDirectory
) -> None:
    """Puts a result into the log, and in short into the test's message, and warns of doubts about it."""
    name = result.test.full_name
    notes = session.notes_shown(result)
    provenance = results.provenance(result)
    lines = results.as_text(notes)
    message = results.as_text(results.in_short(notes))
    if wants_provenance():
        message = f"{lines}\n{provenance}"
    session.messages[name] = results.in_columns(message.rstrip())

    files = {
        "result": directory.result_path(name),
        "journal of trials": directory.journal_path(name),
    }
    # Relative to the run's directory, where the log is.
    links = ", ".join(
        f'<a href="{quote(file.relative_to(directory.path).as_posix())}">{what}</a>'
        for what, file in files.items()
    )

    _log_new(session, name, "", lines)
    for entry in results.view_of(result).log(result):
        if isinstance(entry, str):
            logger.info(entry)
        else:
            logger.info(entry.svg, html=True)
    _log_new(session, name, "How it was measured:\n", provenance)
    if session.not_said(name, [links]):
        logger.info(f"Files: {links}", html=True)


def _log_new(session: Session, name: str, title: str, text: str) -> None:
    """Logs those lines about a result that are not in the log yet: a result may get its latency later."""
    new = session.not_said(name, text.splitlines())
    if new:
        logger.info(title + results.in_columns("\n".join(new)))


def measured(
    session: Session,
    what: str,
    measure: "Callable[[Testbed, TestPlace, Show], ResultT]",
    doubts: Doubts | None,
    resume: Path | None = None,
) -> ResultT:
    """Measures something, keeps the result as the suite's last one, and shows it.

    Raises:
        LossRatioError: If no testbed is set up, or the measurement fails.
        DoubtError: If there are doubts about the result, and the policy is to fail such tests.
    """
    place = session.place(resume)
    announce(what)
    testbed = session.ready_testbed()
    with live_view(testbed) as show:
        result = measure(testbed, place, show)
    session.last_result = result
    show_result(session, result, place.directory)
    session.judge([result], doubts)
    return result
