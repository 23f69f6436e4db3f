"""Trials through devices with a table of connections: emptied, filled and counted before each."""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from shutil import which
from types import SimpleNamespace

import pytest
from connection_examples import FLOWS, Table, establishing, profile_of, traffic
from local_testbeds import local_topology, needs_testbed, own_state
from measurement_examples import SIMULATED, InFrontOfTestbed, place
from whole_trials import whole

from lossratio.bpf import why_impossible
from lossratio.errors import DutError, SearchError, TrafficError
from lossratio.measurements.connections import OpeningMeasurer, OpeningRequest
from lossratio.measurements.latency.measure import LatencyPoint, LatencyRequest, measure_latency
from lossratio.measurements.mrr import MrrRequest, measure_mrr
from lossratio.testbed import TrialSettings, connections
from lossratio.testbed.connections import Connections, EstablishingMeasurer
from lossratio.testbed.opening import open_testbed
from lossratio.traffic import connections_of, load_profile
from lossratio.trials import DirectionCounters, Exchange, Integrity, TrialInput, TrialOutput


def test_each_flow_one_way_is_a_connection_and_answers_to_it_are_of_the_same_one():
    assert connections_of(traffic()) == (FLOWS, FLOWS)
    # Ports differ in all flows but one: that one's answer has the same ports.
    assert connections_of(traffic(bidirectional=True)) == (2 * FLOWS - 1, FLOWS)
    assert connections_of(traffic(bidirectional=True, name="ethip4-udp-hosts"))[0] == 2 * 254 - 1
    # Protocol 61 has no ports: frames from each of 254 addresses to one, and back to these from one.
    assert connections_of(traffic(name="ethip4-ip4base"))[0] == 254
    assert connections_of(traffic(bidirectional=True, name="ethip4-ip4base"))[0] == 2 * 254 - 1


def test_every_trial_begins_with_a_table_that_was_emptied_and_filled_and_this_is_part_of_its_time():
    table = Table()
    output = establishing(table).measure(TrialInput(3.0, FLOWS / 3))
    assert output.elapsed == 2.0 + 2.0
    wanted, fill, trial = table.log
    assert (wanted.connections, fill.load * fill.duration, trial.duration) == (FLOWS, FLOWS, 3.0)
    # A connection may be idle from its fill until its frame in the next round of the trial.
    assert wanted.idle_s == pytest.approx(3.0 + FLOWS / fill.load)
    # Slow frames do not reach it: the trial ends before.
    establishing(table).measure(TrialInput(3.0, FLOWS / 3000))
    assert table.log[-3].idle_s == wanted.idle_s


@pytest.mark.whole
def test_many_connections_are_opened_fast_until_that_has_failed_twice():
    table = Table(room=1_032_192)
    measurer = establishing(table, name="ethip4-udp-h16384-p63")
    measurer.measure(TrialInput(1.0, 1e5))

    def lacks_one(trial):
        output = Table.measure(table, trial)
        table.entries -= trial.load == 6e4
        return output

    table.measure = lacks_one
    measurer.measure(TrialInput(1.0, 2e4))
    measurer.measure(TrialInput(1.0, 2e4))
    fast, slow = [6e4], [2e4]
    loads = [entry.load for entry in table.log if isinstance(entry, TrialInput)]
    assert loads == [*fast, 1e5, *fast, *fast, *slow, 2e4, *slow, 2e4]


@pytest.mark.parametrize(("name", "rate"), [("ethip4-udp-h16-p63", 60_000), ("ethip4-tcp-h16-p63", 20_000)])
def test_many_connections_are_kept_and_opened_fast_unless_they_are_tcp_which_takes_more_frames(monkeypatch, name, rate):
    monkeypatch.setattr(connections, "_MANY", 1008)
    facts = Connections({"DUT1": Table()}, traffic(name=name)).facts
    assert (facts["fill_rate_per_second"], facts["kept_for_the_next_trial_while_complete"]) == (rate, True)
    monkeypatch.undo()
    facts = Connections({"DUT1": Table()}, traffic(name=name)).facts
    assert facts["kept_for_the_next_trial_while_complete"] is False


