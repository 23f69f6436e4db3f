"""Alerts about trends: by a webhook, by e-mail, or by a command, as a YAML file says.

An alert says what changed, where, and how sure that is; and later who explained it, and why. It is sent once: a memory
beside the file has the alerts that were sent, and the next night sends no second one for the same change. An alert that
could not be sent is tried again.
"""

import json
import os
import re
import shlex
import smtplib
import ssl
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import numpy as np
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, JsonValue, field_validator, model_validator

from lossratio import callouts
from lossratio.errors import ReportError, StorageError
from lossratio.history.trend import ALARMS, LOOK_AT, Trend, TrendVerdict, describe_trend, missing_in_a_row
from lossratio.input_file import MOST_RECORDED_BYTES, parse_json, read_input_file
from lossratio.records import FileModel
from lossratio.report import write_report
from lossratio.yaml_file import load_yaml_file

FORMAT: Literal["lossratio-alerts/1"] = "lossratio-alerts/1"
_VARIABLE_NAME = r"^[A-Za-z_][A-Za-z0-9_]*$"
_TEXT = "{text}"
_HERE = ("localhost", "127.0.0.1", "::1")
_SHOWN = 200
_MOST_OUTPUT = 1_000_000
_ADDRESS = re.compile(r"https?://", re.IGNORECASE)

Address = Annotated[str, Field(pattern=r"^[^@\s<>,;]+@[^@\s<>,;]+$")]


class Webhook(FileModel):
    """An HTTP request with the alert as JSON."""

    url: str
    """Its address; ``$NAME`` is taken from the environment, as addresses of chats are secrets."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Headers; ``$NAME`` in a value is taken from the environment."""
    body: JsonValue = None
    """The JSON to send; ``{text}`` in its texts is the alert. Left out: ``text`` and ``trends``."""

    @field_validator("url")
    @classmethod
    def _is_address(cls, url: str) -> str:
        if not re.match(r"^(https?://\S+|\$\S+)$", url):
            raise ValueError("an address begins with http://, https:// or the $NAME of a variable")
        if urlsplit(url).password:
            raise ValueError("a password does not belong in a file; use headers: {Authorization: $NAME}")
        return url


class Email(FileModel):
    """A mail by SMTP."""

    model_config = ConfigDict(populate_by_name=True)

    host: str = Field(min_length=1)
    """The mail server."""
    port: int = Field(default=587, ge=1, le=65535)
    """Its port."""
    security: Literal["starttls", "tls", "none"] = "starttls"
    """``none`` sends no password, except to this machine."""
    sender: Address = Field(alias="from")
    """The sender."""
    to: tuple[Address, ...]
    """The receivers."""
    user: str | None = None
    """Name to log in with; left out: no log-in."""
    password_from: str | None = Field(default=None, pattern=_VARIABLE_NAME)
    """Name of the environment variable with the password."""

    @model_validator(mode="after")
    def _is_safe(self) -> "Email":
        if not self.to:
            raise ValueError("a mail needs a receiver in 'to'")
        if (self.user is None) != (self.password_from is None):
            raise ValueError("a log-in needs both, 'user' and 'password_from', the name of an environment variable")
        if self.user is not None and self.security == "none" and self.host not in _HERE:
            raise ValueError("a password is not sent without encryption; use security: starttls")
        return self


class Alert(FileModel):
    """An alert: a way to send it, and which trends it is for."""

    name: str = Field(min_length=1, max_length=100)
    """Its name in messages and in the memory."""
    webhook: Webhook | None = None
    """An HTTP request."""
    email: Email | None = None
    """A mail."""
    command: str | tuple[str, ...] | None = Field(default=None, min_length=1)
    """A command of this machine, as one text or as a list; it reads the text from its standard input."""
    input: Literal["text", "json"] = "text"
    """What the command reads."""
    timeout: float = Field(default=20.0, gt=0.0, le=600.0)
    """Seconds that it may take."""
    testbed: str = "*"
    """Testbeds that it is for: a name, or a pattern with ``*``."""
    test: str = "*"
    """Full names of tests, likewise."""
    quantity: str = "*"
    """Quantities, likewise."""

    @model_validator(mode="after")
    def _has_one_way(self) -> "Alert":
        ways = [way for way in ("webhook", "email", "command") if getattr(self, way) is not None]
        if len(ways) != 1:
            raise ValueError(f"an alert is one of webhook, email and command, and this one has {len(ways)} of them")
        if self.command is not None and not self.words:
            raise ValueError("the command is empty")
        return self

    @property
    def words(self) -> tuple[str, ...]:
        """The command with its arguments."""
        return tuple(shlex.split(self.command)) if isinstance(self.command, str) else tuple(self.command or ())

    def variables(self) -> Iterator[str]:
        """Names of the environment variables that it needs."""
        if self.webhook is not None:
            yield from callouts.variables_in(self.webhook.url, *self.webhook.headers.values())
        if self.email is not None and self.email.password_from is not None:
            yield self.email.password_from


