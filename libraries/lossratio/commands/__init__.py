"""The commands of `lossratio`, one file each."""

from lossratio.commands.main import main

__all__ = [
    "main",
]
