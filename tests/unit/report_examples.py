"""Results of real searches on simulated SUTs, for the tests of the report."""

import json
from datetime import datetime, timedelta, timezone
from functools import cache
from pathlib import Path

from hypothesis import strategies as st

from lossratio.measurements import Measurement
from lossratio.measurements.mrr import MaximumReceiveRate
from lossratio.measurements.throughput import ThroughputResult
from lossratio.measurements.throughput.evidence import search_fields
from lossratio.mlrsearch import NDR, PDR, RFC2544, TST009, MLRsearch, goal_result
from lossratio.results.conditions import (
    Conditions,
    FrameSizeShare,
    LoadOrigin,
    Traffic,
    describe_testbed,
    load_semantics,
)
from lossratio.results.device import Device
from lossratio.results.kinds import built_in_results
from lossratio.results.machines import ControllerFacts, NodeFacts, ToolVersions
from lossratio.results.model import TestIdentity, TestRun
from lossratio.results.note import noted
from lossratio.results.trial_timing import trial_timing
from lossratio.simulation.constant_capacity import SharpKnee
from lossratio.simulation.measurer import SimulatedMeasurer
from lossratio.topology import load_topology
from lossratio.trials.digest import add_digest
from lossratio.trials.journal_lines import JournalEntry
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import DirectionCounters, TrialOutput

RESULT = built_in_results()
STARTED = datetime(2026, 8, 1, 12, 0, 0, 250_000, tzinfo=timezone.utc)
MIN_LOAD, MAX_LOAD = 9_001.0, 400_000.0
LINK_LIMIT = 1e9 / ((64 + 20) * 8)
ROOT = Path(__file__).parents[2]
BY_THE_BOOK = trial_timing(
    learning="before every trial",
    wait_before_s=2.0,
    wait_after_s=2.0,
    recovery_s=5.0,
    tolerance_s=0.0,
    negative_loss="retry",
)
"""The times of a trial as in RFC 2544, section 23."""


def result_of(kind, test_run, max_load, entries):
    """The result of a kind that needs no request for it."""
    return kind.build(Measurement(test_run, None, tuple(entries), None), None, {}, max_load)


def mrr_result(test_run, max_load, entries):
    return result_of(MaximumReceiveRate(), test_run, max_load, entries)


@cache
def conditions(directions=("port0>port1", "port1>port0")):
    file = "topologies/simulated.yaml"
    topology = load_topology(ROOT / file)
    return Conditions(
        testbed=describe_testbed(topology, file, [topology.path()]),
        nodes={
            "TG": NodeFacts(
                os="Debian GNU/Linux 12 (bookworm)", kernel="6.1.0", tools=ToolVersions(ip="iproute2-6.1.0")
            ),
            "DUT1": NodeFacts(),
        },
        controller=ControllerFacts(
            lossratio_version="0.1.0",
            python_version="3.11.7",
            robot_version="7.4",
            os="Debian GNU/Linux 12 (bookworm)",
            kernel="6.1.0",
        ),
        generator={"kind": "simulated", "max_rate": 400_000.0},
        duts={"DUT1": {"kind": "linux_bridge", "default": {"ageing_time": 300}, "changed": {"ageing_time": 0}}},
        traffic=Traffic(
            name="ethip4-udp",
            frame_sizes=(FrameSizeShare(size_bytes=64, share_ratio=1.0),),
            average_frame_size_bytes=64.0,
            frame_format="Ethernet II, IPv4, UDP",
            addresses="198.18.0.0/16 and 198.19.0.0/16",
            modifiers="254 source addresses in turn",
            ip_versions={"IPv4": 1.0},
            pattern="bidirectional" if len(directions) > 1 else "unidirectional",
            profile={"name": "ethip4-udp", "frame_size": "64B"},
        ),
        load=load_semantics(dict.fromkeys(directions, 1.0)),
        timing=trial_timing(
            learning="before the search",
            wait_before_s=0.0,
            wait_after_s=0.005,
            recovery_s=0.02,
            tolerance_s=10e-6,
            negative_loss="retry",
        ),
        device=Device(kind="linux_bridge"),
    )


