"""Frames that receive queues dropped: counted by trial, compared with the lost frames, and said only if proved."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest
from measurement_examples import PROFILE, SIMULATED, InFrontOfTestbed, place
from perfect_sut import PerfectTestbed, drops_at_times, held_up, held_up_for_long
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from report_examples import as_json, counted_trial

from lossratio.dut.linux.reports import read_queues
from lossratio.measurements.soak.measure import SoakRequest, find_critical_load
from lossratio.nodes import CommandResult, DutNode
from lossratio.report import render
from lossratio.report.csit import device_metrics
from lossratio.report.run import read_run
from lossratio.results import describe_trials, queue_drops_in
from lossratio.results.findings import message
from lossratio.results.run_directory import read_result
from lossratio.testbed.opening import open_testbed
from lossratio.testbed.queues import QueueReader
from lossratio.trials.journal_lines import JournalEntry
from lossratio.trials.journal_reading import read_journal
from lossratio.trials.trial_output import QueueCounters

SOAK = SoakRequest(profile=PROFILE, timeout=20.0)


def queues(*counts, interface="dut0", node="DUT1"):
    """The counters of an interface's queues: frames and drops of each."""
    return tuple(
        QueueCounters(node, interface, number, frames, dropped) for number, (frames, dropped) in enumerate(counts)
    )


def drops(*trials):
    """What is known about trials that lost so many frames, with these counters."""
    entries = []
    for lost, counters in trials:
        trial = counted_trial(100_000.0, lost=lost)
        entries.append(JournalEntry.of(replace(trial, output=replace(trial.output, queues=counters))))
    return queue_drops_in(describe_trials(entries))


EVEN = (25_000, 0)


@pytest.mark.parametrize(
    ("trials", "sentence"),
    [
        pytest.param(
            [(15_266, queues((20_000, 15_266)))], "queue 0 of dut0 (DUT1) dropped all 15,266 lost frames", id="the only"
        ),
        pytest.param(
            [(10, queues(EVEN, EVEN, (25_000, 10), EVEN)), (0, ()), (5, queues(EVEN, EVEN, (25_000, 5), EVEN))],
            "queue 2 of dut0 (DUT1) dropped all 15 lost frames, the other 3 none",
            id="one of four, in all trials",
        ),
        pytest.param(
            [(500, queues((20_000, 0), (80_000, 500)))],
            "queue 1 of dut0 (DUT1) dropped all 500 lost frames, the other one none; 80 % of the frames came in "
            "through it, 1.6 times its even share",
            id="uneven",
        ),
        pytest.param(
            [(500, queues((200, 0), (800, 500)))],
            "queue 1 of dut0 (DUT1) dropped all 500 lost frames, the other one none",
            id="too few frames to call them uneven",
        ),
        pytest.param(
            [(400, (*queues((50_000, 300)), *queues((50_000, 100), interface="dut1")))],
            "queue 0 of dut0 (DUT1) (75 %) and queue 0 of dut1 (DUT1) (25 %) dropped all 400 lost frames",
            id="two interfaces",
        ),
        pytest.param(
            [(10, queues((1, 4), (1, 3), (1, 2), (1, 1)))],
            "queue 0 of dut0 (DUT1) (40 %), queue 1 of dut0 (DUT1) (30 %), queue 2 of dut0 (DUT1) (20 %) and 1 more "
            "dropped all 10 lost frames",
            id="many",
        ),
        pytest.param(
            [(500, queues(EVEN, (25_000, 300)))],
            "queue 1 of dut0 (DUT1) dropped 300 of 500 lost frames, the other one none; 200 are in no queue's counter",
            id="a part",
        ),
        pytest.param(
            [(500, queues((50_000, 503)))],
            "queue 0 of dut0 (DUT1) dropped 503 frames, 3 more than were lost in their trials",
            id="frames of others",
        ),
        # The sums agree, but no trial's counters do.
        pytest.param(
            [(500, queues((50_000, 0))), (1, queues((50_000, 500)))],
            "queue 0 of dut0 (DUT1) dropped 500 frames, 499 more than were lost in their trials; 500 are in no queue's "
            "counter",
            id="other trials",
        ),
        pytest.param([(500, queues(EVEN, EVEN))], None, id="none dropped"),
    ],
)
def test_only_what_the_counters_prove_is_said(trials, sentence):
    assert drops(*trials).sentence == sentence


