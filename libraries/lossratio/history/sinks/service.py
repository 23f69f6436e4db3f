"""Alerts by the library apprise: chats, telephones and pagers of more than a hundred services.

Apprise limits the time of each connection, but not the total time. So it runs in a separate process, `apprise_program`,
which is ended when the time is over. Apprise does not replace `Webhook`, which posts your own data, or `Email`, which
needs no further package. Both say why they failed, while apprise only logs the reason.
"""

import json
import re
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field, RootModel, field_validator

from lossratio import callouts
from lossratio.history.sinks.sink import Message, NotSentError, Sink
from lossratio.plugins import how_to_install

_LIBRARY = "apprise"
_MOST_OUTPUT = 100_000
_PROGRAM = Path(__file__).with_name("apprise_program.py")


class Service(RootModel[Annotated[str, Field(min_length=1)]], Sink):
    """The address of a service, as apprise writes it; ``$NAME`` is taken from the environment."""

    @field_validator("root")
    @classmethod
    def _has_no_password(cls, address: str) -> str:
        if not re.match(r"^([a-z0-9]+://\S*|\$\S+)$", address):
            raise ValueError(
                "must be an address for apprise, such as slack://..., or the $NAME of a variable"
            )
        if urlsplit(address).password and "$" not in address:
            raise ValueError("a password does not belong in a file; use the $NAME of a variable")
        return address

    def variables(self) -> Iterable[str]:
        """The variables in its address."""
        return callouts.variables_in(self.root)

    def problem(self) -> str | None:
        """The problem, if any: apprise is not installed, or does not understand the address."""
        if find_spec(_LIBRARY) is None:
            return f"apprise is not installed: {how_to_install('alerts')}"
        # Slow to import, and hardly ever needed.
        from lossratio.history.sinks.apprise_program import service_at

        if service_at(callouts.with_variables(self.root)) is None:
            return "apprise does not understand this address: see https://github.com/caronc/apprise/wiki"
        return None

    def send(self, message: Message, timeout: float) -> None:
        """Has apprise send subject and text, in a separate process that may take this many seconds.

        Raises:
            NotSentError: If the process fails, or takes too long.
        """
        given = {
            "address": callouts.with_variables(self.root),
            "subject": message.subject,
            "text": message.text,
            "timeout": timeout,
        }
        command = (sys.executable, str(_PROGRAM))
        try:
            done = callouts.run_program(
                command, stdin=json.dumps(given).encode(), timeout=timeout, most=_MOST_OUTPUT
            )
        except callouts.CallError as error:
            raise NotSentError(f"apprise {error}") from error

        if done.returncode != 0:
            printed = done.stdout.decode(errors="replace").strip()
            raise NotSentError(f"apprise: {printed or 'it failed'}")
