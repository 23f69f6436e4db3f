"""Trials in which the generator could send every frame: a busy machine may keep a sender waiting, but not each time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

Output = TypeVar("Output")

PATIENCE = 60.0
"""Seconds for which a trial is measured again."""


def whole(measure: Callable[..., Output], *arguments: Any, **options: Any) -> Output:
    """What a trial gives in which no frame is unsent.

    As a measurer does, it measures a trial again that the machine disturbed. The law holds for each of them: all frames
    were sent or are unsent, and no more came back than were sent.

    Args:
        measure: The trial, e.g. ``agent.trial``: it gives counters of directions, or what has them as ``directions``.
        arguments: Its arguments.
        options: Its named arguments.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        output = measure(*arguments, **options)
        directions, has_early_end = getattr(output, "directions", output), getattr(output, "ended", False)
        for direction in directions:
            due = direction.sent_frames + direction.unsent_frames
            assert due < direction.intended_frames if has_early_end else due == direction.intended_frames, direction
            assert direction.received_frames <= direction.sent_frames, direction
        if not any(direction.unsent_frames for direction in directions):
            return output
        assert time.monotonic() < deadline, f"not once in {PATIENCE:g} s could all frames be sent: {directions}"
