"""Connections inside the kernel, through devices that get in the way of some.

The same truths by packet sockets are in `test_connections_of_both_ends`; here are those that it has not.
"""

from __future__ import annotations

import pytest
from traffic_lab import configure_connections as configure, drop
from whole_trials import run_connections, run_trial, whole

from lossratio.bpf import why_impossible
from lossratio.traffic import AgentRefusalError, by_traffic
from lossratio.trials import Exchange

pytestmark = [
    pytest.mark.netns,
    # Two that send at once would leave no processor to anything else.
    pytest.mark.xdist_group("xdp"),
    pytest.mark.skipif(why_impossible() is not None, reason=f"no BPF here: {why_impossible()}"),
]

RATE, COUNT = 20_000.0, 2000
BOTH = pytest.mark.parametrize("generator", ["afpacket", "xdp"])


@pytest.fixture
def ready(bridged):
    """The lab, whose DUT takes frames of XDP programs."""
    for interface in ("dut0", "dut1"):
        bridged.run("dut1", "ethtool", "-K", interface, "gro", "on")
    return bridged


def connect(agent, count=COUNT, **exchange):
    (counters,) = whole(run_connections, agent, RATE, count, Exchange(**exchange))
    return counters


def refused(agent, **exchange):
    with pytest.raises(AgentRefusalError) as caught:
        # However late, so that nothing is unsent.
        run_connections(agent, RATE, COUNT, Exchange(is_complete=True, **exchange))
    return caught.value.kind, str(caught.value)


def at_ingress(lab, interface, *rules):
    """Rules for frames that arrive on an interface of the DUT."""
    hook = f'type filter hook ingress device "{interface}" priority 0;'
    lines = ("table netdev faults {", f"chain {interface} {{", hook, *rules, "}", "}", "")
    lab.run("dut1", "nft", "-f", "-", input="\n".join(lines))


@pytest.mark.parametrize("size", [64, 1518])
def test_each_connection_is_opened_answered_and_used(ready, agent, size):
    facts = configure(agent, frame_size=size)
    assert facts["receives"] == {"tg0": "native", "tg1": "native"}
    counters = connect(agent, data_frames=2, answer_ratio=2.0)
    assert (counters.received_frames, counters.unanswered_frames) == (COUNT, 0)
    assert counters.left_frames == (COUNT,) * 6
    assert (counters.duplicated_frames, counters.misdelivered_frames, counters.rejection_frames) == (0, 0, 0)


@pytest.mark.parametrize(
    ("generator", "interface", "condition", "left"),
    [
        ("xdp", "dut0", "udp sport & 3 == 0", (1500, 1500, 1500, 1500)),
        ("xdp", "dut1", "udp dport & 3 == 0", (2000, 1500, 1500, 1500)),
        ("afpacket", "dut1", "udp dport & 3 == 0", (2000, 1500, 1500, 1500)),
        # A device that forgets in the midst: it lets the first 500 packets of 82 bytes through.
        ("xdp", "dut0", "udp sport & 3 == 0 quota over 41000 bytes", (2000, 2000, 1500, 1500)),
    ],
)
def test_the_pass_in_which_connections_end_is_known(ready, agent, generator, interface, condition, left):
    configure(agent, generator)

    def measure():
        ready.run("dut1", "nft", "flush", "ruleset")
        drop(ready, interface, condition)
        return run_connections(agent, RATE, COUNT, Exchange(data_frames=1))

    (counters,) = whole(measure)
    assert counters.left_frames == left
    assert counters.received_frames == left[-1]
    assert counters.unanswered_frames == left[0] - left[-1]


@pytest.mark.parametrize(("generator", "interface"), [("xdp", "dut0"), ("xdp", "dut1"), ("afpacket", "dut0")])
def test_frames_that_come_twice_are_counted_and_their_connections_are_established(ready, agent, generator, interface):
    configure(agent, generator)
    other = {"dut0": "dut1", "dut1": "dut0"}[interface]
    port = {"dut0": "sport", "dut1": "dport"}[interface]
    at_ingress(ready, interface, f'udp {port} & 1 == 0 dup to "{other}"', f'fwd to "{other}"')
    counters = connect(agent)
    assert (counters.received_frames, counters.left_frames) == (COUNT, (COUNT, COUNT))
    assert (counters.duplicated_frames, counters.misdelivered_frames) == (1000, 0)


def test_answers_from_another_port_are_of_their_connections(ready, agent):
    configure(agent)
    at_ingress(ready, "dut1", "udp dport & 1 == 0 udp sport set 7777")
    counters = connect(agent)
    assert counters.misdelivered_frames == counters.unanswered_frames == COUNT - counters.received_frames == 1000
    assert counters.left_frames == (COUNT, COUNT - 1000)


@BOTH
def test_answers_go_back_to_translated_addresses_and_ports(ready, agent, generator):
    configure(agent, generator)
    at_ingress(ready, "dut0", "ip saddr 198.18.0.1 ip saddr set 192.0.2.9", "udp dport set 4444")
    at_ingress(ready, "dut1", "udp sport set 1024")
    counters = connect(agent)
    # One of sixteen connections comes from this address, and nobody translates it back.
    assert counters.left_frames == (COUNT, COUNT - 125)
    assert counters.misdelivered_frames == 125
    at_ingress(ready, "dut1", "ip daddr 192.0.2.9 ip daddr set 198.18.0.1")
    assert connect(agent, data_frames=1).left_frames == (COUNT,) * 4


