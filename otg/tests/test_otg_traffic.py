"""Real frames through the server of the Open Traffic Generator, asked by snappi's own client."""

import io
import signal
import subprocess

import pytest
from at_least_one import at_least_one
from netns import NetnsLab
from otg_lab import AFPACKET, OtgLab, config, flow, lasting
from scapy.layers.inet import UDP
from scapy.layers.l2 import Dot1Q
from scapy.utils import PcapReader
from traffic_lab import Capture, drop, received_by, two_nodes
from waiting import wait_until

from lossratio.values.exit_status import ExitStatus

pytestmark = pytest.mark.netns

BOTH = (("there", "west", "east"), ("back", "east", "west"))
ATTEMPTS = 5
"""How often flows are sent until a stalled machine keeps no frame back."""
CONTINUOUS = {"duration": {"choice": "continuous"}, "rate": {"choice": "pps", "pps": 500}}


@pytest.fixture(scope="module")
def served(lasting_lab: NetnsLab) -> OtgLab:
    return OtgLab(two_nodes(lasting_lab, bridge="br0"), *AFPACKET)


@pytest.fixture
def otg(served: OtgLab) -> OtgLab:
    served.serve(*AFPACKET)
    return served


def counts(metrics):
    return {each["name"]: (int(each["frames_tx"]), int(each["frames_rx"])) for each in metrics}


def test_counts_of_flows_and_ports_are_those_of_the_kernel(otg):
    before = [received_by(otg.lab, port, node) for port, node in (("dut0", "dut1"), ("tg1", "tg"))]
    flows = otg.send(*(flow(*way, **lasting(600, 2000)) for way in BOTH), flow("more", **lasting(300, 1000)))
    assert counts(flows) == {"there": (600, 600), "back": (600, 600), "more": (300, 300)}
    assert counts(otg.ask("metrics('port')")) == {"west": (900, 600), "east": (600, 900)}
    after = [received_by(otg.lab, port, node) for port, node in (("dut0", "dut1"), ("tg1", "tg"))]
    assert [new - old for new, old in zip(after, before, strict=True)] == [900, 900]


HELLO = """(
    api.set_config(json.dumps(config)), capture("start"), state("start"), wait(),
    {name: captured(name) for name in ("west", "east")},
)[-1]"""


def test_hello_world_of_snappi(otg):
    """What the first script of snappi's users does: 1,000 frames each way, whose captures are read as pcap."""
    ways = []
    for number, (name, source, sink) in at_least_one(enumerate(BOTH)):
        udp = {
            "src_port": {"choice": "increment", "increment": {"start": 5000 + number, "step": 2, "count": 10}},
            "dst_port": {"choice": "values", "values": [4000, 4044, 4060, 4074]},
        }
        headers = [{"choice": kind, kind: {}} for kind in ("ethernet", "ipv4")]
        packet = [*headers, {"choice": "udp", "udp": udp}]
        size = {"choice": "fixed", "fixed": (128, 256)[number]}
        ways.append(flow(name, source, sink, packet=packet, size=size, **lasting(1000, 1000)))

    asked = {**config(*ways), "captures": [{"name": "cp", "port_names": ["west", "east"]}]}
    # Twice, as each start begins with the first values of the fields.
    for _ in range(2):
        files = otg.ask(HELLO, asked)
        for name, size, first in (("east", 128, 5000), ("west", 256, 5001)):
            packets = PcapReader(io.BytesIO(bytes.fromhex(files[name])))
            own = [packet for packet in packets if UDP in packet]
            ports = [(packet[UDP].sport, packet[UDP].dport) for packet in own]
            due = [(first + 2 * (count % 10), 4000 + (0, 44, 60, 74)[count % 4]) for count in range(1000)]
            assert ports == due
            assert {len(packet) for packet in own} == {size - 4}
            times = [packet.time for packet in own]
            assert times == sorted(times)


