"""The program that speaks to a tester of the Open Traffic Generator over REST. It needs bare Python only."""

from ..core.configuration import Configuration
from ..core.protocol import Message
from .generator import OtgGenerator

__all__ = ["make_generator"]


def make_generator(configuration: Configuration, options: Message) -> OtgGenerator:
    """Makes the generator; the options are its keyword arguments."""
    return OtgGenerator(configuration, **options)