def test_an_asymmetric_path_is_an_error_that_names_it_and_no_loss(ready, agent):
    configure(agent)
    at_ingress(ready, "dut0", "ip saddr set 198.18.100.1")
    kind, message = refused(agent)
    assert kind == "asymmetric"
    assert f"{COUNT} had addresses that do not belong to the connection" in message
    ready.run("dut1", "nft", "flush", "ruleset")
    drop(ready, "dut1", "udp dport 1-65535")
    kind, message = refused(agent)
    assert kind == "asymmetric"
    assert f"although {COUNT} connections arrived" in message


def test_answers_that_come_late_are_of_the_exchange_before(ready, agent):
    configure(agent, settle_time=0.05)
    shaper = ("dev", "dut0", "root", "tbf", "burst", "2000", "limit", "100m", "rate")
    ready.run("dut1", "tc", "qdisc", "add", *shaper, "2mbit")
    (first,) = run_connections(agent, RATE, 1000, Exchange(is_complete=True))
    missing = 1000 - first.received_frames
    assert missing > 0
    ready.run("dut1", "tc", "qdisc", "change", *shaper, "1gbit")
    late = agent.late_frames(2.0)
    (second,) = run_connections(agent, RATE, 1000, Exchange(is_complete=True))
    assert sum(by_traffic(late.values())) + second.late_frames == missing
    assert second.received_frames == second.sent_frames > 0


def test_frames_that_come_two_exchanges_later_are_of_their_own(ready, agent):
    configure(agent, settle_time=0.05)
    shaper = ("dev", "dut0", "root", "tbf", "burst", "2000", "limit", "100m", "rate")
    ready.run("dut1", "tc", "qdisc", "add", *shaper, "2kbit")
    (held,) = run_connections(agent, RATE, 1000, Exchange(is_complete=True))
    missing = 1000 - held.received_frames
    # Too few for an error, as no answer comes.
    (few,) = run_connections(agent, RATE, 5, Exchange(is_complete=True))
    assert (few.sent_frames, few.received_frames, few.left_frames) == (5, 0, (5, 0))
    ready.run("dut1", "tc", "qdisc", "change", *shaper, "1gbit")
    assert by_traffic(agent.late_frames(1.0).values()) == [5, missing - few.late_frames]


def test_answers_over_connections_of_the_exchange_before_are_sent_again_and_unasked(ready, agent):
    configure(agent)
    again, unasked = Exchange(answers="again"), Exchange(answers="unasked")

    def measure(*exchanges):
        return [direction for exchange in exchanges for direction in run_connections(agent, RATE, COUNT, exchange)]

    for counters in whole(measure, Exchange(), again, again, unasked):
        assert (counters.sent_frames, counters.received_frames) == (COUNT, COUNT)
    # Only answers from the port that connections were opened to get through.
    drop(ready, "dut1", "udp sport >= 32768")
    _, asked, unknown = whole(measure, Exchange(), again, unasked)
    assert (asked.received_frames, unknown.received_frames) == (COUNT, 0)
    assert unknown.sent_frames == COUNT


def test_there_is_room_for_more_connections_than_before_and_none_of_these_is_left(ready, agent):
    configure(agent)
    for count in (1000, 200_000, 1000):
        (counters,) = whole(run_connections, agent, 200_000.0, count, Exchange())
        assert (counters.received_frames, counters.left_frames) == (count, (count, count))
        assert (counters.late_frames, counters.foreign_frames, counters.duplicated_frames) == (0, 0, 0)


@pytest.mark.smoke
def test_more_connections_than_programs_can_have_are_refused(ready, agent):
    configure(agent)
    with pytest.raises(AgentRefusalError, match="at most 33,554,432 connections in a trial"):
        run_connections(agent, 1e9, (1 << 25) + 1, Exchange())
    with pytest.raises(AgentRefusalError, match="At most 250 frames can go over each connection"):
        run_connections(agent, RATE, COUNT, Exchange(data_frames=125))


def test_connections_from_several_mac_addresses_are_refused_as_all_answers_go_to_one(ready, agent):
    configure(agent)
    at_ingress(ready, "dut0", "udp sport & 1 == 0 ether saddr set 02:00:00:00:00:99")
    kind, message = refused(agent)
    assert kind == "unsupported"
    assert "from several MAC addresses" in message


def test_throughput_of_both_ends_at_once_is_refused_as_each_sends_in_its_turn(ready, agent):
    configure(agent)
    kind, message = refused(agent, established=True)
    assert kind == "unsupported"
    assert "'kind: trex'" in message


@pytest.mark.smoke
def test_frames_that_open_connections_are_counted_without_answers(ready, agent):
    configure(agent)
    drop(ready, "dut0", "udp sport & 3 == 0")
    (counters,) = whole(run_trial, agent, RATE, 0.1)
    assert (counters.sent_frames, counters.received_frames, counters.left_frames) == (2000, 1500, ())


def test_nothing_stays_attached(ready, agent):
    configure(agent)
    assert "xdp" in ready.run("tg", "ip", "link", "show").stdout
    agent.close()
    assert "xdp" not in ready.run("tg", "ip", "link", "show").stdout
