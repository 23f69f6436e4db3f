"""The search for the capacity of a table of connections: its controller, simulated devices, and real frames."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st
from local_testbeds import local_topology, needs_testbed, own_state
from measurement_examples import SIMULATED, place

from lossratio.bpf import why_impossible
from lossratio.dut.linux.conntrack import Conntrack, ConntrackOptions
from lossratio.errors import DutError, SearchError, TesterError
from lossratio.measurements import measure
from lossratio.measurements.connection_capacity import (
    CapacityRequest,
    ConnectionCapacity,
    capacity_search,
    capacity_values,
)
from lossratio.nodes import CommandResult
from lossratio.results import Outcome, findings_of, message
from lossratio.results.findings import notes_of
from lossratio.results.note import Weight
from lossratio.testbed.opening import open_testbed
from lossratio.traffic import load_profile
from lossratio.trials import TrialInput, TrialOutput, TrialResult, run_search

NO_BPF = why_impossible()
PROFILE = load_profile("ethip4-udp-connections", frame_size=100)


class Table:
    """Has so many entries."""

    def __init__(self, entries):
        self.entries = entries

    def measure(self, trial):
        opened = round(trial.load * trial.duration)
        lost = max(0, opened - self.entries)
        return TrialOutput(lost / opened, sent_frames=opened, lost_frames=lost)


@pytest.mark.whole
@given(entries=st.integers(0, 10**6), first=st.integers(1, 10**6), step=st.integers(1, 1000))
def test_any_capacity_is_found_to_within_the_step(entries, first, step):
    search = capacity_search(1e4, first, 10**6, step=step, repeats=2)
    for found in run_search(search, Table(entries)):
        assert found.lossless <= entries
        assert found.lossy is None or entries < found.lossy <= found.lossless + step
    assert search.next_trial() is None


def test_a_trial_that_the_generator_did_not_send_in_full_shows_no_capacity():
    search = capacity_search(1e4, 1000, 1000)
    search.record(TrialResult(search.next_trial(), TrialOutput(0.1, sent_frames=900, lost_frames=0, unsent_frames=100)))
    assert search.next_trial() == TrialInput(0.1, 1e4)
    assert search.result() == ()


def test_the_percentiles_are_interpolated():
    found = [run_search(capacity_search(1e4, 100, 10_000), Table(entries))[0] for entries in (900, 1000, 1100)]
    values = capacity_values(found)
    assert values.median_connections == 1000
    assert values.percentile_1_connections == pytest.approx(902.0)
    assert values.percentile_99_connections == pytest.approx(1098.0)


def found_by(testbed, tmp_path, **asked):
    request = CapacityRequest(**{"profile": PROFILE, "max_load": 20e3, "repeats": 2, **asked})
    result = measure(ConnectionCapacity(), testbed, request, place(tmp_path / "run"))
    (finding,) = findings_of([result])
    return result, finding


@pytest.mark.parametrize(("model", "truth"), [("room: 7777", 7777), ("room: 7777, kept: 777", 7000)])
def test_the_table_of_a_simulated_device_is_found_exactly(tmp_path, model, truth):
    file = tmp_path / "device.yaml"
    sut = f"model: connection_table, rate: 50 kcps, {model}"
    file.write_text(SIMULATED.read_text().replace("model: sharp_knee, capacity: 150 kfps", sut))
    result, finding = found_by(open_testbed(file), tmp_path)
    assert (finding.value, finding.unit.name) == (truth, "connections")
    assert message(result).startswith(f"Connection table: holds {truth:,} connections.\n")
    assert f"{truth} connections" in message(result)


def stalled(trial, more_lost):
    """A trial with a stall of the generator of 20 ms, in whose burst further connections were lost."""
    (way,) = trial.directions
    way = replace(way, lateness_s=0.02, received_frames=way.received_frames - more_lost)
    return trial.model_copy(update={"directions": (way,), "lost_frames": trial.lost_frames + more_lost})


@pytest.mark.parametrize(("more_lost", "is_doubtful"), [(0, False), (5, True)])
def test_a_stall_does_not_explain_the_losses_of_a_full_table(tmp_path, more_lost, is_doubtful):
    file = tmp_path / "device.yaml"
    sut = "model: connection_table, rate: 50 kcps, room: 7777"
    file.write_text(SIMULATED.read_text().replace("model: sharp_knee, capacity: 150 kfps", sut))
    result, _ = found_by(open_testbed(file), tmp_path)
    # The trials that barely fill the table: so few lost connections could be those of a burst.
    trials = tuple(stalled(trial, more_lost) if 0 < trial.lost_frames < 50 else trial for trial in result.trials)
    doubts = notes_of(result.model_copy(update={"trials": trials}), (), Weight.DOUBT)
    assert ["generator was stalled" in str(doubt) for doubt in doubts] == [True] * is_doubtful


def test_a_table_that_nothing_fills_is_a_lower_bound(tmp_path):
    file = tmp_path / "device.yaml"
    sut = "model: connection_table, rate: 50 kcps"
    file.write_text(SIMULATED.read_text().replace("model: sharp_knee, capacity: 150 kfps", sut))
    result, finding = found_by(open_testbed(file), tmp_path, most=4000)
    assert (result.outcome, finding.value, finding.lower_bound) == (Outcome.IRREGULAR, None, 4000)


def test_a_generator_that_cannot_open_so_many_is_an_error(tmp_path):
    file = tmp_path / "device.yaml"
    sut = "model: connection_table, rate: 50 kcps"
    text = SIMULATED.read_text().replace("model: sharp_knee, capacity: 150 kfps", sut)
    file.write_text(text.replace("max_rate: 400 kfps", "max_rate: 10 kfps"))
    with pytest.raises(TesterError, match=r"could not open 500 of 1,000 connections"):
        found_by(open_testbed(file), tmp_path)


class FullNode:
    """A node whose kernel keeps as many connections as it may, none of which are of test traffic."""

    name = "DUT1"

    def read_files(self, path):
        return {path: "262144" if path.endswith(("_max", "_count")) else "30"}

    def attempt(self, *command):
        return CommandResult(command, 0, "0\n", "")


def test_a_table_that_others_have_filled_is_an_error_and_no_capacity(tmp_path):
    class FullTestbed:
        def __init__(self, testbed):
            self.testbed = testbed
            self.duts = (SimpleNamespace(connections=Conntrack(FullNode(), ConntrackOptions(), None), hop=None),)

        def __getattr__(self, name):
            return getattr(self.testbed, name)

    with pytest.raises(DutError, match=r"room for 0: nf_conntrack_max is 262144, and 262144 entries are in use"):
        found_by(FullTestbed(open_testbed(SIMULATED)), tmp_path)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    with own_state():
        yield local_topology(tmp_path_factory.mktemp("topology"), "capacity")


@pytest.mark.smoke
@pytest.mark.netns
@needs_testbed
def test_the_limit_of_a_real_firewall_is_found_exactly(file, tmp_path):
    options = {"firewall": "conntrack", "most_connections": 1234}
    with open_testbed(file, dut="linux_router", options=options) as testbed:
        _, finding = found_by(testbed, tmp_path, repeats=1)
    assert finding.value == 1234


@pytest.mark.netns
@needs_testbed
@pytest.mark.skipif(NO_BPF is not None, reason=f"no BPF here: {NO_BPF}")
@pytest.mark.parametrize(("firewall", "entries", "least"), [("hash", 1234, 1234), ("lru_hash", 5000, 500)])
def test_the_sessions_of_an_xdp_program_are_as_many_as_its_table_holds(file, tmp_path, firewall, entries, least):
    options = {"firewall": firewall, "most_connections": entries}
    with open_testbed(file, dut="xdp", options=options) as testbed:
        _, finding = found_by(testbed, tmp_path, repeats=1, first=100)
        table = testbed.duts[0].connections
        assert table.counters()["filtered west>east" if firewall == "hash" else "filtered east>west"] > 0
    # A table that forgets what was used least recently does so early, as each CPU has free places of its own.
    assert least <= finding.value <= entries


@pytest.mark.netns
@needs_testbed
def test_a_timeout_that_is_shorter_than_a_trial_is_an_error_and_no_capacity(file, tmp_path):
    options = {"firewall": "conntrack", "udp_timeout": "1 s"}
    with (
        open_testbed(file, dut="linux_router", options=options) as testbed,
        pytest.raises(SearchError, match="DUT1 forgets a connection after 1 s"),
    ):
        found_by(testbed, tmp_path, max_load=1e3)