@pytest.mark.parametrize(
    ("many", "seconds", "after_each", "fills"),
    [
        # A UDP connection lives 30 s here: the third trial would use one that was idle for longer.
        (FLOWS, 10.0, FLOWS, 2),
        (FLOWS, 1.0, FLOWS, 1),
        (FLOWS, 1.0, FLOWS - 1, 3),
        (FLOWS + 1, 1.0, FLOWS, 3),
    ],
    ids=["until one may time out", "while all are there", "not if one is gone", "not if they are few"],
)
def test_a_table_with_very_many_connections_is_kept(monkeypatch, many, seconds, after_each, fills):
    monkeypatch.setattr(connections, "_MANY", many)
    table = Table()
    now = [0.0]
    filled = []

    def measure(trial):
        now[0] += trial.duration
        if trial.duration != seconds:
            filled.append(trial)
        table.entries = FLOWS if trial.duration != seconds else after_each
        return TrialOutput(0.0, sent_frames=1)

    table.measure = measure
    keeping = Connections({"DUT1": table}, traffic(), clock=lambda: now[0])
    measurer = EstablishingMeasurer(table, keeping)
    for _ in range(3):
        assert measurer.measure(TrialInput(seconds, 1000.0)).elapsed >= seconds
    assert len(filled) == fills


@pytest.mark.parametrize(
    ("ended", "fills"), [(60.0, 1), (2.0, 3)], ids=["while none can time out", "not if one that has ended may time out"]
)
def test_a_table_with_very_many_tcp_connections_is_kept_while_none_in_any_state_can_time_out(monkeypatch, ended, fills):
    table = Table()
    monkeypatch.setattr(connections, "_MANY", 1008)
    monkeypatch.setattr(table, "timeout_of", lambda state: ended if state == "close" else 60.0)
    times = itertools.count(0.0, 2.0)
    keeping = Connections({"DUT1": table}, traffic(name="ethip4-tcp-h16-p63"), clock=lambda: next(times))
    for _ in range(3):
        keeping.establish(1e5, table.measure, duration=1.0)
    assert sum(isinstance(entry, TrialInput) for entry in table.log) == fills


def test_a_table_that_is_too_small_is_an_error_with_the_number_missing_and_no_trial_follows():
    table = Table(room=9_000)
    with pytest.raises(DutError, match=r"has 9,000 of 10,000 connections .* 1,000 are missing \(insert_failed 7\)"):
        establishing(table).measure(TrialInput(1.0, 1e4))
    rates = [entry.load for entry in table.log if isinstance(entry, TrialInput)]
    assert rates == pytest.approx([2e4, 2e4 * 0.9 * 0.8, 2e4 * (0.9 * 0.8) ** 2])


def test_a_device_that_takes_fewer_connections_per_second_is_filled_more_slowly_from_then_on():
    table = Table()

    def measure(trial):
        table.log.append(trial)
        if trial.keeps_unsent:
            table.entries = round(trial.duration * min(trial.load, 2000.0))
        return TrialOutput(0.0, sent_frames=1)

    table.measure = measure
    measurer = establishing(table)
    measurer.measure(TrialInput(1.0, FLOWS))
    measurer.measure(TrialInput(1.0, FLOWS))
    rates = [entry.load for entry in table.log if getattr(entry, "keeps_unsent", False)]
    assert rates == pytest.approx([2e4, 1600.0, 1600.0])


def test_a_device_that_does_not_forget_is_an_error():
    table = Table(kept=3)
    measurer = establishing(table)
    measurer.measure(TrialInput(1.0, FLOWS))
    with pytest.raises(DutError, match="DUT1 does not forget connections: 3 are left"):
        measurer.measure(TrialInput(1.0, FLOWS))


