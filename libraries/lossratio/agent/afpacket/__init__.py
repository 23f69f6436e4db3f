# SPDX-License-Identifier: Apache-2.0
"""The embedded generator's program: plain Linux packet sockets. With numpy it sends and examines more."""

from ..core.generator import made_with_keywords
from .frames import FrameBuilder, build_frames
from .generator import AfPacketGenerator

SENDS_BROADCASTS = True
"""It can send broadcast frames among a direction's frames."""
make_generator = made_with_keywords(AfPacketGenerator)
