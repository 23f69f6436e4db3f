"""A SUT that loses nothing, behind a tester that does not do what it should: what is missing is the tester's."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from lossratio.testbed.live import open_testbed
from lossratio.trials.counters import output_from_counters
from lossratio.trials.trial import DirectionCounters, TrialInput

PERFECT = """\
format: lossratio-topology/1
name: perfect
description: A SUT that forwards every frame.
testbed: simulated
nodes:
  TG:
    type: TG
    generator: {kind: simulated, max_rate: 400 kfps, overhead: 20 ms, seed: 1}
    interfaces:
      port0: {link: link0}
      port1: {link: link1}
  DUT1:
    type: DUT
    sut: {model: sharp_knee, capacity: 1 Gfps}
    interfaces:
      port0: {link: link0}
      port1: {link: link1}
"""


@dataclass
class Moment:
    """A trial that an injector may spoil."""

    number: int
    """Its place among the trials, from 1."""
    trial: TrialInput
    """What was asked for."""
    began: float
    """Seconds of trials before it."""
    random: random.Random
    """Random numbers of this testbed."""
    late: int = 0
    """Frames of the trial that came back after the wait for them."""


Injector = Callable[[Moment, DirectionCounters], DirectionCounters]
"""Spoils the counters of one direction of a trial."""


def unsent(counters: DirectionCounters, share: float, **more: object) -> DirectionCounters:
    """The generator leaves a share of the frames unsent; all that it sends comes back."""
    missing = round(share * counters.sent_frames)
    sent = counters.sent_frames - missing
    return replace(counters, sent_frames=sent, received_frames=sent, unsent_frames=missing, **more)


def steadily(_: Moment, counters: DirectionCounters) -> DirectionCounters:
    """5 % are never sent."""
    return unsent(counters, 0.05)


def starved(moment: Moment, counters: DirectionCounters) -> DirectionCounters:
    """30 to 65 % are never sent, another share in each trial."""
    return unsent(counters, moment.random.uniform(0.3, 0.65))


def at_times(moment: Moment, counters: DirectionCounters) -> DirectionCounters:
    """In every third trial or so, 3 % are not sent, as the sender stalled."""
    if moment.random.random() < 0.33:
        return unsent(counters, 0.03, lateness_s=0.03 * moment.trial.duration)
    return counters


def two_frames(_: Moment, counters: DirectionCounters) -> DirectionCounters:
    """Two frames of each trial are not sent."""
    return unsent(counters, 2 / counters.sent_frames)


def the_same_number(_: Moment, counters: DirectionCounters) -> DirectionCounters:
    """The same number of frames of each trial is not sent."""
    return unsent(counters, min(0.5, 860 / counters.sent_frames))


def more_and_more(moment: Moment, counters: DirectionCounters) -> DirectionCounters:
    """The sender gets slower, trial by trial."""
    return unsent(counters, min(0.3, 0.002 * moment.number))


def at_first(moment: Moment, counters: DirectionCounters) -> DirectionCounters:
    """The sender is slow in the first 10 s."""
    return unsent(counters, 0.2) if moment.began < 10.0 else counters


def in_turns(moment: Moment, counters: DirectionCounters) -> DirectionCounters:
    """The sender is 4 % slow in every second trial."""
    return unsent(counters, 0.04) if moment.number % 2 else counters


def in_spells(moment: Moment, counters: DirectionCounters) -> DirectionCounters:
    """The sender is 4 % slow for 20 s, and then not for 20 s."""
    return unsent(counters, 0.04) if moment.began % 40.0 < 20.0 else counters


def refused(_: Moment, counters: DirectionCounters) -> DirectionCounters:
    """The ring of a link has no room above 200 kfps."""
    load = counters.sent_frames / (counters.elapsed_s or 1.0)
    share = max(0.0, 1.0 - 200_000.0 / load)
    return unsent(counters, share, refused_frames=round(share * counters.sent_frames))


def dropped(counters: DirectionCounters, share: float) -> DirectionCounters:
    """The generator drops a share of the frames that came back."""
    frames = round(share * counters.sent_frames)
    return replace(counters, received_frames=counters.sent_frames - frames, generator_drop_frames=frames)


def drops_at_high_loads(_: Moment, counters: DirectionCounters) -> DirectionCounters:
    """The generator receives 250 kfps at most."""
    load = counters.sent_frames / (counters.elapsed_s or 1.0)
    return dropped(counters, max(0.0, 1.0 - 250_000.0 / load))


def drops_at_times(moment: Moment, counters: DirectionCounters) -> DirectionCounters:
    """In every third trial or so, the generator drops up to 2 % of what came back."""
    if moment.random.random() < 0.33:
        return dropped(counters, moment.random.uniform(0.0, 0.02))
    return counters


def drops_always(_: Moment, counters: DirectionCounters) -> DirectionCounters:
    """The generator drops 1 % of what came back, at any load."""
    return dropped(counters, 0.01)


def held_up(moment: Moment, counters: DirectionCounters) -> DirectionCounters:
    """The host of the receiver stops at times: 3 % of the frames of every second trial come back too late."""
    if moment.number % 2:
        return counters
    late = round(0.03 * counters.sent_frames)
    moment.late += late
    return replace(counters, received_frames=counters.sent_frames - late)


def held_up_a_little(moment: Moment, counters: DirectionCounters) -> DirectionCounters:
    """Up to 400 frames of each trial come back too late, also of the shortest burst."""
    late = min(400, counters.received_frames)
    moment.late += late
    return replace(counters, received_frames=counters.received_frames - late)


INJECTORS: tuple[Injector, ...] = (
    steadily,
    starved,
    at_times,
    two_frames,
    the_same_number,
    more_and_more,
    at_first,
    in_turns,
    in_spells,
    refused,
    drops_at_high_loads,
    drops_at_times,
    drops_always,
    held_up,
    held_up_a_little,
)


class PerfectTestbed:
    """The simulated testbed of a SUT that loses nothing, with a tester that an injector spoils."""

    def __init__(self, directory: Path, injector: Injector | None, seed: int = 1, dut: str | None = None) -> None:
        file = directory / "perfect.yaml"
        file.write_text(PERFECT)
        self._testbed = open_testbed(file, dut=dut)
        self._injector = injector
        self._random = random.Random(seed)
        self._measured = 0
        self._seconds = 0.0

    def __getattr__(self, name: str) -> object:
        return getattr(self._testbed, name)

    @contextmanager
    def ready_for(self, profile, **options):
        with self._testbed.ready_for(profile, **options) as ready:
            self._measurer = ready.measurer
            yield replace(ready, measurer=self)

    def measure(self, trial: TrialInput):
        output = self._measurer.measure(trial)
        self._measured += 1
        moment = Moment(self._measured, trial, self._seconds, self._random)
        self._seconds += output.elapsed or trial.duration
        if self._injector is None:
            return output
        counters = [self._injector(moment, direction) for direction in output.directions]
        spoilt = output_from_counters(trial, counters, elapsed=output.elapsed)
        timelines = tuple(
            _as_counted(timeline, direction) for timeline, direction in zip(output.timelines, counters, strict=False)
        )
        return replace(spoilt, timelines=timelines, late_frames=moment.late or None)


def _as_counted(timeline, counters):
    """The timeline of a direction whose frames were spoilt evenly over all steps."""
    sent_share = counters.sent_frames / max(1, sum(step.sent for step in timeline.steps))
    steps = []
    for step in timeline.steps:
        sent = round(sent_share * step.sent)
        lost = round(counters.lost * sent / max(1, counters.sent_frames))
        last = step.start + step.elapsed if lost else None
        steps.append(replace(step, sent=sent, lost=lost, last_lost=last))
    return replace(timeline, steps=tuple(steps))
