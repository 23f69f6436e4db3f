"""What becomes of a measurement whose DUT repeats or changes frames: a real bridge with rules of nftables."""

from __future__ import annotations

import csv
import html
import io
import re
import time

import pytest
from local_testbeds import local_topology, needs_testbed, own_state
from measurement_examples import PROFILE, place

from lossratio.bpf import why_impossible
from lossratio.measurements.latency.measure import LatencyPoint, LatencyRequest, measure_latency
from lossratio.measurements.mrr import MrrRequest, measure_mrr
from lossratio.measurements.throughput import NdrPdrGoals, SearchRequest, find_conditional_throughput
from lossratio.report import render
from lossratio.report.run import read_run
from lossratio.results.findings import doubts_of, message, provenance
from lossratio.results.frame_integrity import integrity_of
from lossratio.results.model import Outcome
from lossratio.results.note import NoteKind
from lossratio.results.run_directory import read_result
from lossratio.runs.verdicts import failure_kind
from lossratio.testbed.opening import open_testbed
from lossratio.testbed.running_traffic import start_traffic
from lossratio.trials.counters import Integrity, IntegrityError
from lossratio.values.exit_status import FailureKind

pytestmark = [pytest.mark.netns, needs_testbed, pytest.mark.usefixtures("unseen")]

LOSES_AND_REPEATS = """numgen inc mod 100 0 drop
numgen inc mod 99 50 dup to "dut1" """
CORRUPTS = 'numgen inc mod 100 0 @th,144,8 set 0x77 comment "a byte of the payload"'
MARKS = "numgen inc mod 10 0 ip dscp set 10"
ONLY_DSCP = "In single frames: port0>port1: only the IPv4 DSCP differs: 0 before, 10 after"
TRANSLATES = "ip saddr 198.18.0.0/16 ip saddr set 198.18.255.1"


def patient(tmp_path_factory, name):
    """The local topology with a generator that sends every frame, however late a busy machine lets it."""
    file = local_topology(tmp_path_factory.mktemp("topology"), name)
    file.write_text(file.read_text().replace("catch_up: 5 ms", "catch_up: 10 s"))
    return file


@pytest.fixture(scope="module")
def bridge(tmp_path_factory):
    """A bridge that forwards everything as it should."""
    with own_state():
        testbed = open_testbed(patient(tmp_path_factory, "integrity"), dut="linux_bridge")
        yield testbed
        testbed.close()


@pytest.fixture
def faulty(bridge):
    """Gives that bridge rules for frames that come from the west; they are gone afterwards."""
    node = bridge.duts[0].node

    def misbehave(rules):
        hook = 'type filter hook ingress device "dut0" priority 0;'
        node.run("nft", f"table netdev faulty {{\nchain west {{\n{hook}\n{rules}\n}}\n}}")
        return bridge

    yield misbehave
    node.run("nft", "delete table netdev faulty")


def request(load=5000.0, trials=2, integrity=Integrity.DOUBT):
    return MrrRequest(profile=PROFILE, max_load=load, trials=trials, trial_duration=0.4, integrity=integrity)


def test_a_dut_that_loses_a_hundredth_and_repeats_another_has_that_loss_and_a_doubt(faulty, tmp_path):
    result = measure_mrr(faulty(LOSES_AND_REPEATS), request(), place(tmp_path))
    assert result.mrr.lost_frames == pytest.approx(40, abs=4)
    east, west = result.trials[0].directions
    assert (east.sent_frames, west.received_frames) == (2000, 2000)
    assert east.duplicated_frames == pytest.approx(20, abs=2)
    assert east.examined_frames == east.received_frames + east.duplicated_frames
    assert west.duplicated_frames == west.corrupted_frames == 0
    (doubts,) = doubts_of([result])
    (doubt,) = (doubt for doubt in doubts if doubt.kind is NoteKind.INTEGRITY)
    assert "of 8,000 frames that came back, all were examined: 40 duplicated (0.5 %)" in doubt.text
    assert "of 8,000 frames that came back, all were examined: 40 duplicated (0.5 %)" in message(result)
    (row,) = csv.DictReader(io.StringIO(render("csv", [read_run(tmp_path)])))
    assert (row["examined_frames"], row["duplicated_frames"]) == ("8000", "40")
    # A busy host may take CPU time from the machine, which is a doubt, too.
    assert "frame integrity" in row["doubts"].split("; ")


