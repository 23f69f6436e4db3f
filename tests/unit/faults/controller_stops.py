"""A Robot Framework library that waits to be killed."""

import os
import time
from pathlib import Path

from robot.libraries.BuiltIn import BuiltIn


def stop_in(place):
    """Says that the run is there, and waits, if it is where it is to be killed."""
    if os.environ["STOP_IN"] == place:
        Path(BuiltIn().get_variable_value("${OUTPUT DIR}"), place).write_text("")
        time.sleep(60)