def measure_through(table, directory, resume=None, kill_at=None):
    """Three trials of the simulated testbed with a table, in a process that is killed behind a fill."""

    class Filled(InFrontOfTestbed):
        def in_front_of(self, ready):
            return replace(ready, measurer=EstablishingMeasurer(self, Connections({"DUT1": table}, traffic())))

        def measure(self, trial):
            if trial.duration == 3.0:
                if kill_at == (kept := sum(isinstance(each, TrialInput) for each in table.log)):
                    os.kill(os.getpid(), signal.SIGKILL)
                assert kept, "a trial without a fill"
                return TrialOutput(0.0, sent_frames=1, elapsed=3.0)
            return Table.measure(table, trial)

    request = MrrRequest(profile=profile_of(), trials=3, trial_duration=3.0, max_load=20e3)
    return measure_mrr(Filled(open_testbed(SIMULATED)), request, place(directory, resume=resume))


@pytest.mark.whole
def test_a_controller_killed_behind_a_fill_goes_on_with_a_fill_of_its_own(tmp_path):
    process = os.fork()
    if not process:
        try:
            measure_through(Table(), tmp_path / "killed", kill_at=2)
        finally:
            os._exit(0)
    assert os.waitpid(process, 0)[1] == signal.SIGKILL
    table = Table()
    # What the killed controller left in the device.
    table.entries = FLOWS + 77
    result = measure_through(table, tmp_path / "resumed", resume=tmp_path / "killed")
    fills = [entry for entry in table.log if isinstance(entry, TrialInput)]
    assert (len(fills), table.entries, len(result.trials)) == (2, FLOWS, 3)


def opening_by(measurer, table, *, is_tcp=False):
    """Opens connections through a device with a table; frames of connections do not come back."""
    dut = SimpleNamespace(hop=SimpleNamespace(node_name="DUT1"), connections=table)
    profile = load_profile(f"ethip4-{'tcp' if is_tcp else 'udp'}-connections", frame_size=100)
    request = SimpleNamespace(exchange=Exchange(), rounds=1.0, profile=profile)
    request.timeouts = partial(OpeningRequest.timeouts, request)
    return OpeningMeasurer(measurer, request, SimpleNamespace(duts=(dut,)))


def test_a_device_that_forwards_without_state_is_found_out():
    class Passing:
        def measure(self, trial):
            counters = DirectionCounters("a>b", intended_frames=100, sent_frames=100, received_frames=100)
            return TrialOutput(0.0, sent_frames=100, directions=(counters,))

    table = Table()
    with pytest.raises(DutError, match=r"DUT1 has 0 entries after 100 connections .* forwards without state"):
        opening_by(Passing(), table).measure(TrialInput(1.0, 100.0))
    table.entries = 100
    assert opening_by(Passing(), table).measure(TrialInput(1.0, 100.0)).directions


def test_entries_that_are_counted_after_their_time_out_do_not_show_a_device_without_state():
    class Slow:
        def measure(self, trial):
            time.sleep(0.1)
            counters = DirectionCounters("a>b", intended_frames=100, sent_frames=100, received_frames=100)
            return TrialOutput(0.0, sent_frames=100, directions=(counters,))

    class Forgetful(Table):
        def timeout_of(self, tcp_state):
            return 0.1

    opening = opening_by(Slow(), Forgetful())
    with pytest.raises(DutError, match=r"has 0 entries .* forgets a connection after 0.1 s.* \(udp_timeout\)\.$"):
        opening.measure(TrialInput(0.01, 100.0))


