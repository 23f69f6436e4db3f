"""A configuration that an agent refuses leaves nothing behind."""

from __future__ import annotations

from dataclasses import asdict, replace
from types import SimpleNamespace
from typing import ClassVar

import pytest

from lossratio import traffic
from lossratio.agent import server
from lossratio.agent.afpacket import generator
from lossratio.agent.core import own_generator
from lossratio.agent.core.passes import check_openable
from lossratio.agent.core.plan import Exchange
from lossratio.agent.core.protocol import AgentError, Channel


class Closable:
    """Something that has to be closed."""

    opened: ClassVar[list[Closable]] = []
    returns = None

    def __init__(self, *_: object, **__: object) -> None:
        self.is_closed = False
        self.opened.append(self)

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def opened(monkeypatch):
    monkeypatch.setattr(Closable, "opened", [])
    return Closable.opened


def configuration():
    profile = traffic.load_profile("ethip4-udp", frame_size=64, bidirectional=True)
    pair = traffic.PortPair(traffic.TrafficPort("west", "tg0"), traffic.TrafficPort("east", "tg1"))
    return traffic.make_configuration(profile, [pair], settle_time=0.0)


def links():
    return {name: SimpleNamespace(name=name, mac=bytes(6), kind="veth") for name in ("tg0", "tg1")}


def refuse(*_, **__):
    raise AgentError("unsupported", "Too many flows.")


@pytest.mark.parametrize(("refused", "made"), [("tg0", 1), ("tg1", 3)])
def test_if_an_end_is_refused_all_others_are_closed(monkeypatch, opened, refused, made):
    def sending(direction, *_):
        return refuse() if direction.transmit == refused else Closable()

    ports = SimpleNamespace(before=links(), macs=lambda _: (bytes(6), bytes(6)))
    monkeypatch.setattr(generator, "ReceivingEnd", Closable)
    monkeypatch.setattr(generator, "SendingEnd", sending)
    monkeypatch.setattr(own_generator, "Ports", lambda _: ports)
    with pytest.raises(AgentError, match="Too many flows"):
        generator.AfPacketGenerator(configuration())
    assert [one.is_closed for one in opened] == [True] * made


def test_connections_need_frames_that_come_back_with_the_same_headers():
    made = configuration()
    sent = made.directions[0]
    changed = replace(made, directions=(replace(sent, arriving_frames=sent.frames),))
    with pytest.raises(AgentError, match="do not change tags"):
        check_openable(changed, Exchange(1.0, 0, None, established=False, is_complete=True, answers="opened"))


def test_nobody_answers_for_the_addresses_of_a_refused_configuration(monkeypatch, opened):
    monkeypatch.setattr(server, "Responder", Closable)
    monkeypatch.setattr(server, "usable_links", lambda _: links())
    monkeypatch.setattr(server, "make_generator", refuse)
    wanted = asdict(configuration())
    wanted["speakers"] = [asdict(server.Speaker("tg0", ()))]
    agent = server.Agent(Channel(0, 1))
    with pytest.raises(AgentError, match="Too many flows"):
        agent.answer({"op": "configure", "generator": "afpacket", "configuration": wanted})
    assert [one.is_closed for one in opened] == [True]
