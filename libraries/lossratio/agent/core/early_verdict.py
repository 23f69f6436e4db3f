# SPDX-License-Identifier: Apache-2.0
"""When the verdict on a running trial is certain: more frames are lost than it may lose in its whole duration."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Callable, Mapping, Sequence

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


@dataclass(frozen=True)
class SoFar:
    """The counters of one direction of a running trial; frames."""

    whole: int
    """Frames that the load and the whole duration ask for."""
    sent: int
    """Frames that left."""
    unsent: int
    """Frames that the generator could not send in time."""
    received: int
    """Frames that came back; read after `sent`."""
    in_flight: float
    """Frames that may be in flight."""
    of_generator: int
    """Frames whose loss may be the generator's fault: those that it dropped itself, and those that it sent in a burst
    after a stall."""

    @property
    def lost(self) -> float:
        """Frames that the device has certainly lost."""
        return max(0.0, self.sent - self.received - self.in_flight - self.of_generator)


def is_certain(directions: Sequence[SoFar], above: float) -> bool:
    """Whether all directions' counters prove that a trial's loss ratio is above a limit, whatever its rest may show.

    The answer is no if frames are unsent: the trial will be measured again, or its loss is the generator's.
    """
    if any(direction.unsent for direction in directions):
        return False
    whole = sum(direction.whole for direction in directions)
    return sum(direction.lost for direction in directions) > above * whole


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
        in_flight: Seconds of traffic that may be in flight, and do not count as lost yet.
        whole: Frames that the whole trial requires in each direction.
        most_missing: The maximum number of frames of each direction that were in flight or lost at one of the checks.
        certain_after: Seconds of traffic until the verdict was certain; None: it is not certain.
    """

    def __init__(self, plan: Plan, rates: Mapping[str, float], note: Callable[[int, int], None]) -> None:
        self._plan = plan
        self.in_flight = plan.in_flight
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
        seen = {}
        for name, back in received.items():
            left = sent[name]
            seen[name] = SoFar(
                whole=self.whole[name],
                sent=left.sent,
                unsent=left.unsent,
                received=back.received,
                in_flight=self.in_flight * self.rates[name],
                of_generator=left.kept + back.dropped,
            )
        if self._plan.notes and time.monotonic() >= self._next_note:
            self._next_note += NOTE_SECONDS
            self._note(sum(one.sent for one in seen.values()), sum(one.received for one in seen.values()))
        for name, one in seen.items():
            self.most_missing[name] = max(self.most_missing[name], one.sent - one.received)
        above = self._plan.above
        if above is not None and self.certain_after is None and is_certain(list(seen.values()), above):
            self.certain_after = max(one.sent / self.rates[name] for name, one in seen.items())
        return self.has_ended

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
