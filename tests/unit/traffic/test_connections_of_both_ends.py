"""Connections that the embedded generator opens and uses, through devices that get in the way of some of it."""

from __future__ import annotations

import ast
import json
import resource
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from traffic_lab import configure, drop
from whole_trials import run_connections, whole

from lossratio.traffic import AgentRefusalError, by_traffic
from lossratio.trials import Exchange

pytestmark = pytest.mark.netns

# So few in a second that a sender on a busy machine is in time for each of them.
RATE, COUNT = 4000.0, 400
ATTEMPTS = 5


def refused(agent, **exchange):
    with pytest.raises(AgentRefusalError) as caught:
        run_connections(agent, RATE, COUNT, Exchange(**exchange))
    return caught.value.kind, str(caught.value)


@pytest.mark.parametrize("profile", ["ethip4-udp-connections", "ethip4-tcp-connections"])
def test_an_asymmetric_path_is_an_error_that_names_it_and_no_loss(agent, bridged, profile):
    configure(agent, 100, profile=profile)
    (counters,) = whole(run_connections, agent, RATE, COUNT, Exchange(data_frames=2))
    assert (counters.received_frames, counters.unanswered_frames) == (COUNT, 0)
    drop(bridged, "dut1", "meta random < 214748364")
    (counters,) = whole(run_connections, agent, RATE, COUNT, Exchange(answer_ratio=2.0))
    assert 0 < counters.unanswered_frames == COUNT - counters.received_frames < COUNT / 2
    drop(bridged, "dut1", "")
    kind, message = refused(agent)
    assert kind == "asymmetric"
    assert "none came back to tg0" in message


def test_answers_that_a_device_holds_back_are_late_and_their_path_is_not_called_asymmetric(agent, bridged):
    configure(agent, 100, settle_time=0.02, profile="ethip4-udp-connections")
    shaper = ("dev", "dut0", "root", "tbf", "burst", "2000", "limit", "100m", "rate")
    bridged.run("dut1", "tc", "qdisc", "add", *shaper, "2kbit")
    held = lambda: json.loads(bridged.run("dut1", "tc", "-s", "-j", "qdisc", "show", "dev", "dut0").stdout)[0]["qlen"]  # noqa: E731

    def let_go(most):
        before, now = most, held()
        while now == most or now != before:
            before, now = now, held()
        bridged.run("dut1", "tc", "qdisc", "change", *shaper, "1gbit")

    # Few of these answers pass, and none of those behind them.
    (counters,) = run_connections(agent, RATE, COUNT, Exchange())
    assert counters.unanswered_frames > 0
    with ThreadPoolExecutor() as pool:
        released = pool.submit(let_go, held())
        (counters,) = run_connections(agent, RATE, COUNT, Exchange())
        released.result()
    assert counters.received_frames + counters.unanswered_frames == counters.sent_frames > 0


def test_a_path_back_past_the_device_that_translates_is_named(agent, bridged):
    configure(agent, 100, profile="ethip4-udp-connections")
    hook = 'type filter hook ingress device "dut0" priority 0;'
    translation = f"table netdev nat {{\nchain one {{\n{hook}\nip saddr set 198.18.100.1\n}}\n}}\n"
    bridged.run("dut1", "nft", "-f", "-", input=translation)
    kind, message = refused(agent)
    assert kind == "asymmetric"
    assert f"{COUNT} had addresses that do not belong to the connection" in message


def test_a_frame_that_is_lost_in_any_pass_costs_its_connection(agent, bridged):
    configure(agent, 100, profile="ethip4-tcp-connections")
    # Only segments of data are as long; each connection has four of them.
    drop(bridged, "dut0", "ip length > 80 meta random < 429496729")
    (counters,) = whole(run_connections, agent, RATE, COUNT, Exchange(data_frames=2, closing="fin"))
    assert 0.7 * COUNT < counters.received_frames < 0.92 * COUNT
    assert counters.unanswered_frames == COUNT - counters.received_frames