def test_a_capture_has_all_tags_and_the_first_bytes_of_long_frames(otg):
    vlan = {"choice": "vlan", "vlan": {"id": {"choice": "value", "value": 7}}}
    headers = [{"choice": kind, kind: {}} for kind in ("ethernet", "ipv4", "udp")]
    tagged = flow(packet=[headers[0], vlan, *headers[1:]], size={"choice": "fixed", "fixed": 100}, **lasting(20, 200))
    asked = {**config(tagged), "captures": [{"name": "c", "port_names": ["east"], "packet_size": 80}]}
    data = otg.ask(
        "(api.set_config(json.dumps(config)), capture('start'), state('start'), wait(), captured('east'))[-1]", asked
    )
    own = [packet for packet in PcapReader(io.BytesIO(bytes.fromhex(data))) if UDP in packet]
    assert [(packet[Dot1Q].vlan, len(packet), packet.wirelen) for packet in own] == [(7, 80, 96)] * 20


def test_flows_that_last_differently_are_sent_at_once(otg):
    latency = {"metrics": {"enable": True, "latency": {"enable": True}}}
    wanted = {"short": 100, "long": 900, "timed": 400}
    for _ in range(ATTEMPTS):
        before = received_by(otg.lab, "tg1", "tg")
        flows = otg.send(
            flow("short", **lasting(wanted["short"], 1000)),
            flow("long", **lasting(wanted["long"], 1500)),
            flow("timed", **{**lasting(wanted["timed"], 1000), **latency}),
        )
        found = counts(flows)
        # What a stalled machine could not send in time is no frame of either side.
        assert all(sent == received <= wanted[name] for name, (sent, received) in found.items())
        assert received_by(otg.lab, "tg1", "tg") - before == sum(received for _, received in found.values())
        if all(found[name] == (frames, frames) for name, frames in wanted.items()):
            break
    else:
        pytest.fail(f"not once in {ATTEMPTS} times could all frames be sent: {found}")
    assert [("latency" in each) for each in flows] == [False, False, True]
    # The agents that are not needed any more leave nothing behind for the next flows.
    assert counts(otg.send(flow(**lasting(50, 500)))) == {"f": (50, 50)}


def test_a_flow_that_ends_does_not_stop_one_without_an_end(otg):
    found = otg.ask(
        "[api.set_config(json.dumps(config)), state('start'), wait('short'), metrics('flow')][-1]",
        config(flow("short", **lasting(100, 1000)), flow("endless", **CONTINUOUS)),
    )
    assert [(each["name"], each["transmit"]) for each in found] == [("short", "stopped"), ("endless", "started")]
    assert counts(found)["short"] == (100, 100)
    sent, received = counts(otg.ask("[state('stop'), metrics('flow')][-1]"))["endless"]
    assert sent == received > 0


def test_a_flow_without_a_receiver_is_sent(otg):
    before = received_by(otg.lab, "dut0")
    (metric,) = otg.send(flow(tx_rx={"choice": "port", "port": {"tx_name": "west"}}, **lasting(100, 1000)))
    assert (int(metric["frames_tx"]), "frames_rx" in metric) == (100, False)
    assert received_by(otg.lab, "dut0") - before == 100


@pytest.mark.smoke
def test_what_a_policer_drops_is_lost(otg):
    drop(otg.lab, "dut0", "limit rate over 1000/second burst 5 packets")
    before = received_by(otg.lab, "tg1", "tg")
    try:
        (metric,) = otg.send(flow(**lasting(2000, 2000)))
    finally:
        otg.lab.run("dut1", "nft", "delete", "table", "netdev", "faults")
    sent, received = counts([metric])["f"]
    assert (sent, received) == (2000, received_by(otg.lab, "tg1", "tg") - before)
    assert 0 < received < 1800
    assert metric["loss"] == pytest.approx(100.0 * (sent - received) / sent)


def test_frames_have_the_fields_of_the_configuration(otg):
    macs = {"src": "00:aa:00:00:04:00", "dst": "00:aa:00:00:00:bb"}
    vlan = {"id": {"choice": "value", "value": 7}, "priority": {"choice": "value", "value": 3}}
    udp = {"src_port": {"choice": "values", "values": [4000, 4044, 4060]}}
    packet = [
        {"choice": "ethernet", "ethernet": {name: {"choice": "value", "value": mac} for name, mac in macs.items()}},
        {"choice": "vlan", "vlan": vlan},
        {"choice": "ipv4", "ipv4": {"src": {"choice": "value", "value": "10.1.2.3"}}},
        {"choice": "udp", "udp": udp},
    ]
    capture = Capture(otg.lab, "dut0", 4)
    otg.send(flow(packet=packet, size={"choice": "fixed", "fixed": 100}, **lasting(4, 100)))
    frames = capture.frames()
    # The kernel takes the tag off.
    assert {frame[:12].hex(":") for frame in frames} == {f"{macs['dst']}:{macs['src']}"}
    assert {frame[26:30].hex() for frame in frames} == {"0a010203"}
    assert [int.from_bytes(frame[34:36], "big") for frame in frames] == [4000, 4044, 4060, 4000]
    assert {len(frame) for frame in frames} == {100 - 4 - 4}


