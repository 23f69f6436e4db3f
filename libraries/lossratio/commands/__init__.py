"""The commands of `lossratio`, one file for each subject.

Robot Framework, and everything that measures, take a while to import. So they are imported where they are used, so that
the error for a wrong option need not wait for them.
"""

from lossratio.commands.main import main as main, run_command as run_command
from lossratio.commands.parameters import (
    DURATION as DURATION,
    FRAME_RATE as FRAME_RATE,
    RATIO as RATIO,
    SUITE as SUITE,
    TESTBED as TESTBED,
    OneOf as OneOf,
    argument as argument,
    command as command,
    option as option,
)