def test_nothing_is_known_without_a_loss_or_without_counters():
    assert drops((0, ())) is None
    assert drops((500, ())) is None
    # Drops of frames that no trial lost are frames of others.
    assert drops((0, queues((50_000, 3)))) is None


def test_each_queue_has_its_drops_and_its_share_of_the_lost_frames():
    found = drops((500, queues(EVEN, (25_000, 300))), (100, queues(EVEN, (25_000, 100))), (400, ()))
    assert (found.lost_frames, found.unexplained_frames, found.surplus_frames) == (1000, 600, 0)
    assert [(queue.queue, queue.frames, queue.dropped_frames, queue.dropped_ratio) for queue in found.queues] == [
        (0, 50_000, 0, 0.0),
        (1, 50_000, 400, 0.4),
    ]


class CountingTestbed(InFrontOfTestbed):
    """Another testbed whose DUT counts the frames that came through each of four queues, and that these dropped."""

    def __init__(self, testbed, dropped):
        super().__init__(testbed)
        self._dropped = dropped

    def measure(self, trial):
        output = super().measure(trial)
        sent = output.sent_frames // 10
        counts = ((2 * sent, 0), (sent, 0), (6 * sent, self._dropped(output)), (sent, 0))
        return replace(output, queues=queues(*counts) if output.lost_frames else ())


@pytest.fixture(scope="module")
def soak(tmp_path_factory):
    """A soak test of a device one of whose queues drops all lost frames, and the directory of its run."""
    where = place(tmp_path_factory.mktemp("soak") / "run")
    testbed = CountingTestbed(open_testbed(SIMULATED), lambda output: output.lost_frames)
    return find_critical_load(testbed, SOAK, where), where


def test_a_soak_test_has_the_drops_of_each_queue_in_its_file_its_journal_and_its_message(soak):
    result, where = soak
    lost = sum(trial.missing.lost_by_sut for trial in result.trials if trial.is_evidence)
    assert lost > 1000
    found = result.queue_drops
    assert [queue.dropped_ratio for queue in found.queues] == [0.0, 0.0, 1.0, 0.0]
    assert (found.lost_frames, found.unexplained_frames, found.queues[2].dropped_frames) == (lost, 0, lost)
    path = where.directory.result_path(where.test.full_name)
    assert as_json(read_result(path)) == as_json(result)
    entries = read_journal(where.directory.journal_path(where.test.full_name)).entries
    assert [entry.result.output.queues for entry in entries] == [trial.queues for trial in result.trials]
    said = (
        f"Receive queues: queue 2 of dut0 (DUT1) dropped all {lost:,} lost frames, the other 3 none; 60 % of the "
        "frames came in through it, 2.4 times its even share."
    )
    assert said in message(result)


def test_each_report_has_the_queue_that_drops(soak):
    result, where = soak
    run = read_run(where.directory.path)
    said = result.queue_drops.sentence
    reports = {name: render(name, [run]) for name in ("html", "md", "csv", "junit", "json", "openmetrics")}
    assert {name for name in ("html", "md", "csv", "junit") if said not in reports[name]} == set()
    dropped = result.queue_drops.queues[2].dropped_frames
    assert f'"dropped_frames": {dropped}' in reports["json"]
    metrics = {family.name: family.samples for family in text_string_to_metric_families(reports["openmetrics"])}
    samples = {sample.labels["queue"]: sample for sample in metrics["lossratio_dut_queue_dropped_frames"]}
    assert {queue: sample.value for queue, sample in samples.items()} == {"0": 0, "1": 0, "2": dropped, "3": 0}
    assert (samples["2"].labels["hostname"], samples["2"].labels["interface"]) == ("DUT1", "dut0")
    assert "lossratio_dut_queue_dropped_ratio" in reports["openmetrics"]
    csit = [sample.csit() for sample in device_metrics(result)]
    line = f"dut_queue_dropped_frames{{hostname='DUT1',interface='dut0',queue='2'}} {float(dropped)}"
    assert any(each.startswith(line) for each in csit)


