"""Alerts by e-mail."""

import os
import smtplib
import ssl
from collections.abc import Iterable
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, model_validator

from lossratio import callouts
from lossratio.history.sinks.sink import Message, NotSentError, Sink, VariableName
from lossratio.records import FileModel
from lossratio.wrong_values import Like

_HERE = ("localhost", "127.0.0.1", "::1")

Address = Annotated[str, Like(r"^[^@\s<>,;]+@[^@\s<>,;]+$", "an address, such as lab@example.org")]


class Email(FileModel, Sink):
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
    password_from: VariableName | None = None
    """Name of the environment variable with the password."""

    @model_validator(mode="after")
    def _is_safe(self) -> "Email":
        if not self.to:
            raise ValueError("the mail has no recipient; add at least one address to 'to'")
        if (self.user is None) != (self.password_from is None):
            raise ValueError(
                "a log-in needs both 'user' and 'password_from' (the name of an environment variable)"
            )
        if self.user is not None and self.security == "none" and self.host not in _HERE:
            raise ValueError("a password is not sent without encryption; use security: starttls")
        return self

    def variables(self) -> Iterable[str]:
        """The variable with the password."""
        if self.password_from is None:
            return ()
        return (self.password_from,)

    def send(self, message: Message, timeout: float) -> None:
        """Sends one mail to all receivers. Each answer of the server may take at most `timeout` seconds.

        Raises:
            NotSentError: If the server cannot be reached, or refuses the mail or a receiver.
        """
        mail = EmailMessage()
        mail["Subject"] = " ".join(message.subject.split())
        mail["From"] = self.sender
        mail["To"] = ", ".join(self.to)
        mail["Date"] = formatdate()
        mail["Message-ID"] = make_msgid(domain="lossratio")
        mail.set_content(message.text + "\n")
        password = "" if self.password_from is None else os.environ[self.password_from]
        context = ssl.create_default_context()

        try:
            with (
                smtplib.SMTP_SSL(self.host, self.port, timeout=timeout, context=context)
                if self.security == "tls"
                else smtplib.SMTP(self.host, self.port, timeout=timeout)
            ) as server:
                if self.security == "starttls":
                    server.starttls(context=context)
                if self.user is not None:
                    server.login(self.user, password)
                refused = server.send_message(mail)
        except (OSError, smtplib.SMTPException, ValueError) as error:
            # A server may repeat the password in its answer.
            said = str(error) if not password else str(error).replace(password, "***")
            raise NotSentError(
                f"{self.host}, port {self.port}: {callouts.shown(said or type(error).__name__)}"
            ) from error

        if refused:
            raise NotSentError(
                f"{self.host} refused {', '.join(refused)}; the other recipients received the mail"
            )
