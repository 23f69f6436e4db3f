# SPDX-License-Identifier: Apache-2.0
"""The program of the generator inside the kernel. It needs nothing but Python, and rights for BPF."""

from __future__ import annotations

from ..core.configuration import Configuration
from ..core.protocol import Message
from .connections import ConnectingGenerator
from .generator import XdpGenerator


def make_generator(configuration: Configuration, options: Message) -> ConnectingGenerator | XdpGenerator:
    """Makes the generator of connections, if all trials open some, or else that of frames."""
    if configuration.connects:
        return ConnectingGenerator(configuration, **options)
    return XdpGenerator(configuration, **options)
