"""Gives a Python program a wall clock that a file turns by so many seconds; its monotonic clock goes on as it does."""

import datetime
import os
import time

FILE = os.environ["CHAOS_CLOCK"]
now = time.time


def turned() -> float:
    with open(FILE, encoding="ascii") as file:
        return now() + float(file.read())


class TurnedDatetime(datetime.datetime):
    """A date and time whose present is the turned clock's."""

    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(turned(), tz)


time.time = turned
datetime.datetime = TurnedDatetime