@pytest.mark.netns
@needs_testbed
def test_a_rule_that_exempts_traffic_from_state_is_found_out(file):
    profile = load_profile("ethip4-udp-connections", frame_size=100)
    with ready_for(file, profile, firewall="conntrack") as (router, ready):
        exempt = "type filter hook prerouting priority raw;"
        rules = f"table ip exempt {{\nchain early {{\n{exempt}\nudp dport 0-65535 notrack\n}}\n}}\n"
        router.node.run("nft", "-f", "-", stdin=rules)
        opening = opening_by(ready.measurer, router.connections)
        try:
            with pytest.raises(DutError, match=r"has 0 entries after [\d,]+ connections .* forwards without state"):
                opening.measure(TrialInput(0.1, 5000.0))
        finally:
            router.node.run("nft", "delete table ip exempt")


@pytest.mark.parametrize(("is_tcp", "timeout"), [(False, 30.0), (True, 60.0)])
def test_a_trial_is_as_long_as_the_time_out_of_its_protocol_allows(is_tcp, timeout):
    class Silent:
        def measure(self, trial):
            return TrialOutput(0.0)

    opening = opening_by(Silent(), Table(), is_tcp=is_tcp)
    assert opening.measure(TrialInput(timeout - 1.0, 10.0)) == TrialOutput(0.0)
    with pytest.raises(SearchError, match=rf"DUT1 forgets a connection after {timeout:g} s"):
        opening.measure(TrialInput(timeout, 10.0))


@pytest.mark.parametrize(("closing", "state"), [(None, "established"), ("fin", "time_wait"), ("rst", "close")])
def test_connections_that_are_used_again_are_filled_as_they_end(closing, state):
    table = Table()
    measurer = establishing(table, name="ethip4-tcp-h16-p63")
    table.room = 1008
    measurer.measure(TrialInput(0.1, 1000.0, exchange=Exchange(data_frames=3, closing=closing, established=True)))
    fill, measured = (entry for entry in table.log if isinstance(entry, TrialInput))
    assert fill.exchange == Exchange(closing=closing, is_complete=True)
    assert (measured.exchange.established, measured.exchange.data_frames) == (True, 3)
    assert [entry.tcp_state for entry in table.log if not isinstance(entry, TrialInput)] == [state]


def fills_of(table):
    return [entry.keeps_unsent for entry in table.log if isinstance(entry, TrialInput)].count(True)


def test_frames_that_the_generator_left_unsent_are_sent_again_and_no_fault_of_the_device():
    table = Table()

    def measure(trial):
        Table.measure(table, trial)
        unsent = 5 if fills_of(table) < 6 else 0
        table.entries -= unsent
        return TrialOutput(0.0, sent_frames=1, unsent_frames=unsent)

    table.measure = measure
    establishing(table).measure(TrialInput(1.0, FLOWS))
    assert fills_of(table) == 6


@pytest.mark.parametrize(("name", "fills"), [("ethip4-udp-h16-p63", 1), ("ethip4-tcp-h16-p63", 12)])
def test_unsent_frames_matter_in_a_full_table_only_if_a_connection_takes_more_frames_than_one(name, fills):
    table = Table(room=1008)
    table.measure = lambda trial: replace(Table.measure(table, trial), unsent_frames=int(trial.keeps_unsent))
    establishing(table, name=name).measure(TrialInput(1.0, FLOWS))
    assert fills_of(table) == fills


def test_traffic_both_ways_through_a_nat_is_refused():
    table = Table()
    table.is_one_way = True
    with pytest.raises(TrafficError, match=r"DUT1 lets only its west side open connections.*bidirectional=False"):
        Connections({"DUT1": table}, traffic(bidirectional=True))


@pytest.mark.whole
def test_what_comes_back_to_a_nat_whose_ports_are_known_is_of_the_connections_that_were_opened():
    table = Table(room=64_512)
    table.is_one_way, table.known_ports = True, 64_512
    both = traffic(name="ethip4-udp-h1024-p63-det44", bidirectional=True)
    assert Connections({"DUT1": table}, both, to_nat=True).facts["established_before_each_trial"] == 64_512
    for ports, known in ((None, "none"), (129_024, "129,024")):
        table.known_ports = ports
        with pytest.raises(TrafficError, match=f"but DUT1 has {known} such ports.*det44_hosts"):
            Connections({"DUT1": table}, both, to_nat=True)


