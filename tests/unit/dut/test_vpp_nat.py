"""VPP as a NAT: its commands, its table of sessions, and real frames through a real VPP."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from local_testbeds import local_topology, needs_testbed, own_state
from real_vpp import HOME, skip_without_plugins
from whole_trials import whole

from lossratio.agent.afpacket.frames import FrameBuilder
from lossratio.dut import Established
from lossratio.dut.linux.cores import CoreChoice
from lossratio.dut.vpp import Vpp
from lossratio.dut.vpp.features.feature import both_ports
from lossratio.dut.vpp.features.nat import Sessions
from lossratio.dut.vpp.startup import startup_configuration
from lossratio.errors import DutError
from lossratio.testbed.opening import open_testbed
from lossratio.testbed.testbed import TrialSettings
from lossratio.topology.addressing import EAST, WEST
from lossratio.traffic import load_profile
from lossratio.traffic.frame_headers import frames_spec
from lossratio.traffic.profile import addresses
from lossratio.trials import Exchange, Integrity, TrialInput

VppOptions = Vpp.all_options()


def commands(workers=1, **options):
    sides = both_ports(("host-a", "host-b"), ("02:00:00:00:00:01", "02:00:00:00:00:02"))
    ports = tuple(replace(port, queues=4, workers=workers) for port in sides)
    return [command.text for command in VppOptions(forwarding="ip4", **options).forwarding_commands(*ports)]


def sessions(answer, **options):
    return Sessions("DUT1", VppOptions(forwarding="ip4", **options).table, lambda command: answer)


def test_all_hosts_of_both_networks_may_have_sessions_and_the_last_ones_are_the_nats():
    given = commands(nat="nat44-ed", nat_addresses=64, nat_sessions=4_128_768, udp_timeout="60 s")
    assert "set interface ip address host-a 169.254.18.1/30" in given
    assert "ip route add 198.18.0.0/16 via 169.254.18.2 host-a" in given
    assert given[-4:] == [
        "nat44 plugin enable sessions 5242880",
        "set interface nat44 in host-a out host-b",
        "nat44 add address 198.19.255.192 - 198.19.255.255",
        "set nat timeout udp 60",
    ]


@pytest.mark.parametrize(
    ("sessions", "workers", "each"), [(64_512, 1, 81_920), (64_512, 2, 40_960), (81_920, 1, 81_920), (1, 4, 10)]
)
def test_each_worker_has_room_for_its_share_of_the_sessions_as_in_csit(sessions, workers, each):
    given = commands(workers, nat="nat44-ed", nat_sessions=sessions)
    assert f"nat44 plugin enable sessions {each}" in given


def test_a_deterministic_nat_has_63_ports_for_each_of_1024_hosts():
    given = commands(det44_hosts=65_536, det44_addresses=64)
    assert given[-3:] == [
        "set interface det44 inside host-a outside host-b",
        "set det44 timeouts udp 3000",
        "det44 add in 198.18.0.0/16 out 198.19.255.192/26",
    ]
    table = sessions(" in 198.18.0.0/22 out 198.19.255.255/32\n  sessions number: 64512\n", det44_hosts=1024)
    assert table.count() == table.known_ports == 64_512
    assert sessions("", nat="nat44-ed").known_ports is sessions("", sfdp="ip4").known_ports is None
    with pytest.raises(DutError, match=r"DUT1 keeps at most 64,512 at once\. Raise det44_addresses"):
        table.check(Established(64_513, 1, 1.0))
    with pytest.raises(DutError, match=r"DUT1 keeps at most 4,000 at once\. Raise det44_hosts"):
        sessions("", det44_hosts=4).check(Established(4001, 1, 1.0))


def test_sessions_of_stateful_flows_have_services_both_ways_and_end_by_a_command_of_their_own():
    given = commands(sfdp="l4ip4", sfdp_sessions=64_512)
    assert given[-9:] == [
        "sfdp tenant add 1",
        "set sfdp services tenant 1 sfdp-l4-lifecycle ip4-lookup forward",
        "set sfdp services tenant 1 sfdp-l4-lifecycle ip4-lookup reverse",
        "set sfdp timeout tenant 1 embryonic 3000",
        "set sfdp timeout tenant 1 established 3000",
        "set sfdp timeout tenant 1 tcp-established 3000",
        "set sfdp timeout tenant 1 security 3000",
        "set sfdp interface-input host-a tenant 1",
        "set sfdp interface-input host-b tenant 1",
    ]
    options = VppOptions(forwarding="ip4", sfdp="ip4", sfdp_sessions=64_512)
    lines = ["sfdp sessions-log2 17", "sfdp sessions-per-thread-cache-log2 17"]
    assert list(options.startup_lines())[1:] == lines
    assert options.entries == 1 << 17
    ended = Established(1, 1, 1.0, "time_wait")
    Sessions("DUT1", options.table, None).check(ended)
    with pytest.raises(DutError, match="DUT1 forgets a TCP connection after 0 s"):
        Sessions("DUT1", VppOptions(forwarding="ip4", sfdp="l4ip4").table, None).check(ended)
    # VPP makes all of them at once, of half a kilobyte each.
    cores = CoreChoice(0, (1,), 0, shared=False)
    for sessions, heap in ((1_032_192, "3G"), (4_128_768, "8G")):
        entries = VppOptions(forwarding="ip4", sfdp="ip4", sfdp_sessions=sessions).entries
        assert f"main-heap-size {heap}\n" in startup_configuration("/tmp/vpp", cores, (), entries=entries)
    answers = iter(["", "  active sessions: 70 (1.0%)\n", "  active sessions: 0 (0.0%)\n"])
    told = []
    Sessions("DUT1", options.table, lambda command: (told.append(command), next(answers))[1]).forget()
    assert told == ["kill sfdp session all", "show sfdp status", "show sfdp status"]


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"nat_addresses": 2}, "also set nat=nat44-ed"),
        ({"det44_hosts": 1000}, "powers of two"),
        ({"det44_hosts": 2, "nat": "nat44-ed"}, "one NAT"),
        ({"sfdp_sessions": 2}, "set sfdp=ip4 or sfdp=l4ip4"),
        ({"sfdp": "ip4", "nat": "nat44-ed"}, "sfdp is not a NAT"),
        ({"sfdp": "ip4", "acl": 50}, "acl would have no effect: sfdp forwards frames"),
        ({"sfdp": "ip4", "police": "1 Mbps"}, "police would have no effect: sfdp forwards frames"),
        ({"forwarding": "l2patch", "acl": 50}, "acl: also set forwarding=l2xc or l2bd or ip4 or ip6"),
        ({"forwarding": "l2patch", "police": "1 Mbps"}, "police: also set forwarding=l2xc or l2bd"),
    ],
)
def test_options_that_do_not_go_together_are_refused(options, problem):
    with pytest.raises(ValueError, match=problem):
        VppOptions(**{"forwarding": "ip4", **options})


def test_sessions_that_have_timed_out_are_none_and_another_answer_is_an_error():
    assert sessions("total sessions: 100 (timed out: 30)", nat="nat44-ed").count() == 70
    with pytest.raises(DutError, match="does not show its sessions: unknown command"):
        sessions("unknown command", nat="nat44-ed").count()
    with pytest.raises(DutError, match=r"VPP refused 'nat44 add address .* del': no"):
        sessions("no", nat="nat44-ed").forget()


def test_what_a_nat_cannot_keep_is_refused():
    table = sessions("", nat="nat44-ed", nat_sessions=200_000, udp_timeout="5 s")
    for wanted, problem in (
        (Established(200_001, 1, 1.0), r"at most 200,000 at once\. Raise nat_sessions"),
        (Established(100_000, 64_513, 1.0), "has only 64,512 ports"),
        (Established(1, 1, 5.0), "a UDP connection after 5 s"),
        (Established(1, 1, 7440.0, "established"), "a TCP connection after 7440 s"),
        (Established(1, 1, 240.0, "time_wait"), "a TCP connection after 240 s"),
    ):
        with pytest.raises(DutError, match=problem):
            table.check(wanted)
    table.check(Established(100_000, 64_512, 4.0))
    table.check(Established(100_000, 64_512, 239.0, "close"))


def test_frames_that_come_back_meet_all_ports_of_a_deterministic_nat():
    profile = load_profile("ethip4-udp-h65536-p63-det44", frame_size=64)
    assert addresses(profile) == "198.18.0.0-198.18.255.255 to 198.19.0.1; 198.19.0.1 to 198.19.255.192-198.19.255.255"
    assert [direction.headers.flows for direction in profile.directions] == [65_536 * 63, 64 * 64_512]


def ends_of(direction, sides, numbers):
    """Source and destination, each an address and a port, of frames."""
    frames = frames_spec(direction, *sides)
    start, end = frames.addresses[0]
    rows = FrameBuilder(frames, bytes(6), bytes(6)).beginnings(numbers % frames.flows, np.full(len(numbers), 60))
    texts = [row.tobytes() for row in rows[:, start : end + 4]]
    words = [[int.from_bytes(text[a:b], "big") for a, b in ((0, 4), (8, 10), (4, 8), (10, 12))] for text in texts]
    return [((source, port), (destination, to)) for source, port, destination, to in words]


@pytest.mark.parametrize("goes_on", [False, True], ids=["trials begin anew", "trials go on"])
@pytest.mark.parametrize("addresses_of_nat", [1, 2, 4, 8, 16, 32, 64])
def test_the_check_of_the_path_sees_an_answer_through_a_deterministic_nat_of_any_size(addresses_of_nat, goes_on):
    """A model of the NAT: the block of a host's ports follows from its address, and the port in it from its port."""
    hosts = 1024 * addresses_of_nat
    west, east = load_profile(f"ethip4-udp-h{hosts}-p63-det44", frame_size=64).directions
    inside, outside = int(WEST.ipv4[0]), int(EAST.ipv4[-addresses_of_nat])
    opened, first = set(), 0
    for attempt in range(5):
        numbers = first + np.arange(10 * 2**attempt)
        passed = 0
        for (source, _), (_, to) in zip(
            ends_of(west, (WEST, EAST), numbers), ends_of(east, (EAST, WEST), numbers), strict=True
        ):
            # The frame of the east is there first.
            passed += to in opened
            address, block = divmod(source[0] - inside, 1024)
            opened.add((outside + address, 1024 + 63 * block + source[1] % 63))
        if passed:
            break
        first += goes_on * len(numbers)
    assert passed


