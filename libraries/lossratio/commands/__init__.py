"""The commands of `lossratio`, one file for each subject.

Robot Framework, and all that measures, take a while to import. So they are imported where they are used: a wrong option
need not wait for them.
"""

from lossratio.commands.main import main