def test_new_connections_are_no_late_or_foreign_frames_of_those_that_the_same_counter_had_before(agent, bridged):
    configure(agent, 100, settle_time=0.05, profile="ethip4-tcp-connections")
    # Eight exchanges of TCP take as many tags as there are counters for.
    for count in [500] * 8 + [100] * 8 + [500] * 2:
        (counters,) = whole(run_connections, agent, RATE, count, Exchange())
        assert (counters.received_frames, counters.late_frames, counters.foreign_frames) == (count, 0, 0)
        assert not any(counters.earlier_late_frames)


@pytest.mark.parametrize("profile", ["ethip4-udp-connections", "ethip4-tcp-connections"])
def test_answers_over_connections_of_the_exchange_before_are_sent_again_and_unasked(agent, bridged, profile):
    configure(agent, 100, profile=profile)
    again, unasked = Exchange(answers="again"), Exchange(answers="unasked")

    def measure(*exchanges):
        return [direction for exchange in exchanges for direction in run_connections(agent, RATE, COUNT, exchange)]

    for counters in whole(measure, Exchange(), again, again, unasked):
        assert (counters.sent_frames, counters.received_frames) == (COUNT, COUNT)
    # Only answers from the port that connections were opened to get through.
    port = "udp" if "udp" in profile else "tcp"
    drop(bridged, "dut1", f"{port} sport >= 32768")
    _, asked, unknown = whole(measure, Exchange(), again, unasked)
    assert (asked.received_frames, unknown.received_frames) == (COUNT, 0)
    assert unknown.sent_frames == COUNT


def test_no_answers_are_sent_again_where_no_connection_was_established(agent, bridged):
    configure(agent, 100, profile="ethip4-udp-connections")
    (counters,) = run_connections(agent, RATE, COUNT, Exchange(answers="again"))
    assert (counters.intended_frames, counters.sent_frames) == (0, 0)


def test_answers_that_come_twice_are_counted_and_their_connections_are_established(agent, bridged):
    configure(agent, 100, profile="ethip4-udp-connections")
    copy = 'type filter hook ingress device "dut1" priority 0;\ndup to "dut0"\nfwd to "dut0"'
    bridged.run("dut1", "nft", "-f", "-", input=f"table netdev faults {{\nchain one {{\n{copy}\n}}\n}}\n")
    (counters,) = whole(run_connections, agent, RATE, COUNT, Exchange())
    assert (counters.received_frames, counters.duplicated_frames) == (COUNT, COUNT)
    assert counters.left_frames == (COUNT, COUNT)


def test_answers_from_another_port_are_of_their_connections(agent, bridged):
    configure(agent, 100, profile="ethip4-udp-connections")
    hook = 'type filter hook ingress device "dut1" priority 0;'
    # Every other connection: a trial that is measured again takes the next ports.
    rule = "udp dport & 1 == 0 udp sport set 7777"
    bridged.run("dut1", "nft", "-f", "-", input=f"table netdev faults {{\nchain one {{\n{hook}\n{rule}\n}}\n}}\n")
    (counters,) = whole(run_connections, agent, RATE, COUNT, Exchange())
    assert counters.misdelivered_frames == counters.unanswered_frames == COUNT - counters.received_frames == COUNT / 2
    assert counters.left_frames == (COUNT, COUNT / 2)


# Without one connection of four: a trial that is measured again takes the next ports.
KEPT = 3 * COUNT // 4


@pytest.mark.parametrize(
    ("condition", "left"),
    [
        ("tcp flags & (syn | ack) == syn tcp dport 0-65535 tcp sport & 3 == 0", (KEPT, KEPT, KEPT, KEPT, KEPT)),
        # A device that is half-open, and one that forgets in the midst.
        ("tcp flags == ack ip length < 80 tcp sport & 3 == 0", (COUNT, COUNT, KEPT, KEPT, KEPT)),
        ("ip length > 80 tcp sport & 3 == 0", (COUNT, COUNT, COUNT, KEPT, KEPT)),
    ],
)
def test_the_pass_in_which_connections_end_is_known(agent, bridged, condition, left):
    configure(agent, 100, profile="ethip4-tcp-connections")
    drop(bridged, "dut0", condition)
    (counters,) = whole(run_connections, agent, RATE, COUNT, Exchange(data_frames=1))
    assert counters.left_frames == left
    assert counters.received_frames == left[-1]


