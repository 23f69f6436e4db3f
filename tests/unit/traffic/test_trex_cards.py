"""Gateways are asked through cards that TRex has, and are reminded of the ports' addresses while traffic flows."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict, replace
from itertools import pairwise

import pytest
from performed import hold, perform
from scapy.layers.inet6 import ICMPv6ND_NA, IPv6
from scapy.layers.l2 import ARP, Dot1Q, Ether
from trex_lab import SETTINGS, generator
from trex_stand_in import MACS, Server, StandIn

from lossratio.agent import Question
from lossratio.agent.core.configuration import Speaker
from lossratio.agent.core.neighbours import AnsweringWire, resolve
from lossratio.agent.core.packets import probe
from lossratio.agent.core.protocol import AgentError, read_record
from lossratio.agent.trex.cards import CardWire
from lossratio.agent.trex.connection import TrexConnection, TrexLibrary, TrexSettings
from lossratio.errors import TopologyError
from lossratio.testbed.set_up import traffic_port
from lossratio.topology import Interface, Port, TrexGenerator
from lossratio.traffic import GeneratorNode, PortPair, TrafficPort, load_profile, make_configuration, open_generator
from lossratio.traffic.configuration import questions_of_ports
from lossratio.traffic.generators import trex

GATEWAY, OTHER = "02:00:00:00:01:01", "02:00:00:00:01:02"
EAST = Question("east", "198.18.0.2", "198.18.0.1", "")
WEST = Question("west", "2001:2::2", "2001:2::1", "81000007")
NEIGHBOURS = {"neighbours": (asdict(EAST), asdict(WEST))}


def server(**fields):
    return Server(gateways={0: {EAST.target: [GATEWAY]}, 1: {WEST.target: [OTHER]}}, **fields)


def ask(lab, *questions, seconds=0.3):
    with_wire = CardWire(TrexConnection(TrexLibrary(StandIn(lab), "here"), SETTINGS, lab.clock, lab.sleep))
    try:
        return resolve(questions, with_wire, seconds)
    finally:
        with_wire.close()


def test_gateways_answer_by_arp_and_neighbour_discovery_in_vlans():
    lab = server()
    assert ask(lab, EAST, WEST) == [[GATEWAY], [OTHER]]
    first, second = (Ether(frame) for _, _, frame in lab.pushed[:2])
    assert (first[ARP].psrc, first[ARP].pdst, first.src) == (EAST.source, EAST.target, MACS[0])
    assert (second[Dot1Q].vlan, second[IPv6].src) == (7, WEST.source)
    assert (lab.in_service, lab.captured) == (False, None)


@pytest.mark.whole
def test_a_silent_gateway_and_one_of_two_devices_are_seen():
    lab = server()
    lab.gateways[0][EAST.target] = [GATEWAY, OTHER]
    assert ask(lab, EAST, replace(WEST, target="2001:2::9")) == [[GATEWAY, OTHER], []]


@pytest.mark.parametrize("method", ["set_service_mode", "start_capture", "push_packets", "fetch_capture_packets"])
def test_a_server_that_fails_meanwhile_is_one_error(method):
    lab = server(failures={})
    library = TrexLibrary(StandIn(lab), "here")
    lab.failures[method] = Exception("no")
    with pytest.raises(AgentError, match=r"refused to .*: Exception: no"):
        resolve([EAST], CardWire(TrexConnection(library, SETTINGS), is_own=True), 1.0)


def test_a_probe_answers_devices_that_ask_meanwhile():
    lab = server()
    connection = TrexConnection(TrexLibrary(StandIn(lab), "here"), SETTINGS, lab.clock, lab.sleep)
    with closing(CardWire(connection)) as wire:
        asked = bytes(Ether(src=OTHER) / ARP(hwsrc=OTHER, psrc="198.18.0.1", pdst="198.18.0.9"))
        lab.captured += [{"port": 0, "binary": asked}, {"port": 1, "binary": asked}]
        speaker = Speaker("east", (("198.18.0.5", "198.18.0.9"),))
        answer = probe(AnsweringWire(wire, [speaker]), [("west", bytes(60).hex())], 0.01)
    assert [(port, length) for port, _, length, _ in answer["arrivals"]] == [("east", len(asked)), ("west", len(asked))]
    ((port, reply),) = [(port, Ether(frame)) for _, port, frame in lab.pushed if any(frame)]
    assert (port, reply[ARP].op, reply[ARP].psrc, reply[ARP].hwsrc, reply.dst) == (0, 2, "198.18.0.9", MACS[0], OTHER)


def test_latency_frames_of_a_direction_that_come_out_of_another_port_are_an_error():
    lab = server()
    lab.latency = {group: {**LATENCY, "frames": {"tx_pkts": {"total": 9}, "rx_pkts": {0: 9, "total": 9}}}
                   for group in (1, 2)}  # fmt: skip
    with pytest.raises(AgentError, match=r"port0>port1 come out of port0 \(east\) instead of port1 \(west\): links"):
        perform(generator(lab), 1000.0, 1.0, latency=True)


LATENCY = {
    "err_cntrs": {"dup": 0, "out_of_order": 0, "dropped": 0, "seq_too_high": 0, "seq_too_low": 0},
    "latency": {"total_min": 10, "average": 12.0, "total_max": 20, "jitter": 1, "histogram": {10: 1}},
}


def test_a_client_without_such_frames_says_what_to_do(monkeypatch):
    monkeypatch.delattr(StandIn, "PacketBuffer")
    with pytest.raises(AgentError, match=r"newer TRex\. Or leave out 'gateway'"):
        ask(server(), EAST)


def test_reminders_go_to_gateways_in_long_trials_and_are_not_counted():
    lab = server()
    sender = generator(lab, modes=NEIGHBOURS)
    assert not lab.in_service
    for _ in range(2):
        for counted in perform(sender, 1000.0, 21.0).directions:
            assert 21_000 <= counted["sent_frames"] == counted["received_frames"] <= 21_001
            assert (counted["unsent_frames"], counted["late_frames"]) == (0, 0)
    reminded = [when for when, port, frame in lab.pushed if port == 0 and Ether(frame)[ARP].op == 2]
    gaps = [later - earlier for earlier, later in pairwise(reminded)]
    assert (len(gaps), round(min(gaps)), round(max(gaps))) == (8, 5, 5)
    arp, na = (Ether([frame for _, number, frame in lab.pushed if number == port][-1]) for port in (0, 1))
    assert (arp.dst, arp[ARP].op, arp[ARP].psrc, arp[ARP].hwsrc) == (GATEWAY, 2, EAST.source, MACS[0])
    assert (na.dst, na[Dot1Q].vlan, na[ICMPv6ND_NA].tgt, na[ICMPv6ND_NA].S) == (OTHER, 7, WEST.source, 1)
    assert (na[IPv6].dst, na[ICMPv6ND_NA].lladdr) == (WEST.target, MACS[1])
    checksum = na[ICMPv6ND_NA].cksum
    del na[ICMPv6ND_NA].cksum
    assert Ether(bytes(na))[ICMPv6ND_NA].cksum == checksum


def test_reminders_go_on_while_traffic_flows_without_an_end():
    lab = server()
    sender = generator(lab, modes=NEIGHBOURS)
    pushed = []
    before = (pushed.append(len(lab.pushed)) for _ in range(220))
    directions = hold(sender, 1000.0, before).directions
    assert [port for _, port, _ in lab.pushed[pushed[0] :]] == [0, 1, 0, 1]
    assert [counted["sent_frames"] - counted["received_frames"] for counted in directions] == [0, 0]


def test_short_trials_in_a_row_are_one_reminder_each_five_seconds():
    lab = server()
    sender = generator(lab, modes=NEIGHBOURS)
    began = lab.now
    while lab.now < began + 14.0:
        perform(sender, 1000.0, 0.2)
    # Between two trials they are asked, too; in a trial they are reminded only.
    reminded = [when for when, port, frame in lab.pushed if port == 0 and Ether(frame)[ARP].op == 2]
    assert [round(when - began) for when in reminded] == [0, 5, 10]


def test_a_gateway_that_does_not_answer_the_generator_is_named(monkeypatch):
    monkeypatch.setattr("lossratio.agent.trex.cards._RESOLVE_SECONDS", 0.1)
    lab = server()
    del lab.gateways[1]
    with pytest.raises(AgentError, match=r"next hop 2001:2::1 of west is silent\. The request came from 2001:2::2"):
        generator(lab, modes=NEIGHBOURS)
    assert not lab.in_service


def ports(**fields):
    west = Interface(link="a", address=("198.18.0.2/16", "2001:2::2/64"), gateway=("198.18.255.1", "2001:2::ffff"))
    east = Interface(link="b", **{"address": "198.19.255.2/30", "gateway": "198.19.255.1", **fields})
    return [Port("TG", "west", west), Port("TG", "east", east)]


def questions(profile, size, own=None, **options):
    own = own or ports()
    ends = [
        TrafficPort(port.name, f"card of {port.name}", None, tuple(str(own.ip) for own in port.interface.address))
        for port in own
    ]
    loaded = load_profile(profile, frame_size=size, **options)
    configuration = make_configuration(loaded, [PortPair(*ends)], settle_time=0.1)
    return list(questions_of_ports(own, configuration, lambda port: f"card of {port.name}"))


@pytest.mark.parametrize("bidirectional", [True, False])
def test_gateways_learn_the_addresses_of_their_own_networks(bidirectional):
    found = questions("dot1q-ip4base", 68, bidirectional=bidirectional)
    west, east = ([question for question in found if question.port == f"card of {port}"] for port in ("west", "east"))
    # The networks behind the east port are routed to its address; the west port has a network of hosts.
    assert [(question.source, question.target) for question in east] == [("198.19.255.2", "198.19.255.1")]
    assert len(west) == 254
    assert {question.target for question in west} == {"198.18.255.1"}
    assert {question.tags for question in found} == {"81000064"}


def test_only_gateways_of_the_traffics_version_are_asked():
    assert {question.target for question in questions("ethip6-udp-hosts", 78)} == {"2001:2::ffff"}
    assert questions("ethip6-udp-hosts", 78, [ports()[1], ports()[0]])[0].port == "card of west"


def test_more_addresses_than_gateways_can_be_reminded_of_are_refused():
    with pytest.raises(
        TopologyError, match=r"TG.west: the gateway 198.18.255.1 would have to learn more than 256 addresses"
    ):
        questions("ethip4-ip4scale20k", 64)


class Agent:
    def configure(self, configuration, **request):
        self.configuration, self.options = configuration, request["options"]
        return {}


@pytest.mark.parametrize("software", [False, True])
def test_trex_answers_for_its_cards_itself_and_the_kernel_for_its_interfaces(monkeypatch, software):
    monkeypatch.setattr(trex, "_read_hardware", lambda *_: None)
    started = []
    monkeypatch.setattr(trex.TrexServer, "ensure", lambda _: started.append(True))
    monkeypatch.setattr(trex.TrexServer, "is_running", lambda _: True)
    settings = TrexGenerator(kind="trex", directory="/opt/trex", software=software)
    macs = {"eth0": MACS[0], "eth1": MACS[1]}
    cards = [
        replace(port, interface=port.interface.model_copy(
            update={"name": f"eth{number}", "pci_address": f"0000:18:00.{number}", "mac_address": MACS[number]}
        ))
        for number, port in enumerate(ports())
    ]  # fmt: skip
    opened = open_generator(settings, GeneratorNode(Nobody(), macs, 8), cards)
    through = opened.single_frames()
    # The server runs before gateways are asked.
    assert (len(started), through is None) == (0 if software else 1, software)
    pair = PortPair(*(traffic_port(port, opened.port_name(port), None) for port in cards))
    configuration = make_configuration(load_profile("ethip4-udp-hosts", frame_size=64), [pair], settle_time=0.1)
    agent = Agent()
    opened.configure(agent, configuration)
    options = read_record(TrexSettings, agent.options)
    if software:
        assert (len(agent.configuration.speakers), options.neighbours) == (2, ())
    else:
        assert agent.configuration.speakers == ()
        hosts = ["198.18.0.2", "198.18.0.1"]
        assert [question["source"] for question in options.neighbours] == [*hosts, "198.19.255.2"]
        assert through["options"]["ports"] == {"0000:18:00.0": 0, "0000:18:00.1": 1}


class Nobody:
    name = "TG"