@cache
def searched(sut, goals=(NDR, PDR), *, max_load=MAX_LOAD, min_load=MIN_LOAD, trials=1000, seed=1, **generator):
    """The search result and the journal entries of a search on a simulated SUT, cut off after so many trials.

    The same search has the same result, so each is made once in a process.
    """
    controller = MLRsearch(goals, min_load, max_load)
    measurer = SimulatedMeasurer(sut, seed=seed, directions=2, overhead=0.02, **generator)
    entries = []
    while (trial := controller.next_trial()) is not None and len(entries) < trials:
        entry = JournalEntry.of(TrialResult(trial, measurer.measure(trial)), str(controller.purpose))
        controller.record(entry.result)
        entries.append(entry)
    return controller.result(), tuple(entries)


def run(name="64B-1c-eth-l2bdbase-ndrpdr", *, error=None, remarks=(), seconds=40.0):
    identity = TestIdentity(name=name, suite="Performance.Linux Bridge", tags=("64b", "ndrpdr"))
    ended = STARTED + timedelta(seconds=seconds)
    return TestRun(identity, STARTED, ended, conditions(), remarks=remarks, error=error)


def setup(test_run, *, origin=LoadOrigin.GENERATOR, max_load=MAX_LOAD, min_load=MIN_LOAD):
    maximum = test_run.conditions.max_load(max_load, origin, link_limit=LINK_LIMIT)
    return maximum, {"settings": {"timeout": None, "fail_fast": True}, "min_load_fps": min_load}


def throughput(sut=None, goals=(NDR, PDR), *, origin=LoadOrigin.GENERATOR, error=None, name=None, **search):
    """The result of a whole throughput test on a simulated SUT; a knee at 150 kfps per interface if none is given."""
    goal_results, entries = searched(sut or SharpKnee(capacity=300_000.0), goals, **search)
    test_run = run(error=error) if name is None else run(name, error=error)
    return ThroughputResult(**search_fields(test_run, *setup(test_run, origin=origin), goal_results, entries))


def counted_trial(load, *, lost=0, unsent=0, duration=1.0):
    """A trial with totals, as if all directions were one."""
    intended = round(load * duration)
    sent = intended - unsent
    output = TrialOutput((lost + unsent) / intended, sent_frames=sent, lost_frames=lost, unsent_frames=unsent)
    return TrialResult(TrialInput(duration, load), output)


def dropping_trial(load, *, lost, dropped):
    """A trial of one direction that lost frames, of which the generator dropped some."""
    sent = round(load)
    direction = DirectionCounters("port0>port1", sent, sent, sent - lost, generator_drop_frames=dropped)
    output = TrialOutput(lost / sent, sent_frames=sent, lost_frames=lost, unsent_frames=0, directions=(direction,))
    return TrialResult(TrialInput(1.0, load), output)


def stalled_trial(load, *, lost, stall, streams=()):
    """A trial of one direction that lost frames, and whose sender was stalled for some seconds."""
    sent = round(load)
    direction = DirectionCounters("port0>port1", sent, sent, sent - lost, lateness_s=stall, by_stream=streams)
    output = TrialOutput(lost / sent, sent_frames=sent, lost_frames=lost, unsent_frames=0, directions=(direction,))
    return TrialResult(TrialInput(1.0, load), output)


def throughput_of(trials, goals=(NDR,), *, origin=LoadOrigin.GENERATOR, error=None, remarks=()):
    """The result of a search that measured just these trials."""
    test_run = run(error=error, remarks=remarks)
    goal_results = {goal: goal_result(goal, trials, min_load=MIN_LOAD, max_load=MAX_LOAD) for goal in goals}
    entries = [JournalEntry.of(trial) for trial in trials]
    return ThroughputResult(**search_fields(test_run, *setup(test_run, origin=origin), goal_results, entries))


