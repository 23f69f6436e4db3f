"""TRex's program for the agent: it talks to a TRex server. It needs no numpy."""

from ..core.configuration import Configuration
from ..core.protocol import Message
from .connection import TrexSettings, load_library
from .generator import TrexGenerator

__all__ = ["TrexGenerator", "make_generator"]


def make_generator(configuration: Configuration, options: Message) -> TrexGenerator:
    """Makes the generator; the options are those of `TrexSettings`."""
    settings = TrexSettings.from_json(options)
    return TrexGenerator(configuration, settings, load_library(settings.directory))