@pytest.mark.netns
@pytest.mark.vpp
@pytest.mark.skipif(not HOME, reason="needs a VPP: set VPP_HOME")
@needs_testbed
def test_frames_of_both_ways_pass_a_real_deterministic_nat(tmp_path):
    skip_without_plugins({"forwarding": "ip4", "det44_hosts": 1024})
    with own_state():
        file = local_topology(tmp_path, "vppdet")
        profile = load_profile("ethip4-udp-h1024-p63-det44", frame_size=64)
        options = {"forwarding": "ip4", "det44_hosts": 1024}
        with (
            open_testbed(file, dut="vpp", options=options) as testbed,
            testbed.ready_for(profile, TrialSettings(integrity=Integrity.OFF)) as ready,
        ):
            output = whole(ready.measurer.measure, TrialInput(0.5, 5000.0))
            assert [direction.received_frames for direction in output.directions] == [2500, 2500]
            assert testbed.duts[0].connections.count() == 64_512


@pytest.mark.netns
@pytest.mark.vpp
@pytest.mark.skipif(not HOME, reason="needs a VPP: set VPP_HOME")
@needs_testbed
@pytest.mark.parametrize("protocol", ["udp", "tcp"])
@pytest.mark.parametrize(
    "options",
    [{"nat": "nat44-ed"}, {"det44_hosts": 128}, {"sfdp": "ip4"}, {"sfdp": "l4ip4"}],
    ids=["nat44-ed", "det44", "sfdp-ip4", "sfdp-l4ip4"],
)
def test_a_real_nat_establishes_counts_and_forgets_connections(tmp_path, protocol, options):
    skip_without_plugins({"forwarding": "ip4", **options})
    with own_state():
        file = local_topology(tmp_path, "vppnat")
        profile = load_profile(f"ethip4-{protocol}-h64-p63", frame_size=100)
        with (
            open_testbed(file, dut="vpp", options={"forwarding": "ip4", **options}) as testbed,
            testbed.ready_for(profile, TrialSettings(integrity=Integrity.OFF)) as ready,
        ):
            table = testbed.duts[0].connections
            output = whole(ready.measurer.measure, TrialInput(0.2, 5000.0, exchange=Exchange(data_frames=1)))
            assert output.directions[0].received_frames == table.count() == 1000
            output = whole(ready.measurer.measure, TrialInput(0.2, 5000.0))
            assert output.directions[0].received_frames == 1000
            assert table.count() == 64 * 63
            table.forget()
            assert table.count() == 0
