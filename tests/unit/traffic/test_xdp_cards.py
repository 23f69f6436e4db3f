"""Cards that refuse frames of programs: stand-ins for their drivers in front of a veth, which count as they do.

What the stand-in refuses never leaves it, so that no device can have lost it. Its counter of frames sent is the
kernel's, of the link behind it.
"""

from __future__ import annotations

import ast
import json
import os
import re
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lossratio.agent.core.links import Link
from lossratio.agent.xdp import cards
from lossratio.bpf import why_impossible
from lossratio.traffic.generators.own import IMPOSSIBLE

pytestmark = [
    pytest.mark.netns,
    # Two that send at once would leave no processor to anything else.
    pytest.mark.xdist_group("xdp"),
    pytest.mark.skipif(why_impossible() is not None, reason=f"no BPF here: {why_impossible()}"),
]

DRIVERS = {
    # Its rings are cleaned late, so that the interface's own counter is behind.
    "ice": lambda left: {"tx_unicast.nic": left, "tx_packets": left // 2},
    "i40e": lambda left: {"port.tx_unicast": left, "tx_dropped": 0},
    # The interface's counter leaves frames of programs out.
    "mlx5": lambda left: {"tx_packets_phy": left, "tx_packets": 0},
    "ixgbe": lambda left: {"tx_pkts_nic": left},
    "another": lambda left: {},
}

TRIALS = """
import json, sys
from dataclasses import replace
from pathlib import Path
from lossratio.traffic import PortPair, TrafficPort, load_profile, make_configuration
from lossratio.agent.core import links, ports
from lossratio.agent import AgentError, Control, Plan
from lossratio.agent.xdp import attachment, cards, generator

names, counted = sys.argv[1].split(","), sys.argv[2]
if sys.argv[3] == "unknown":
    attachment.may_send = lambda interface: None
read_links = links.read_links

def left():
    if counted == "none":
        return 0
    # The stand-in's other end of the wire sends what it has taken.
    return int(Path("/sys/class/net/wire/statistics/tx_packets").read_text())

def stand_in():
    found = read_links()
    return {**found, "card": replace(found["card"], kind="", transmitted=left())}

ports.read_links = stand_in
cards.statistics = lambda name: dict.fromkeys(names, left()) if names != [""] else {}
profile = load_profile("ethip4-udp", frame_size=64, bidirectional=False)
pair = PortPair(TrafficPort("west", "card"), TrafficPort("east", "east"))
made = None
try:
    made = generator.XdpGenerator(make_configuration(profile, [pair], settle_time=0.2), catch_up=10.0)
    for ramp in (0.0, 0.1):
        (way,) = made.run(Plan(((20_000.0, 0.3),), ramp=ramp), Control()).directions
        print(json.dumps({**way, "sent_by": made.facts()["sent_by"]}), flush=True)
except AgentError as error:
    print(json.dumps({"kind": error.kind, "message": error.message}), flush=True)
finally:
    if made is not None:
        made.close()
"""


@pytest.fixture
def card(netns_lab):
    """A port `card` whose frames go to `east`, but for one in twenty."""
    netns_lab.namespace("tg")
    netns_lab.veth("tg", "card", "tg", "inside")
    netns_lab.veth("tg", "wire", "tg", "east")
    for interface in ("inside", "east", "wire", "card"):
        netns_lab.run("tg", "ethtool", "-K", interface, "gro", "on")
    netns_lab.bridge("tg", "driver", "inside", "wire")
    rule = "numgen inc mod 20 < 1 drop"
    hook = 'type filter hook ingress device "inside" priority 0;'
    netns_lab.run("tg", "nft", "-f", "-", input=f"table netdev card {{\nchain refuse {{\n{hook}\n{rule}\n}}\n}}\n")
    return netns_lab


def trials(lab, counters, counted="all", features="reported"):
    script = (sys.executable, "-c", TRIALS, counters, counted, features)
    process = lab.popen("tg", *script, stdout=subprocess.PIPE, text=True)
    return [json.loads(line) for line in process.communicate(timeout=120)[0].splitlines()]


@pytest.mark.parametrize("driver", sorted(DRIVERS))
def test_frames_that_a_card_refuses_are_unsent_and_never_lost(card, driver):
    name = next((name for name in DRIVERS[driver](1) if name in cards.HARDWARE), "tx_packets")
    plain, ramped = trials(card, name if name in cards.HARDWARE else "")
    # Frames of the ramp that were refused take nothing from the trial.
    for way in (plain, ramped):
        assert way["sent_by"] == {"card": name}
        assert way["sent_frames"] + way["unsent_frames"] == way["intended_frames"] == 6_000
        assert way["received_frames"] == way["sent_frames"]
        tried = way["sent_frames"] + way["refused_frames"]
        assert way["refused_frames"] == pytest.approx(tried / 20, abs=1)
        assert way["refused_frames"] <= way["unsent_frames"]


def test_a_card_that_counts_no_frames_of_programs_is_an_error(card):
    (answer,) = trials(card, "tx_packets_phy", "none")
    assert answer["kind"] == "counters"
    assert "card has counted none of" in answer["message"]


def test_a_card_is_refused_if_the_kernel_does_not_say_whether_its_driver_sends_frames_of_programs(card):
    (answer,) = trials(card, "", "all", "unknown")
    # For errors of this kind the generator 'auto' takes packet sockets.
    assert answer["kind"] in IMPOSSIBLE
    assert "whether the driver of card sends frames of XDP programs. Use Linux 6.3 or later" in answer["message"]


@pytest.mark.parametrize("driver", sorted(DRIVERS))
def test_the_counter_of_the_hardware_goes_before_the_interfaces(monkeypatch, driver):
    port = Link(5, "p0", bytes(6), 1500, "", True, None, None, 0, 0, 0, transmitted=77)
    monkeypatch.setattr(cards, "statistics", lambda name: DRIVERS[driver](1000))
    name, count = cards.transmitted(port)
    assert (name, count) == (("tx_packets", 77) if driver == "another" else (name, 1000))


@pytest.mark.parametrize("queue", ["tx_queue_{}_{}", "tx{}_{}"])
def test_a_card_of_virtio_has_sent_what_its_queues_took_and_not_what_they_have_cleaned(monkeypatch, queue):
    port = Link(5, "p0", bytes(6), 1500, "", True, None, None, 0, 0, 0, transmitted=77)
    # Of each queue: frames given by programs, refused, and cleaned; the second spelling is that of Linux 6.10.
    queues = [(100, 7, 60), (50, 0, 17)]
    counts = {"rx_queue_0_xdp_tx": 9, "tx_xdp_tx": 150}
    for number, of_queue in enumerate(queues):
        for name, count in zip(("xdp_tx", "xdp_tx_drops", "packets"), of_queue, strict=True):
            counts[queue.format(number, name)] = count
    monkeypatch.setattr(cards, "statistics", lambda name: counts)
    assert cards.transmitted(port) == ("xdp_tx - xdp_tx_drops", 143)


def test_what_a_queue_of_virtio_has_no_room_for_is_unsent(card):
    plain, ramped = trials(card, "tx_queue_0_xdp_tx")
    for way in (plain, ramped):
        assert way["sent_by"] == {"card": cards.VIRTIO}
        assert way["sent_frames"] + way["unsent_frames"] == way["intended_frames"] == 6_000
        assert way["received_frames"] == way["sent_frames"]
        tried = way["sent_frames"] + way["refused_frames"]
        assert way["refused_frames"] == pytest.approx(tried / 20, abs=1)
        assert way["refused_frames"] <= way["unsent_frames"]


def test_the_statistics_of_a_driver_are_those_of_ethtool(netns_lab):
    netns_lab.namespace("tg")
    netns_lab.veth("tg", "west", "tg", "east")
    code = "import json; from lossratio.agent.core.ethtool import statistics as s; "
    code += "print(json.dumps([s('west'), s('lo'), s('nothing')]))"
    ours, *none = json.loads(netns_lab.run("tg", sys.executable, "-c", code).stdout)
    lines = netns_lab.run("tg", "ethtool", "-S", "west").stdout.splitlines()[1:]
    assert ours == {name.strip(): int(value) for name, _, value in (line.rpartition(":") for line in lines)}
    assert none == [{}, {}]


SHARED_QUEUE = """
import sys
from lossratio.traffic import PortPair, TrafficPort, load_profile, make_configuration
from lossratio.agent import AgentError, Control, Plan
from lossratio.agent.xdp import departures, generator

missed, is_begun = int(sys.argv[1]), False

def handed_over(port):
    global is_begun
    before, is_begun = not is_begun, True
    return 0 if before else sum(sender.program.sent(0, 0).sent for sender in made._senders) - missed

departures.handed_over = handed_over
profile = load_profile("ethip4-udp", frame_size=64, bidirectional=False)
pair = PortPair(TrafficPort("west", "card"), TrafficPort("east", "east"))
configuration = make_configuration(profile, [pair], settle_time=0.2)
made = generator.XdpGenerator(configuration, catch_up=10.0, cpus_per_direction=2)
try:
    (way,) = made.run(Plan(((20_000.0, 0.3),)), Control()).directions
    print(way["sent_frames"] - way["received_frames"])
except AgentError as error:
    print(error.kind, error.message)
finally:
    made.close()
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor")
def test_loss_that_a_shared_queue_may_have_refused_without_counting_it_is_an_error(card):
    def lost(missed):
        return card.run("tg", sys.executable, "-c", SHARED_QUEUE, str(missed)).stdout.strip()

    assert int(lost(0)) == 300
    answer = lost(16)
    # A busy machine may leave a few of the 6000 unsent.
    assert re.match(r"counters The driver of card has not counted 16 of (5\d{3}|6000) frames", answer)
    assert answer.endswith("or use 'cpus_per_direction: 1'.")


def test_a_veth_says_how_many_frames_of_programs_it_was_given_and_a_card_does_not(monkeypatch):
    counts = {"peer_ifindex": 3, "rx_queue_0_xdp_packets": 9, "tx_queue_0_xdp_xmit": 5, "tx_queue_1_xdp_xmit_errors": 2}
    monkeypatch.setattr(cards, "statistics", lambda name: counts)
    port = Link(5, "p0", bytes(6), 1500, "veth", True, None, None, 0, 0, 0)
    assert cards.handed_over(port) == 7
    assert cards.handed_over(replace(port, kind="")) is None
    monkeypatch.setattr(cards, "statistics", lambda name: {"peer_ifindex": 3})
    assert cards.handed_over(port) is None


QUEUES = """
import sys
from socket import if_nametoindex
sys.path[:0] = sys.argv[1:]
from bpf_objects import run_once
from test_xdp_frames import Bench, spec

with Bench(spec()) as bench:
    frames = [bench.send() for _ in range(100)]
    port = if_nametoindex("card")
    # Each queue has half of the flows; the second one is taken first, and has two frames in the wrong order.
    of_second = [*range(1, 81, 2), 83, 81, *range(85, 100, 2)]
    for queue, numbers in ((1, of_second), (0, range(0, 100, 2))):
        for number in numbers:
            run_once(bench.receiver.program, frames[number], interface=port, queue=queue)
    print(bench.counts())
"""


def test_frames_of_several_receive_queues_have_an_order_in_each(netns_lab):
    netns_lab.namespace("tg")
    netns_lab.run("tg", "ip", "link", "add", "card", "numrxqueues", "2", "type", "veth", "peer", "name", "wire")
    folders = (str(folder) for folder in (Path(__file__).parent, Path(__file__).parents[1]))
    answer = netns_lab.run("tg", sys.executable, "-c", QUEUES, *folders).stdout
    assert ast.literal_eval(answer) == {"arrived": 100, "intact": 100, "reordered": 1}


HELD = """
import sys
from socket import if_nametoindex
sys.path[:0] = sys.argv[1:]
from bpf_objects import run_once
from test_xdp_frames import Bench, spec

with Bench(spec()) as bench:
    frames = [bench.send() for _ in range(400)]
    port = if_nametoindex("card")
    # Flows take turns in four queues. The third one loses 38, and holds 18 until 90 of its others have come.
    held = {378: [18], 38: []}
    for number, frame in enumerate(frames):
        arriving = [] if number in (18, 38) else [number]
        for each in arriving + held.get(number, []):
            run_once(bench.receiver.program, frames[each], interface=port, queue=each % 4)
    received = bench.reception.received(0)
    print(bench.counts(), received.extent, received.displacement, sep="; ")
"""


def test_four_receive_queues_have_the_extent_of_a_frame_that_its_queue_held_and_no_loss_is_another_order(netns_lab):
    netns_lab.namespace("tg")
    netns_lab.run("tg", "ip", "link", "add", "card", "numrxqueues", "4", "type", "veth", "peer", "name", "wire")
    folders = (str(folder) for folder in (Path(__file__).parent, Path(__file__).parents[1]))
    counts, extent, displacement = netns_lab.run("tg", sys.executable, "-c", HELD, *folders).stdout.split("; ")
    assert ast.literal_eval(counts) == {"arrived": 399, "intact": 399, "reordered": 1}
    # From 22, the first later one of the queue, to 378 there are 90 of it, and one is lost.
    assert (int(extent), int(displacement)) == (89, 378 - 18)


@pytest.mark.parametrize(
    ("rate", "rings", "batch"),
    [(1e5, [], 4), (2e6, [], 16), (5e6, [], 32), (5e6, [256, 2048], 32), (5e6, [64], 16), (5e6, [2], 1)],
)
def test_a_batch_is_a_quarter_of_the_smallest_ring_at_most(rate, rings, batch):
    assert cards.batch_at(rate, rings) == batch


def test_a_ring_is_read_where_a_driver_has_one(monkeypatch):
    assert cards.transmit_ring("lo") is None
    # Greatest sizes of four rings, and their sizes.
    words = struct.pack("=9I", 0x10, 4096, 0, 0, 4096, 512, 0, 0, 1024)
    monkeypatch.setattr(cards, "ask", lambda name, command: words if len(command) == len(words) else b"")
    assert cards.transmit_ring("p0") == 1024
