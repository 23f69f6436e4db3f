"""Devices that lose frames, as sets of sequence numbers: faulty ones with a known cause, and overloaded ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import yaml

from lossratio.agent.core.frame_order import FrameOrder
from lossratio.agent.core.frames_spec import FramesSpec, SteppingField
from lossratio.agent.core.losses import Fates, LossTables
from lossratio.results.trials import Trial
from lossratio.traffic import PortPair, TrafficPort, TrafficProfile, load_profile, make_configuration
from lossratio.trials import DirectionCounters, Losses, read_record

MIX = ((64, 7), (570, 4), (1518, 1))
Numbers = np.ndarray
Device = Callable[[Numbers, float, np.random.Generator], np.ndarray]
"""Which of the frames with these numbers are lost, at a load in frames per second."""


def spec(flows=1, sizes=((64, 1),), fields=None) -> FramesSpec:
    profile = load_profile("ethip4-udp", frame_size=64)
    ports = PortPair(TrafficPort("west", "west"), TrafficPort("east", "east"))
    found = make_configuration(profile, [ports], settle_time=0.1).directions[0].frames
    if fields is None:
        fields = (SteppingField(offset=30, width=4, first=0xC6120001, count=flows),) if flows > 1 else ()
    return replace(found, fields=fields, sizes=sizes)


def streams(fields: str) -> FramesSpec:
    """Streams of a profile with a VLAN's tag and eight addresses, by their fields in YAML."""
    about = {"format": "lossratio-traffic-profile/1", "name": "streams", "dot1q": {"id": 7}, "udp": {}}
    about["ipv4"] = {"source": {"count": 8}}
    about["streams"] = yaml.safe_load(f"[{fields}]")
    profile = TrafficProfile.model_validate({**about, "frame_size": 128})
    ports = PortPair(TrafficPort("west", "west"), TrafficPort("east", "east"))
    return make_configuration(profile, [ports], settle_time=0.1).directions[0].frames


STREAMS = streams(
    "{name: voice, share: 1, dscp: 46, priority: 5}, {name: video, share: 1, dscp: 34, priority: 5}, "
    "{name: data, share: 2, frame_size: 512}"
)


def whole_trial(number: int, load: float, duration: float, ways: Sequence[DirectionCounters]) -> Trial:
    """The record of a trial in which all frames were sent."""
    sent = sum(way.sent_frames for way in ways)
    lost = sum(way.lost for way in ways)
    return Trial(
        number=number,
        purpose=None,
        is_evidence=True,
        duration_s=duration,
        load_per_interface_fps=load,
        loss_ratio=lost / sent,
        effective_duration_s=duration,
        elapsed_s=duration,
        forwarding_rate_per_interface_fps=load,
        sent_frames=sent,
        lost_frames=lost,
        unsent_frames=0,
        late_frames=0,
        directions=tuple(ways),
    )


class Lab:
    """Trials of a device in each direction, one after the other."""

    def __init__(self, frames: FramesSpec, seed: int = 0, sample: int | None = None) -> None:
        self.order = FrameOrder(frames)
        self._tables = LossTables(frames)
        self._random = np.random.default_rng(seed)
        self._sample = sample
        self._first = 0
        self.trials: list[Trial] = []

    def trial(self, load: float, duration: float, *devices: Device) -> None:
        ways = []
        for number, device in enumerate(devices):
            sent = round(load * duration)
            numbers = np.arange(sent)
            is_lost = device(numbers + self._first, load, self._random)
            lost = np.flatnonzero(is_lost)
            starts, run = np.zeros(1, dtype=np.int64), sent
            known = lost
            if self._sample is not None:
                run = 16
                runs = np.arange(0, sent, run)
                starts = runs[self._random.random(len(runs)) < self._sample / sent]
                known = lost[np.isin(lost // run, starts // run)]
            message = self._tables.of(Fates(sent, starts, run, known), self._first, duration)
            record = None if message is None else read_record(Losses, json.dumps(message))
            ways.append(
                DirectionCounters(
                    name=f"port{number}>port{1 - number}",
                    intended_frames=sent,
                    sent_frames=sent,
                    received_frames=sent - len(lost),
                    losses=record,
                )
            )
        # As the embedded generator, which goes on where it was.
        self._first += round(load * duration)
        self.trials.append(whole_trial(len(self.trials) + 1, load, duration, ways))


def none(numbers, load, random):
    return np.zeros(len(numbers), dtype=bool)


def of_flows(flows: set[int], ratio: float = 1.0):
    """Loses frames of some flows; it has to know the order of frames."""
    numbers_of_flows = np.array(sorted(flows))

    def device(order: FrameOrder) -> Device:
        def lost(numbers, load, random):
            is_one = np.isin(order.flow_numbers(numbers), numbers_of_flows)
            return is_one & (random.random(len(numbers)) < ratio)

        return lost

    return device


def policer(capacity: float, bucket: float) -> Device:
    def lost(numbers, load, random):
        # After each accepted frame the bucket has one less; it fills as time passes.
        flags = np.zeros(len(numbers), dtype=bool)
        tokens, gain = bucket, capacity / load
        for place in range(len(numbers)):
            tokens = min(bucket, tokens + gain)
            if tokens >= 1.0:
                tokens -= 1.0
            else:
                flags[place] = True
        return flags

    return lost


def tail_drop(capacity: float, room: int, batch: int, jitter: float = 0.0) -> Device:
    """A queue that is served in batches."""

    def lost(numbers, load, random):
        flags = np.zeros(len(numbers), dtype=bool)
        queue, interval = 0, batch / capacity
        due = interval * random.random()
        for place in range(len(numbers)):
            now = place / load
            while now >= due:
                queue = max(0, queue - batch)
                due += interval * (1.0 + jitter * (random.random() - 0.5))
            if queue < room:
                queue += 1
            else:
                flags[place] = True
        return flags

    return lost


def red(capacity: float, room: int) -> Device:
    def lost(numbers, load, random):
        flags = np.zeros(len(numbers), dtype=bool)
        queue = average = 0.0
        draws = random.random(len(numbers))
        for place in range(len(numbers)):
            queue = max(0.0, queue - capacity / load)
            average += 0.002 * (queue - average)
            chance = min(1.0, max(0.0, (average - room / 4) / (room / 2)) * 0.2)
            if queue >= room or draws[place] < chance:
                flags[place] = True
            else:
                queue += 1.0
        return flags

    return lost


def bursts(ratio: float, mean: float) -> Device:
    """Gilbert's model: a good and a bad state."""

    def lost(numbers, load, random):
        flags = np.zeros(len(numbers), dtype=bool)
        place = 0
        while place < len(numbers):
            place += int(random.exponential(mean * (1.0 - ratio) / ratio)) + 1
            length = int(random.exponential(mean)) + 1
            flags[place : place + length] = True
            place += length
        return flags

    return lost


def every(period: int, count: int = 1) -> Device:
    def lost(numbers, load, random):
        return (numbers - numbers[0]) % period < count

    return lost


def overloaded(capacity: float, make: Callable[[float], Device]) -> Device:
    device = make(capacity)

    def lost(numbers, load, random):
        if load <= capacity:
            return none(numbers, load, random)
        return device(numbers, load, random)

    return lost


def both(*devices: Device) -> Device:
    def lost(numbers, load, random):
        return np.any([device(numbers, load, random) for device in devices], axis=0)

    return lost
