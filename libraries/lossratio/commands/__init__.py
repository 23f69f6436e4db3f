"""The commands of `lossratio`, one file for each subject."""

from lossratio.commands.main import main