def test_of_many_frames_a_sample_is_examined_and_what_it_shows_is_scaled_up_with_its_bound(faulty, tmp_path):
    result = measure_mrr(faulty(LOSES_AND_REPEATS), request(load=60_000.0, trials=1), place(tmp_path))
    east, west = result.trials[0].directions
    assert 0 < east.examined_frames < east.sent_frames
    lost = (east.sent_frames - east.received_frames) / east.sent_frames
    assert lost == pytest.approx(0.01, abs=0.004)
    assert west.duplicated_frames == 0
    assert re.search(r"duplicated \(about 0\.[456]", message(result))


@pytest.mark.smoke
def test_frames_that_come_back_as_they_were_sent_give_no_doubt_and_a_bound(bridge, tmp_path):
    result = measure_mrr(bridge, request(load=60_000.0, trials=1), place(tmp_path))
    seen = integrity_of(result)
    assert (seen.faults, seen.reordered) == ({}, 0)
    assert seen.most(0) == 3.0 / seen.examined
    assert "Each came back once and unchanged; the share of all frames with a fault is below" in provenance(result)
    assert not [doubt for doubt in doubts_of([result])[0] if doubt.kind is NoteKind.INTEGRITY]


def test_a_dut_that_corrupts_fails_the_test_where_that_was_asked_for_and_the_trial_is_kept(faulty, tmp_path):
    testbed = faulty(CORRUPTS)
    with pytest.raises(IntegrityError, match=r"at 5.0000 kfps for 0.4 s: port0>port1: 20 corrupted") as caught:
        measure_mrr(testbed, request(integrity=Integrity.FAIL), place(tmp_path))
    assert failure_kind(caught.value) is FailureKind.TEST
    result = read_result(next(tmp_path.glob("results/*.json")))
    assert (result.outcome, result.guilty) == (Outcome.FAILED, "DUT")
    (trial,) = result.trials
    assert (trial.directions[0].corrupted_frames, trial.lost_frames) == (20, 20)


def test_the_field_that_differs_in_trials_is_named_with_the_profile_that_expects_it(faulty, tmp_path):
    testbed = faulty(MARKS)
    with pytest.raises(IntegrityError, match=r"at 5.0000 kfps for 0.4 s: port0>port1: \d+ corr") as caught:
        measure_mrr(testbed, request(integrity=Integrity.FAIL), place(tmp_path / "fail"))
    assert f"{ONLY_DSCP}. For a device that marks frames, give the profile 'is_marked: true'" in str(caught.value)
    result = measure_mrr(testbed, request(), place(tmp_path / "doubt"))
    (reason,) = (doubt.text for doubt in doubts_of([result])[0] if doubt.kind is NoteKind.INTEGRITY)
    assert f"{ONLY_DSCP}. For a device that marks frames" in reason
    assert f"none of these count as received. {ONLY_DSCP}." in message(result)
    page = render("html", [read_run(tmp_path / "doubt")])
    assert ONLY_DSCP in html.unescape(page)


def test_a_generator_that_only_counts_changed_frames_has_single_ones_looked_at(kernel_generator, tmp_path):
    with open_testbed(kernel_generator, dut="linux_bridge") as testbed:
        node = testbed.duts[0].node
        hook = 'type filter hook ingress device "dut0" priority 0;'
        node.run("nft", f"table netdev marks {{\nchain west {{\n{hook}\nnumgen inc mod 2 0 ip dscp set 10\n}}\n}}")
        try:
            with pytest.raises(IntegrityError) as caught:
                measure_mrr(testbed, request(integrity=Integrity.FAIL), place(tmp_path))
        finally:
            node.run("nft", "delete table netdev marks")
    # A device that changes all frames would be found before the first trial.
    assert re.search(r"at 5.0000 kfps for 0.4 s: port0>port1: [\d,]+ corrupted", str(caught.value))
    assert f"{ONLY_DSCP}. For a device that marks frames" in str(caught.value)


