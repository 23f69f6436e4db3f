"""The programs that open connections and answer over them: the kernel runs them on single frames, which go nowhere."""

from __future__ import annotations

import random
import time
from dataclasses import replace

import numpy as np
import pytest
from bpf_objects import XdpAction, run_once
from frame_samples import DESTINATION_MAC, SOURCE_MAC, cycle, smallest_size, spec

from lossratio.agent.core.passes import why_not_in_kernel
from lossratio.agent.core.wire import folded, word_sum
from lossratio.agent.xdp.connection_programs import ArriveProgram, ConnectProgram, ExchangeMemory
from lossratio.agent.xdp.constants import FOREVER
from lossratio.agent.xdp.frames import FramePlan
from lossratio.agent.xdp.send_program import Segment
from lossratio.bpf import why_impossible
from lossratio.traffic import PortPair, TrafficPort, load_profile, make_configuration

pytestmark = pytest.mark.skipif(why_impossible() is not None, reason=f"no BPF here: {why_impossible()}")

FIRST = 0x0A0B0C00
ROOM = 1 << 10
GATEWAY, FAR_PORT = bytes.fromhex("020000000099"), DESTINATION_MAC
SOURCE, DESTINATION = slice(26, 30), slice(30, 34)
SOURCE_PORT, DESTINATION_PORT = slice(34, 36), slice(36, 38)
ENDS = slice(26, 38)


class Bench:
    """Both ends of connections, whose programs are run by hand; the next pass begins with `begin_pass`."""

    def __init__(self, description, count=100):
        self.plan = FramePlan(description, SOURCE_MAC, DESTINATION_MAC)
        self.memory = ExchangeMemory(FIRST - 0x1000, ROOM)
        both = (True, False)
        self.senders = {way: ConnectProgram(self.memory, self.plan, 1, is_forward=way) for way in both}
        self.receivers = {way: ArriveProgram(self.memory, self.plan, is_forward=way) for way in both}
        self.passes = 0
        self.begin(count)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        for one in (*self.senders.values(), *self.receivers.values(), self.memory):
            one.close()

    def begin(self, count, first=FIRST):
        self.memory.begin(first, count, self.passes)
        self.first, self.passes = first, 0
        self.begin_pass(True)

    def begin_pass(self, is_forward, **options):
        tag = self.first + 0x100 * self.passes
        self.passes += 1
        self.is_forward = is_forward
        self.memory.begin_pass(tag, is_forward=is_forward, **options)
        burst = Segment(0.0, 1 << 40, 0.0, last_call=float("inf"), catch_up=float("inf"), tag=tag)
        self.senders[is_forward].schedule(time.monotonic_ns() - 1, [[burst]])
        self.senders[is_forward].renew(FOREVER)

    def send(self):
        """The next frame; None: there is none."""
        sender = self.senders[self.is_forward]
        verdict, frame = run_once(sender.program, sender.template)
        return frame if verdict == XdpAction.REDIRECT.value else None

    def arrive(self, *frames, is_forward=None):
        way = self.is_forward if is_forward is None else is_forward
        return [XdpAction(run_once(self.receivers[way].program, frame)[0]) for frame in frames]

    def counts(self, *names):
        return tuple(int(getattr(self.memory.shared, name)) for name in names)


def with_parts(frame, **parts):
    changed = bytearray(frame)
    for name, value in parts.items():
        changed[globals()[name.upper()]] = value
    return bytes(changed)


def check_sums(frame):
    """The checksums of IPv4 and UDP are right."""
    assert folded(word_sum(frame[14:34])) == 0xFFFF
    datagram = frame[34 : 34 + int.from_bytes(frame[38:40], "big")]
    assert folded(word_sum(frame[26:34]) + 17 + len(datagram) + word_sum(datagram)) == 0xFFFF


def through_gateway(frame):
    """A frame as a router hands it on."""
    return FAR_PORT + GATEWAY + frame[12:22] + bytes((frame[22] - 1,)) + frame[23:]


PROFILES = ("ethip4-udp-connections", "ethip4-udp", "ethip4-udp-1mflows", "ethip4-udp-h1024-p63")


