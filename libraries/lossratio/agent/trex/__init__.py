# SPDX-License-Identifier: Apache-2.0
"""TRex's program for the agent: it talks to a TRex server. It needs no numpy."""

from ..core.configuration import Configuration
from ..core.protocol import Message, read_record
from .astf import FULL, AstfGenerator
from .cards import CardWire
from .connection import SERVER_LOST, TrexConnection, TrexSettings, load_library
from .generator import TrexGenerator


def make_generator(configuration: Configuration, options: Message) -> "TrexGenerator | AstfGenerator":
    """Makes the generator; the options are the fields of `TrexSettings`."""
    settings = read_record(TrexSettings, options)
    if configuration.connects:
        return AstfGenerator(configuration, settings, load_library(settings.directory, is_stateful=True))
    return TrexGenerator(configuration, settings, load_library(settings.directory))


def open_wire(options: Message) -> CardWire:
    """Opens the cards for single frames; the options are the fields of `TrexSettings`."""
    settings = read_record(TrexSettings, options)
    return CardWire(TrexConnection(load_library(settings.directory), settings), is_own=True)