def test_frames_in_tunnels_make_no_connections_that_can_be_counted():
    with pytest.raises(TrafficError, match="tunnels"):
        Connections({"DUT1": Table()}, traffic(name="ethip4vxlan-l2bdbase"))


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    with own_state():
        yield local_topology(tmp_path_factory.mktemp("topology"), "connections")


@contextmanager
def ready_for(file, profile, **options):
    with open_testbed(file, dut="linux_router", options=options) as testbed, testbed.ready_for(profile) as ready:
        yield testbed.duts[0], ready


@pytest.mark.netns
@needs_testbed
@pytest.mark.parametrize(
    "options",
    [{"nat": "masquerade"}, {"nat": "snat", "nat_addresses": 4}, {"firewall": "conntrack", "most_connections": FLOWS}],
)
def test_frames_of_established_connections_pass_a_nat_and_a_firewall(file, options):
    with ready_for(file, profile_of(), **options) as (router, ready):
        assert ready.conditions.generator["connections"]["established_before_each_trial"] == FLOWS
        for _ in range(2):
            output = whole(ready.measurer.measure, TrialInput(0.2, 2 * FLOWS))
            assert sum(direction.lost for direction in output.directions) == 0
            assert router.connections.count() == FLOWS
        router.connections.forget()
        assert router.connections.count() == 0


@pytest.mark.netns
@needs_testbed
@pytest.mark.skipif(why_impossible() is not None, reason=f"no BPF here: {why_impossible()}")
@pytest.mark.parametrize("kind", ["xdp", "auto"])
def test_connections_of_udp_are_opened_inside_the_kernel_and_those_of_tcp_by_packet_sockets(file, tmp_path, kind):
    in_kernel = tmp_path / "kernel.yaml"
    in_kernel.write_text(file.read_text().replace("kind: afpacket", f"kind: {kind}"))
    of_udp, of_tcp = (load_profile(f"ethip4-{name}-connections", frame_size=100) for name in ("udp", "tcp"))
    with open_testbed(in_kernel, dut="linux_router", options={"nat": "masquerade"}) as testbed:
        table = testbed.duts[0].connections
        for profile, used in ((of_udp, "xdp"), (of_tcp, "afpacket")):
            with testbed.ready_for(profile, TrialSettings(integrity=Integrity.OFF, connects=True)) as ready:
                facts = ready.conditions.generator
                assert (facts["kind"], facts["generator"]) == (used, used)
                assert ("must use UDP" in facts.get("instead_of_xdp_because", "")) == (used == "afpacket")
                output = whole(ready.measurer.measure, TrialInput(0.1, 5000.0, exchange=Exchange()))
                assert output.directions[0].received_frames == table.count() == 500
        with testbed.ready_for(profile_of()) as ready:
            assert ready.conditions.generator["generator"] == "xdp"


@pytest.mark.netns
@needs_testbed
def test_handshakes_data_and_the_end_of_tcp_are_what_a_real_table_takes_for_them(file):
    def states(router):
        entries = router.node.run("cat", "/proc/net/nf_conntrack").splitlines()
        return Counter(entry.split()[5] for entry in entries if entry.split()[2] == "tcp")

    profile = load_profile("ethip4-tcp-connections", frame_size=100)
    with ready_for(file, profile, nat="masquerade") as (router, ready):
        for exchange, state in (
            (Exchange(), "ESTABLISHED"),
            (Exchange(data_frames=2), "ESTABLISHED"),
            (Exchange(closing="fin"), "TIME_WAIT"),
            (Exchange(2.0, 1, "rst"), "CLOSE"),
        ):
            output = whole(ready.measurer.measure, TrialInput(0.1, 5000.0, exchange=exchange))
            assert output.directions[0].received_frames == 500
            assert states(router) == {state: 500}