def test_answers_that_come_late_are_of_the_exchange_before(agent, bridged):
    configure(agent, 100, settle_time=0.05, profile="ethip4-udp-connections")
    shaper = ("dev", "dut0", "root", "tbf", "burst", "2000", "limit", "100m", "rate")
    bridged.run("dut1", "tc", "qdisc", "add", *shaper, "2mbit")
    (first,) = run_connections(agent, RATE, 1000, Exchange())
    missing = first.sent_frames - first.received_frames
    assert missing > 0
    bridged.run("dut1", "tc", "qdisc", "change", *shaper, "1gbit")
    late = agent.late_frames(2.0)
    (second,) = run_connections(agent, RATE, 1000, Exchange())
    assert sum(by_traffic(late.values())) + second.late_frames == missing
    assert second.received_frames == second.sent_frames > 0


def test_throughput_of_both_ends_at_once_is_refused_as_each_sends_in_its_turn(agent, bridged):
    configure(agent, 100, profile="ethip4-udp-connections")
    kind, message = refused(agent, established=True)
    assert kind == "unsupported"
    assert "'kind: trex'" in message


def test_too_little_memory_is_an_error_that_says_so_and_the_agent_stays(agent, session):
    configure(agent, 100, profile="ethip4-udp-connections")
    pid = session.processes[-1].process.pid
    limits = resource.prlimit(pid, resource.RLIMIT_AS)
    resource.prlimit(pid, resource.RLIMIT_AS, (1 << 20, limits[1]))
    kind, message = refused(agent)
    assert kind == "memory"
    assert "does not have enough memory" in message
    resource.prlimit(pid, resource.RLIMIT_AS, limits)
    (counters,) = whole(run_connections, agent, RATE, COUNT, Exchange())
    assert counters.received_frames == COUNT


SLOW_NODE = """
from lossratio.traffic import PortPair, TrafficPort, connecting, load_profile, make_configuration
from lossratio.agent.afpacket import connections, ends, generator
from lossratio.agent.core.plan import Control
from lossratio.trials import Exchange

ends._ROOM = 1024
# A node that is too busy looks at a ring only when a pass is over.
connections.Conversation.note = lambda self: None
profile = load_profile("PROFILE", frame_size=100)
pair = PortPair(TrafficPort("west", "tg0"), TrafficPort("east", "tg1"))
made = generator.AfPacketGenerator(make_configuration(profile, [pair], settle_time=0.2), catch_up=10.0)
try:
    (way,) = made.run(connecting(20_000.0, 4000, Exchange()), Control()).directions
    slots = made._conversations[0]._responder._ring.slots
finally:
    made.close()
print([way[name] for name in ("sent_frames", "received_frames", "unsent_frames", "unanswered_frames")], slots)
"""


@pytest.mark.smoke
@pytest.mark.parametrize("profile", ["ethip4-udp-connections", "ethip4-tcp-connections"])
def test_frames_that_a_busy_node_has_no_room_for_are_unsent_connections(bridged, profile):
    for _ in range(ATTEMPTS):
        answer = bridged.run("tg", sys.executable, "-c", SLOW_NODE.replace("PROFILE", profile)).stdout
        sent, received, unsent, unanswered = ast.literal_eval(answer[: answer.index("]") + 1])
        slots = int(answer.split()[-1])
        assert 1024 <= slots < 4000
        # Other frames may have taken some of the room.
        assert 0 < sent == received <= slots
        assert (unsent + sent, unanswered) == (4000, 0)
        if sent == slots:
            return
    pytest.fail(f"not once in {ATTEMPTS} times was the ring full of connections: {answer}")
