"""Alerts about trends, set up in a YAML file: each is the input of a command, which may be any program.

An alert says what changed, and where. A later alert says who explained the change, and why. Each
alert is sent once: a memory beside the file records the alerts that were sent, so the next night sends no second alert
about the same change. An alert that could not be sent is tried again.
"""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, BeforeValidator, Field

from lossratio.errors import ReportError, StorageError
from lossratio.files import (
    MOST_RECORDED_BYTES,
    CallError,
    load_yaml_file,
    parse_json,
    read_input_file,
    run_program,
    said_by,
    shown,
)
from lossratio.report import Verdict, write_report
from lossratio.report.history.trend import Trend
from lossratio.report.history.trend_formats import trend_as_data
from lossratio.report.history.trend_words import describe_trend
from lossratio.values import FileModel, FilePath, counted, in_one_line

FORMAT: Literal["lossratio-alerts/1"] = "lossratio-alerts/1"
_MOST_OUTPUT = 1_000_000
"""The most bytes that a command may print."""


def _in_words(command: object) -> object:
    """A command as the list of its words, if it is a text."""
    return shlex.split(command) if isinstance(command, str) else command


class Alert(FileModel):
    """An alert: the command that sends it, and the trends that it is for."""

    name: str = Field(min_length=1, max_length=100)
    """The alert's name in messages and in the memory."""
    command: Annotated[tuple[str, ...], Field(min_length=1), BeforeValidator(_in_words)]
    """The command on this machine that sends it, as a text or a list; it reads the alert from its standard input."""
    input: Literal["text", "json"] = "text"
    """The form of the command's input."""
    timeout: float = Field(default=20.0, gt=0.0, le=600.0)
    """Seconds that sending it may take."""
    testbed: str = "*"
    """Testbeds that the alert is for: a name, or a pattern with ``*``."""
    test: str = "*"
    """Tests that the alert is for: a full name, or a pattern with ``*``."""
    device: str = "*"
    """Devices with their options that the alert is for: words, or a pattern with ``*``."""
    quantity: str = "*"
    """Quantities that the alert is for: a name, or a pattern with ``*``."""


class _AlertsFile(FileModel):
    alerts: tuple[Alert, ...]
    memory: FilePath | None = None
    """File of the alerts that were sent, relative to this file. Left out: beside it, ``NAME.sent.json``."""


@dataclass(frozen=True)
class Alerts:
    """The alerts of a file."""

    alerts: tuple[Alert, ...]
    """The alerts."""
    memory: Path
    """The file of the alerts that were sent."""
    sent: Mapping[str, Mapping[str, datetime]]
    """What was sent before: for each alert and change, the time of the newest result that the alert was about."""

    @classmethod
    def load(cls, path: Path) -> "Alerts":
        """Reads a file of alerts, and checks that it can be used. It sends nothing.

        Raises:
            ReportError: If the file is wrong, or the memory cannot be read.
        """
        loaded = load_yaml_file(path, _AlertsFile, ReportError, check=_problems)
        memory = path.parent / (loaded.memory or f"{path.stem}.sent.json")
        if not memory.exists():
            return cls(loaded.alerts, memory, {})
        try:
            data = parse_json(read_input_file(memory, ReportError, MOST_RECORDED_BYTES))
            return cls(loaded.alerts, memory, _Memory.model_validate(data).sent)
        except ValueError as error:
            raise ReportError(
                f"{memory} is not a file of sent alerts. Remove it; alerts about lasting changes are then sent "
                "again."
            ) from error

    def send(self, trends: Sequence[Trend]) -> Iterator[str]:
        """Sends alerts about what is new in trends, and records them.

        Yields:
            A line for each alert that was sent or failed. A failure is no error: the trends matter more than their
            alerts.
        """
        sent = {name: dict(changes) for name, changes in self.sent.items()}
        for alert in self.alerts:
            changes = sent.setdefault(alert.name, {})
            news = [
                trend
                for trend in trends
                if trend.series.key.fits(alert) and _is_news(trend, changes)
            ]
            if not news:
                continue

            problem = _problem_of_sending(alert, news)
            if problem is not None:
                yield f"Alert {alert.name!r} was not sent and will be tried again next time: {problem}."
                continue

            yield f"Alert {alert.name!r} was sent: {counted(len(news), 'change')}."
            changes |= {_key(trend, trend.verdict): trend.series.times[-1] for trend in news}
            try:
                write_report(
                    self.memory, _Memory(format=FORMAT, sent=sent).model_dump_json(indent=1) + "\n"
                )
            except StorageError as error:
                reason = getattr(error.__cause__, "strerror", None) or error
                yield f"{self.memory} cannot be written ({reason}), and the next night will send this alert again."


def _problem_of_sending(alert: Alert, trends: Sequence[Trend]) -> str | None:
    """Runs the command of an alert about trends; returns why the alert was not sent, or None."""
    name = alert.command[0]
    given = f"{_as_input(alert, trends)}\n".encode()
    try:
        done = run_program(alert.command, stdin=given, timeout=alert.timeout, most=_MOST_OUTPUT)
    except CallError as error:
        return f"{name} {error}"
    if done.returncode == 0:
        return None
    printed = [output.decode(errors="replace") for output in (done.stdout, done.stderr)]
    said = shown(said_by(*printed))
    return f"{name} ended with exit status {done.returncode}: {said}"


def _as_input(alert: Alert, trends: Sequence[Trend]) -> str:
    """What the command of an alert reads: the text, or JSON with the text and the trends."""
    text = "\n\n".join("\n".join(_paragraph(trend)) for trend in trends)
    if alert.input == "text":
        return text
    return json.dumps({"text": text, "trends": [trend_as_data(trend) for trend in trends]})


def _paragraph(trend: Trend) -> Iterator[str]:
    key = trend.series.key
    yield f"What: {describe_trend(trend)}"
    device = f", device {key.device}" if key.device else ""
    yield in_one_line(f"Where: testbed {key.testbed}, test {key.test}, {key.quantity}{device}")
    yield f"Newest result: {trend.series.times[-1]:%Y-%m-%d %H:%M} UTC"


def _key(trend: Trend, verdict: Verdict) -> str:
    """The name of a trend in the memory."""
    return json.dumps([*vars(trend.series.key).values(), verdict.value])


def _is_news(trend: Trend, changes: Mapping[str, datetime]) -> bool:
    """Whether an alarm, or the explanation of an alarm that was sent, has not been sent yet."""

    def was_sent(verdict: Verdict) -> bool:
        # An alert covers everything that began before its newest result.
        last = changes.get(_key(trend, verdict))
        return last is not None and trend.began <= last

    is_answer = trend.verdict is Verdict.EXPLAINED and any(
        map(was_sent, (Verdict.REGRESSION, Verdict.NO_VALUE, Verdict.TESTER))
    )
    return (trend.is_news or is_answer) and not was_sent(trend.verdict)


class _Memory(BaseModel):
    format: Literal["lossratio-alerts/1"]
    sent: dict[str, dict[str, AwareDatetime]]


def _problems(loaded: _AlertsFile) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if not loaded.alerts:
        yield ("alerts",), "there is no alert; add one, or leave --alert out"
    names = [alert.name for alert in loaded.alerts]
    for index, alert in enumerate(loaded.alerts):
        if alert.name in names[:index]:
            yield ("alerts", index, "name"), f"another alert is called {alert.name!r}"
