# SPDX-License-Identifier: Apache-2.0
"""When the verdict on a running trial is certain: more frames are lost than it may lose in its whole duration."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Callable, Mapping

from .pacing import frames_within
from .plan import Answer, Plan
from .protocol import Check, Message

NOTE_SECONDS = 0.5
"""Seconds between two notes of a running trial's counters."""
LOOK_SECONDS = 0.04
"""Seconds between two checks of the counters of a running trial; including the check, at most 50 ms."""
QUIET_SECONDS = 0.1
"""Seconds without a frame after which a device is assumed to hold none back, if an early verdict ended the traffic."""


@dataclass(frozen=True)
class SentSoFar:
    """What has left in one direction of a running trial; frames."""

    sent: int
    """Frames that left."""
    unsent: int
    """Frames that the generator could not send in time."""
    kept: int
    """Frames that it may not have handed over yet, or that it sent in a burst after a stall."""


@dataclass(frozen=True)
class ReceivedSoFar:
    """Frames that came back in one direction of a running trial. They are counted after the frames that left."""

    received: int
    """Frames that came back."""
    dropped: int
    """Frames that the generator dropped itself."""


def wait_for_held_frames(
    received: Callable[[], int],
    left: float,
    settle_time: float,
    check: Check,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """After an early verdict has ended the traffic, waits as long as frames still come.

    A device may hold frames back for longer than the settle time. In a whole trial, most of them would come in time, so
    they also count here, at most until the whole trial would have ended.
    """
    quiet = max(settle_time, QUIET_SECONDS)
    last_call = clock() + left + quiet
    until = clock() + quiet
    count = received()
    while clock() < min(until, last_call):
        sleep(min(LOOK_SECONDS, max(0.0, until - clock())))
        check()
        now = received()
        if now != count:
            count = now
            until = clock() + quiet


class Lookout:
    """Checks the counters of a running trial.

    Attributes:
        rates: Frames per second of each direction.
        whole: Frames that the whole trial requires in each direction.
        most_missing: The maximum number of frames of each direction that were in flight or lost at one of the checks.
        certain_after: Seconds of traffic until the verdict was certain; None: it is not certain.
    """

    def __init__(self, plan: Plan, rates: Mapping[str, float], note: Callable[[int, int], None]) -> None:
        self._plan = plan
        self._note = note
        self.rates = rates
        self.whole = {name: frames_within(plan.duration, rate) for name, rate in rates.items()}
        self.most_missing = dict.fromkeys(self.whole, 0)
        self.certain_after: float | None = None
        self._next_note = time.monotonic() + NOTE_SECONDS

    def sees(self, sent: Mapping[str, SentSoFar], received: Mapping[str, ReceivedSoFar]) -> bool:
        """Notes what has left and come back by direction, and returns whether the traffic must end."""
        if sent.keys() != self.whole.keys():
            return self.has_ended
        if self._plan.notes and time.monotonic() >= self._next_note:
            self._next_note += NOTE_SECONDS
            self._note(sum(left.sent for left in sent.values()), sum(back.received for back in received.values()))
        for name, back in received.items():
            self.most_missing[name] = max(self.most_missing[name], sent[name].sent - back.received)
        if self.certain_after is None and self._is_certain(sent, received):
            self.certain_after = max(left.sent / self.rates[name] for name, left in sent.items())
        return self.has_ended

    def _is_certain(self, sent: Mapping[str, SentSoFar], received: Mapping[str, ReceivedSoFar]) -> bool:
        """Whether the counters prove that the trial's loss ratio is above the limit, whatever its rest may show.

        The answer is no if frames are unsent: the trial will be measured again, or its loss is the generator's.
        """
        above = self._plan.above
        if above is None or any(left.unsent for left in sent.values()):
            return False

        lost = 0.0
        for name, back in received.items():
            left = sent[name]
            of_generator = left.kept + back.dropped
            in_flight = self._plan.in_flight * self.rates[name]
            lost += max(0.0, left.sent - back.received - of_generator - in_flight)
        return lost > above * sum(self.whole.values())

    @property
    def has_ended(self) -> bool:
        """Whether it has ended the traffic."""
        return self._plan.ends and self.certain_after is not None

    def answer(self, counters: list[Message], ended_after: float | None) -> Answer:
        """The answer of a watched trial, which may have ended after some seconds of traffic."""
        if ended_after is not None:
            counters = [{**counted, "intended_frames": self.whole[counted["name"]]} for counted in counters]
        return Answer(
            counters,
            certain_after=self.certain_after if ended_after is None else ended_after,
            ended=ended_after is not None,
            most_missing=self.most_missing,
        )
