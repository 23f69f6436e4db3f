"""A TG whose two ports are joined by a bridge, and an agent on it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from local_session import PYTHON, LocalSession
from netns import NetnsLab
from traffic_lab import two_nodes

from lossratio.traffic import AgentClient


@pytest.fixture
def bridged(netns_lab: NetnsLab) -> NetnsLab:
    """Namespaces tg and dut1, with links tg0-dut0 and tg1-dut1, and a bridge in dut1."""
    return two_nodes(netns_lab, bridge="br0")


@pytest.fixture
def session(bridged: NetnsLab, tmp_path: Path) -> LocalSession:
    """A session on the TG of `bridged`."""
    return LocalSession(bridged, "tg", tmp_path)


@pytest.fixture
def agent(session: LocalSession) -> Iterator[AgentClient]:
    """An agent on the TG of `bridged`."""
    with AgentClient.start(session, python=PYTHON) as client:
        yield client


@pytest.fixture
def ready(bridged: NetnsLab) -> NetnsLab:
    """The namespaces of `bridged`, whose DUT takes frames of XDP programs."""
    for interface in ("dut0", "dut1"):
        bridged.run("dut1", "ethtool", "-K", interface, "gro", "on")
    return bridged


@pytest.fixture
def no_links(monkeypatch):
    """Ports that are no interfaces of this machine."""
    monkeypatch.setattr("lossratio.agent.core.ports.usable_links", lambda configuration: {})
    monkeypatch.setattr("lossratio.agent.core.ports.Ports.mark", lambda ports: None)
    monkeypatch.setattr("lossratio.agent.core.ports.Ports.after", lambda ports, **_: ports.before)
