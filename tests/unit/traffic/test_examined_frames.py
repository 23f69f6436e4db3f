"""Which frames the embedded generator examines, and what it finds in them: without real frames."""

import math

import frame_samples
import numpy as np
import pytest

from lossratio.agent.afpacket import examination
from lossratio.agent.afpacket.examination import MOST_EXAMINED, Examiner
from lossratio.agent.afpacket.filters import Sample
from lossratio.agent.afpacket.receive import ReceiveRing
from lossratio.agent.core.configuration import Direction
from lossratio.agent.core.links import Link


def sample(one_in, tag=0, mac=frame_samples.DESTINATION_MAC, lengths=(60,)):
    return Sample(tag, one_in, mac, lengths)


@pytest.mark.whole
@pytest.mark.parametrize("one_in", [1, 2, 32, 512])
def test_of_all_flows_about_the_same_share_is_in_a_sample(one_in):
    numbers = np.arange(one_in * MOST_EXAMINED)
    chosen = numbers[sample(one_in).chooses(numbers)]
    assert len(chosen) == pytest.approx(MOST_EXAMINED, rel=0.02)
    for flows in (1, 64, 336, 1000, 4064, 25552, 65536):
        # As many flows as if frames were drawn one by one.
        drawn = flows * (1.0 - np.exp(-MOST_EXAMINED / flows))
        assert len(np.unique(chosen % flows)) > 0.75 * drawn, flows


def test_a_smaller_sample_is_a_part_of_a_larger_one():
    numbers = np.arange(1 << 20)
    assert (sample(32).chooses(numbers) >= sample(64).chooses(numbers)).all()


class Kernel:
    """A ring of the kernel: frames that a sample chooses, or that are odd, in slots with their lengths."""

    def __init__(self, frames):
        self.frames, self.sample, self.dropped = frames, None, 0
        self.ring = ReceiveRing.__new__(ReceiveRing)
        self.ring._memory = np.zeros((256, 256), dtype=np.uint8)
        self.ring.slots = len(self.ring._memory)
        self.ring._status = self.ring._memory.view(np.uint32)[:, 0]
        self.ring._head = self.place = 0
        self.ring.socket = None
        self.ring.overlooked = lambda: self.dropped

    def write(self, number, length):
        """Lets a frame arrive, cut or whole."""
        if not self.sample.chooses(np.array([number]))[0] and length == 60:
            return
        slot = self.ring._memory[self.place]
        words = slot.view(np.uint32)
        if words[0]:
            self.dropped += 1
            return
        data, _ = self.frames(self.sample.tag, np.array([number]), 0)
        slot[96 : 96 + data.shape[1]] = data[0]
        words[1], slot.view(np.uint16)[6], words[0] = length, 96, 1
        self.place = (self.place + 1) % self.ring.slots


@pytest.fixture
def endless(monkeypatch):
    """An examiner of traffic without an end, and the kernel that gives it frames."""
    spec = frame_samples.spec()
    direction, cycle = Direction("east", "tg0", "tg1", None, spec), frame_samples.cycle(spec)
    kernel = Kernel(examination._ExpectedFrames(direction, cycle).frames)
    monkeypatch.setattr(examination, "ReceiveRing", lambda *_: kernel.ring)
    monkeypatch.setattr(examination, "let_sample_through", lambda _, __, chosen: setattr(kernel, "sample", chosen))
    monkeypatch.setattr(examination, "let_nothing_through", lambda _: None)
    sink = Link(1, "tg1", frame_samples.DESTINATION_MAC, 1500, "veth", True, None, None, 0, 0, 0)
    examiner = Examiner(direction, cycle, sink)
    examiner.watch(tag=0x0A0B0C00, load=50.0, duration=math.inf)
    return examiner, kernel


@pytest.mark.whole
@pytest.mark.parametrize("cut", [0, 50])
def test_traffic_without_an_end_is_examined_to_its_end_in_a_fixed_room(endless, cut):
    examiner, kernel = endless
    sent = 100_000
    for number in range(sent):
        kernel.write(number, 56 if number >= sent - cut else 60)
        examiner.look(0, least=1)
    seen = examiner.examine(0, sent)
    assert kernel.dropped == 0
    assert 32 < seen["examined"] <= 256
    assert seen["wrong_length"] == cut
    assert (seen["corrupted"], seen["duplicated"], seen["reordered"], seen["strayed"]) == (0, 0, 0, 0)
    assert kernel.sample.one_in > 256


@pytest.mark.parametrize("every", [0, 1, 7, 60])
def test_frames_that_are_examined_while_traffic_flows_are_examined_alike(endless, every):
    examiner, kernel = endless
    examiner.watch(tag=0x0A0B0C00, load=50.0, duration=1.0)
    # Two frames overtake each other, one comes twice, some are short, and the last ones were never sent.
    for place, number in enumerate([0, 1, 3, 2, 4, 4, *range(5, 53)]):
        kernel.write(number, 56 if number in (7, 8) else 60)
        if every and place % every == 0:
            examiner.look(0, least=1)
    seen = examiner.examine(0, sent=50)
    assert seen.pop("changed") == [{"name": "length", "before": "60 bytes", "after": "56 bytes"}]
    found = {name: count for name, count in seen.items() if count}
    assert found == {"examined": 54, "duplicated": 1, "reordered": 1, "corrupted": 3, "wrong_length": 2}


@pytest.mark.whole
def test_no_frames_at_all_of_a_million_flows_are_examined():
    data, lengths = frame_samples.cycle(frame_samples.spec("ethip4-udp-1mflows")).frames(np.zeros(0, dtype=np.int64))
    assert (len(data), len(lengths)) == (0, 0)


def test_a_slot_that_is_filled_late_keeps_the_ring_in_step(endless):
    _, kernel = endless
    ring = kernel.ring
    ring._status[[0, 1, 3]] = 1
    assert len(ring.captured()) == 2
    ring._status[2] = 1
    ring.release(2)
    assert len(ring.captured()) == 2
    ring.release(2)
    assert (len(ring.captured()), ring._head) == (0, 4)
