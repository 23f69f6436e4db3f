"""What is asked of the interfaces that are used as ports, where no real one would do it on demand."""

import struct
from types import SimpleNamespace

import pytest

from lossratio.agent.core import ethtool, ports as port_links
from lossratio.agent.core.links import Link
from lossratio.agent.core.protocol import AgentError


def link(**counters):
    drops = {"receive_drops": 5, "transmit_drops": 7, **counters}
    mtu = drops.pop("mtu", 1500)
    return {"tg0": Link(2, "tg0", bytes(6), mtu, "", True, None, None, carrier_changes=2, **drops)}


@pytest.fixture
def ports(monkeypatch):
    """The port tg0, as it was before traffic."""
    monkeypatch.setattr(port_links, "usable_links", lambda configuration: link())
    return port_links.Ports(SimpleNamespace(ports=("tg0",)))


@pytest.mark.parametrize("counter", ["receive_drops", "transmit_drops"])
def test_counters_that_were_set_back_during_a_trial_are_an_error_and_not_a_number(counter, ports, monkeypatch):
    monkeypatch.setattr(port_links, "read_links", lambda: link(**{counter: 0}))
    with pytest.raises(AgentError, match="counters of interface tg0 were reset") as error:
        ports.after()
    assert error.value.kind == "counters_reset"
    monkeypatch.setattr(port_links, "read_links", lambda: link(**{counter: 8}))
    ports.after()


@pytest.mark.parametrize("check", [port_links.Ports.mark, port_links.Ports.after])
def test_a_port_whose_mtu_is_changed_is_not_used_on(check, ports, monkeypatch):
    monkeypatch.setattr(port_links, "read_links", lambda: link(mtu=300))
    with pytest.raises(AgentError, match="MTU of interface tg0 was 1500 and is now 300") as error:
        check(ports)
    assert error.value.kind == "mtu_changed"


def answers_of(driver, statistics):
    """What a driver answers to the commands of ethtool."""

    def ask(name, command):
        assert name == "tg0"
        (number,) = struct.unpack_from("=I", command)
        if number == 0x3:
            return struct.pack("=I32s144xI12x", number, driver.encode(), len(statistics))
        if number == 0x1B:
            return command[:12] + b"".join(text.encode().ljust(32, b"\0") for text, _ in statistics)
        return command[:8] + struct.pack(f"={len(statistics)}Q", *(value for _, value in statistics))

    return ask


OUT_OF_BUFFERS = "  pkts rx OOB"
QUEUES = [("Rx Queue#", 0), (OUT_OF_BUFFERS, 30), ("  pkts rx err", 1), ("Rx Queue#", 1), (OUT_OF_BUFFERS, 4)]


@pytest.mark.parametrize(("driver", "drops"), [("vmxnet3", 5 + 30 + 4), ("e1000e", 5)])
def test_frames_without_a_buffer_count_as_dropped_where_only_the_driver_of_vmxnet3_counts_them(
    driver, drops, ports, monkeypatch
):
    monkeypatch.setattr(port_links, "read_links", link)
    monkeypatch.setattr(ethtool, "ask", answers_of(driver, QUEUES))
    assert ports.after()["tg0"].receive_drops == drops


def test_an_interface_whose_driver_does_not_answer_has_the_drops_that_the_kernel_counts(ports, monkeypatch):
    monkeypatch.setattr(port_links, "read_links", link)
    ports.mark()
    assert ports.before["tg0"].receive_drops == 5