def test_flows_without_an_end_are_stopped_and_counted(otg):
    before = received_by(otg.lab, "dut0")
    running = otg.ask(
        "[api.set_config(json.dumps(config)), state('start'), time.sleep(0.3), metrics('flow')][-1]",
        config(flow(**CONTINUOUS)),
    )
    assert [each["transmit"] for each in running] == ["started"]
    assert "Flows are being sent" in otg.ask("api.set_config(json.dumps(config)) and None", config())["error"]
    ((sent, received),) = counts(otg.ask("[state('stop'), metrics('flow')][-1]")).values()
    assert sent == received == received_by(otg.lab, "dut0") - before > 0


def test_flows_that_are_cut_off_have_no_counts_and_the_next_ones_have(otg):
    otg.ask(
        "[api.set_config(json.dumps(config)), state('start'), state('stop')][-1]", config(flow(**lasting(9000, 100)))
    )
    assert "stopped before their end; how many frames had left is not known" in otg.ask("metrics('flow')")["error"]
    assert counts(otg.send(flow(**lasting(50, 500)))) == {"f": (50, 50)}


def test_a_generator_that_dies_is_an_error_and_a_new_one_takes_its_place(otg):
    otg.ask("[api.set_config(json.dumps(config)), state('start')][-1]", config(flow(**lasting(9000, 100))))
    for pid in otg.agents():
        subprocess.run(["kill", "-KILL", str(pid)], check=True)
    wait_until(lambda: "error" in otg.ask("metrics('flow')"))
    assert "otg-serve" in otg.ask("metrics('flow')")["error"]
    assert counts(otg.send(flow(**lasting(50, 500)))) == {"f": (50, 50)}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_server_ends_its_traffic_with_it(otg, number):
    otg.ask("[api.set_config(json.dumps(config)), state('start')][-1]", config(flow(**CONTINUOUS)))
    assert otg.end(number) == ExitStatus.INTERRUPTED
    before = received_by(otg.lab, "dut0")
    assert received_by(otg.lab, "dut0") == before


def test_latency_has_least_mean_and_most(otg):
    latency = {"metrics": {"enable": True, "latency": {"enable": True}}}
    (metric,) = otg.send(flow(**{**lasting(2000, 4000), **latency}))
    least, mean, most = (metric["latency"][f"{name}_ns"] for name in ("minimum", "average", "maximum"))
    assert 0 < least <= mean <= most < 1e9


def test_frames_larger_than_the_mtu_are_a_mistake_of_the_request(otg):
    answer = otg.ask(
        "api.set_config(json.dumps(config)) and None", config(flow(size={"choice": "fixed", "fixed": 9000}))
    )
    assert "400" in answer["error"]
    assert "Frames of 9000 bytes do not go through tg0, whose MTU is 1500" in answer["error"]


def test_frames_that_cannot_be_sent_in_time_are_a_warning_of_the_stop(otg):
    lasts = {"choice": "fixed_seconds", "fixed_seconds": {"seconds": 0.2}}
    otg.send(flow(duration=lasts, rate={"choice": "pps", "pps": 50_000_000}))
    (warning,) = otg.ask("state('stop')")
    assert "of 10,000,000 frames were not sent" in warning


@pytest.mark.parametrize("kind", ["auto", "xdp"])
def test_the_generator_inside_the_kernel_counts_the_same(otg, kind):
    for port in ("dut0", "dut1"):
        otg.lab.run("dut1", "ethtool", "-K", port, "gro", "on")
    otg.serve("--generator", kind)
    metrics = otg.send(*(flow(*way, **lasting(500, 1000)) for way in BOTH))
    if "error" in metrics:
        pytest.skip(metrics["error"])
    assert counts(metrics) == {"there": (500, 500), "back": (500, 500)}