def mrr(sut=None, *, error=None, trials=10, load=MAX_LOAD, seed=1, **generator):
    """The result of a whole MRR test."""
    measurer = SimulatedMeasurer(sut or SharpKnee(capacity=300_000.0), seed=seed, directions=2, **generator)
    trial = TrialInput(1.0, load)
    entries = [JournalEntry.of(TrialResult(trial, measurer.measure(trial))) for _ in range(trials)]
    test_run = run("64B-1c-eth-l2bdbase-mrr", error=error)
    return mrr_result(
        test_run, test_run.conditions.max_load(load, LoadOrigin.GENERATOR, link_limit=LINK_LIMIT), entries
    )


def as_json(result):
    """The data of a result's file."""
    return RESULT.dump_python(result, mode="json")


def with_digest(data):
    """The text of a result's file with this data, and with the digest that fits it."""
    fields = {name: value for name, value in data.items() if name != "digest"}
    return add_digest(json.dumps(fields).encode())[0] + b"\n"


@st.composite
def trials_of_any_kind(draw, load=None):
    """A trial with any counts, known as far as any measurer may know them."""
    load = draw(st.sampled_from([MIN_LOAD, 20_000.0, 150_000.0, 150_500.0, MAX_LOAD])) if load is None else load
    duration = draw(st.sampled_from([0.1, 1.0, 60.0]))
    intended = round(load * duration)
    sent = draw(st.sampled_from([intended, intended - 1, intended // 2, 0]))
    received = draw(st.sampled_from([sent, max(0, sent - 1), sent * 999 // 1000, sent // 3, 0]))
    trial = TrialInput(duration, load)
    loss_ratio = (intended - received) / intended
    if draw(st.booleans()):
        return TrialResult(trial, TrialOutput(loss_ratio))
    names = draw(st.sampled_from([("port0>port1", "port1>port0"), ("port0>port1",), ()]))
    elapsed = draw(st.sampled_from([None, duration, duration * 1.001]))
    directions = tuple(
        DirectionCounters(name, intended, sent, received, unsent_frames=intended - sent, elapsed_s=elapsed)
        for name in names
    )
    number = max(1, len(names))
    counts = {"sent_frames": sent, "lost_frames": sent - received, "unsent_frames": intended - sent}
    known = {name: count * number for name, count in counts.items()}
    return TrialResult(trial, TrialOutput(loss_ratio, elapsed=elapsed, directions=directions, **known))


@st.composite
def throughput_results(draw):
    """Results of searches that went anyhow."""
    goals = tuple(draw(st.lists(st.sampled_from([NDR, PDR, RFC2544, TST009]), min_size=1, max_size=4, unique=True)))
    repeated = draw(st.lists(st.tuples(trials_of_any_kind(), st.integers(1, 12)), max_size=6))
    entries = [JournalEntry.of(trial, draw(st.none() | st.text())) for trial, times in repeated for _ in range(times)]
    trials = [entry.result for entry in entries]
    goal_results = {goal: goal_result(goal, trials, min_load=MIN_LOAD, max_load=MAX_LOAD) for goal in goals}
    name = draw(st.text(min_size=1, max_size=300))
    test_run = run(
        name, error=draw(st.none() | st.text(min_size=1)), remarks=tuple(map(noted, draw(st.lists(st.text()))))
    )
    about = setup(test_run, origin=draw(st.sampled_from(LoadOrigin)))
    return ThroughputResult(**search_fields(test_run, *about, goal_results, entries))


@st.composite
def mrr_results(draw):
    """Results of MRR measurements that went anyhow."""
    entries = [
        JournalEntry.of(trial) for trial in draw(st.lists(trials_of_any_kind(MAX_LOAD), min_size=1, max_size=10))
    ]
    test_run = run("mrr", error=draw(st.none() | st.text(min_size=1)))
    return mrr_result(test_run, test_run.conditions.max_load(MAX_LOAD, draw(st.sampled_from(LoadOrigin))), entries)
