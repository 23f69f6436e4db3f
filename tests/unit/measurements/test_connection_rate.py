"""The search for the connection rate: on simulated devices with a known truth, and with real frames."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from local_testbeds import local_topology, needs_testbed, own_state
from measurement_examples import SIMULATED, place

from lossratio.errors import DutError, SearchError, TrafficError
from lossratio.measurements import measure
from lossratio.measurements.connection_rate import ConnectionRate, ConnectionRateRequest
from lossratio.measurements.connections import OpeningRequest
from lossratio.measurements.throughput import require_throughput
from lossratio.mlrsearch import NDR, PDR, SearchGoal
from lossratio.nodes import NodeSession
from lossratio.results import Outcome, findings_of, message, view_of
from lossratio.results.run_directory import RunDirectory, read_result
from lossratio.simulation import ConnectionTable
from lossratio.testbed.loads import LoadRange
from lossratio.testbed.local import LocalTestbed
from lossratio.testbed.opening import open_testbed
from lossratio.topology import TrexGenerator, load_topology
from lossratio.traffic import load_profile
from lossratio.trials import read_journal

PROFILE = load_profile("ethip4-udp-connections", frame_size=100)
WIDTH = 0.01
QUICK = (SearchGoal(0.0, 0.5, 0.5, 0.5, WIDTH, name="connection rate"),)


def simulated(tmp_path, **model):
    file = tmp_path / "device.yaml"
    sut = ", ".join(f"{name}: {value}" for name, value in {"model": "connection_table", **model}.items())
    file.write_text(SIMULATED.read_text().replace("model: sharp_knee, capacity: 150 kfps", sut))
    return open_testbed(file)


def request_for(**asked):
    return ConnectionRateRequest(**{"profile": PROFILE, "goals": QUICK, "max_load": 100e3, **asked})


def found_by(testbed, tmp_path, **asked):
    result = measure(ConnectionRate(), testbed, request_for(**asked), place(tmp_path / "run"))
    assert read_result(RunDirectory(tmp_path / "run").result_path(result.test.full_name)) == result
    (finding,) = findings_of([result])
    return result, finding


@pytest.mark.parametrize(
    "model", [{"rate": 20_000.0, "burst": 400}, {"rate": 9_000.0, "room": 5000}, {"rate": 20_000.0, "scan": 1e-7}]
)
def test_the_rate_of_a_simulated_device_is_found_to_within_the_goals_width(tmp_path, model):
    result, finding = found_by(simulated(tmp_path, **model), tmp_path)
    truth = ConnectionTable(**model).truth(loss_ratio=0.0, duration=0.5, exceed_ratio=0.5)
    assert finding.lower_bound <= truth <= finding.upper_bound
    assert finding.upper_bound - finding.lower_bound <= WIDTH * finding.upper_bound
    assert result.outcome is Outcome.MEASURED


@pytest.mark.parametrize("kept", [0, 1000])
def test_a_table_that_is_full_is_no_rate_and_a_resumed_search_says_it_again(tmp_path, kept):
    model = {"rate": 80_000.0, "room": 5000, "kept": kept}
    with pytest.raises(DutError, match=rf"because of their number, .* {5000 - kept:,} were established at"):
        found_by(simulated(tmp_path, **model), tmp_path)
    directory = RunDirectory(tmp_path / "run")
    (result,) = directory.results()
    assert result.outcome is Outcome.FAILED
    measured = read_journal(directory.journal_path(result.test.full_name)).results
    again = replace(place(tmp_path / "run"), resume=directory)
    with pytest.raises(DutError, match="because of their number"):
        measure(ConnectionRate(), simulated(tmp_path, **model), request_for(), again)
    assert read_journal(directory.journal_path(result.test.full_name)).results == measured


def test_a_device_that_forgets_before_it_is_answered_has_no_rate(tmp_path):
    result, finding = found_by(simulated(tmp_path, rate=20_000.0, timeout=0.5), tmp_path)
    assert (result.outcome, finding.value) == (Outcome.IRREGULAR, None)
    with pytest.raises(AssertionError, match="it should be at least 5000 connections/s"):
        require_throughput(result, 5000.0)


SESSIONS = load_profile("ethip4-udp-h16384-p63", frame_size=100)
LONG = SearchGoal(0.0, 0.5, 30.0, 30.0, WIDTH, name="connection rate")


def checked_before_traffic(tables, **asked):
    """Checks a request for a testbed with TRex and devices that keep connections, at up to 50,000 frames/s."""
    generator = TrexGenerator(kind="trex", directory="/opt/trex", **asked)
    duts = [SimpleNamespace(hop=SimpleNamespace(node_name="DUT1"), connections=table) for table in tables]
    request = request_for(profile=SESSIONS, established=bool(tables), goals=(LONG,))
    OpeningRequest.check_loads(request, SimpleNamespace(generator=generator, duts=duts), LoadRange(9e3, 34e3, None))


def test_more_connections_than_trex_has_room_for_are_refused_before_anything_is_started():
    """Otherwise, a suite of a million sessions would be set up, and its first trial would fail."""
    assert SESSIONS.flows == 1_032_192
    said = r"room for 996,147 connections, but the measurement needs {} at once. .* 'most_connections' .* to {} or more"
    with pytest.raises(TrafficError, match=said.format("1,032,192", "1086518")):
        checked_before_traffic([object()])
    checked_before_traffic([object()], most_connections=1_086_518)
    with pytest.raises(TrafficError, match=said.format("1,020,000", "1073685")):
        checked_before_traffic([])
    checked_before_traffic([], most_connections=1_073_685)


@pytest.mark.parametrize(("established", "state"), [(False, "established"), (True, "time_wait")])
def test_only_connections_that_are_used_again_are_kept_after_their_end(established, state):
    asked = []
    dut = SimpleNamespace(hop=SimpleNamespace(node_name="DUT1"), connections=SimpleNamespace(check=asked.append))
    profile = load_profile("ethip4-tcp-h64-p63", frame_size=100)
    request = request_for(profile=profile, established=established, closing="fin")
    request.check_tables(SimpleNamespace(duts=[dut]), 1000, 1000.0)
    assert [(wanted.tcp_state, wanted.idle_s) for wanted in asked] == [(state, 7.0)]


def test_the_unit_is_in_journal_report_and_demands(tmp_path):
    result, finding = found_by(simulated(tmp_path, rate=20_000.0), tmp_path)
    assert finding.unit.name == "connections/s"
    assert "connections/s" in finding.in_short
    first = message(result).splitlines()[0]
    assert ": establishes " in first
    assert " connections/s without loss" in first
    assert "frames" not in first
    assert "fps" not in "".join(line for line in message(result).splitlines() if "bound  " in line)
    journal = read_journal(RunDirectory(tmp_path / "run").journal_path(result.test.full_name))
    assert journal.search["load_unit"] == "connections/s"
    require_throughput(result, 19_000.0)
    with pytest.raises(AssertionError, match=r"is 19,\d\d\d connections/s .*at least 30,000 connections/s"):
        require_throughput(result, 30_000.0)


def test_a_result_that_was_lost_is_made_again_from_its_journal(tmp_path):
    result, _ = found_by(simulated(tmp_path, rate=20_000.0), tmp_path)
    directory = RunDirectory(tmp_path / "run")
    directory.result_path(result.test.full_name).unlink()
    again = replace(place(tmp_path / "run"), resume=directory)
    made = measure(ConnectionRate(), simulated(tmp_path, rate=20_000.0), request_for(), again)
    assert (made.goals, made.trials) == (result.goals, result.trials)


def test_more_connections_than_addresses_and_ports_make_are_refused(tmp_path):
    profile = load_profile("ethip4-udp-10kflows", frame_size=100, bidirectional=False)
    with pytest.raises(
        SearchError, match=r"allow 10,000 connections, but one trial would open 50,000\. Give max_load=20000 cps"
    ):
        found_by(simulated(tmp_path, rate=20_000.0), tmp_path, profile=profile)


def test_traffic_both_ways_is_refused(tmp_path):
    with pytest.raises(SearchError, match="profile=ethip4-udp-connections or bidirectional=False"):
        found_by(simulated(tmp_path, rate=1e4), tmp_path, profile=load_profile("ethip4-udp", frame_size=100))


@pytest.mark.whole
@pytest.mark.parametrize(
    ("asked", "unit", "factor"),
    [
        ({}, "cps", 1),
        # Five frames each way; and five with a handshake of three and an end of three.
        ({"established": True, "data_frames": 4}, "pps", 10),
        ({"established": True, "data_frames": 5, "closing": "fin"}, "pps", 16),
    ],
)
def test_the_rate_is_exported_as_connections_or_as_the_packets_of_established_ones(tmp_path, asked, unit, factor):
    profile = load_profile("ethip4-tcp-connections" if "closing" in asked else PROFILE.name, frame_size=100)
    request = ConnectionRateRequest(profile=profile, goals=(NDR, PDR), max_load=50e3, **asked)
    result = measure(ConnectionRate(), simulated(tmp_path, rate=20_000.0), request, place(tmp_path / "run"))
    exported = view_of(result).csit(result)["ndr"]["lower"]
    rate = result.goals[0].result.conditional_throughput.per_interface_fps
    assert exported["rate"] == {"value": pytest.approx(factor * rate), "unit": unit}
    assert ("bandwidth" in exported) is (unit == "pps")
    assert ("frames, both ways" in message(result)) is (unit == "pps")


def test_connections_of_tcp_that_stay_open_cannot_be_opened_again(tmp_path):
    profile = load_profile("ethip4-tcp-connections", frame_size=100)
    with pytest.raises(SearchError, match="set closing=fin or closing=rst"):
        found_by(simulated(tmp_path, rate=1e4), tmp_path, profile=profile, established=True)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    with own_state():
        yield local_topology(tmp_path_factory.mktemp("topology"), "connection-rate")


@pytest.mark.netns
@needs_testbed
def test_a_device_without_state_is_refused_unless_it_is_the_testers_twin(file, tmp_path):
    with open_testbed(file, dut="linux_router") as testbed, pytest.raises(SearchError, match=r"DUT1 \(linux_router\)"):
        found_by(testbed, tmp_path)


@pytest.mark.netns
@needs_testbed
def test_more_connections_than_a_device_has_room_for_are_refused_before_any_trial(file, tmp_path):
    options = {"firewall": "conntrack", "most_connections": 4000}
    with open_testbed(file, dut="linux_router", options=options) as testbed:
        with pytest.raises(DutError, match=r"10,000 connections cannot be established beforehand: .* 4,000 at once"):
            found_by(testbed, tmp_path, max_load=20e3)
        assert not RunDirectory(tmp_path / "run").journal_path("a suite.a test").exists()


@pytest.mark.netns
@needs_testbed
def test_the_rate_of_a_real_firewall_is_that_of_its_bucket(file, tmp_path):
    rate, burst = 500, 50
    options = {"firewall": "conntrack", "new_connections": rate, "new_burst": burst}
    with open_testbed(file, dut="linux_router", options=options) as testbed:
        result, finding = found_by(testbed, tmp_path, max_load=4.0 * rate, min_load=rate / 4.0)
    # A bucket that is full at the start passes what comes before the last connection leaves.
    truth = rate + (burst - 1) / 0.5
    assert finding.lower_bound <= truth * (1.0 + WIDTH)
    assert finding.upper_bound >= truth * (1.0 - WIDTH)
    lost = [trial for trial in result.trials if trial.lost_frames]
    assert lost
    assert all(trial.directions[0].unanswered_frames == 0 for trial in lost)


HIDDEN = {
    "table": "type filter hook forward priority -10; policy accept;\nct state new ct count over 300 drop",
    "NAT pool": "type nat hook postrouting priority srcnat;\nip protocol udp masquerade to :2000-2299",
}
KNOWN_BY = {
    "table": "of 450 connections, 300 were established at",
    # The kernel tries some of the ports only, so that it may find none where a few of the 300 are left.
    "NAT pool": "of 4.. connections, (300|29[0-9]) were established",
}


@pytest.mark.netns
@needs_testbed
@pytest.mark.parametrize("what", sorted(HIDDEN))
def test_a_real_table_or_pool_with_a_limit_that_nobody_stated_is_no_rate(file, tmp_path, what):
    lab = LocalTestbed.up(load_topology(file), keep=True)
    try:
        with NodeSession.connect("DUT1", lab.topology.nodes["DUT1"]) as session:
            session.run("nft", "-f", "-", stdin=f"table ip hidden {{\nchain one {{\n{HIDDEN[what]}\n}}\n}}\n")
        # All connections lead to one address and port, so that each needs a port of its own.
        profile = load_profile("ethip4-udp-h1024-p63-det44", frame_size=100, bidirectional=False)
        with (
            open_testbed(file, dut="linux_router", options={"firewall": "conntrack"}) as testbed,
            pytest.raises(DutError, match=KNOWN_BY[what]),
        ):
            found_by(testbed, tmp_path, max_load=5e3, profile=profile)
    finally:
        lab.down()