@pytest.mark.whole
@pytest.mark.parametrize("injector", [drops_at_times, held_up, held_up_for_long])
def test_queues_that_drop_frames_of_others_are_not_said_to_have_dropped_what_the_tester_lost(tmp_path, injector):
    where = place(tmp_path / "run")
    testbed = CountingTestbed(PerfectTestbed(tmp_path, injector), lambda _: 7)
    result = find_critical_load(testbed, SOAK, where)
    assert any(trial.lost_frames for trial in result.trials)
    assert any(trial.queues for trial in result.trials)
    assert result.queue_drops is None
    run = read_run(where.directory.path)
    texts = [message(result), *(render(name, [run]) for name in ("html", "md", "csv", "junit"))]
    assert not any("queue 2" in text for text in texts)


VETH = """\
NIC statistics:
     peer_ifindex: 5
     rx_queue_0_xdp_packets: {0}
     rx_queue_0_xdp_bytes: 99
     rx_queue_0_drops: {1}
     rx_queue_0_xdp_drops: 77
     rx_queue_1_xdp_packets: {2}
     rx_queue_1_drops: {3}
=
"""
ICE = "NIC statistics:\n     rx_queue_0_packets: 100\n     rx_queue_1_packets: 50\n=\n"


class Node:
    """A node whose ethtool answers with these texts, one after the other."""

    name = "DUT1"
    boot_id = None

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = 0

    def run(self, *command, **_):
        self.asked += 1
        return CommandResult(command, 0, self.answers.pop(0), "")


def dut(*answers):
    node = Node(*answers)
    names = ("dut0", "dut1")
    return SimpleNamespace(
        hop=SimpleNamespace(label="DUT1"), read_queues=lambda: read_queues(DutNode(node), names), node=node
    )


def test_counters_of_a_trial_are_the_difference_and_begin_anew_with_other_traffic():
    device = dut(
        VETH.format(100, 5, 7, 0) + ICE,
        VETH.format(300, 15, 7, 0) + ICE,
        VETH.format(310, 16, 9, 1) + ICE,
        VETH.format(400, 17, 9, 1) + ICE,
        VETH.format(500, 27, 9, 1) + ICE,
    )
    reader = QueueReader([device])
    reader.begin()
    reader.begin_attempt()
    assert reader.read() == queues((200, 10), (0, 0))
    # No frame has passed since the reading, so that one is enough.
    reader.begin_attempt()
    assert device.node.asked == 2
    assert reader.read() == queues((10, 1), (2, 1))
    # The attempt is thrown away, or it is other traffic: nothing is read after it.
    reader.begin_attempt()
    reader.begin_attempt()
    assert reader.read() == queues((100, 10), (0, 0))
    assert device.node.asked == 5


@pytest.mark.parametrize("answer", [ICE + ICE, "=\n=\n", VETH.format(0, 0, 0, 0) + "=\n"])
def test_a_device_that_counts_no_drops_by_queue_is_asked_once(answer):
    device = dut(answer)
    reader = QueueReader([device])
    reader.begin()
    for _ in range(3):
        reader.begin_attempt()
        assert reader.read() == ()
    assert device.node.asked == 1


def test_an_interface_that_was_made_again_counts_from_zero():
    reader = QueueReader([dut(VETH.format(900, 50, 900, 50) + "=\n", VETH.format(30, 2, 10, 0) + "=\n")])
    reader.begin()
    reader.begin_attempt()
    assert reader.read() == queues((30, 2), (10, 0))
