"""TRex's program for the agent: it talks to a TRex server. It needs no numpy."""

from ..core.configuration import Configuration
from ..core.protocol import Message
from .cards import CardWire
from .cards import open_wire as open_cards
from .connection import TrexSettings, load_library
from .generator import TrexGenerator

__all__ = ["TrexGenerator", "make_generator", "open_wire"]


def make_generator(configuration: Configuration, options: Message) -> TrexGenerator:
    """Makes the generator; the options are those of `TrexSettings`."""
    settings = TrexSettings.from_json(options)
    return TrexGenerator(configuration, settings, load_library(settings.directory))


def open_wire(options: Message) -> CardWire:
    """Opens the cards for single frames; the options are those of `TrexSettings`."""
    settings = TrexSettings.from_json(options)
    return open_cards(load_library(settings.directory), settings)
