"""The embedded generator's program: plain Linux packet sockets. It needs numpy."""

from ..core.configuration import Configuration
from ..core.protocol import Message
from .generator import AfPacketGenerator

__all__ = ["AfPacketGenerator", "make_generator"]


def make_generator(configuration: Configuration, options: Message) -> AfPacketGenerator:
    """Makes the generator; the options are its keyword arguments."""
    return AfPacketGenerator(configuration, **options)
