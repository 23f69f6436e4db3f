"""The sinks of alerts, by the words that a file of alerts has for them.

Another package adds one by an entry point of the group ``lossratio.alert_sink``. The name of the entry point is the
word, and its object is a pydantic model that is a `lossratio.history.sinks.Sink`, too.
"""

from pydantic import BaseModel

from lossratio.errors import ReportError
from lossratio.history.sinks.sink import (
    Message as Message,
    NotSentError as NotSentError,
    Sink as Sink,
)
from lossratio.plugins import PluginGroup, own_entries

GROUP = "lossratio.alert_sink"
"""Group of the entry points."""
_OWN = {
    "webhook": "webhook:Webhook",
    "email": "mail:Email",
    "command": "command:Command",
    "apprise": "service:Service",
}
SINKS = PluginGroup(
    name=GROUP,
    what="way to send alerts",
    error=ReportError,
    own=own_entries(GROUP, {name: f"{__name__}.{place}" for name, place in _OWN.items()}),
)
"""The sinks that there are."""


def load_sink(name: str) -> type[Sink]:
    """Imports a sink.

    Raises:
        ReportError: If there is none or several of the name, or its package is broken.
    """
    sink = SINKS.load(name)
    if not (isinstance(sink, type) and issubclass(sink, Sink) and issubclass(sink, BaseModel)):
        raise SINKS.broken(
            SINKS.find(name), "is not a pydantic model that is a lossratio.history.sinks.Sink"
        )
    if sink.__abstractmethods__:
        raise SINKS.broken(SINKS.find(name), f"lacks {', '.join(sorted(sink.__abstractmethods__))}")
    return sink
