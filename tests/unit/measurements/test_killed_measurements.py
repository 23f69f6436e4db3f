"""Searches with telemetry and latency that are killed at each write: nothing that was measured is lost."""

from __future__ import annotations

import json
import math
import os
import signal
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import count

import pytest
from measurement_examples import PROFILE, InFrontOfTestbed, place, policed

from lossratio.dut import DutCounters, DutOptions
from lossratio.errors import DutError
from lossratio.measurements.latency.measure import LatencyRequest, add_latency, points_of
from lossratio.measurements.telemetry import TelemetryRequest
from lossratio.measurements.throughput import add_telemetry
from lossratio.measurements.throughput.measure import find_conditional_throughput
from lossratio.measurements.throughput.request import SearchRequest
from lossratio.mlrsearch import SearchGoal
from lossratio.results.repair import repair
from lossratio.results.run_directory import RunDirectory, read_result
from lossratio.topology import Hop, Interface, Port
from lossratio.trials import TrialOutput, read_journal

pytestmark = pytest.mark.whole

SEARCH = SearchRequest(goals=(SearchGoal(0.0, 0.5, 1.0, 2.0, 0.1, name="NDR"),), profile=PROFILE)


class AskedDut:
    """A DUT that counts two frames, and reports one statistic, of which one value is not a number."""

    kind = "asked"
    options = DutOptions()
    resets = False
    hop = Hop("DUT1", Port("DUT1", "port0", Interface(link="a-link")), Port("DUT1", "port0", Interface(link="a-link")))

    def probes(self):
        return ()

    @contextmanager
    def telemetry(self):
        values = (4.5, math.nan)
        statistics = [{"place": "node", "name": "clocks_per_packet", "value": value, "unit": ""} for value in values]
        yield {"statistics": statistics}

    def read_counters(self):
        return DutCounters({"west": 2}, {"east": 2}, {})


def measure_all(directory, resume=None):
    """A search, telemetry and latency on the simulated testbed; returns the result and the trials after the search."""
    trials = []
    with closing(policed(police="50 kfps")) as testbed:
        there = place(directory, resume=resume)
        result = find_conditional_throughput(testbed, SEARCH, there)
        name, load = result.relevant_load(None)
        with_dut = _WithDut(testbed, trials)
        result = add_telemetry(with_dut, TelemetryRequest(profile=PROFILE, load=load, goal=name), there, result)
        points = points_of(result, shares=[1.0, 0.5])
        return add_latency(
            with_dut, LatencyRequest(profile=PROFILE, points=points, duration=1.0), there, result
        ), trials


@dataclass
class _WithDut:
    """A testbed with a DUT that can be asked, whose uses are recorded."""

    testbed: object
    uses: list
    duts = (AskedDut(),)

    def load_step(self, profile):
        return self.testbed.load_step(profile)

    def ready_for(self, *args):
        self.uses.append(args)
        return self.testbed.ready_for(*args)


def killed_at(write, measure, directory):
    """Measures in a process of its own, which is killed while its nth write goes to the disk; else it ends."""
    process = os.fork()
    if process:
        _, status = os.waitpid(process, 0)
        return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
    writes = count(1)
    fsync = os.fsync
    os.fsync = lambda file: os.kill(os.getpid(), signal.SIGKILL) if next(writes) == write else fsync(file)
    try:
        measure(directory)
        os._exit(0)
    finally:
        os._exit(1)


