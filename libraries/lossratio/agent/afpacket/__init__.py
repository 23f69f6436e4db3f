# SPDX-License-Identifier: Apache-2.0
"""The embedded generator's program: plain Linux packet sockets. With numpy, it sends more, and examines frames."""

from ..core.configuration import Configuration
from ..core.protocol import Message
from .frames import FrameBuilder, build_frames
from .generator import AfPacketGenerator

SENDS_BROADCASTS = True
"""It can send broadcast frames among a direction's frames."""


def make_generator(configuration: Configuration, options: Message) -> AfPacketGenerator:
    """Makes the generator; the options are its other arguments."""
    return AfPacketGenerator(configuration, **options)
