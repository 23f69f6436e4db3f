"""The tear-down rate of connections: a device that is known, and the kernel's table with real connections."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
from local_testbeds import local_topology, needs_testbed, own_state
from measurement_examples import SIMULATED, place

from lossratio.errors import DutError, SearchError, TesterError
from lossratio.measurements import measure
from lossratio.measurements.connection_teardown import (
    ConnectionTeardown,
    ConnectionTeardownView,
    TeardownMeasurer,
    TeardownRequest,
)
from lossratio.results import NoteKind, findings_of, message
from lossratio.testbed.opening import open_testbed
from lossratio.traffic import load_profile
from lossratio.trials import TrialInput, TrialOutput, TrialResult

PROFILE = load_profile("ethip4-udp-connections", frame_size=100)
TRIAL = TrialInput(0.1, 10_000.0)


class Table:
    """Takes a millisecond to forget its connections, of which it may keep some."""

    def __init__(self, opened=1000, kept=0):
        self.entries, self.kept = opened, kept

    def measure(self, trial):
        return TrialOutput(0.0, sent_frames=1000, lost_frames=0)

    def count(self):
        return self.entries

    def forget(self):
        self.entries = self.kept
        return 0.001


def test_the_rate_is_connections_over_the_devices_own_time():
    output = TeardownMeasurer(Table(), "DUT1", Table()).measure(TRIAL)
    result = SimpleNamespace(settings=SimpleNamespace(connections=1000))
    values = ConnectionTeardown().found_in(result, [TrialResult(TRIAL, output)] * 2)
    assert values.median_per_second == pytest.approx(1e6)
    assert values.times == (0.001, 0.001)


@pytest.mark.parametrize(
    ("table", "error"),
    [
        (Table(opened=999), r"DUT1 has only 999 of 1,000 connections"),
        (Table(kept=1), "DUT1 does not forget connections: 1 of 1,000"),
    ],
)
def test_connections_that_are_missing_or_left_are_errors(table, error):
    with pytest.raises(DutError, match=error):
        TeardownMeasurer(table, "DUT1", table).measure(TRIAL)


class Unsent:
    """A generator that leaves some frames unsent, and whose other connections are all established."""

    def measure(self, trial):
        return TrialOutput(0.002, sent_frames=998, lost_frames=0, unsent_frames=2)


class Late:
    """A generator whose answers come back too late."""

    def measure(self, trial):
        return TrialOutput(0.1, sent_frames=1000, lost_frames=100)


def test_connections_that_the_tester_did_not_open_are_the_testers():
    with pytest.raises(TesterError, match="The generator did not open or did not count 2 of 1,000 connections"):
        TeardownMeasurer(Unsent(), "DUT1", Table(opened=998)).measure(TRIAL)


def test_a_device_that_has_all_connections_is_measured_though_answers_are_missing():
    assert TeardownMeasurer(Late(), "DUT1", Table()).measure(TRIAL).forgotten == 0.001


def test_a_simulated_device_has_no_table_that_could_be_emptied(tmp_path):
    with pytest.raises(SearchError, match="a single device whose table lossratio can empty"):
        measure(
            ConnectionTeardown(),
            open_testbed(SIMULATED),
            TeardownRequest(profile=PROFILE, max_load=1e4),
            place(tmp_path),
        )


@pytest.mark.netns
@needs_testbed
def test_the_kernel_forgets_all_connections_of_a_nat(tmp_path):
    with own_state():
        file = local_topology(tmp_path, "teardown")
        with open_testbed(file, dut="linux_router", options={"nat": "masquerade"}) as testbed:
            request = TeardownRequest(profile=PROFILE, max_load=20e3, connections=5000, repeats=3)
            result = measure(ConnectionTeardown(), testbed, request, place(tmp_path))
            assert testbed.duts[0].connections.count() == 0
    (finding,) = findings_of([result])
    assert finding.value == result.teardown.median_per_second > 5000
    assert "tear-down of 5,000 connections" in message(result)
    assert re.search(r"1st, 99th percentile +[\d,.]+ connections/s, [\d,.]+ connections/s\n", message(result))
    assert [trial.forgotten_s for trial in result.trials] == list(result.teardown.times)


@pytest.mark.parametrize(("forgotten", "words"), [((None, 0.1), "2 trials, but"), ((), "0 trials, but")])
def test_a_result_without_a_time_is_one_sentence_that_names_the_test(forgotten, words):
    result = SimpleNamespace(
        test=SimpleNamespace(full_name="Suite.Tear down"), settings=SimpleNamespace(connections=10)
    )
    trials = [SimpleNamespace(output=SimpleNamespace(forgotten=seconds)) for seconds in forgotten]
    with pytest.raises(SearchError) as raised:
        ConnectionTeardown().found_in(result, trials)
    assert str(raised.value).startswith(f"The tear-down rate of Suite.Tear down is not known: its result has {words}")
    assert str(raised.value).endswith("Measure it again.")


@pytest.mark.parametrize(("times", "is_doubted"), [((0.034, 0.1, 0.212), True), ((0.1, 0.11, 0.13), False)])
def test_repetitions_that_took_very_different_times_are_a_doubt(times, is_doubted):
    result = SimpleNamespace(
        teardown=SimpleNamespace(times=times), settings=SimpleNamespace(connections=10_000, repeats=3)
    )
    (unsteady,) = (rule for rule in ConnectionTeardownView.rules if rule.kind is NoteKind.UNSTEADY)
    doubts = [*unsteady(result)]
    assert ["took 34 ms to 212 ms for the same 10,000 connections" in doubt for doubt in doubts] == [True] * is_doubted