def test_wherever_a_run_is_killed_nothing_that_was_measured_is_lost(tmp_path):
    whole, uses = measure_all(tmp_path / "whole")
    assert (len(whole.telemetry), len(whole.latency), len(uses)) == (1, 3, 4)
    assert [statistic.value for statistic in whole.telemetry[0].duts[0].statistics] == [4.5]
    ends = set()
    for write in count(1):
        directory = tmp_path / str(write)
        if not killed_at(write, measure_all, directory):
            break
        journal = read_journal(RunDirectory(directory).journal_path("a suite.a test"))
        telemetry, latency = ([a for a in journal.additions if a.part == part] for part in ("telemetry", "latency"))
        ends.add((len(journal.entries), len(telemetry), len(latency)))
        assert [one.damage for one in repair(directory)] in ([None], [None, None])
        result = RunDirectory(directory).result_path("a suite.a test")
        if result.exists():
            saved = read_result(result)
            assert (saved.goals, saved.trials) == (whole.goals, whole.trials)
            assert saved.telemetry == whole.telemetry[: len(saved.telemetry)]
            assert saved.latency == whole.latency[: len(saved.latency)]
        if len(latency) != 2:
            continue
        resumed, uses = measure_all(tmp_path / f"{write}-resumed", directory)
        assert (resumed.goals, resumed.trials, resumed.telemetry) == (whole.goals, whole.trials, whole.telemetry)
        assert (resumed.latency[:2], len(resumed.latency), len(uses)) == (whole.latency[:2], 3, 1)
    assert {end[1:] for end in ends} == {(0, 0), *((1, loads) for loads in range(4))}
    assert {end[0] for end in ends} == set(range(len(whole.trials) + 1))


class ChangingTestbed(InFrontOfTestbed):
    """A testbed whose DUT stops policing after some trials, which is seen at every third trial."""

    def __init__(self, testbed, good):
        super().__init__(testbed)
        self.good = good
        self.trials = 0

    def in_front_of(self, ready):
        return replace(ready, measurer=self, is_verified=lambda: self.trials % 3 == 0 and self.trials <= self.good)

    def measure(self, trial):
        self.trials += 1
        if self.trials <= self.good:
            return super().measure(trial)
        if self.trials % 3 == 0:
            raise DutError("DUT1 is not as it was set up.")
        return TrialOutput(0.0)


@pytest.mark.parametrize("good", [1, 2, 4])
def test_wherever_a_run_is_killed_after_its_dut_has_changed_no_trial_of_the_changed_dut_counts(tmp_path, good):
    """The second reader is this test's own: it knows the journal's lines as JSON, and when the DUT changed."""
    with closing(policed(police="50 kfps")) as testbed:

        def measure(directory, resume=None, *, testbed=testbed):
            return find_conditional_throughput(testbed, SEARCH, place(directory, resume=resume))

        whole = measure(tmp_path / "whole")
        for write in count(1):
            directory = tmp_path / str(write)
            was_killed = killed_at(write, partial(measure, testbed=ChangingTestbed(testbed, good)), directory)
            path = RunDirectory(directory).journal_path("a suite.a test")
            lines = [json.loads(line) for line in path.read_bytes().split(b"\n")[1:] if line.endswith(b"}")]
            assert len([line for line in lines if "input" in line]) <= good + 2
            assert [one.damage for one in repair(directory)] in ([None], [None, None])
            kept = len(read_journal(path).entries) if path.stat().st_size else 0
            assert kept <= good
            resumed = measure(tmp_path / f"{write}-resumed", directory)
            assert all(trial.lost_frames for trial in resumed.trials if trial.load_per_interface_fps > 51e3)
            assert (resumed.goals[0].result.regular, len(resumed.remarks)) == (True, len(whole.remarks))
            if not was_killed:
                break
    assert kept == 3 * (good // 3)


def test_another_measurement_of_latency_and_one_that_asks_for_other_loads_take_nothing_from_the_journal(tmp_path):
    measured, _ = measure_all(tmp_path)
    with closing(policed(police="50 kfps")) as testbed:
        uses = []
        there = place(tmp_path, resume=tmp_path)
        again = add_latency(
            _WithDut(testbed, uses),
            LatencyRequest(profile=PROFILE, points=points_of(measured, shares=[1.0, 0.5]), duration=1.0),
            there,
            measured,
        )
        assert (len(uses), len(again.latency)) == (3, 3)
        two = points_of(measured, shares=[0.3])
        other = measured.model_copy(update={"latency": ()})
        latency = add_latency(
            _WithDut(testbed, uses), LatencyRequest(profile=PROFILE, points=two, duration=1.0), there, other
        ).latency
        assert (len(uses), [at_load.share_ratio for at_load in latency]) == (5, [0.3, 0.0])
    journal = read_journal(there.directory.journal_path("a suite.a test"))
    assert [a.measurement for a in journal.additions if a.part == "latency"] == [1] * 3 + [2] * 3 + [3] * 2
    assert read_result(there.directory.result_path("a suite.a test")).latency == latency
