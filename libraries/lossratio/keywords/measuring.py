"""One measurement of a test, from what is announced on the console to what stays in the log."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from lossratio.keywords.console import announce, show_result
from lossratio.keywords.session import Session
from lossratio.measurements import TestPlace
from lossratio.results import TestResult
from lossratio.testbed import Testbed

ResultT = TypeVar("ResultT", bound=TestResult)


def measured(
    session: Session, what: str, measure: Callable[[Testbed, TestPlace], ResultT], resume: Path | None = None
) -> ResultT:
    """Measures something, keeps the result as the suite's last one, and shows it.

    Args:
        session: The suite's session.
        what: What is announced.
        measure: Measures it on the testbed, and writes its files where the place says.
        resume: Directory of an earlier run to continue, in place of the one for the whole suite.

    Raises:
        LossRatioError: If no testbed is set up, or the measurement fails.
    """
    place = session.place(resume)
    announce(what)
    result = measure(session.ready_testbed(), place)
    session.last_result = result
    show_result(result, place.directory)
    return result
