"""A tester of the Open Traffic Generator (OTG), asked over REST."""

from __future__ import annotations

import json
import ssl
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlsplit

from ..core.protocol import AgentError, Message

TESTER, TESTER_LOST = "tester", "server_lost"
"""Kinds of errors: it refused a request; it does not answer, or has forgotten its configuration."""

_LONGEST_SHOWN = 500
_MOST_BYTES = 1 << 24


class Tester:
    """A conversation with a tester at an address, e.g. ``https://10.0.0.5:8443``, whose certificate it may verify.

    An answer may take so many seconds (`timeout`).
    """

    def __init__(self, address: str, verify: bool, timeout: float) -> None:
        self.address = address
        self._verify = verify
        self._timeout = timeout
        self._connection: HTTPConnection | None = None

    def version(self) -> str:
        """Versions of the models that it speaks, and of itself."""
        answer = self.ask("GET", "/capabilities/version")
        return f"{answer.get('app_version') or 'unknown'} (OTG {answer.get('api_spec_version') or 'unknown'})"

    def configure(self, config: Message) -> None:
        """Gives it a configuration, in place of any other."""
        self.ask("POST", "/config", config)

    def transmit(self, state: str) -> None:
        """Starts or stops all flows."""
        flow_transmit = {"choice": "flow_transmit", "flow_transmit": {"state": state}}
        self.ask("POST", "/control/state", {"choice": "traffic", "traffic": flow_transmit})

    def metrics(self, kind: str) -> dict[str, Message]:
        """The metrics of all ports, or of all flows, by name."""
        answer = self.ask("POST", "/monitor/metrics", {"choice": kind, kind: {}})
        try:
            found = {str(each["name"]): each for each in answer.get(f"{kind}_metrics") or ()}
        except (KeyError, TypeError) as error:
            text = f"{self.address} answered with other metrics than those of its {kind}s."
            raise AgentError(TESTER, text) from error
        if not found:
            text = f"The tester {self.address} has no configuration any more: was it started anew?"
            raise AgentError(TESTER_LOST, text)
        return found

    def ask(self, method: str, path: str, contents: Any = None) -> Message:
        """Sends a request, and returns the answer."""
        body = None if contents is None else json.dumps(contents)
        try:
            connection = self._connection or self._connect()
            connection.request(method, path, body, {"Content-Type": "application/json"})
            response = connection.getresponse()
            data = response.read(_MOST_BYTES)
            self._connection = None if response.will_close else connection
            answer = json.loads(data or b"{}")
        except (OSError, HTTPException) as error:
            self.close()
            text = f"The tester {self.address} does not answer to {method} {path}: {error or type(error).__name__}."
            raise AgentError(TESTER_LOST, f"{text} Does it run, and is the generator's 'api' its address?") from error
        except ValueError as error:
            self.close()
            raise AgentError(TESTER, f"{self.address} answers to {method} {path}, but not with JSON.") from error
        if response.status >= 400 or not isinstance(answer, dict):
            errors = answer.get("errors") if isinstance(answer, dict) else None
            text = "; ".join(map(str, errors)) if isinstance(errors, list) else str(answer)
            raise AgentError(TESTER, f"The tester {self.address} refused {method} {path}: {text[:_LONGEST_SHOWN]}")
        return answer

    def close(self) -> None:
        """Ends the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _connect(self) -> HTTPConnection:
        address = urlsplit(self.address)
        if address.scheme != "https":
            return HTTPConnection(address.hostname or "", address.port, timeout=self._timeout)
        context = ssl.create_default_context()
        if not self._verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return HTTPSConnection(address.hostname or "", address.port, timeout=self._timeout, context=context)
