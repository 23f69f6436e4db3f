"""The course of a measurement that a keyword makes, from its announcement to the log."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

from robot.api import logger
from robot.libraries.BuiltIn import BuiltIn

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
    """Puts a result into the log and the test's message, and warns of doubts about it."""
    view = results.view_of(result)
    provenance = results.in_columns(results.provenance(result))
    name = result.test.full_name

    for entry in view.log(result):
        if isinstance(entry, str):
            logger.info(entry)
        else:
            logger.info(entry.svg, html=True)

    for finding in view.quantities(result):
        if finding.outcome is results.Outcome.IRREGULAR and not finding.is_as_before:
            session.warn_once(result, f"{finding.quantity} is {finding.outcome_in_words}")
    for note in result.remarks:
        if note.kind is results.NoteKind.ABOVE_LIMIT:
            session.warn_once(result, note.text)

    notes = session.notes_shown(result)
    session.in_short[name] = results.in_columns(results.as_text(results.in_short(notes)))
    text = results.in_columns(results.as_text(notes))
    if provenance and wants_provenance():
        text = f"{text}\n{provenance}"
    elif provenance:
        logger.info(f"How it was measured:\n{provenance}")

    files = {
        "result": directory.result_path(name),
        "journal of trials": directory.journal_path(name),
    }
    # Relative to the run's directory, where the log is.
    links = {
        what: quote(file.relative_to(directory.path).as_posix()) for what, file in files.items()
    }
    logger.info(
        "Files: " + ", ".join(f'<a href="{link}">{what}</a>' for what, link in links.items()),
        html=True,
    )

    if BuiltIn().get_variable_value("${TEST NAME}") is None:
        logger.info(text)
    else:
        # This also puts the message into the log.
        BuiltIn().set_test_message(session.message_with(result, text))


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
