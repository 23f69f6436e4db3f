"""Receive stamps of cards: a stand-in for a driver's function and for its clock, and what real drivers refuse.

The stand-in is linked into the receiving program in place of the kernel's function. Its clock began in 1970, is 61 ppm
too fast, and its stamps are 1 ms later than the arrivals, which all latencies must show.
"""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest
from bpf_objects import EXIT, KTIME_GET_NS, instruction, mov
from pydantic import ValidationError

from lossratio.agent.core.links import Link
from lossratio.agent.core.protocol import AgentError
from lossratio.agent.xdp import cards
from lossratio.agent.xdp.cards import CardClock, clock_of
from lossratio.bpf import BpfError, read_object, why_impossible
from lossratio.topology import AutoGenerator, XdpGenerator
from lossratio.traffic.generators import open_generator
from lossratio.traffic.generators.base import GeneratorNode

pytestmark = [
    pytest.mark.netns,
    # Two that send at once would leave no processor to anything else.
    pytest.mark.xdist_group("xdp"),
    pytest.mark.skipif(why_impossible() is not None, reason=f"no BPF here: {why_impossible()}"),
]

EPOCH, TOO_FAST_BITS, LATER_NS = 418_000_000 << 32, 14, 1_000_000
PORT = Link(1, "east", bytes(6), 1500, "", True, None, None, 0, 0, 0, transmitted=0)

NO_STAMP = mov(0, -errno.ENODATA) + EXIT
STAMP = (
    # r6 is where the stamp belongs, and r0 has the system's time.
    (instruction(0xBF, 0x26) + KTIME_GET_NS + instruction(0xBF, 0x01) + instruction(0x77, 1, 0, TOO_FAST_BITS))
    + (instruction(0x0F, 0x10) + instruction(0x18, 3, 0, LATER_NS) + instruction(0, 0, 0, EPOCH >> 32))
    + (instruction(0x0F, 0x30) + instruction(0x7B, 0x06) + mov(0, 0) + EXIT)
)

TRIALS = f"""
import json, sys, time
from lossratio.traffic import Plan, PortPair, TrafficPort, load_profile, make_configuration
from lossratio.agent import Control
from lossratio.agent.xdp import constants, generator
sys.path[:0] = sys.argv[3:]
from bpf_objects import instruction

stamp, is_set = bytes.fromhex(sys.argv[1]), sys.argv[2] == "set"
# The clock is set in the midst of the second trial: a busy machine takes long for what comes before.
begun = []

def read():
    now = time.monotonic_ns()
    jump = 3_000_000 if is_set and len(begun) > 1 and time.monotonic() > begun[1] + 0.3 else 0
    return {EPOCH} + now + (now >> {TOO_FAST_BITS}) + jump

if stamp:
    program = constants.program("receive")
    code = bytearray(program.sections["xdp"])
    calls = [place for place, _, name in program._relocations if name == "bpf_xdp_metadata_rx_timestamp"]
    program._relocations = [one for one in program._relocations if one[0] not in calls]
    for place in calls:
        code[place : place + 8] = instruction(0x85, 0x10, 0, (len(code) - place) // 8 - 1)
    program.sections["xdp"] = bytes(code) + stamp
generator.clock_of = lambda port, opened: read
profile = load_profile("ethip4-udp", frame_size=64, bidirectional=False)
pair = PortPair(TrafficPort("a", "west"), TrafficPort("b", "east"))
configuration = make_configuration(profile, [pair], settle_time=0.2)
made = generator.XdpGenerator(configuration, catch_up=10.0, card_stamps=True)
try:
    for _ in range(5):
        begun.append(time.monotonic())
        answer = made.run(Plan(((5_000.0, 0.4),), latency=True), Control())
        print(json.dumps({{**answer.directions[0], **answer.latency[0]}}), flush=True)
except generator.AgentError as error:
    print(json.dumps({{"kind": error.kind, "message": error.message}}), flush=True)
finally:
    made.close()
"""


@pytest.fixture
def wire(netns_lab):
    """A link from `west` to `east` of one node."""
    netns_lab.namespace("tg")
    netns_lab.veth("tg", "west", "tg", "east")
    return netns_lab


def trials(lab, stamp, *, is_set=False):
    arguments = (stamp.hex(), "set" if is_set else "", str(Path(__file__).parents[1]))
    process = lab.popen("tg", sys.executable, "-c", TRIALS, *arguments, stdout=subprocess.PIPE, text=True)
    return [json.loads(line) for line in process.communicate(timeout=120)[0].splitlines()]


def test_latencies_end_with_the_cards_stamps_by_the_systems_clock(wire):
    ways = trials(wire, STAMP)
    assert len(ways) == 5
    for way in ways:
        assert way["received_frames"] == way["sent_frames"] > 0
        # The card's clock is 61 ppm too fast: 6 us in the 0.1 s between two comparisons, 24 us in the trial.
        assert LATER_NS / 1e3 - way["clock_error_us"] < way["least_us"]
    # A busy machine keeps frames waiting, but not all of each trial.
    assert min(way["least_us"] for way in ways) < LATER_NS / 1e3 + 500
    assert min(way["clock_error_us"] for way in ways) < 5


def test_frames_without_a_stamp_are_an_error_and_so_is_a_clock_that_was_set(wire):
    (unstamped,) = trials(wire, NO_STAMP)
    assert unstamped["kind"] == "card_stamps"
    assert "has not stamped 2000 of 2000 frames" in unstamped["message"]
    *_, after = trials(wire, STAMP, is_set=True)
    assert after["kind"] == "card_stamps"
    assert "one clock was set" in after["message"]