def test_a_dut_that_translates_addresses_is_measured_where_nobody_looks(faulty, tmp_path):
    testbed = faulty(TRANSLATES)
    with pytest.raises(IntegrityError, match=r"\d+ misdelivered.*'integrity=off'"):
        measure_mrr(testbed, request(), place(tmp_path))
    result = measure_mrr(testbed, request(integrity=Integrity.OFF), place(tmp_path))
    assert result.mrr.lost_frames == 0
    assert integrity_of(result) is None
    assert "Not checked in frames that came back: everything, because no check was requested" in provenance(result)


def test_traffic_apart_from_trials_and_latency_trials_are_examined_too(faulty, tmp_path):
    testbed = faulty(LOSES_AND_REPEATS)
    traffic = start_traffic(testbed, PROFILE, 2000.0, Integrity.FAIL)
    time.sleep(0.3)
    with pytest.raises(IntegrityError, match=r"port0>port1: about \d+ duplicated"):
        traffic.stop(0.0)
    measured = measure_latency(
        testbed, LatencyRequest(profile=PROFILE, points=[LatencyPoint(5000.0)], duration=0.4), place(tmp_path)
    )
    assert measured.trials[0].directions[0].duplicated_frames > 10


def test_traffic_that_is_closed_without_a_look_at_its_counters_fails_nothing(faulty):
    traffic = start_traffic(faulty(LOSES_AND_REPEATS), PROFILE, 2000.0, Integrity.FAIL)
    time.sleep(0.3)
    traffic.close()


@pytest.fixture(scope="module")
def kernel_generator(tmp_path_factory):
    """A testbed whose generator looks at every frame."""
    if why_impossible() is not None:
        pytest.skip(f"no BPF here: {why_impossible()}")
    file = patient(tmp_path_factory, "every-frame")
    file.write_text(file.read_text().replace("kind: afpacket", "kind: xdp"))
    with own_state():
        yield file


def test_a_dut_that_drops_and_repeats_equal_parts_of_many_frames_does_not_pass(kernel_generator, tmp_path):
    with open_testbed(kernel_generator, dut="xdp", options={"faults": "drop,duplicate", "every": 100}) as testbed:
        result = measure_mrr(testbed, request(load=10_000.0, trials=1), place(tmp_path))
        search = SearchRequest(goals=(NdrPdrGoals.quick.value[1],), profile=PROFILE, min_load=2000.0, max_load=20_000.0)
        found = find_conditional_throughput(testbed, search, place(tmp_path / "search"))
        with pytest.raises(IntegrityError, match=r"port0>port1: \d+ duplicated; port1>port0: \d+ dupl"):
            measure_mrr(testbed, request(load=10_000.0, integrity=Integrity.FAIL), place(tmp_path / "fail"))
    for direction in result.trials[0].directions:
        assert direction.examined_frames == direction.received_frames + direction.duplicated_frames
        # A busy machine may lose some more before they reach the device.
        assert direction.duplicated_frames == pytest.approx(40, abs=3)
        assert direction.sent_frames - direction.received_frames >= 38
    (doubts,) = doubts_of([result])
    (doubt,) = (doubt for doubt in doubts if doubt.kind is NoteKind.INTEGRITY)
    assert re.search(r"that came back, all were examined: \d+ duplicated \((0\.9|1)", doubt.text)
    (goal,) = found.goals
    assert (goal.result.relevant_lower_bound, goal.result.regular) == (None, False)


def test_frames_that_a_dut_holds_back_are_reordered_which_is_reported_and_no_fault(kernel_generator, tmp_path):
    options = {"faults": "delay", "every": 100, "delay": 0.01}
    with open_testbed(kernel_generator, dut="xdp", options=options) as testbed:
        result = measure_mrr(testbed, request(load=10_000.0, trials=1), place(tmp_path))
    for direction in result.trials[0].directions:
        assert direction.reordered_frames == pytest.approx(40, abs=3)
        assert (direction.duplicated_frames, direction.corrupted_frames, direction.misdelivered_frames) == (0, 0, 0)
        assert direction.displacement_frames >= 99
        assert direction.latency_most_us >= 10_000.0
    assert "Frames that arrived after a frame sent later (RFC 4737): " in message(result)
