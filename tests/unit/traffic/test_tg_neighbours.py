"""Address resolution through the TG's own ports: the questions and the answers."""

from __future__ import annotations

import errno
import os
import sys
from ipaddress import ip_address
from pathlib import Path

import pytest
from netns import NetnsLab, NetnsUnavailableError
from scapy.layers.inet6 import ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6NDOptDstLLAddr, ICMPv6NDOptSrcLLAddr, IPv6
from scapy.layers.l2 import ARP, Dot1Q, Ether

from lossratio.agent.core.neighbours import answer_to
from lossratio.agent.core.packets import PacketWire

OURS, THEIRS = "02:00:00:00:00:01", "02:00:00:00:00:02"
OWN_MAC = bytes.fromhex(OURS.replace(":", ""))
RANGES = [(ip_address("10.0.0.5"), ip_address("10.0.0.9")), (ip_address("2001:db8::5"), ip_address("2001:db8::9"))]


def arp(target, **fields):
    return Ether(src=THEIRS, dst="ff:ff:ff:ff:ff:ff") / ARP(psrc="10.0.0.1", hwsrc=THEIRS, pdst=target, **fields)


def solicitation(target, source="2001:db8::1"):
    return (
        Ether(src=THEIRS, dst="33:33:ff:00:00:05")
        / IPv6(src=source, dst="ff02::1:ff00:5", hlim=255)
        / ICMPv6ND_NS(tgt=target)
        / ICMPv6NDOptSrcLLAddr(lladdr=THEIRS)
    )


def answer(question):
    return answer_to(bytes(question), OWN_MAC, RANGES)


class Port:
    """A packet socket that can be read: one frame, or the error of a link that has gone down."""

    def __init__(self, frame):
        self.frame = frame
        self.read_end, write_end = os.pipe()
        os.write(write_end, b"x")

    def fileno(self):
        return self.read_end

    def recvmsg(self, most, room):
        if self.frame is None:
            raise OSError(errno.ENETDOWN, os.strerror(errno.ENETDOWN))
        return self.frame, [], 0, ("port", 0, 0)


def test_a_port_whose_link_goes_down_takes_no_frames_of_other_ports_away():
    wire = PacketWire({}, {"up": [Port(b"frame")], "down": [Port(None)]})
    assert wire.receive(1.0) == [("up", b"frame")]


@pytest.mark.parametrize("target", ["10.0.0.5", "10.0.0.9"])
def test_a_request_of_arp_for_one_of_the_addresses_is_answered(target):
    reply = Ether(answer(arp(target)))
    assert (reply.dst, reply.src, reply[ARP].op) == (THEIRS, OURS, 2)
    assert (reply[ARP].hwsrc, reply[ARP].psrc, reply[ARP].hwdst, reply[ARP].pdst) == (OURS, target, THEIRS, "10.0.0.1")


def test_a_solicitation_is_answered_with_a_valid_checksum():
    reply = Ether(answer(solicitation("2001:db8::5")))
    assert (reply.dst, reply.src) == (THEIRS, OURS)
    assert (reply[IPv6].src, reply[IPv6].dst, reply[IPv6].hlim) == ("2001:db8::5", "2001:db8::1", 255)
    advertisement = reply[ICMPv6ND_NA]
    assert (advertisement.tgt, advertisement.S, advertisement.O, advertisement.R) == ("2001:db8::5", 1, 1, 0)
    assert reply[ICMPv6NDOptDstLLAddr].lladdr == OURS
    checksum = advertisement.cksum
    del advertisement.cksum
    assert Ether(bytes(reply))[ICMPv6ND_NA].cksum == checksum


def test_a_device_that_looks_whether_an_address_is_free_hears_that_it_is_not():
    reply = Ether(answer(solicitation("2001:db8::5", source="::")))
    assert (reply.dst, reply[IPv6].dst, reply[ICMPv6ND_NA].S) == ("33:33:00:00:00:01", "ff02::1", 0)


@pytest.mark.parametrize(
    "question",
    [
        arp("10.0.0.4"),
        arp("10.0.0.10"),
        arp("10.0.0.5", op=2),
        solicitation("2001:db8::4"),
        Ether(src=OURS) / ARP(hwsrc=OURS, pdst="10.0.0.5"),
        Ether(bytes(arp("10.0.0.5"))[:40]),
        Ether(bytes(solicitation("2001:db8::5"))[:60]),
        Ether(),
    ],
    ids=range(8),
)
def test_nothing_else_is_answered(question):
    assert answer(question) is None


def test_the_answer_has_the_tags_of_the_question():
    question = arp("10.0.0.5")
    tagged = Ether(src=question.src, dst=question.dst) / Dot1Q(vlan=7, prio=3) / Dot1Q(vlan=8) / question[ARP]
    reply = Ether(answer(tagged))
    assert [(reply[Dot1Q].vlan, reply[Dot1Q].prio), reply[Dot1Q].payload.vlan] == [(7, 3), 8]
    assert reply[ARP].psrc == "10.0.0.5"


BOTH_ENDS = """
import sys, time
from lossratio.agent.core.configuration import Speaker
from lossratio.agent.core.links import read_links
from lossratio.agent.core.neighbours import Question, Responder, open_wire, resolve
links = read_links()
addresses = (("10.0.0.5", "10.0.0.9"), ("2001:db8::5", "2001:db8::9"))
responder = Responder([Speaker("tg1", addresses)], links)
tags = ("", "81000007", "88a8000781000008")
questions = [Question("tg0", "10.0.0.1", "10.0.0.6", tag) for tag in tags]
questions += [Question("tg0", "2001:db8::1", "2001:db8::6", tag) for tag in tags]
answers = resolve(questions, open_wire(["tg0"], links), 10.0)
print(set(map(tuple, answers)) == {(links["tg1"].mac.hex(":"),)})
responder.close()
silent = [Question("tg0", "10.0.0.1", "10.0.0.6", "")]
print(resolve(silent, open_wire(["tg0"], links), 0.3))
"""


@pytest.mark.netns
def test_questions_reach_the_other_end_of_a_link_in_every_vlan():
    try:
        lab = NetnsLab()
    except NetnsUnavailableError as error:
        pytest.skip(f"no network namespaces: {error}")
    with lab:
        lab.namespace("tg")
        lab.veth("tg", "tg0", "tg", "tg1")
        path = Path(__file__).parents[3] / "libraries"
        done = lab.run("tg", "env", f"PYTHONPATH={path}", sys.executable, "-c", BOTH_ENDS)
    assert done.stdout.splitlines() == ["True", "[[]]"]