class _AlertsFile(FileModel):
    alerts: tuple[Alert, ...]
    memory: Path | None = None
    """File of the alerts that were sent; relative to this file. Left out: beside it, ``NAME.sent.json``."""


@dataclass(frozen=True)
class Alerts:
    """The alerts of a file."""

    alerts: tuple[Alert, ...]
    """The alerts."""
    memory: Path
    """The file of the alerts that were sent."""
    sent: Mapping[str, Mapping[str, datetime]]
    """What was sent before: by alert and change, when the newest result was measured that it was about."""

    @classmethod
    def load(cls, path: Path) -> "Alerts":
        """Reads a file of alerts, and checks that it can be used: nothing is sent.

        Raises:
            ReportError: If the file is wrong, a variable of the environment is missing, or the memory cannot be read.
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
                f"{memory} is no memory of alerts. Remove it: alerts of changes that last are then sent once more."
            ) from error

    def send(self, trends: Sequence[Trend]) -> Iterator[str]:
        """Sends what is new about trends, and remembers it.

        Yields:
            A line for each alert that was sent or failed. A failure is no error: the trends are more than their alerts.
        """
        sent = {name: dict(changes) for name, changes in self.sent.items()}
        for alert in self.alerts:
            changes = sent.setdefault(alert.name, {})
            news = [trend for trend in trends if trend.series.key.fits(alert) and _is_news(trend, changes)]
            if not news:
                continue
            try:
                text = "\n\n".join("\n".join(_paragraph(trend)) for trend in news)
                if alert.webhook is not None:
                    _request(alert.webhook, text, news, alert.timeout)
                elif alert.email is not None:
                    _mail(alert.email, alert_subject(news), text, alert.timeout)
                else:
                    _command(alert, text, news)
            except _NotSentError as error:
                yield f"Alert {alert.name!r} was not sent, and is tried again next time: {error}."
                continue
            yield f"Alert {alert.name!r} was sent: {len(news)} {'change' if len(news) == 1 else 'changes'}."
            changes |= {_key(trend): trend.series.times[-1] for trend in news}
            try:
                write_report(self.memory, _Memory(format=FORMAT, sent=sent).model_dump_json(indent=1) + "\n")
            except StorageError as error:
                reason = getattr(error.__cause__, "strerror", None) or error
                yield f"{self.memory} cannot be written ({reason}), so the next night sends this alert once more."


def alert_subject(trends: Sequence[Trend]) -> str:
    """What an alert is about, in one line."""
    first = trends[0]
    size = "" if first.change is None else f" of {abs(100 * first.change.ratio):.2f} %"
    more = f", and {len(trends) - 1} more" if len(trends) > 1 else ""
    what = "a change of the tester" if first.verdict is TrendVerdict.TESTER else first.verdict.value
    return f"lossratio: {what}{size}: {first.series.key}{more}"


def _paragraph(trend: Trend) -> Iterator[str]:
    key = trend.series.key
    yield f"What: {describe_trend(trend)}"
    yield f"Where: testbed {key.testbed}, test {key.test}, {key.quantity}"
    yield f"How sure: {how_sure(trend)}"
    yield f"Newest result: {trend.series.times[-1]:%Y-%m-%d %H:%M} UTC"


def how_sure(trend: Trend) -> str:
    """How sure an alarm is, in words: the results that agree, and the size of the change over the usual scatter.

    The scatter is the standard deviation of the values of the step before the change.
    """
    if trend.verdict is TrendVerdict.NO_VALUE or trend.change is None:
        missing = missing_in_a_row(trend.series)
        more = f", and so have {missing} in a row" if missing > 1 else "; one only, so far"
        return f"certain: the newest result has no value{more}"
    finite = np.flatnonzero(np.isfinite(trend.series.values))
    values = trend.series.values[finite]
    if trend.bands is not None:
        values = trend.bands.lowered(values)
    change = trend.change
    older = next(step for step in reversed(trend.steps) if step.mean == change.before)
    before = values[(finite >= older.first) & (finite <= older.last)]
    newest = values[-LOOK_AT:]
    worse = int(np.count_nonzero(np.abs(newest - change.after) < np.abs(newest - change.before)))
    since = int(np.count_nonzero(finite >= trend.series.times.index(change.began)))
    said = f"{worse} of the {len(newest)} newest results agree, {since} since the change"
    scatter = float(before.std(ddof=1)) if len(before) > 2 else 0.0
    if scatter > 0.0:
        size = abs(change.ratio * change.before if np.isfinite(change.ratio) else change.after) / scatter
        said += f"; the change is {size:.3g} times the scatter of the {len(before)} results before"
    return said + ("; the values are in two bands, of which this is the lower one" if trend.bands is not None else "")


def _key(trend: Trend, verdict: TrendVerdict | None = None) -> str:
    return json.dumps([*vars(trend.series.key).values(), (verdict or trend.verdict).value])


def _is_news(trend: Trend, changes: Mapping[str, datetime]) -> bool:
    """Whether no alert was sent for an alarm; or for the explanation of one, to those who got the alarm."""

    def was_sent(verdict: TrendVerdict) -> bool:
        # An alert is about all that began before its newest result.
        last = changes.get(_key(trend, verdict))
        return last is not None and trend.began <= last

    is_answer = trend.verdict is TrendVerdict.EXPLAINED and any(map(was_sent, (*ALARMS, TrendVerdict.TESTER)))
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
        for variable in alert.variables():
            if variable not in os.environ:
                yield ("alerts", index), f"the environment variable {variable} is not set; export it before"


class _NotSentError(Exception):
    """An alert could not be sent."""


def _as_data(text: str, trends: Sequence[Trend]) -> dict[str, Any]:
    return {
        "text": f"{alert_subject(trends)}\n\n{text}",
        "trends": [
            {
                **asdict(trend.series.key),
                "verdict": trend.verdict.value,
                "ratio": trend.change.ratio if trend.change is not None and np.isfinite(trend.change.ratio) else None,
                "began": trend.began.isoformat(),
                "how_sure": how_sure(trend),
            }
            for trend in trends
        ],
    }


def _request(webhook: Webhook, text: str, trends: Sequence[Trend], timeout: float) -> None:
    data = _as_data(text, trends)
    url = callouts.with_variables(webhook.url)
    if not _ADDRESS.match(url):
        raise _NotSentError("the address of the webhook begins with neither http:// nor https://")
    headers = {name: callouts.with_variables(value) for name, value in webhook.headers.items()}
    try:
        callouts.http_request(
            url,
            method="POST",
            body=json.dumps(data if webhook.body is None else _filled(webhook.body, data["text"])).encode(),
            headers={"Content-Type": "application/json"} | headers,
            timeout=timeout,
            most=_SHOWN,
        )
    except callouts.CallError as error:
        place = callouts.without_secrets(url).split("/")[2] or "the webhook"
        said = f" answered with {error}" if isinstance(error, callouts.AnswerError) else f": {error}"
        raise _NotSentError(f"{place.partition(':')[0]}{said}") from error


def _mail(email: Email, subject: str, text: str, timeout: float) -> None:
    message = EmailMessage()
    message["Subject"] = " ".join(subject.split())
    message["From"], message["To"] = email.sender, ", ".join(email.to)
    message["Date"], message["Message-ID"] = formatdate(), make_msgid(domain="lossratio")
    message.set_content(text + "\n")
    password = "" if email.password_from is None else os.environ[email.password_from]
    context = ssl.create_default_context()
    try:
        with (
            smtplib.SMTP_SSL(email.host, email.port, timeout=timeout, context=context)
            if email.security == "tls"
            else smtplib.SMTP(email.host, email.port, timeout=timeout)
        ) as server:
            if email.security == "starttls":
                server.starttls(context=context)
            if email.user is not None:
                server.login(email.user, password)
            refused = server.send_message(message)
    except (OSError, smtplib.SMTPException, ValueError) as error:
        # A server may repeat the password in its answer.
        said = str(error) if not password else str(error).replace(password, "***")
        raise _NotSentError(
            f"{email.host}, port {email.port}: {callouts.shown(said or type(error).__name__)}"
        ) from error
    if refused:
        raise _NotSentError(f"{email.host} refused {', '.join(refused)}; others got it")


def _command(alert: Alert, text: str, trends: Sequence[Trend]) -> None:
    words = alert.words
    given = json.dumps(_as_data(text, trends)) if alert.input == "json" else text
    try:
        done = callouts.run_program(words, stdin=f"{given}\n".encode(), timeout=alert.timeout, most=_MOST_OUTPUT)
    except callouts.CallError as error:
        raise _NotSentError(f"{words[0]} {error}") from error
    if done.returncode != 0:
        said = callouts.shown((done.stderr or done.stdout).decode(errors="replace").strip() or "it printed nothing")
        raise _NotSentError(f"{words[0]} ended with exit status {done.returncode}: {said}")


def _filled(data: Any, text: str) -> Any:
    if isinstance(data, str):
        return data.replace(_TEXT, text)
    if isinstance(data, list):
        return [_filled(item, text) for item in data]
    return {key: _filled(value, text) for key, value in data.items()} if isinstance(data, dict) else data