@pytest.mark.whole
@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("size", [0, 128, 1518])
def test_connections_are_opened_by_the_frames_of_the_profile_and_answered_by_these_turned_round(profile, size):
    description = spec(profile, size or smallest_size(profile))
    with Bench(description) as bench:
        opening = [bench.send() for _ in range(20)]
        built, lengths = cycle(description).frames(np.arange(20))
        for frame, row, length in zip(opening, built, lengths, strict=True):
            # All but tag and number, and the word that makes up for these in checksums.
            assert (frame[:42], frame[52:]) == (row[:42].tobytes(), row[52:length].tobytes())
            check_sums(frame)
        assert bench.arrive(*map(through_gateway, opening)) == [XdpAction.DROP] * 20
        assert bench.counts("arrived", "copies", "foreign", "other_macs") == (20, 0, 0, 0)

        bench.begin_pass(False)
        for frame in opening:
            answer = bench.send()
            assert answer[:12] == GATEWAY + FAR_PORT
            assert (answer[SOURCE], answer[DESTINATION]) == (frame[DESTINATION], frame[SOURCE])
            assert (answer[SOURCE_PORT], answer[DESTINATION_PORT]) == (frame[DESTINATION_PORT], frame[SOURCE_PORT])
            assert (answer[12:24], answer[46:50]) == (frame[12:24], frame[46:50])
            check_sums(answer)
            assert bench.arrive(answer) == [XdpAction.DROP]
        assert bench.send() is None
        assert bench.counts("arrived", "copies", "strangers") == (20, 0, 0)


def test_answers_to_translated_addresses_have_right_checksums_whatever_these_are():
    drawn = random.Random(1)
    with Bench(spec("ethip4-udp-connections"), count=300) as bench:
        ends = []
        for number in range(300):
            part = (b"\x00" * 12, b"\xff" * 12, drawn.randbytes(12))[min(number, 2)]
            ends.append(part)
            bench.arrive(with_parts(through_gateway(bench.send()), ends=part))
        bench.begin_pass(False)
        for part in ends:
            answer = bench.send()
            assert answer[ENDS] == part[4:8] + part[:4] + part[10:12] + part[8:10]
            check_sums(answer)
            # The NAT translates it back to an end that is not the one that opened the connection.
            bench.arrive(answer)
        assert bench.counts("arrived", "strangers") == (0, 300)


@pytest.mark.parametrize("part", ["source", "destination", "source_port", "destination_port"])
def test_a_frame_with_another_end_is_a_strangers_until_one_with_the_right_ones_comes(part):
    with Bench(spec("ethip4-udp-connections")) as bench:
        bench.arrive(through_gateway(bench.send()))
        for is_forward in (False, True):
            bench.begin_pass(is_forward)
            frame = bench.send()
            if is_forward:
                frame = through_gateway(frame)
            place = globals()[part.upper()]
            strange = with_parts(frame, **{part: bytes(byte ^ 1 for byte in frame[place])})
            bench.arrive(strange, strange)
            assert bench.counts("arrived", "copies", "strangers") == (0, 0, 1)
            bench.arrive(frame)
            assert bench.counts("arrived", "copies", "strangers") == (1, 0, 0)
            bench.arrive(frame, strange)
            assert bench.counts("arrived", "copies", "strangers") == (1, 2, 0)


def test_a_connection_whose_frame_was_lost_takes_no_part_in_later_passes():
    with Bench(spec("ethip4-udp-connections"), count=100) as bench:
        opening = [bench.send() for _ in range(100)]
        # The first 70 are lost: more than one run looks at.
        bench.arrive(*map(through_gateway, opening[70:]))
        bench.begin_pass(False)
        answers = [answer for _ in range(40) if (answer := bench.send()) is not None]
        assert [int.from_bytes(answer[46:50], "big") for answer in answers] == [*range(70, 100)]
        bench.arrive(*answers[::2])
        bench.begin_pass(True)
        again = [frame for _ in range(40) if (frame := bench.send()) is not None]
        assert [int.from_bytes(frame[46:50], "big") for frame in again] == [*range(70, 100, 2)]


def test_unasked_answers_come_from_another_port_and_are_expected_from_there():
    with Bench(spec("ethip4-udp-connections")) as bench:
        opening = bench.send()
        bench.arrive(through_gateway(opening))
        bench.begin_pass(False, is_unasked=True)
        answer = bench.send()
        port = int.from_bytes(opening[DESTINATION_PORT], "big")
        assert int.from_bytes(answer[SOURCE_PORT], "big") == port ^ 0x8000
        check_sums(answer)
        bench.arrive(answer)
        assert bench.counts("arrived", "strangers") == (1, 0)


