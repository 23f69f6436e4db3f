"""The program of the generator inside the kernel. It needs nothing but Python, and rights for BPF."""

from ..core.configuration import Configuration
from ..core.protocol import Message
from .generator import XdpGenerator

__all__ = ["XdpGenerator", "make_generator"]


def make_generator(configuration: Configuration, options: Message) -> XdpGenerator:
    """Makes the generator; the options are its keyword arguments."""
    return XdpGenerator(configuration, **options)
