"""A node whose Python has no numpy makes the same frames, and may be one of two ends."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from frame_samples import DESTINATION_MAC, SOURCE_MAC, UNSCALED, cycle, smallest_size, spec

from lossratio.agent.afpacket.bare import BareFrames
from lossratio.agent.afpacket.frames import number_bytes, number_parts, stream_tags, tag_bytes
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


@pytest.mark.parametrize(("exit_status", "says"), [(0, []), (1, ["python3 has no numpy"]), (127, [])])
def test_a_check_says_what_a_tg_without_numpy_does_without(exit_status, says):
    session = SimpleNamespace(run=lambda *_, **__: SimpleNamespace(exit_status=exit_status))
    said = Auto.choices(AutoGenerator(kind="auto"), session, (), 1)
    assert [choice.partition(" (")[0] for choice in said] == says