def test_frames_are_late_after_their_pass_each_connection_once_and_copies_are_not():
    with Bench(spec("ethip4-udp-connections")) as bench:
        first, second, third = (through_gateway(bench.send()) for _ in range(3))
        bench.arrive(first)
        bench.memory.end_pass()
        bench.arrive(second, second, first)
        assert bench.counts("arrived", "late", "copies") == (1, 1, 0)
        bench.begin_pass(False)
        bench.arrive(third, is_forward=True)
        assert bench.counts("arrived", "late") == (0, 2)
        answer = bench.send()
        bench.memory.end_pass()
        bench.arrive(answer, answer)
        assert bench.counts("arrived", "late") == (0, 3)


def test_frames_of_earlier_exchanges_are_theirs_and_those_of_long_ago_are_foreign():
    with Bench(spec("ethip4-udp-connections")) as bench:
        of_each = []
        for number in range(66):
            if number:
                bench.begin(100, FIRST + 0x10000 * number)
            of_each.append(through_gateway(bench.send()))
        verdicts = bench.arrive(*of_each)
        assert verdicts == [XdpAction.PASS] + [XdpAction.DROP] * 65
        assert list(bench.memory.shared.late_frames) == [1] * 64
        assert bench.counts("arrived", "foreign") == (1, 1)


def test_frames_that_are_nobodys_are_foreign_and_go_on():
    with Bench(spec("ethip4-udp-connections")) as bench:
        frame = through_gateway(bench.send())
        assert bench.arrive(b"\xff" * 6 + bytes(54), bytes(20), is_forward=True) == [XdpAction.PASS] * 2
        # One with a number that no connection has, and one at the wrong end.
        bench.arrive(frame[:46] + b"\xff" * 4 + frame[50:])
        bench.arrive(frame, is_forward=False)
        assert bench.counts("arrived", "foreign") == (0, 3)


def test_a_frame_from_another_gateway_is_told():
    with Bench(spec("ethip4-udp-connections")) as bench:
        frames = [through_gateway(bench.send()) for _ in range(2)]
        bench.arrive(frames[0], frames[1][:6] + SOURCE_MAC + frames[1][12:])
        assert bench.counts("arrived", "other_macs") == (2, 1)


def test_a_patient_sender_leaves_nothing_out_and_is_behind_by_what_it_makes_up_for():
    with Bench(spec("ethip4-udp-connections")) as bench:
        sender = bench.senders[True]
        patient = Segment(1e6, 100, 0.0, float("inf"), catch_up=2e6, tag=FIRST, is_patient=True)
        sender.schedule(time.monotonic_ns() - 5_000_000_000, [[patient]])
        sender.renew(FOREVER)
        # They are so far behind that one each millisecond and two at once are due.
        frames = [frame for _ in range(3) if (frame := bench.send()) is not None]
        assert [int.from_bytes(frame[46:50], "big") for frame in frames] == [0, 1, 2]
        sent = sender.sent(0, 0)
        assert (sent.sent, sent.unsent) == (3, 0)
        assert sent.lateness >= 4.99


def configured(profile="ethip4-udp-connections", east="tg1", **changes):
    pair = PortPair(TrafficPort("port0", "tg0"), TrafficPort("port1", east))
    made = make_configuration(load_profile(profile, frame_size=128), [pair], settle_time=0.0)
    (way, *others) = made.directions
    return replace(made, directions=(replace(way, **changes), *others))


@pytest.mark.parametrize(
    ("configuration", "reason"),
    [
        (configured(), None),
        (configured(profile="ethip4-tcp-connections"), "must use UDP"),
        (configured(profile="ethip4-ip4base"), "one port of a node"),
        (configured(east="tg0"), "one port of a node"),
        (configured(growth=4), "must use UDP"),
        (configured(broadcast_share=0.1), "must use UDP"),
    ],
)
def test_what_cannot_be_opened_inside_the_kernel_is_known_before(configuration, reason):
    said = why_not_in_kernel(configuration)
    assert (said is None) == (reason is None)
    assert (reason or "") in (said or "")
