"""A TG whose two ports are joined by a bridge, and an agent on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from local_session import PYTHON, LocalSession
from netns import NetnsLab
from set_up import private_namespaces
from traffic_bench import Bench, made_bench
from traffic_lab import two_nodes

from lossratio.traffic import AgentClient

SHARING = {"test_traffic_in_time", "test_traffic_kinds", "test_traffic_latency", "test_traffic_trials"}
"""Files whose tests use the same namespaces and agent one after the other, as most of their trials cost less than
these. A test that needs its own asks for `session`."""


@pytest.fixture(scope="module")
def benches() -> Iterator[list[Bench]]:
    """The bench that the next test of a file gets; empty: it gets a new one."""
    benches: list[Bench] = []
    yield benches
    for bench in benches:
        bench.close()


@pytest.fixture
def bench(
    request: pytest.FixtureRequest, benches: list[Bench], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Bench]:
    """A lab with an agent, as if it were new; a test that has failed gets a new one."""
    if getattr(request.node, "execution_count", 1) > 1:
        while benches:
            benches.pop().close()
    bench = benches.pop() if benches else made_bench(private_namespaces(), tmp_path_factory.mktemp("tg"))
    with ExitStack() as undo:
        undo.callback(bench.close)
        yield bench
        if bench.set_back():
            benches.append(bench)
            undo.pop_all()


def shares_a_bench(request: pytest.FixtureRequest) -> bool:
    """Whether a test uses what the tests before it used."""
    names = request.fixturenames
    return request.module.__name__ in SHARING and "agent" in names and "session" not in names


@pytest.fixture
def bridged(request: pytest.FixtureRequest) -> NetnsLab:
    """Namespaces tg and dut1, with links tg0-dut0 and tg1-dut1, and a bridge in dut1."""
    if shares_a_bench(request):
        return request.getfixturevalue("bench").lab
    return two_nodes(request.getfixturevalue("netns_lab"), bridge="br0")


@pytest.fixture
def session(bridged: NetnsLab, tmp_path: Path) -> LocalSession:
    """A session on the TG of `bridged`."""
    return LocalSession(bridged, "tg", tmp_path)


@pytest.fixture
def agent(request: pytest.FixtureRequest) -> Iterator[AgentClient]:
    """An agent on the TG of `bridged`."""
    if shares_a_bench(request):
        yield request.getfixturevalue("bench").agent
        return
    with AgentClient.start(request.getfixturevalue("session"), python=PYTHON) as client:
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