def test_the_kernel_links_its_function_and_a_veth_has_no_stamps(wire):
    (answer,) = trials(wire, b"")
    assert "has not stamped 2000 of 2000 frames" in answer["message"]


def test_a_program_without_card_stamps_calls_no_function_of_a_driver():
    program = read_object("lossratio.agent.xdp", "receive")
    assert "bpf_xdp_metadata_rx_timestamp" in program.needs
    program._relocations = [(0, 10, "no_such_function")]
    with pytest.raises(BpfError, match="has no function no_such_function for programs"):
        program.load("some", {}, driver=1)


@pytest.mark.parametrize(
    ("features", "stamping", "reason"),
    [
        (None, (0, True), "the kernel does not report"),
        (2, (0, True), "its driver has none for XDP programs"),
        (7, (None, True), "it has no clock"),
        (7, (0, False), "not every frame is stamped: enable this with hwstamp_ctl -i east -r 1"),
        (7, (999, True), "its clock /dev/ptp999 cannot be read"),
    ],
)
def test_a_card_without_stamps_is_refused_with_the_reason(monkeypatch, features, stamping, reason):
    monkeypatch.setattr(cards, "xdp_features", lambda index, kind: features)
    monkeypatch.setattr(cards, "stamping", lambda name: stamping)
    with pytest.raises(AgentError, match=reason) as refusal:
        clock_of(PORT, ExitStack())
    assert refusal.value.kind == "card_stamps"


def test_the_clock_of_a_card_is_closed_when_the_generator_is_and_when_it_cannot_be_read(monkeypatch, tmp_path):
    monkeypatch.setattr(cards, "xdp_features", lambda index, kind: cards.STAMPS)
    monkeypatch.setattr(cards, "stamping", lambda name: (0, True))
    descriptors = []

    def open_some_file(path, flags):
        assert path == "/dev/ptp0"
        descriptors.append(os.open(tmp_path, flags))
        return descriptors[-1]

    monkeypatch.setattr(cards, "os", SimpleNamespace(**{**vars(os), "open": open_some_file}))
    with ExitStack() as opened, pytest.raises(AgentError, match="its clock /dev/ptp0 cannot be read"):
        clock_of(PORT, opened)
    monkeypatch.setattr(cards.time, "clock_gettime_ns", lambda clock: ~clock >> 3)
    with ExitStack() as opened:
        read = clock_of(PORT, opened)
        assert os.fstat(read())
    for descriptor in descriptors:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)


def test_only_the_generator_xdp_is_asked_for_stamps():
    settings = XdpGenerator(kind="xdp", card_stamps=True)
    assert open_generator(settings, GeneratorNode(None, {}, 2), ()).ready() == {"card_stamps": True}
    with pytest.raises(ValidationError, match="needs 'kind: xdp'"):
        AutoGenerator(kind="auto", card_stamps=True)


def test_a_real_veth_is_refused_as_it_has_no_clock(wire):
    code = "from lossratio.agent.core.links import read_links; from lossratio.agent.xdp.cards import"
    code += " clock_of; from contextlib import ExitStack; clock_of(read_links()['east'], ExitStack())"
    process = wire.popen("tg", sys.executable, "-c", code, stderr=subprocess.PIPE, text=True)
    assert "The card of east gives programs no receive stamps: " in process.communicate(timeout=60)[1]


class Clocks:
    """A system's clock, and a card's that runs at another speed."""

    def __init__(self, monkeypatch, ratio):
        self.system, self.ratio, self.set_by = 5_000_000_000, ratio, 0
        monkeypatch.setattr(cards.time, "monotonic_ns", lambda: self.system)
        monkeypatch.setattr(cards.time, "monotonic", lambda: self.system / 1e9)
        monkeypatch.setattr(cards.time, "sleep", self.sleep)

    def sleep(self, seconds):
        self.system += round(seconds * 1e9)

    def card(self):
        # A reading takes as long to the card as back.
        self.system += 50
        at = EPOCH + round(self.system * self.ratio) + self.set_by
        self.system += 50
        return at


@pytest.mark.parametrize("ratio", [1.0, 1 + 5e-4, 1 - 5e-4])
def test_the_error_of_a_clock_is_what_it_differs_from_its_own_speed(monkeypatch, ratio):
    clocks = Clocks(monkeypatch, ratio)
    clock = CardClock("east", clocks.card)
    clock.begin()
    for _ in range(50):
        clocks.sleep(0.2)
        clock.renew()
    assert clock.error_us < 0.2
    card, system = clock.memory.words[1 + 3 * clock.memory.words[0] :][:2]
    assert card == EPOCH + round(system * ratio)
    clock.check()
    clocks.set_by = -700_000
    clocks.sleep(0.2)
    clock.renew()
    assert clock.error_us == pytest.approx(700, rel=1e-2)
    clock.begin()
    clocks.set_by = 2_000_000
    clocks.sleep(0.05)
    clock.renew()
    clock.check()
    clocks.sleep(0.06)
    clock.renew()
    with pytest.raises(AgentError, match="one clock was set"):
        clock.check()
    # From then on the new time holds, at the card's speed once that is known again.
    clocks.sleep(0.1)
    clock.compare()
    clock.begin()
    clocks.sleep(0.1)
    clock.renew()
    assert clock.error_us < 0.2
