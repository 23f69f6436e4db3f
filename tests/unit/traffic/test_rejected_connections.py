"""Connections that a router rejects, with resets of TCP or messages of ICMP, instead of dropping them in silence."""

from __future__ import annotations

import pytest
from local_session import PYTHON, LocalSession
from traffic_lab import configure_connections, two_nodes
from whole_trials import run_connections, whole

from lossratio.bpf import why_impossible
from lossratio.traffic import AgentClient, TrafficPort
from lossratio.trials import Exchange

pytestmark = pytest.mark.netns

RATE, COUNT = 20_000.0, 1000
ICMP_WITHOUT_LIMITS = (
    "net.ipv4.icmp_ratelimit=0",
    "net.ipv4.icmp_msgs_per_sec=1000000",
    "net.ipv4.icmp_msgs_burst=1000000",
)
FIRST_FRAMES = "tcp flags & (syn | ack) == syn tcp sport & 3 == 0"


@pytest.fixture
def router(netns_lab):
    """A router of the kernel between the TG's ports, which knows the MAC addresses of all hosts."""
    lab = two_nodes(netns_lab)
    lab.run("dut1", "sysctl", "-qw", "net.ipv4.ip_forward=1", *ICMP_WITHOUT_LIMITS)
    commands = []
    for dut, tg, network in (("dut0", "tg0", "198.18.0"), ("dut1", "tg1", "198.19.0")):
        commands.append(f"address add {network}.254/24 dev {dut}")
        mac = lab.mac("tg", tg)
        commands += [f"neigh add {network}.{host} lladdr {mac} dev {dut}" for host in range(1, 17)]
    lab.run("dut1", "ip", "-batch", "-", input="\n".join(commands))
    return lab


@pytest.fixture
def agent(router, tmp_path):
    with AgentClient.start(LocalSession(router, "tg", tmp_path), python=PYTHON) as client:
        yield client


def opened(agent, router, profile, rule, generator="afpacket"):
    """Opens connections through the router with a rule, and counts them."""
    near = TrafficPort("port0", "tg0", router.mac("dut1", "dut0"))
    far = TrafficPort("port1", "tg1", router.mac("dut1", "dut1"))
    configure_connections(agent, generator, west=near, east=far, profile=profile)
    table = f"table ip firewall {{\nchain forward {{\ntype filter hook forward priority 0\n{rule}\n}}\n}}\n"
    router.run("dut1", "nft", "-f", "-", input=table)
    (counters,) = whole(run_connections, agent, RATE, COUNT, Exchange())
    return counters


# Every fourth connection: a trial that is measured again takes the next ports.
@pytest.mark.smoke
@pytest.mark.parametrize(
    ("profile", "rule", "rejections"),
    [
        ("ethip4-tcp-connections", f"{FIRST_FRAMES} reject with tcp reset", COUNT // 4),
        ("ethip4-tcp-connections", f"{FIRST_FRAMES} reject", COUNT // 4),
        ("ethip4-udp-connections", "iifname dut0 udp sport & 3 == 0 reject with icmp admin-prohibited", COUNT // 4),
        ("ethip4-tcp-connections", f"{FIRST_FRAMES} drop", 0),
        ("ethip4-udp-connections", "iifname dut0 udp sport & 3 == 0 drop", 0),
    ],
)
def test_a_connection_that_is_rejected_is_lost_and_its_rejection_is_counted(agent, router, profile, rule, rejections):
    counters = opened(agent, router, profile, rule)
    assert counters.received_frames == COUNT - COUNT // 4
    assert counters.left_frames[0] == COUNT - COUNT // 4
    assert counters.rejection_frames == rejections


@pytest.mark.skipif(why_impossible() is not None, reason=f"no BPF here: {why_impossible()}")
@pytest.mark.parametrize(("action", "rejections"), [("reject with icmp admin-prohibited", COUNT // 4), ("drop", 0)])
def test_rejections_are_counted_inside_the_kernel_too(agent, router, action, rejections):
    for interface in ("dut0", "dut1"):
        router.run("dut1", "ethtool", "-K", interface, "gro", "on")
    rule = f"iifname dut0 udp sport & 3 == 0 {action}"
    counters = opened(agent, router, "ethip4-udp-connections", rule, generator="xdp")
    assert counters.left_frames == (COUNT - COUNT // 4,) * 2
    assert counters.rejection_frames == rejections


def test_the_testers_own_resets_are_no_rejections(agent, router):
    opened(agent, router, "ethip4-tcp-connections", "")
    (counters,) = whole(run_connections, agent, RATE, COUNT, Exchange(closing="rst"))
    assert (counters.received_frames, counters.rejection_frames) == (COUNT, 0)
