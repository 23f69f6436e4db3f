"""When something began and ended, by a clock that somebody may set meanwhile."""

from __future__ import annotations

import time
from datetime import datetime, timedelta, timezone


class Span:
    """The time from its making on.

    Attributes:
        started: When it was made, UTC.
    """

    def __init__(self) -> None:
        self.started = datetime.now(timezone.utc)
        self._began = time.monotonic()

    def end(self) -> datetime:
        """Now, by the clock that was right at the beginning: never before it, and by no more than has really passed."""
        return self.started + timedelta(seconds=time.monotonic() - self._began)
