"""The sinks of alerts, by their names in a file of alerts.

Another package adds a sink with an entry point of the group ``lossratio.alert_sink``. The name of the entry point is
the sink's name, and its object is a pydantic model that is also a `lossratio.history.sinks.Sink`.
"""

from pydantic import BaseModel

from lossratio.errors import ReportError
from lossratio.history.sinks.sink import (
    Message as Message,
    NotSentError as NotSentError,
    Sink as Sink,
)
from lossratio.plugins import plugin_group

SINKS = plugin_group(
    "lossratio.alert_sink",
    what="way to send alerts",
    error=ReportError,
    base="lossratio.history.sinks.Sink",
    room=__name__,
    own={"webhook": "webhook:Webhook", "email": "mail:Email", "command": "command:Command"},
)
"""All sinks."""


def load_sink(name: str) -> type[Sink]:
    """Imports a sink.

    Raises:
        ReportError: If there is no sink with this name, or several, or its package is broken.
    """
    sink = SINKS.load_class(name, Sink)
    if not issubclass(sink, BaseModel):
        raise SINKS.broken(SINKS.find(name), "is not a pydantic model")
    return sink
