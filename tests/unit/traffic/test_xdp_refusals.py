"""The generator inside the kernel: arithmetic of schedules, choice of processors, and refusals of drivers."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from lossratio.agent.core.links import Link
from lossratio.agent.core.pacing import free_processors
from lossratio.agent.core.protocol import AgentError
from lossratio.agent.xdp import attachment, sender
from lossratio.agent.xdp.generator import XdpGenerator as InKernel
from lossratio.agent.xdp.plan import Plan, schedule_course
from lossratio.agent.xdp.sender import Senders, choose_cpus, claim, claim_cpus
from lossratio.bpf import BpfError, why_impossible
from lossratio.dut import parse_options
from lossratio.testbed.opening import beside_the_dut, device_cpus
from lossratio.testbed.testbed import DutRequest, TestbedRequest
from lossratio.topology import AfPacketGenerator, AutoGenerator, XdpGenerator, load_topology
from lossratio.traffic import PortPair, TrafficPort, load_profile, make_configuration
from lossratio.traffic.client import AgentRefusalError
from lossratio.traffic.generators import open_generator
from lossratio.traffic.generators.base import GeneratorNode

TOPOLOGIES = Path(__file__).parents[3] / "topologies"


class Program:
    """A program that may send until a time."""

    until = 0

    def schedule(self, start, schedule):
        self.until = 0

    def renew(self, until):
        self.until = until

    def stop(self):
        self.until = 0

    def has_finished(self):
        return False


def test_traffic_that_was_stopped_is_not_allowed_again_until_the_next_one():
    made = InKernel.__new__(InKernel)
    program = Program()
    idle = SimpleNamespace(program=program, wait_until_awake=lambda: None, check=lambda: None)
    made._senders = Senders([idle])
    made._sending, made._receiving = [], []
    made._plan = Plan(((1000.0, 60.0),))
    for _ in range(2):
        made._schedule([[]])
        assert program.until > 0
        made._stop()
        made._renew()
        assert program.until == 0


def test_only_the_latest_losses_have_times_and_all_are_counted():
    ring = 1 << 20
    words = [0] * ring
    start = 10**15
    counts = [ring + 5, 4]
    for number, time_ns in ((3, 100), (ring + 3, 2000), (ring + 8, 5000)):
        words[number % ring] = (start + time_ns) % (1 << 48) << 16 | 1
    program = SimpleNamespace(sent=lambda place, step: SimpleNamespace(sent=counts[step]))
    plan = Plan(((1e6, 1.0), (1e6, 1.0)))
    counters = {
        "name": "a>b",
        "sent_frames": ring + 9,
        "load_ratio": 1.0,
        "elapsed_s": 2.0,
        "intended_frames": ring + 9,
        "last": 2.0,
    }
    course = schedule_course(plan, counters, start, [(words, program, 0)], intact=ring)
    first, second = course["steps"]
    assert (second["lost"], second["last_lost"]) == (1, 5e-6)
    assert (first["lost"], first["last_lost"]) == (8, 2e-6)
    with pytest.raises(AgentError, match="refused frames, but it is not known which"):
        schedule_course(plan, {**counters, "sent_frames": ring}, start, [(words, program, 0)], intact=ring)


@pytest.mark.parametrize(
    ("directions", "of_devices", "chosen"),
    [(1, (), [0]), (2, (), [0, 1]), (2, (3,), [0, 1]), (2, (2, 3), [0]), (1, (1, 2, 3), [0]), (1, (0, 1, 2, 3), [0])],
)
def test_senders_keep_off_the_processors_of_devices_and_leave_one_for_others(
    directions, of_devices, chosen, monkeypatch
):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 1, 0, 2})
    assert choose_cpus(directions, None, free_processors(of_devices)) == tuple(chosen)


@pytest.mark.parametrize(
    ("directions", "free", "taken", "chosen"),
    [
        (1, (0, 1), [0], (1,)),
        (2, (0, 1), [0, 0, 1], (1,)),
        (2, (0, 1), [0, 1], (0,)),
        (2, (0, 1, 2), [0], (1, 2)),
        (1, (3,), [3], (3,)),
    ],
)
def test_senders_keep_off_the_processors_of_other_testbeds_senders(directions, free, taken, chosen):
    assert choose_cpus(directions, None, free, taken) == chosen


@pytest.mark.parametrize(
    ("directions", "for_each", "taken", "chosen"),
    [(1, 2, [], (0, 1)), (2, 2, [0, 1], (2, 3, 0, 1)), (1, 1, [0], (1,)), (1, 4, [], (0, 1, 2, 3))],
)
def test_each_direction_gets_as_many_processors_as_are_asked_for(directions, for_each, taken, chosen):
    assert choose_cpus(directions, None, (0, 1, 2, 3), taken, for_each) == chosen


def test_more_processors_for_each_direction_than_there_are_is_refused_with_the_way_out():
    with pytest.raises(
        AgentError, match=r"asks for 4 CPUs \(2 for each of 2\), but the agent may use only 2: \[0, 1\]. Use fewer"
    ):
        choose_cpus(2, None, (0, 1), (), 2)


@pytest.mark.parametrize("kind", [XdpGenerator, AutoGenerator])
def test_processors_are_named_or_counted_and_not_both(kind):
    name = kind.model_fields["kind"].annotation.__args__[0]
    assert kind(kind=name, cpus_per_direction=2).cpus_per_direction == 2
    with pytest.raises(ValueError, match="leave 'cpus_per_direction' out"):
        kind(kind=name, cpus=(0, 1), cpus_per_direction=2)
    with pytest.raises(ValueError, match="greater than or equal to 1"):
        kind(kind=name, cpus_per_direction=0)


def test_of_two_testbeds_that_choose_a_processor_at_once_the_later_one_chooses_again(monkeypatch):
    # The other one's claim, number 7, was not there yet when this one chose.
    seen = iter([{}, {7: "lr_sender_0", 8: "lr_sender_0"}, {7: "lr_sender_0"}, {7: "lr_sender_0", 9: "lr_sender_1"}])
    numbers, closed = iter((8, 9)), []

    def claim_of(cpu):
        number = next(numbers)
        return SimpleNamespace(number=number, close=lambda: closed.append(number))

    monkeypatch.setattr(sender, "map_names", lambda: next(seen))
    monkeypatch.setattr(sender, "claim", claim_of)
    claims = claim_cpus(1, None, (0, 1))
    assert {cpu: claimed.number for cpu, claimed in claims.items()} == {1: 9}
    assert closed == [8]


def test_the_earlier_one_keeps_its_processor(monkeypatch):
    seen = iter([{}, {7: "lr_sender_0", 8: "lr_sender_0"}])
    monkeypatch.setattr(sender, "map_names", lambda: next(seen))
    monkeypatch.setattr(sender, "claim", lambda cpu: SimpleNamespace(number=7, close=None))
    assert list(claim_cpus(1, None, (0, 1))) == [0]


OTHER_TESTBED = "from lossratio.agent.xdp.sender import sender_cpus; print(*sender_cpus().values())"


@pytest.mark.netns
@pytest.mark.skipif(why_impossible() is not None, reason="no BPF")
def test_senders_are_seen_with_their_processors_from_other_testbeds_whose_namespaces_hide_processes():
    def seen():
        namespaces = ("unshare", "--pid", "--fork", "--mount-proc", "--net", "--ipc")
        run = subprocess.run([*namespaces, sys.executable, "-c", OTHER_TESTBED], capture_output=True, check=True)
        return [int(cpu) for cpu in run.stdout.split()].count(4095)

    first, second = claim(4095), claim(4095)
    assert seen() == 2
    first.close()
    assert seen() == 1
    second.close()
    assert seen() == 0


@pytest.mark.parametrize("kind", ["xdp", "auto"])
@pytest.mark.parametrize(
    ("topology", "dut", "kept"),
    [
        ("local", "linux_bridge", ()),
        ("local", "xdp", ()),
        ("local", "ovs", (1,)),
        ("local", None, (1,)),
        ("examples/lab-3n-afpacket", "linux_bridge", (1,)),
    ],
)
def test_a_local_testbed_keeps_processors_for_programs_alone(topology, dut, kept, kind):
    file = TOPOLOGIES / f"{topology}.yaml"
    device = None if dut is None else DutRequest(dut, parse_options(dut, {}))
    generator = (AutoGenerator if kind == "auto" else XdpGenerator)(kind=kind, device_cpus=(1,))
    beside = beside_the_dut(TestbedRequest(load_topology(file), file, device), generator)
    assert beside == generator.model_copy(update={"device_cpus": kept})


@pytest.mark.parametrize(("topology", "of_bridge"), [("local", (1,)), ("examples/lab-3n-afpacket", ())])
@pytest.mark.parametrize("kind", ["afpacket", "xdp"])
def test_senders_keep_off_the_processors_on_which_a_local_bridge_forwards(kind, topology, of_bridge):
    file = TOPOLOGIES / f"{topology}.yaml"
    bridge = DutRequest("linux_bridge", parse_options("linux_bridge", {"rps_cpus": "1"}))
    request = TestbedRequest(load_topology(file), file, bridge)
    assert device_cpus(request) == of_bridge
    settings = {"afpacket": AfPacketGenerator, "xdp": XdpGenerator}[kind](kind=kind, catch_up=0.002)
    options = open_generator(settings, GeneratorNode(None, {}, 2, device_cpus(request)), ()).ready()
    assert options.get("device_cpus", ()) == of_bridge


@pytest.mark.parametrize(
    ("changes", "reason"),
    [({"watches": True}, "have no time stamps"), ({"growth": (4, -4)}, "longer or shorter"), ({}, "too many headers")],
)
def test_auto_takes_the_embedded_generator_for_what_programs_cannot_do(changes, reason):
    asked = []

    def configure(configuration, generator, options):
        asked.append(generator)
        if generator == "xdp":
            raise AgentRefusalError("too many headers", kind="unsupported")
        return {"generator": generator}

    pair = PortPair(TrafficPort("a", "tg0"), TrafficPort("b", "tg1"))
    growth = changes.get("growth", (0, 0))
    configuration = make_configuration(load_profile("ethip4-udp", frame_size=64), [pair], settle_time=0, growth=growth)
    configuration = replace(configuration, watches="watches" in changes)
    auto = open_generator(AutoGenerator(kind="auto"), GeneratorNode(None, {}, 2, ()), ())
    auto.check_growth(growth)
    facts = auto.configure(SimpleNamespace(configure=configure), configuration)
    assert (facts["kind"], reason in facts["instead_of_xdp_because"]) == ("afpacket", True)
    assert asked == (["afpacket"] if changes else ["xdp", "afpacket"])


@pytest.mark.parametrize("number", [errno.EOPNOTSUPP, errno.ENOSPC, errno.ERANGE, errno.ENOMEM])
def test_a_port_that_takes_no_program_names_what_may_be_in_the_way(number, monkeypatch):
    refused = []

    def refuse(program, index, mode):
        refused.append(mode)
        raise BpfError(f"The kernel refuses the program on interface {index}: {os.strerror(number)}.", number)

    monkeypatch.setattr(attachment, "Attachment", refuse)
    monkeypatch.setattr(attachment, "attached_program", lambda index: None)
    port = Link(7, "eth7", bytes(6), 1500, "", True, None, None, 0, 0, 0)
    with pytest.raises(AgentError) as caught:
        attachment.attach(None, port)
    assert refused == ["native", "generic"]
    assert caught.value.kind == "no_xdp"
    for part in ("eth7", os.strerror(number), "ethtool -K eth7 lro off", "MTU", "queues", "'kind: afpacket'"):
        assert part in str(caught.value)


def test_a_right_that_is_missing_is_not_taken_for_a_driver_that_cannot(monkeypatch):
    def refuse(program, index, mode):
        raise BpfError("The kernel refuses it. This process lacks CAP_NET_ADMIN: log in as root.", errno.EPERM)

    monkeypatch.setattr(attachment, "Attachment", refuse)
    monkeypatch.setattr(attachment, "attached_program", lambda index: None)
    with pytest.raises(BpfError, match="lacks CAP_NET_ADMIN"):
        attachment.attach(None, Link(7, "eth7", bytes(6), 1500, "", True, None, None, 0, 0, 0))
