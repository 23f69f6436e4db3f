# SPDX-License-Identifier: Apache-2.0
"""The program that speaks to a tester of the Open Traffic Generator over REST. It needs bare Python only."""

from ..core.configuration import Configuration
from ..core.protocol import Message
from .generator import OtgGenerator


def make_generator(configuration: Configuration, options: Message) -> OtgGenerator:
    """Makes the generator; the options are its other arguments."""
    return OtgGenerator(configuration, **options)
