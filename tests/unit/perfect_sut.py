"""A SUT that loses nothing, behind a tester that does not do what it should: what is missing is the tester's."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

from measurement_examples import InFrontOfTestbed

from lossratio.testbed.opening import open_testbed
from lossratio.trials.counters import output_from_counters
from lossratio.trials.late import LateFrames
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import DirectionCounters

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
    late_by: int = 0
    """How many trials later they came; 0: before the next one."""
    stalled: float = 0.0
    """Seconds by which the clock of the tester stood still, or went ahead."""


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


def held_up_for_long(moment: Moment, counters: DirectionCounters) -> DirectionCounters:
    """5 % of the frames of some trials come back two or three trials later."""
    if moment.random.random() < 0.5:
        return counters
    late = round(0.05 * counters.sent_frames)
    moment.late += late
    moment.late_by = moment.number % 2 + 2
    return replace(counters, received_frames=counters.sent_frames - late)


def starved_at_times(moment: Moment, counters: DirectionCounters) -> DirectionCounters:
    """The tester's host gets no CPU at times: it sends less, drops some of what came back, and sees the rest late."""
    if moment.random.random() < 0.6:
        return counters
    late = round(0.01 * counters.sent_frames)
    moment.late += late
    starving = dropped(unsent(counters, 0.2, lateness_s=0.2 * moment.trial.duration), 0.02)
    return replace(starving, received_frames=starving.received_frames - late)


def clock_stalls(moment: Moment, counters: DirectionCounters) -> DirectionCounters:
    """The sender's clock stands still for a moment in each third trial, and the controller's goes ahead by 30 s."""
    if moment.number % 3:
        return counters
    moment.stalled = 30.0
    return unsent(counters, 0.02, lateness_s=0.02 * moment.trial.duration)


def only_one_way(_: Moment, counters: DirectionCounters) -> DirectionCounters:
    """One of the ports sends 10 % less."""
    return unsent(counters, 0.1) if counters.name.startswith("port0") else counters


def drops_only_one_way(moment: Moment, counters: DirectionCounters) -> DirectionCounters:
    """One of the ports drops 3 % of what came back, for 15 s of each 40 s."""
    is_there = counters.name.startswith("port1") and moment.began % 40.0 < 15.0
    return dropped(counters, 0.03) if is_there else counters


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
    held_up_for_long,
    starved_at_times,
    clock_stalls,
    only_one_way,
    drops_only_one_way,
)


class PerfectTable:
    """The table of a device that keeps every connection, and forgets all of them when it is told to."""

    safe_rate = None
    is_one_way = False
    known_ports = None

    def __init__(self) -> None:
        self.entries = 0

    def count(self) -> int:
        return self.entries

    def forget(self) -> float:
        self.entries = 0
        return 0.001

    def check(self, established: object) -> None:
        pass

    def timeout_of(self, state: object = None) -> float:
        return 120.0


class PerfectTestbed(InFrontOfTestbed):
    """The simulated testbed of a SUT that loses nothing, with a tester that an injector spoils."""

    def __init__(self, directory: Path, injector: Injector | None, seed: int = 1, dut: str | None = None) -> None:
        file = directory / "perfect.yaml"
        file.write_text(PERFECT)
        super().__init__(open_testbed(file, dut=dut))
        self._injector = injector
        self._table = PerfectTable()
        self._late_frames = LateFrames()
        self._late: dict[int, dict[int, int]] = {}
        self._random = random.Random(seed)
        self._measured = 0
        self._seconds = 0.0

    def in_front_of(self, ready):
        return replace(
            ready,
            measurer=self,
            source=PerfectSource(self, ready.source),
            late_frames=self._late_frames,
            wait_for_late_frames=lambda: self._late_frames.seen_after(self._late_now(after=True)),
        )

    def keep_connections(self) -> None:
        """Puts a device on the path whose table of connections can be looked at."""
        hop = SimpleNamespace(node_name="DUT1")
        self.duts = (SimpleNamespace(connections=self._table, hop=hop, kind="perfect", resets=False),)

    def spoil(self, trial: TrialInput, directions, seconds: float) -> tuple[Moment, list[DirectionCounters]]:
        """The counters of traffic that took so many seconds, as the injector leaves them."""
        self._late_frames.begin_traffic()
        self._measured += 1
        moment = Moment(self._measured, trial, self._seconds, self._random)
        self._seconds += seconds
        if self._injector is None:
            return moment, list(directions)
        return moment, [self._injector(moment, direction) for direction in directions]

    def measure(self, trial: TrialInput):
        output = super().measure(trial)
        moment, counters = self.spoil(trial, output.directions, output.elapsed or trial.duration)
        # All frames that left reached the device.
        self._table.entries = sum(direction.sent_frames for direction in counters)
        self.see_late_frames(counters)
        if moment.late_by:
            self.hold_late_frames(moment)
        if self._injector is None:
            return output
        spoilt = output_from_counters(trial, counters, elapsed=(output.elapsed or trial.duration) + moment.stalled)
        timelines = tuple(
            _as_counted(timeline, direction) for timeline, direction in zip(output.timelines, counters, strict=False)
        )
        late = 0 if moment.late_by else moment.late
        return replace(spoilt, timelines=timelines, late_frames=late or None)

    def see_late_frames(self, counters: list[DirectionCounters]) -> None:
        """Reports late frames of earlier traffic that come with these counters."""
        late_now = self._late_now()
        self._late_frames.seen_since(late_now)
        counters[0] = replace(counters[0], late_frames=late_now[0], earlier_late_frames=tuple(late_now[1:]))

    def hold_late_frames(self, moment: Moment) -> None:
        """Has the late frames of a trial come back with a later one, or after all."""
        self._late.setdefault(moment.number + max(1, moment.late_by), {})[moment.number] = moment.late

    def _late_now(self, *, after: bool = False) -> list[int]:
        """Late frames that come now: of the trial before, of that before it...; or, after all, of the latest, too."""
        counts = [0] * 8
        for due in [due for due in self._late if due <= self._measured or after]:
            for number, frames in self._late.pop(due).items():
                age = self._measured - number
                counts[age if after else age - 1] += frames
        return counts


class PerfectSource:
    """Latency trials and running traffic of such a testbed."""

    def __init__(self, testbed: PerfectTestbed, source: object) -> None:
        self._testbed = testbed
        self._source = source

    def __getattr__(self, name: str) -> object:
        return getattr(self._source, name)

    def latency(self, load: float, duration: float):
        output = self._source.latency(load, duration)
        moment, counters = self._testbed.spoil(TrialInput(duration, load), output.directions, duration)
        self._testbed.see_late_frames(counters)
        self._testbed.hold_late_frames(moment)
        return replace(output, directions=tuple(counters))

    def start_traffic(self, load: float, watch: bool = False) -> None:
        self._load = load
        self._source.start_traffic(load, watch=True)
        if not watch:
            # On this clock traffic flows while somebody waits, and at no other time.
            self._source.wait(1.0)

    def stop_traffic(self, late_wait: float):
        stopped = self._source.stop_traffic(late_wait)
        seconds = stopped.directions[0].elapsed_s or 1.0
        asked = TrialInput(seconds, self._load)
        moment, counters = self._testbed.spoil(asked, stopped.directions, seconds)
        counted = output_from_counters(asked, counters, negative_loss="csit").directions
        timelines = tuple(
            _as_counted(timeline, direction) for timeline, direction in zip(stopped.timelines, counted, strict=False)
        )
        late = {each.name: (moment.late // len(counted),) for each in counted}
        return replace(stopped, directions=counted, timelines=timelines, late_by_direction=late)


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
