"""Real frames through the server of the Open Traffic Generator, asked by snappi's own client."""

import signal
import subprocess

import pytest
from netns import NetnsLab
from otg_lab import AFPACKET, OtgLab, config, flow, lasting
from traffic_lab import Capture, drop, received_by, two_nodes
from waiting import wait_until

from lossratio.exit_status import ExitStatus

pytestmark = pytest.mark.netns

BOTH = (("there", "west", "east"), ("back", "east", "west"))
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
