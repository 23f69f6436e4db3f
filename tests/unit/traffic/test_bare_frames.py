"""A node whose Python has no numpy makes the same frames, and may be one of two ends."""

from __future__ import annotations

import socket
from types import SimpleNamespace

import numpy as np
import pytest
from frame_samples import DESTINATION_MAC, SOURCE_MAC, UNSCALED, cycle, smallest_size, spec

from lossratio.agent.afpacket import bare, examination
from lossratio.agent.afpacket.bare import BareFrames
from lossratio.agent.afpacket.frames import number_bytes, number_parts, stream_tags, tag_bytes
from lossratio.agent.core.configuration import Direction
from lossratio.topology import AutoGenerator
from lossratio.traffic.generators.own import Auto

TAG = 0x89ABCDEF


def with_arrays(described, first, count):
    """The frames of a trial that begins with this number in the order of all frames, as a node with numpy has them."""
    place, built = described.tag_place, cycle(described)
    numbers = np.arange(count)
    data, lengths = built.frames(numbers + first)
    tags = np.full(count, TAG)
    if built.streams is not None:
        tags = stream_tags(TAG, built.streams[(numbers + first) % len(built.streams)])
    for row, tag in enumerate(tags.tolist()):
        data[row, place.offset : place.offset + 8] = np.frombuffer(tag_bytes(tag), np.uint8)
    if place.is_numbered:
        for (start, width), written in zip(number_parts(place), number_bytes(place, tags, numbers), strict=True):
            data[:, start : start + width] = written
    return [row[:length].tobytes() for row, length in zip(data, lengths, strict=True)]


@pytest.mark.parametrize("profile", [*UNSCALED, pytest.param("ethip4-udp-1mflows", marks=pytest.mark.whole)])
@pytest.mark.parametrize("first", [0, 777])
def test_frames_are_the_same_bytes_as_with_numpy(profile, first):
    for size in {128, smallest_size(profile)}:
        described = spec(profile, size)
        bare = BareFrames(described, SOURCE_MAC, DESTINATION_MAC)
        made = [bytes(bare.frame(first + number, TAG, number)) for number in range(60)]
        assert made == with_arrays(described, first, 60)


def test_frames_of_a_mix_are_the_same_bytes_as_with_numpy():
    described = spec("ethip4-udp", "IMIX_v4_1")
    bare = BareFrames(described, SOURCE_MAC, DESTINATION_MAC)
    made = [bytes(bare.frame(number, TAG, number)) for number in range(300)]
    assert made == with_arrays(described, 0, 300)


def test_a_frame_beyond_the_sent_ones_is_corrupted_whatever_its_addresses(monkeypatch):
    """As with numpy: its number belongs to no frame."""
    described = spec()
    frames = BareFrames(described, SOURCE_MAC, DESTINATION_MAC)
    intact, elsewhere = frames.frame(0, TAG, 0), frames.frame(5, TAG, 5)
    start, _ = described.addresses[0]
    elsewhere[start] ^= 1
    monkeypatch.setattr(examination, "let_nothing_through", lambda _: None)
    monkeypatch.setattr(examination, "let_sample_through", lambda *_: None)
    monkeypatch.setattr(bare, "overlooked", lambda _: 0)
    monkeypatch.setattr(bare, "receive_whole", lambda _: b"")
    with socket.socket() as nothing:
        monkeypatch.setattr(bare, "open_packets", lambda *_: nothing)
        sink = SimpleNamespace(mac=DESTINATION_MAC)
        examiner = bare.BareExaminer(Direction("east", "tg0", "tg1", None, described), frames, sink)
        for sent, fault in ((6, "readdressed"), (5, "corrupted")):
            examiner.watch(TAG, 1000.0, 0.1)
            arriving = iter((bytes(intact), bytes(elsewhere)))
            monkeypatch.setattr(bare, "receive_whole", lambda _, arriving=arriving: next(arriving, b""))
            found = examiner.examine(0, sent)
            assert (found["readdressed"] + found["corrupted"], found[fault], found["examined"]) == (1, 1, 2)
            monkeypatch.setattr(bare, "receive_whole", lambda _: b"")


def test_endless_traffic_is_examined_to_its_end(monkeypatch):
    """There is room for some thousands of frames, so that fewer and fewer are chosen."""
    described = spec()
    frames = BareFrames(described, SOURCE_MAC, DESTINATION_MAC)
    for name in ("let_nothing_through", "let_sample_through"):
        monkeypatch.setattr(examination, name, lambda *_: None)
    monkeypatch.setattr(bare, "overlooked", lambda _: 0)
    monkeypatch.setattr(bare, "_MOST_KEPT", 32)
    arrived = []
    monkeypatch.setattr(bare, "receive_whole", lambda _: arrived.pop() if arrived else b"")
    with socket.socket() as nothing:
        monkeypatch.setattr(bare, "open_packets", lambda *_: nothing)
        sink = SimpleNamespace(mac=DESTINATION_MAC)
        examiner = bare.BareExaminer(Direction("east", "tg0", "tg1", None, described), frames, sink)
        examiner.watch(TAG, 1.0, None)
        for number in range(2000):
            if number > 1990 or examiner._sample.chooses(number):
                frame = bytes(frames.frame(number, TAG, number))
                arrived.append(frame[:-1] if number > 1990 else frame)
                examiner.make_room()
        found = examiner.examine(0, 2000)
    assert (examiner._sample.one_in > 1, found["wrong_length"], found["corrupted"]) == (True, 9, 0)
    assert found["examined"] <= 32


def test_frames_that_came_before_fewer_were_chosen_are_not_in_the_sample(monkeypatch):
    described = spec()
    frames = BareFrames(described, SOURCE_MAC, DESTINATION_MAC)
    for name in ("let_nothing_through", "let_sample_through"):
        monkeypatch.setattr(examination, name, lambda *_: None)
    monkeypatch.setattr(bare, "overlooked", lambda _: 0)
    monkeypatch.setattr(bare, "_MOST_KEPT", 128)
    monkeypatch.setattr(bare, "receive_whole", lambda _: b"")
    with socket.socket() as nothing:
        monkeypatch.setattr(bare, "open_packets", lambda *_: nothing)
        sink = SimpleNamespace(mac=DESTINATION_MAC)
        examiner = bare.BareExaminer(Direction("east", "tg0", "tg1", None, described), frames, sink)
        examiner.watch(TAG, 1.0, 1.0)
        corrupted = []
        for number in range(600):
            frame = frames.frame(number, TAG, number)
            frame[-1] ^= 1
            corrupted.append(bytes(frame))
        # All of them are in the socket's buffer already.
        arriving = iter(corrupted)
        monkeypatch.setattr(bare, "receive_whole", lambda _: next(arriving, b""))
        found = examiner.examine(0, 600)
    assert examiner._sample.one_in > 1
    assert 0 < found["corrupted"] == found["examined"] < 600


@pytest.mark.parametrize(("exit_status", "says"), [(0, []), (1, ["python3 has no numpy"]), (127, [])])
def test_a_check_says_what_a_tg_without_numpy_does_without(exit_status, says):
    session = SimpleNamespace(run=lambda *_, **__: SimpleNamespace(exit_status=exit_status))
    said = Auto.choices(AutoGenerator(kind="auto"), session, (), 1)
    assert [choice.partition(" (")[0] for choice in said] == says
