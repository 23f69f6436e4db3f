"""Alerts by HTTP requests."""

import json
import re
from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import Field, JsonValue, field_validator

from lossratio import callouts
from lossratio.history.sinks.sink import Message, NotSentError, Sink
from lossratio.quantities import RESOLVED
from lossratio.records import FileModel

_TEXT = "{text}"
_SHOWN = 200
_ADDRESS = re.compile(r"https?://", re.IGNORECASE)


class Webhook(FileModel, Sink):
    """An HTTP request with the alert as JSON."""

    url: str
    """Its address; ``$NAME`` is taken from the environment, because addresses of chats are secret."""
    headers: dict[str, str] = Field(default_factory=dict)
    """Headers; ``$NAME`` in a value is taken from the environment."""
    body: Annotated[JsonValue, RESOLVED] = None
    """The JSON to send; ``{text}`` in its texts is the alert. Left out: ``text`` and ``trends``."""

    @field_validator("url")
    @classmethod
    def _is_address(cls, url: str) -> str:
        if not re.match(r"^(https?://\S+|\$\S+)$", url):
            raise ValueError("must begin with http://, https:// or the $NAME of a variable")
        callouts.refuse_password(url)
        return url

    def variables(self) -> Iterable[str]:
        """The variables in its address and its headers."""
        return callouts.variables_in(self.url, *self.headers.values())

    def send(self, message: Message, timeout: float) -> None:
        """Posts the data, or the body with the text. The request may take at most `timeout` seconds.

        Raises:
            NotSentError: If there is no server, no answer in time, or a status other than success.
        """
        url = callouts.with_variables(self.url)
        if not _ADDRESS.match(url):
            raise NotSentError(
                "the address of the webhook must begin with http:// or https://; correct its environment variable"
            )

        headers = {name: callouts.with_variables(value) for name, value in self.headers.items()}
        if self.body is None:
            body = message.data
        else:
            body = _filled(self.body, message.data["text"])

        try:
            callouts.http_request(
                url,
                method="POST",
                body=json.dumps(body).encode(),
                headers={"Content-Type": "application/json"} | headers,
                timeout=timeout,
                most=_SHOWN,
            )
        except callouts.CallError as error:
            place = callouts.without_secrets(url).split("/")[2] or "the webhook"
            if isinstance(error, callouts.AnswerError):
                said = f" answered with {error}"
            else:
                said = f": {error}"

            raise NotSentError(f"{place.partition(':')[0]}{said}") from error


def _filled(data: Any, text: str) -> Any:
    if isinstance(data, str):
        return data.replace(_TEXT, text)
    if isinstance(data, list):
        return [_filled(item, text) for item in data]
    if isinstance(data, dict):
        return {key: _filled(value, text) for key, value in data.items()}
    return data
