"""A program that waited for a CPU is not told as a slow device: trials are repeated, and at last a bound is doubted."""

from __future__ import annotations

import os
from contextlib import closing

import pytest
from fingerprint_examples import GOOD, NOW, SEEN, WAY, later, waiting, with_node

from lossratio.nodes import NodeSession
from lossratio.testbed import fingerprint
from lossratio.testbed.changes import changes_between, unanswered
from lossratio.testbed.fingerprint import FingerprintReader
from lossratio.testbed.repair import RepairingMeasurer
from lossratio.testbed.testbed import Recovery
from lossratio.testbed.watch import Watch
from lossratio.traffic import REPEATS
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import DirectionCounters, Incident, TrialOutput

TRIAL = TrialInput(0.5, 20_000.0)


def output_of(lost, *, drops=0, elapsed=None):
    """10,000 frames each way, of which some are lost eastward, or dropped by the generator."""
    east = DirectionCounters(
        "port0>port1", 10_000, 10_000, 10_000 - lost - drops, generator_drop_frames=drops, elapsed_s=elapsed
    )
    west = DirectionCounters("port1>port0", 10_000, 10_000, 10_000, elapsed_s=elapsed)
    return TrialOutput((lost + drops) / 20_000, sent_frames=20_000, lost_frames=lost + drops, directions=(east, west))


def changes_in(output, waited, runs=0):
    looks = (GOOD, with_node(NOW, "DUT1", threads=waiting(waited, runs)))
    return unanswered(changes_between(*looks, WAY), TRIAL, output)


def test_a_wait_in_which_as_many_frames_came_as_were_lost_is_told_with_its_length():
    # 40,000 frames come in a second.
    (change,) = changes_in(output_of(8000), 0.2)
    assert change.rule.act == "repeat"
    assert str(change) == "the thread vpp_wk_0 of the DUT's program on DUT1 waited for a CPU for 20 % of the time"
    assert change.incident("stands") == Incident("DUT", "DUT1", None, str(change), "stands", 8000)


@pytest.mark.parametrize(
    ("waited", "runs", "output", "found"),
    [
        pytest.param(0.2, 0, output_of(8001), [("note", 8000)], id="more frames were lost than came meanwhile"),
        pytest.param(0.2, 0, output_of(8001, elapsed=0.25), [("repeat", 8001)], id="an early verdict ended the trial"),
        pytest.param(0.2, 0, output_of(0), [], id="no frame was lost"),
        pytest.param(0.2, 0, output_of(0, drops=5), [], id="the generator dropped all that are missing"),
        pytest.param(0.009, 0, output_of(8), [], id="the wait is short"),
        pytest.param(0.2, 2000, output_of(8), [], id="the thread slept often, and waited little each time"),
        pytest.param(0.2, 1800, output_of(8), [("repeat", 8)], id="it slept often, and waited long once"),
    ],
)
def test_a_wait_explains_no_more_frames_than_came_meanwhile(waited, runs, output, found):
    assert [(change.rule.act, change.explained_frames) for change in changes_in(output, waited, runs)] == found


def test_a_wait_for_a_quota_belongs_to_the_device_and_is_not_repeated():
    limited = with_node(SEEN["DUT", "quota"], "DUT1", threads=waiting(0.2))
    changes = unanswered(changes_between(GOOD, limited, WAY), TRIAL, output_of(8))
    assert [change.rule.change for change in changes] == ["quota"]


class Starved:
    """A testbed whose thread waits for 0.3 s between two looks, every time."""

    seen = with_node(GOOD, "DUT1", threads=waiting(0.0))

    def __init__(self):
        self._looks = 0

    def read(self, **_):
        self._looks += 1
        return with_node(later(GOOD, self._looks), "DUT1", threads=waiting(0.3 * self._looks))


class Lossy:
    def measure(self, trial):
        return output_of(2800)


def test_a_program_that_always_waits_is_measured_in_bounded_time_with_the_frames_that_this_may_explain():
    watch = Watch(Starved(), WAY, lambda: None, lambda: 0.0)
    watch.begin()
    one = RepairingMeasurer(
        Lossy(), repair=lambda: None, check=lambda: None, watch=watch, recovery=Recovery((0.0,), most=5)
    )
    outputs = [one.measure(TRIAL) for _ in range(3)]
    assert [output.repeats for output in outputs] == [REPEATS, 2, 0]
    for output in outputs:
        assert [each.done for each in output.incidents] == ["repeated"] * output.repeats + ["stands"]
        assert output.incidents[-1].explained_frames == 2800


def look_at(tmp_path, monkeypatch, name, state, runs):
    """The threads of a program that the script sees; a thread that waits runs after the first sleep."""
    task = tmp_path / "4711/task/12"
    task.mkdir(parents=True)
    files = {
        "stat": f"12 ({name}) {state} 1",
        "comm": name,
        "schedstat": f"10 1000000000 {runs}",
        "status": f"Name:\t{name}\nvoluntary_ctxt_switches:\t2\nnonvoluntary_ctxt_switches:\t3",
        "../../pid": "4711 1",
        "../../../sleep": f"#!/bin/sh\necho 10 1300000000 6 > {task}/schedstat",
    }
    for name, text in files.items():
        (task / name).write_text(f"{text}\n")
    (tmp_path / "sleep").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(fingerprint, "_SCRIPT", fingerprint._SCRIPT.replace('"/proc/$', f'"{tmp_path}/$'))
    with NodeSession.here("node") as session:
        reader = FingerprintReader({"node": session}, {}, lambda: {"node": (str(tmp_path / "4711/pid"),)})
        with closing(reader):
            return list(reader.read().nodes["node"].threads.values())


@pytest.mark.parametrize(
    ("state", "runs", "seen"),
    [
        pytest.param("R", 5, (1.3, 6), id="it waits, and its wait counts when it ends"),
        pytest.param("R", 6, (1.0, 6), id="it runs"),
        pytest.param("S", 5, (1.0, 5), id="it sleeps"),
    ],
)
def test_a_look_at_a_thread_that_waits_lasts_until_it_runs(tmp_path, monkeypatch, state, runs, seen):
    (thread,) = look_at(tmp_path, monkeypatch, "a b", state, runs)
    assert (thread.name, thread.waited, thread.runs) == ("a b", *seen)


@pytest.mark.parametrize("name", ["vpp_main", "revalidator13", "eal-intr-thread", "dpdk-mp-msg"])
def test_nobody_waits_for_a_thread_that_forwards_no_frames(tmp_path, monkeypatch, name):
    assert look_at(tmp_path, monkeypatch, name, "R", 5) == []
