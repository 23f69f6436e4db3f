"""The embedded generator's program: plain Linux packet sockets. It needs numpy."""

from ..core.configuration import Configuration
from ..core.protocol import Message
from .generator import AfPacketGenerator

__all__ = ["SENDS_BROADCASTS", "AfPacketGenerator", "make_generator"]

SENDS_BROADCASTS = True
"""It sends broadcast frames among a direction's frames."""


def make_generator(configuration: Configuration, options: Message) -> AfPacketGenerator:
    """Makes the generator; the options are its keyword arguments."""
    return AfPacketGenerator(configuration, **options)
