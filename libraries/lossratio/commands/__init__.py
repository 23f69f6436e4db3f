"""The commands of `lossratio`, one file for each subject.

Robot Framework and everything that measures take a while to import. They are imported where they are used, so the error
for a wrong option does not wait for them.
"""

from lossratio.commands.main import main as main, run_command as run_command
from lossratio.commands.parameters import (
    DURATION as DURATION,
    FRAME_RATE as FRAME_RATE,
    RATIO as RATIO,
    SUITE as SUITE,
    TESTBED as TESTBED,
    LocalPath as LocalPath,
    OneOf as OneOf,
    WholeNumber as WholeNumber,
    argument as argument,
    command as command,
    option as option,
)