@pytest.mark.netns
@needs_testbed
@pytest.mark.skipif(which("ovs-vswitchd") is None or os.getuid() != 0, reason="needs Open vSwitch, and root")
def test_open_vswitch_keeps_as_many_connections_as_its_limit_says(file):
    options = {"firewall": "conntrack", "most_connections": 504}
    profile = load_profile("ethip4-udp-h8-p63", frame_size=100)
    with open_testbed(file, dut="ovs", options=options) as testbed:
        table = testbed.duts[0].connections
        with testbed.ready_for(profile) as ready:
            ready.measurer.measure(TrialInput(0.1, 5000.0))
            assert table.count() == 504
        more = load_profile("ethip4-tcp-h16-p63", frame_size=100)
        with testbed.ready_for(more, TrialSettings(integrity=Integrity.OFF)) as ready:
            output = whole(ready.measurer.measure, TrialInput(1.0, 1008.0, exchange=Exchange()))
            assert output.directions[0].received_frames <= table.count() == 504
            with pytest.raises(DutError, match="DUT1 keeps at most 504 at once"):
                ready.measurer.measure(TrialInput(0.1, 5000.0))
        table.forget()
        assert table.count() == 0


@pytest.mark.netns
@needs_testbed
def test_a_limit_of_new_connections_is_none_of_established_ones_and_telemetry_counts_both(file):
    limits = {"firewall": "conntrack", "new_connections": 8000, "new_burst": 100}
    with ready_for(file, profile_of(name="ethip4-udp-hosts"), **limits) as (router, ready):
        output = whole(ready.measurer.measure, TrialInput(0.2, 20_000.0))
        assert sum(direction.lost for direction in output.directions) == 0
        assert router.read_counters().dropped["new connections"] == 0
        router.connections.forget()
        with router.telemetry() as report:
            # Past the measurer, nobody establishes connections first: the bucket lets few of them pass.
            ready.measurer._measurer.measure(TrialInput(0.0127, 20_000.0))
        dropped = router.read_counters().dropped["new connections"]
        assert dropped > 0
        assert report["conntrack"]["drop"] == report["conntrack"]["insert_failed"] == 0
        names = {entry["name"] for entry in report["statistics"]}
        assert {"conntrack_insert_failed", "conntrack_drop", "conntrack_early_drop"} <= names


@pytest.mark.netns
@needs_testbed
@pytest.mark.parametrize(
    ("options", "profile", "error"),
    [
        ({"firewall": "conntrack", "most_connections": 9999}, profile_of(), "keeps at most 9,999 at once"),
        ({"nat": "masquerade"}, profile_of(name="ethip4-udp-100kflows"), "the NAT of DUT1 has only 64,512 ports"),
        ({"firewall": "conntrack"}, profile_of(name="ethip4-udp-1mflows"), "the table of DUT1 has room for"),
        ({"firewall": "conntrack", "udp_timeout": "1 s"}, profile_of(), "forgets a UDP connection after 1 s"),
    ],
)
def test_what_a_device_cannot_keep_is_refused_before_any_traffic(file, options, profile, error):
    with ready_for(file, profile, **options) as (router, ready):
        before = router.read_counters().received
        with pytest.raises(DutError, match=error):
            ready.measurer.measure(TrialInput(1.0, 6_000.0))
        assert router.read_counters().received == before


@pytest.mark.netns
@needs_testbed
def test_latency_is_measured_with_connections_that_are_established(file, tmp_path):
    with open_testbed(file, dut="linux_router", options={"firewall": "conntrack"}) as testbed:
        request = LatencyRequest(profile=profile_of(), points=(LatencyPoint(load=20e3),), duration=0.6)
        measure_latency(testbed, request, place(tmp_path))
        assert testbed.duts[0].connections.count() == FLOWS
