"""A path that lets nothing through is an error that says at which hop frames are lost, by what the DUTs count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest

from lossratio.agent.core.wire import folded, word_sum
from lossratio.dut import DutCounters
from lossratio.errors import TesterError
from lossratio.runs.verdicts import failure_kind
from lossratio.testbed.changes import guilty_of
from lossratio.testbed.fingerprint import Fingerprint, NodePrint, PortPrint, read_controller
from lossratio.testbed.path_check import CheckedTraffic, DeadDutError, DeadLinkError, check_hops, look_at_fields
from lossratio.testbed.set_up import LiveLink
from lossratio.topology import Hop, Interface, Port, TrafficPath
from lossratio.traffic import Answer, PortPair, TrafficPort, load_profile, make_configuration
from lossratio.traffic.checks import DeadPathError, LatePathError, with_largest_frames
from lossratio.traffic.probe import Arrival, ProbeAnswer
from lossratio.trials import IntegrityError, fields_in_words
from lossratio.trials.trial_output import DirectionCounters
from lossratio.values.exit_status import FailureKind

SENT = 10


def port(node, name):
    return Port(node, name, Interface(link=f"{node}-{name}"))


HOPS = tuple(Hop(name, port(name, "port0"), port(name, "port1")) for name in ("DUT1", "DUT2"))
PATH = TrafficPath("TG", port("TG", "port0"), port("TG", "port1"), HOPS)


@dataclass
class Agent:
    """An agent whose frames come back in some directions only."""

    received: dict[str, int]
    node_name: str = "TG"
    late: dict[str, int] = field(default_factory=dict)
    settle_time: float = 0.005
    flow_count: int = 254
    has_connections: bool = False
    received_later: dict[str, int] | None = None
    """What comes back of traffic of another configuration."""
    corrupted: int = 0
    facts: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(interfaces={}))
    change: Callable[[bytes], bytes] | None = None
    """What single frames going east come back as; None: nothing comes back."""

    @property
    def flows(self):
        return dict.fromkeys(self.received, self.flow_count)

    def configure(self, configuration):
        self.flow_count = configuration.directions[0].frames.flows
        if self.received_later is not None:
            self.received = self.received_later

    def late_frames(self, wait):
        late, self.late = self.late, {}
        return {name: (late.get(name, 0),) for name in self.received}

    def probe(self, ports, sends, seconds, *, networks):
        assert ports == ["tg0", "tg1"]
        assert "198.18.0.0/15" in networks
        arrivals = [
            Arrival("tg1", self.change(frame)[:128], len(self.change(frame)), 1)
            for port, frame in sends
            if port == "tg0" and self.change is not None
        ]
        return ProbeAnswer(tuple(arrivals), (), False)

    def run(self, plan):
        counters = tuple(
            DirectionCounters(
                name,
                intended_frames=SENT,
                sent_frames=SENT,
                received_frames=count,
                corrupted_frames=0 if count else self.corrupted,
            )
            for name, count in self.received.items()
        )
        return Answer(counters)


@dataclass
class CountingDut:
    """A DUT with given counts for each trial."""

    hop: Hop
    received: dict[str, int]
    transmitted: dict[str, int]
    dropped: dict[str, int] = field(default_factory=dict)
    has_counters: bool = True
    _readings: int = 0

    def read_counters(self):
        self._readings += 1
        times = self._readings - 1
        return DutCounters(
            *({k: v * times for k, v in counts.items()} for counts in (self.received, self.transmitted, self.dropped))
        )


def forwarding(hop):
    both = {"west": SENT, "east": SENT}
    return CountingDut(hop, both, both)


@dataclass
class Nodes:
    """What the kernels of nodes count, each time that they are read, of interfaces that are all up."""

    counted: dict[str, tuple[int, int]] = field(default_factory=dict)
    _readings: int = 0

    def check_way(self):
        pass

    def read(self):
        self._readings += 1
        ports = {
            name: PortPrint(received=received * self._readings, transmitted=transmitted * self._readings)
            for name, (received, transmitted) in self.counted.items()
        }
        return Fingerprint({"DUT1": NodePrint(ports)}, read_controller())


PAIR = PortPair(TrafficPort("port0", "tg0"), TrafficPort("port1", "tg1"))


def checked(agent):
    profile = load_profile("ethip4-udp-10kflows" if agent.flow_count > 1024 else "ethip4-udp", frame_size=64)
    return CheckedTraffic(agent, agent.configure, make_configuration(profile, [PAIR], settle_time=0.0))


def error_of(received, duts, kind=DeadLinkError, nodes=None, path=PATH):
    with pytest.raises(kind) as raised:
        check_hops(checked(Agent(received)), [LiveLink(path, tuple(duts), None)], nodes or Nodes())
    assert type(raised.value) is kind
    return str(raised.value)


def test_nothing_is_said_where_frames_get_through():
    traffic = checked(Agent({"port0>port1": SENT, "port1>port0": SENT}))
    check_hops(traffic, [LiveLink(PATH, (forwarding(HOPS[0]),), None)], Nodes())
    assert not traffic.is_spread


def test_a_dut_that_lets_nothing_out_is_named_with_the_place_where_it_drops():
    dut = CountingDut(HOPS[1], {"west": SENT, "east": SENT}, {"west": SENT, "east": 0}, {"policer west>east": SENT})
    message = error_of({"port0>port1": 0, "port1>port0": SENT}, [forwarding(HOPS[0]), dut], DeadDutError)
    assert "works in one direction only" in message
    assert message.startswith(
        "The DUT is to blame: port0>port1: DUT2 receives 10 frames and forwards none of them (dropped:"
    )
    assert "10 at policer west>east" in message


@pytest.mark.parametrize(
    ("flows", "words"), [(10, "its 10 flows"), (254, "10 of 254 flows"), (10_000, r"10 of 10,000 flows, from all over")]
)
def test_of_a_dut_that_lets_none_out_it_is_said_how_many_flows_were_checked(flows, words):
    dut = CountingDut(HOPS[1], {"west": SENT, "east": SENT}, {"west": SENT, "east": 0})
    agent = Agent({"port0>port1": 0, "port1>port0": SENT}, flow_count=flows)
    with pytest.raises(DeadDutError, match=rf"\(sent 10 frames, received 0: none of {words}\)"):
        check_hops(checked(agent), [LiveLink(PATH, (dut,), None)], Nodes())


def test_a_dut_that_drops_the_first_flows_alone_is_measured(caplog):
    agent = Agent({"port0>port1": 0, "port1>port0": SENT}, flow_count=10_000)
    agent.received_later = {"port0>port1": 5, "port1>port0": SENT}
    traffic = checked(agent)
    check_hops(traffic, [LiveLink(PATH, (forwarding(HOPS[0]),), None)], Nodes())
    assert traffic.is_spread
    assert "at first, nothing came through in direction port0>port1 (none of 10 frames, then 5 of 10)" in caplog.text


def test_a_dut_that_holds_most_frames_for_too_long_is_not_said_to_lose_them(caplog):
    agent = Agent({"port0>port1": 0, "port1>port0": SENT}, flow_count=10_000)
    agent.received_later = {"port0>port1": 5, "port1>port0": SENT}
    agent.late = {"port0>port1": 5}
    check_hops(checked(agent), [LiveLink(PATH, (forwarding(HOPS[0]),), None)], Nodes())
    assert "(none of 10 frames, then 5 of 10). Of the last frames, 5 came back too late: a device" in caplog.text
    assert "with the option 'hold'. The measurement goes on." in caplog.text
    assert "lose nearly all frames" not in caplog.text


INTERFACES = SimpleNamespace(interfaces={"tg0": "02:00:00:00:00:01", "tg1": "02:00:00:00:00:02"})


def marked(frame):
    """Another code point of IPv4, with its checksum."""
    header = bytearray(frame[14:34])
    header[1], header[10:12] = 40, bytes(2)
    header[10:12] = (0xFFFF - folded(word_sum(bytes(header)))).to_bytes(2, "big")
    return frame[:14] + bytes(header) + frame[34:]


def seen_of(change, corrupted):
    agent = Agent({"port0>port1": 0, "port1>port0": SENT}, corrupted=corrupted, facts=INTERFACES, change=change)
    with pytest.raises(IntegrityError) as raised:
        check_hops(checked(agent), [], Nodes())
    assert failure_kind(raised.value) is FailureKind.TEST
    return str(raised.value)


def test_the_field_that_a_dut_changes_is_named_with_the_profile_that_expects_it():
    message = seen_of(marked, corrupted=SENT)
    assert "port0>port1: 10 corrupted. In single frames: port0>port1: only the IPv4 DSCP differs: 0" in message
    assert "0 before, 10 after. For a device that marks frames, give the profile 'is_marked: true'" in message


@pytest.mark.parametrize(("code", "words"), [(10, ""), (11, "only the IPv4 DSCP differs: 11 before, 10 after")])
def test_a_look_at_single_frames_expects_the_same_as_the_measurement(tmp_path, code, words):
    text = f"format: lossratio-traffic-profile/1\nname: mine\nipv4: {{}}\nreceived: {{ipv4: {{dscp: {code}}}}}\n"
    (tmp_path / "mine.yaml").write_text(text)
    profile = load_profile(tmp_path / "mine.yaml", frame_size=64)
    agent = Agent({"port0>port1": 0}, facts=INTERFACES, change=marked)
    traffic = CheckedTraffic(agent, agent.configure, make_configuration(profile, [PAIR], settle_time=0.0))
    seen = look_at_fields(traffic)
    assert [fields_in_words(fields) for fields in seen.values()] == [words] * bool(words)


def test_frames_that_come_back_in_another_vlan_are_no_fault_of_the_wire():
    message = seen_of(lambda frame: frame[:12] + b"\x81\0\0\7" + frame[12:], corrupted=0)
    assert "only the VLAN tag differs: untagged before, VLAN 7 with priority 0 after" in message
    assert "wire" not in message


def test_where_nobody_sees_single_frames_the_error_is_of_the_counters_alone():
    assert "10 corrupted. Look at the DUT" in seen_of(None, corrupted=SENT)


def test_a_nat_sees_the_flows_of_the_check_from_the_first_one_on():
    agent = Agent({"port0>port1": 0, "port1>port0": SENT})
    agent.received_later = {"port0>port1": 5, "port1>port0": SENT}
    traffic = checked(agent)
    traffic.translates = True
    with pytest.raises(DeadPathError, match="none of 10 of 254 flows"):
        check_hops(traffic, [], Nodes())


def test_a_dut_that_forwards_some_frames_is_not_said_to_forward_none():
    dut = CountingDut(HOPS[1], {"west": SENT, "east": SENT}, {"west": SENT, "east": 4})
    message = error_of({"port0>port1": 0, "port1>port0": SENT}, [forwarding(HOPS[0]), dut], DeadDutError)
    assert "DUT2 receives 10 frames and forwards only 4 of them" in message


def test_a_link_on_which_few_frames_arrive_is_not_said_to_lose_all():
    dut = CountingDut(HOPS[1], {"west": 3, "east": SENT}, {"west": SENT, "east": 3})
    message = error_of({"port0>port1": 0, "port1>port0": SENT}, [forwarding(HOPS[0]), dut])
    assert "DUT1 sends, but only 3 of 10 frames arrive at DUT2; look at the link between them" in message


def test_frames_that_come_back_too_late_are_the_duts_fault_and_not_the_wires():
    agent = Agent({"port0>port1": 0, "port1>port0": SENT}, late={"port0>port1": SENT, "port1>port0": 2})
    with pytest.raises(LatePathError) as raised:
        check_hops(checked(agent), [LiveLink(PATH, (forwarding(HOPS[0]),), None)], Nodes())
    assert failure_kind(raised.value) is FailureKind.TEST
    assert "too late in direction port0>port1 (10 of 10 frames): none arrived within 0.005 s after the traffic" in str(
        raised.value
    )
    assert "these did in the next 0.25 s" in str(raised.value)


def test_a_link_on_which_nothing_arrives_is_named_by_its_ends():
    deaf = CountingDut(HOPS[1], {"west": 0, "east": 0}, {"west": 0, "east": 0})
    message = error_of({"port0>port1": 0, "port1>port0": 0}, [forwarding(HOPS[0]), deaf])
    assert "port0>port1: DUT1 sends, but nothing arrives at DUT2; look at the link between them." in message
    assert "port1>port0: TG.port1 sends, but nothing arrives at DUT2; look at the link between them." in message


def test_a_last_link_that_loses_everything_is_named():
    message = error_of({"port0>port1": 0, "port1>port0": SENT}, [forwarding(hop) for hop in HOPS])
    assert "The wire is to blame: port0>port1: DUT2 sends, but nothing arrives at TG.port1;" in message


ONE_HOP = TrafficPath("TG", port("TG", "port0"), port("TG", "port1"), HOPS[:1])
NAMED = TrafficPath(
    "TG",
    port("TG", "port0"),
    port("TG", "port1"),
    (Hop("DUT1", *(Port("DUT1", name, Interface(name=name, link=name)) for name in ("dut0", "dut1"))),),
)
DEAD = {"port0>port1": 0, "port1>port0": 0}


@pytest.mark.parametrize(
    ("path", "counted", "error", "message"),
    [
        (NAMED, {"dut0": (SENT, 0), "dut1": (SENT, 0)}, DeadDutError, "DUT1 receives 10 frames and forwards none"),
        (NAMED, {"dut0": (0, 0), "dut1": (0, 0)}, DeadLinkError, "nothing arrives at DUT1; look at the link"),
        (NAMED, {"dut0": (SENT, SENT), "dut1": (SENT, SENT)}, DeadLinkError, "nothing arrives at TG.port1"),
        (ONE_HOP, {}, DeadPathError, "nothing arrives at TG.port1; no counters of DUT1 show where they are lost"),
        (NAMED, {"dut0": (0, 0)}, DeadPathError, "nothing arrives at DUT1; look at the link"),
    ],
)
def test_a_dut_that_nobody_set_up_is_judged_by_what_the_kernel_of_its_node_counts(path, counted, error, message):
    described = error_of(DEAD, [], error, Nodes(counted), path)
    assert message in described
    assert "black hole" in described


def silent(hop):
    return CountingDut(hop, {}, {})


@pytest.mark.parametrize(
    ("duts", "seen"),
    [
        ([silent(HOPS[0]), silent(HOPS[1])], "TG.port0 sends 10 frames, and nothing arrives at TG.port1; no counters"),
        ([silent(HOPS[0]), forwarding(HOPS[1])], None),
        ([forwarding(HOPS[0]), silent(HOPS[1])], "DUT1 sends 10 frames, and nothing arrives at TG.port1; no counters"),
        (
            [silent(HOPS[0]), CountingDut(HOPS[1], {"west": 0, "east": SENT}, {"west": SENT, "east": 0})],
            "TG.port0 sends 10 frames, and nothing arrives at DUT2; no counters of DUT1 show",
        ),
        (
            [CountingDut(HOPS[0], {"west": SENT}, {}), silent(HOPS[1])],
            "DUT1 sends 10 frames, and nothing arrives at TG.port1; no counters of DUT1 and DUT2 show",
        ),
        (
            [CountingDut(HOPS[0], {}, {"east": 0}), silent(HOPS[1])],
            "TG.port0 sends 10 frames, and DUT1 sends none of them on; no counters of DUT1 show where they are lost",
        ),
    ],
)
def test_nobody_is_blamed_where_no_counter_shows_who_loses_frames(duts, seen):
    received = {"port0>port1": 0, "port1>port0": SENT}
    if seen is None:
        assert "The wire is to blame: port0>port1: DUT2 sends, but nothing arrives at TG.port1" in error_of(
            received, duts
        )
        return
    message = error_of(received, duts, DeadPathError)
    assert f"The cause is not known: port0>port1: {seen}" in message
    assert guilty_of(DeadPathError(message)) is None


class Narrow(Agent):
    """A path that lets none of the large frames through, such as one with a small MTU."""

    def configure(self, configuration):
        super().configure(configuration)
        is_small = all(direction.frames.max_size <= 1400 for direction in configuration.directions)
        self.received = dict.fromkeys(self.received, SENT if is_small else 0)


def test_of_a_mix_behind_a_small_mtu_the_sizes_are_said_and_no_other_cause():
    mix = make_configuration(load_profile("ethip4-udp", frame_size="IMIX"), [PAIR], settle_time=0.0)
    agent = Narrow(DEAD)
    traffic = CheckedTraffic(agent, agent.configure, with_largest_frames(mix))
    with pytest.raises(DeadPathError) as raised:
        check_hops(traffic, [LiveLink(PATH, (silent(HOPS[0]),), None)], Nodes())
    assert str(raised.value) == (
        "Frames of 64 bytes get through, those of 1518 bytes do not: "
        "look at the MTUs on the way, or measure smaller frames."
    )


def test_frames_are_followed_that_are_as_many_as_the_check_sent_at_last():
    asked = []

    class Asked(Agent):
        def run(self, plan):
            asked.append(plan)
            return super().run(plan)

    with pytest.raises(DeadPathError):
        check_hops(checked(Asked(DEAD)), [LiveLink(PATH, (silent(HOPS[0]),), None)], Nodes())
    *_, last_check, followed = asked
    assert followed == last_check


def test_without_any_dut_it_is_the_wires_fault():
    cable = TrafficPath("TG", port("TG", "port0"), port("TG", "port1"), ())
    assert "nothing arrives at TG.port1" in error_of(DEAD, [], path=cable)


def test_an_interface_that_is_down_is_said_before_anybody_is_accused_of_losing_frames():
    def check_way():
        raise TesterError("The TG is to blame: interface tg1 of TG was set down.")

    nodes = Nodes()
    nodes.check_way = check_way
    dut = CountingDut(HOPS[0], {"west": SENT, "east": SENT}, {"west": 0, "east": 0})
    assert "tg1" in error_of(DEAD, [dut], TesterError, nodes)


def test_only_what_another_attempt_can_mend_is_infrastructure():
    assert failure_kind(DeadDutError("DUT1 forwards none")) is FailureKind.TEST
    assert failure_kind(DeadLinkError("nothing arrives at DUT1")) is FailureKind.INFRASTRUCTURE
    assert failure_kind(DeadPathError("nothing arrives")) is FailureKind.INFRASTRUCTURE
    assert [guilty_of(kind("")) for kind in (DeadDutError, DeadLinkError, DeadPathError)] == ["DUT", "wire", None]


def test_of_parallel_links_the_one_that_fails_is_named():
    second = TrafficPath("TG", port("TG", "port2"), port("TG", "port3"), HOPS[:1])
    deaf = CountingDut(HOPS[0], {"west": 0, "east": 0}, {"west": 0, "east": 0})
    received = {"port0>port1": SENT, "port1>port0": SENT, "port2>port3": 0, "port3>port2": 0}
    links = [LiveLink(PATH, (forwarding(HOPS[0]),), None), LiveLink(second, (deaf,), None)]
    with pytest.raises(DeadLinkError) as raised:
        check_hops(checked(Agent(received)), links, Nodes())
    message = str(raised.value)
    assert "black hole" in message
    assert "Parallel link 2 of 2, port2>port3: TG.port2 sends, but nothing arrives at DUT1" in message
    assert "Parallel link 1" not in message
