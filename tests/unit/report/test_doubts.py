import random
import re
from dataclasses import replace

import pytest
from report_examples import as_json, counted_trial, dropping_trial, mrr, throughput, throughput_of
from test_csit_export import telemetry_trial

from lossratio.measurements.throughput.bounds import bounds_history
from lossratio.measurements.throughput.search_picture import draw_loss
from lossratio.mlrsearch import NDR, PDR, TST009
from lossratio.results.doubts import stopped_forwarding_in, time_dependence_in
from lossratio.results.findings import doubts_of, message
from lossratio.results.note import NoteKind
from lossratio.results.offered import Offered, offered_by, unsent_frames
from lossratio.results.rules import set_aside
from lossratio.results.trials import describe_trials
from lossratio.simulation.constant_capacity import SharpKnee
from lossratio.trials.causes import MissingFrames
from lossratio.trials.journal_lines import JournalEntry
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import DirectionCounters, Incident, TrialOutput
from lossratio_study.algorithms import ALGORITHMS, OURS
from lossratio_study.families import Inconstant
from lossratio_study.suts import Overhead, Subject

LOAD = 100_000.0


def trials_losing(losses, load=LOAD):
    return describe_trials([JournalEntry.of(counted_trial(load, lost=round(lost))) for lost in losses])


def test_a_sut_that_throttles_drifts():
    doubt = time_dependence_in(trials_losing([100 * number for number in range(12)]))
    assert doubt.kind is NoteKind.DRIFT
    assert doubt.text == (
        "the last third of 12 trials at 100.00 kfps per interface forwards 0.8012 % less than the first third"
    )


def test_a_sut_that_stops_forwarding_is_said_to_have_stopped():
    losses = [0, 0, 50, 0, *[LOAD] * 3]
    reason = stopped_forwarding_in(trials_losing(losses))
    assert reason.startswith("from trial 5 on, all 3 trials lost every frame, although frames passed at such a")
    ((seen,),) = doubts_of([throughput_of([counted_trial(LOAD, lost=round(lost)) for lost in losses])])
    assert (seen.kind, seen.text) == (NoteKind.DRIFT, reason)


@pytest.mark.parametrize("losses", [[], [LOAD] * 5, [0, *[LOAD] * 2], [0, *[LOAD] * 5, 10]])
def test_a_sut_that_never_forwarded_or_still_does_has_not_stopped(losses):
    assert stopped_forwarding_in(trials_losing(losses)) is None


def test_a_sut_that_forwards_nothing_at_a_higher_load_has_not_stopped():
    below, above = trials_losing([0, 0], LOAD), trials_losing([2 * LOAD] * 3, 2 * LOAD)
    assert stopped_forwarding_in([*below, *above]) is None


def test_a_sut_that_warms_up_drifts_to_more():
    reason = time_dependence_in(trials_losing(range(1200, 0, -100))).text
    assert reason.endswith("more than the first third")


def test_trials_that_are_all_equal_or_too_few_do_not_drift():
    assert time_dependence_in(trials_losing([5] * 40)) is None
    assert time_dependence_in(trials_losing([0, 100, 200, 300, 400, 500, 600])) is None


@pytest.mark.whole
def test_a_drift_is_seldom_seen_where_there_is_none():
    randomness = random.Random(1)
    seen = sum(
        time_dependence_in(trials_losing([randomness.gauss(1000, 100) for _ in range(12)])) is not None
        for _ in range(500)
    )
    assert seen <= 3


def late_trial(late):
    direction = DirectionCounters("port0>port1", 1000, 1000, 990 - late)
    lost = {"lost_frames": 10 + late, "late_frames": late}
    output = TrialOutput((10 + late) / 1000, sent_frames=1000, directions=(direction,), **lost)
    return TrialResult(TrialInput(1.0, 1000.0), output)


def test_drops_inside_the_generator_are_counted_as_far_as_frames_were_lost():
    trials = [dropping_trial(1000.0, lost=lost, dropped=dropped) for lost, dropped in ((3, 9), (0, 9), (4, 1), (4, 0))]
    ((doubt,),) = doubts_of([throughput_of(trials)])
    assert doubt.kind is NoteKind.GENERATOR_DROPS
    assert doubt.text.startswith("the generator dropped 4 frames that came back in 2 trials")


def test_frames_that_a_ring_of_the_testbed_had_no_room_for_are_a_doubt_with_the_ring_and_its_size():
    def trial(refused):
        direction = DirectionCounters(
            "a>b", 1000, 1000 - refused, 1000 - refused, unsent_frames=refused, refused_frames=refused
        )
        output = TrialOutput(
            refused / 1000, sent_frames=1000 - refused, lost_frames=0, unsent_frames=refused, directions=(direction,)
        )
        return TrialResult(TrialInput(1.0, 1000.0), output)

    (doubts,) = doubts_of([throughput_of([trial(0), trial(7), trial(5)])])
    (reason,) = (doubt.text for doubt in doubts if doubt.kind is NoteKind.FULL_RINGS)
    assert "the ring of 256 frames of a veth link behind it, had no room for 12 frames in 2 trials" in reason
    assert NoteKind.FULL_RINGS not in {doubt.kind for doubt in doubts_of([throughput_of([trial(0)])])[0]}


def stalled_trial(lateness, lost):
    direction = DirectionCounters("port0>port1", 50_000, 50_000, 50_000 - lost, lateness_s=lateness)
    output = TrialOutput(lost / 50_000, sent_frames=50_000, lost_frames=lost, directions=(direction,))
    return TrialResult(TrialInput(1.0, 50_000.0), output)


def test_loss_that_a_burst_after_a_stall_may_have_made_is_a_doubt():
    ((doubt,),) = doubts_of(
        [throughput_of([stalled_trial(0.003, 150), stalled_trial(0.002, 1), stalled_trial(None, 3)])]
    )
    assert doubt.kind is NoteKind.GENERATOR_STALLS
    assert doubt.text.startswith("in 2 trials the generator was stalled for up to 3 ms")


@pytest.mark.parametrize(("lateness", "lost"), [(0.003, 0), (0.003, 151), (0.001, 5), (None, 5)])
def test_loss_without_a_burst_is_no_doubt(lateness, lost):
    assert doubts_of([throughput_of([stalled_trial(lateness, lost)])]) == [()]


def test_only_what_changed_around_trials_that_stand_is_a_doubt():
    def trial(*done):
        incidents = tuple(Incident("TG", "TG", None, f"the host of TG took 20 % ({trial})", trial) for trial in done)
        return TrialResult(TrialInput(1.0, 1000.0), TrialOutput(0.0, sent_frames=1000, incidents=incidents))

    assert doubts_of([throughput_of([trial("repeated"), trial("repaired")])]) == [()]
    ((doubt,),) = doubts_of([throughput_of([trial(), trial("repeated", "stands"), trial("stands")])])
    assert doubt.kind is NoteKind.TESTBED_CHANGED
    assert doubt.text == (
        "2 trials count although the testbed changed around them, beginning with trial 2: the host of TG took 20 % "
        "(stands). Measure again while nothing disturbs the testbed"
    )
    ((alone,),) = doubts_of([throughput_of([trial(), trial("stands")])])
    seen = "trial 2 counts although the testbed changed around it: the host of TG took 20 % (stands). Measure again"
    assert alone.text.startswith(seen)


QUOTA = Incident(
    *("TG", "TG", None, "the CPU quota of the cgroup of TG stopped its programs 12 times", "stands"),
    way_out="Raise it.",
)


def test_a_cause_that_a_counter_named_is_a_doubt_with_what_helps_and_nothing_else_is_advised():
    def trial(load, *incidents, unsent=200):
        way = DirectionCounters("a>b", 1000, 1000 - unsent, 1000 - unsent, unsent_frames=unsent, lateness_s=0.1)
        fields = {"sent_frames": 1000 - unsent, "lost_frames": 0, "unsent_frames": unsent, "directions": (way,)}
        return TrialResult(TrialInput(1.0, load), TrialOutput(unsent / 1000, incidents=incidents, **fields))

    overloaded = replace(QUOTA, interface="eth1", change="the ring overflowed")

    def told(*incidents, above=()):
        trials = [*[trial(1000.0, unsent=0)] * 21, *[trial(1004.0, *incidents)] * 21, trial(9000.0, *above)]
        result = throughput_of(trials)
        ((*doubts,),) = doubts_of([result])
        return {doubt.kind: doubt.text for doubt in doubts}, str(result)

    seen, text = told(QUOTA, above=[overloaded])
    assert seen[NoteKind.OUTSIDE] == (
        "frames are missing in 21 trials, beginning with trial 22, and meanwhile the CPU quota of the cgroup of TG "
        "stopped its programs 12 times. Raise it"
    )
    assert "top other work" not in text
    assert "programs on its machine" not in text
    assert NoteKind.OUTSIDE not in told(above=[overloaded])[0]
    seen, text = told()
    assert NoteKind.OUTSIDE not in seen
    assert "programs on its machine" in text


@pytest.mark.parametrize(("lost", "doubts"), [(0, []), (1, [NoteKind.TESTBED_CHANGED])])
def test_what_a_dut_lacked_is_a_doubt_only_if_it_lost_frames(lost, doubts):
    waited = Incident("DUT", "DUT1", None, "the thread vpp_wk_0 waited for a CPU for 40 % of the time", "stands")
    output = TrialOutput(lost / 1e5, sent_frames=100_000, lost_frames=lost, incidents=(waited,))
    (seen,) = doubts_of([throughput_of([TrialResult(TrialInput(1.0, LOAD), output)])])
    assert [doubt.kind for doubt in seen] == doubts


@pytest.mark.parametrize(("dropped", "doubts"), [(10, []), (9, [NoteKind.TESTBED_CHANGED])])
def test_what_a_dut_lacked_does_no_harm_where_the_generator_dropped_all_that_is_missing(dropped, doubts):
    waited = Incident("DUT", "DUT1", None, "the thread vpp_wk_0 waited for a CPU for 40 % of the time", "stands")
    way = DirectionCounters("a>b", 1000, 1000, 990, generator_drop_frames=dropped)
    output = TrialOutput(0.01, sent_frames=1000, lost_frames=10, directions=(way,), incidents=(waited,))
    (seen,) = doubts_of([throughput_of([TrialResult(TrialInput(1.0, 1000.0), output)])])
    assert [doubt.kind for doubt in seen if doubt.kind is not NoteKind.GENERATOR_DROPS] == doubts


@pytest.mark.parametrize(("lost", "doubts"), [(249, 0), (251, 1), (399, 1), (401, 0)])
def test_a_burst_that_may_have_lost_what_is_beyond_a_partial_drop_rate_is_a_doubt(lost, doubts):
    # 0.5 % of 50,000 frames are allowed, and 150 frames were in the burst.
    (seen,) = doubts_of([throughput_of([stalled_trial(0.003, lost)], goals=(PDR,))])
    assert [doubt.kind for doubt in seen] == [NoteKind.GENERATOR_STALLS] * doubts


def test_late_frames_are_counted_and_are_not_said_to_be_lost():
    ((doubt,),) = doubts_of([throughput_of([late_trial(3), late_trial(0), late_trial(4)])])
    assert doubt.kind is NoteKind.LATE_FRAMES
    assert doubt.text.startswith(
        "7 of the 37 missing frames were only late: in 2 trials, they came back after the wait"
    )
    assert "They count as lost although the SUT did not lose them" in doubt.text
    # Frames that a device holds until the next ones come are late after any wait.
    assert doubt.text.endswith("With a longer wait (settle of the generator) they might count as received")
    ((doubt,),) = doubts_of([throughput_of([late_trial(3)])])
    assert doubt.text.startswith("3 of the 13 missing frames were only late: in 1 trial, they")
    assert doubts_of([throughput_of([late_trial(0)])]) == [()]


def foreign_trial(foreign):
    direction = DirectionCounters("port0>port1", 10_000, 10_000, 10_000, foreign_frames=foreign, elapsed_s=1.0)
    output = TrialOutput(0.0, sent_frames=10_000, lost_frames=0, directions=(direction,))
    return TrialResult(TrialInput(1.0, 10_000.0), output)


def test_frames_of_no_trial_are_a_doubt_unless_they_are_as_few_as_devices_send_to_find_each_other():
    (no_doubts,) = doubts_of([throughput_of([foreign_trial(10), foreign_trial(None)])])
    assert no_doubts == ()
    ((doubt,),) = doubts_of([throughput_of([foreign_trial(10), foreign_trial(100), foreign_trial(1000)])])
    assert doubt.kind is NoteKind.FOREIGN_FRAMES
    assert "in 2 trials, the generator's ports received 1,100 frames that belong to no trial" in doubt.text


def in_order(sut, goal):
    """The trials of a search on an inconstant SUT, in the order measured."""
    subject = Subject("inconstant", 0, sut, 9001.0, 14_880_952.0)
    return ALGORITHMS[OURS].search([goal], subject, subject.measurer(Overhead(0.0))).trials


def test_a_sut_that_remembers_loss_is_a_doubt_with_the_rest_that_would_serve():
    ((doubt,),) = doubts_of([throughput_of(in_order(Inconstant(1e6, less=0.18, memory=18.0), TST009), (TST009,))])
    assert doubt.kind is NoteKind.MEMORY
    assert re.fullmatch(
        r"\d+ trials that began (right|up to [\d.]+ s) after a loss forward up to 18 % less than \d+ that began [\d.]+ "
        r"s after a loss or later, at the same or a higher load; rest=[\d.]+ s between trials would help",
        doubt.text,
    )


COLD = [counted_trial(90_000.0 + 1_000.0 * number, lost=18_000 + 1_000 * number) for number in range(6)]
WARM = [counted_trial(trial.load, lost=0) for trial in COLD]


def drifts_in(trials):
    (doubts,) = doubts_of([throughput_of(trials)])
    return [doubt for doubt in doubts if doubt.kind is NoteKind.DRIFT]


def test_a_sut_that_warms_up_is_a_doubt_with_the_warm_up_that_would_serve():
    (doubt,) = drifts_in([*COLD, *WARM])
    assert str(doubt) == (
        "drift: 6 trials in the first 6 s forward up to 24.21 % less than 6 later ones at the same loads: the SUT "
        "warms up; warm_up=6 s would help"
    )


def test_a_warm_up_that_would_serve_is_said_even_if_all_trials_show_a_drift():
    trials = [*COLD, *COLD, *WARM, *WARM, *WARM, *WARM]
    general = time_dependence_in(describe_trials(map(JournalEntry.of, trials)))
    assert general.kind is NoteKind.DRIFT
    (doubt,) = drifts_in(trials)
    assert doubt.text.endswith("the SUT warms up; warm_up=12 s would help")


def test_a_sut_that_becomes_slower_from_load_to_load_is_a_doubt():
    (doubt,) = drifts_in([*WARM, *COLD])
    assert (
        str(doubt)
        == "drift: 6 trials forward up to 24.21 % less than 6 earlier ones at the same loads: the SUT gets slower"
    )


def test_a_sut_that_becomes_faster_late_has_no_warm_up_that_would_serve():
    (doubt,) = drifts_in([*COLD, *WARM[1:]])
    assert "5 later ones at the same loads: the SUT gets faster" in doubt.text


def test_other_loads_show_no_drift_however_they_are_ordered():
    others = [counted_trial(trial.load + 10_000.0) for trial in WARM]
    assert drifts_in([*others, *COLD]) == []
    assert drifts_in([*COLD, *others]) == []
    # Two loads that were measured again may differ by chance.
    assert drifts_in([*WARM[:2], *others, *COLD]) == []


def test_frames_that_were_not_sent_are_no_drift():
    starved = [counted_trial(trial.load, unsent=trial.output.lost_frames) for trial in COLD]
    assert drifts_in([*WARM, *starved]) == []
    trials = [counted_trial(LOAD, lost=number % 3, unsent=500 * number) for number in range(30)]
    assert time_dependence_in(describe_trials(map(JournalEntry.of, trials))) is None


def test_a_frame_that_is_lost_in_each_trial_is_a_doubt_that_load_is_the_cause():
    ((doubt,),) = doubts_of([throughput_of(in_order(Inconstant(1e6, frames=1), NDR))])
    assert doubt.kind is NoteKind.LOSS_AT_ANY_LOAD
    assert doubt.text.startswith("each trial loses the same number of frames, 1 per interface, at each of ")


def test_frames_that_came_back_with_a_fault_at_any_load_are_no_dead_queue():
    def corrupting(load):
        sent = round(load)
        way = DirectionCounters("port0>port1", sent, sent, sent - 1, examined_frames=sent, corrupted_frames=1)
        output = TrialOutput(1 / sent, sent_frames=sent, lost_frames=1, unsent_frames=0, directions=(way,))
        return TrialResult(TrialInput(1.0, load), output)

    trials = [corrupting(load) for load in (400_000.0, 200_000.0, 100_000.0, 50_000.0, 9_001.0)]
    (doubt,) = (one for one in doubts_of([throughput_of(trials)])[0] if one.kind is NoteKind.LOSS_AT_ANY_LOAD)
    assert doubt.text.endswith("Look at the frames with a fault, which count as lost: 5 frames came back corrupted")


def test_a_share_that_is_lost_at_the_only_three_loads_of_a_search_is_a_doubt_that_load_is_the_cause():
    trials = [counted_trial(load, lost=round(load / 10)) for load in (400_000.0, 361_850.0, 9_001.0)]
    ((doubt,),) = doubts_of([throughput_of(trials)])
    assert str(doubt) == (
        "loss at any load: each trial loses the same share of the frames, 9.999 %, at each of 3 loads from 9.0010 kfps "
        "to 400.00 kfps per interface; the load is not the cause"
    )


def test_a_number_of_frames_that_is_lost_in_each_trial_is_no_drift_although_the_share_grows():
    loads = [74_621.0, 27_940.0, 16_926.0, 12_530.0, 10_620.0, 9_655.0, 9_137.0, *[9_001.0] * 10]
    trials = [counted_trial(400_000.0, lost=325_000)]
    trials += [counted_trial(load, lost=860 + 7 * (place % 4)) for place, load in enumerate(loads)]
    ((doubt,),) = doubts_of([throughput_of(trials)])
    assert doubt.kind is NoteKind.LOSS_AT_ANY_LOAD
    assert "the same number of frames, 8" in doubt.text
    # Where the generator did not send them, nothing is said of the SUT.
    unsent = [counted_trial(trial.load, unsent=trial.output.lost_frames) for trial in trials]
    kinds = {doubt.kind for doubt in doubts_of([throughput_of(unsent)])[0]}
    assert not kinds & {NoteKind.LOSS_AT_ANY_LOAD, NoteKind.DRIFT}


def test_a_sut_that_degrades_under_overload_has_an_mrr_below_its_pdr():
    less = mrr(SharpKnee(capacity=200_000.0))
    doubts, (doubt,) = doubts_of([throughput(), less])
    assert doubts == ()
    assert doubt.kind is NoteKind.MRR_BELOW_PDR
    assert (
        doubt.text
        == "100.00 kfps per interface are forwarded at maximum load, which is less than the NDR of 149.77 kfps: the "
        "SUT degrades under overload. Do not compare this MRR with others"
    )


def test_an_mrr_that_only_lacks_a_burst_is_no_doubt():
    assert doubts_of([throughput(), mrr(SharpKnee(capacity=294_000.0))]) == [(), ()]


def test_an_mrr_of_a_load_below_the_throughput_is_no_doubt_about_overload():
    assert doubts_of([throughput(), mrr(load=100_000.0)]) == [(), ()]


def test_an_mrr_is_compared_with_the_same_setup_only():
    less = mrr(SharpKnee(capacity=200_000.0))
    other = less.conditions.model_copy(update={"duts": {"DUT1": {"kind": "linux_router"}}})
    assert doubts_of([throughput(), less.model_copy(update={"conditions": other})]) == [(), ()]


def test_a_sut_without_faults_leaves_no_doubts():
    assert doubts_of([throughput(), mrr()]) == [(), ()]


def test_a_worker_with_too_much_is_a_doubt_about_the_search_with_telemetry():
    whole = telemetry_trial().model_copy(update={"sent_frames": 20_000, "received_frames": 20_000})
    (dut,) = whole.duts
    loads = [{"worker": "pmd 2", "frames": 9000}, {"worker": "pmd 3", "frames": 1000}]
    uneven = type(dut).model_validate({**dut.model_dump(mode="json"), "workers": loads})
    trial = whole.model_copy(update={"duts": (uneven,)})
    even, doubted = (throughput().model_copy(update={"telemetry": trials}) for trials in ((whole,), (trial,)))
    assert [doubts_of([result]) for result in (throughput(), even)] == [[()], [()]]
    ((doubt,),) = doubts_of([doubted])
    assert doubt.kind is NoteKind.UNEVEN
    assert "of 2 workers pmd 2 takes 90.0 % of 10,000 frames" in doubt.text


def test_a_zone_of_chance_is_in_json_in_words_in_the_picture_and_a_doubt():
    losses = {100_000.0: "lhhlhl", 101_000.0: "hlhhhl", 102_000.0: "hlhllh", 150_000.0: "hhhhhh"}
    trials = [counted_trial(load, lost=5 * (one == "h")) for load, word in losses.items() for one in word]
    result = throughput_of(trials)
    zone = as_json(result)["goals"][0]["result"]["zone"]
    assert [(share["trials"], share["lossy"], share["longest_run"]) for share in zone["shares"]] == [
        (6, 3, 2),
        (6, 4, 3),
        (6, 3, 1),
    ]
    assert any(
        "101,000 fps per interface: 4 of 6 trials lossy, 3 in a row at most" in line
        for line in message(result).splitlines()
    )
    (doubt,) = (doubt for doubt in doubts_of([result])[0] if doubt.kind is NoteKind.CHANCE)
    assert doubt.text.startswith(
        "from 100.00 kfps to 102.00 kfps per interface, 30 to 70 % of trials lose more than NDR allows: "
        "another search may find any load in this zone"
    )
    assert 'fill-opacity="0.1"' in draw_loss(result, bounds_history(result))
    assert "chance decides from 100.00 to 102.00 kfps per interface (1.961 %)" in message(result)


def test_a_zone_of_chance_that_hides_no_change_is_in_the_values_line_alone():
    losses = {100_000.0: "lhhlhl", 100_450.0: "h", 100_900.0: "hlhllh", 150_000.0: "hhhhhh"}
    trials = [counted_trial(load, lost=5 * (one == "h")) for load, word in losses.items() for one in word]
    result = throughput_of(trials)
    assert "chance decides from 100.00 to 100.90 kfps per interface (0.892 %)" in message(result)
    assert "100,450 fps per interface: 1 of 1 trial lossy, 1 in a row at most" in message(result)
    assert [doubt for doubt in doubts_of([result])[0] if doubt.kind is NoteKind.CHANCE] == []


ADVICE = re.compile(
    r"Look |Stop |Measure |Search again|Compare |Do not compare|Delete more|would help|may help|[Ww]ith a longer wait"
)
LOSSY = DirectionCounters("port0>port1", 1000, 1000, 990, examined_frames=990, corrupted_frames=10)
CHANCE = [counted_trial(load, lost=5 * (one == "h")) for load in (100e3, 102e3) for one in "lhhlhl"]
# Results, the last of which has a doubt of the kind.
DOUBTED = {
    NoteKind.DRIFT: lambda: [throughput_of([*COLD, *WARM])],
    NoteKind.MRR_BELOW_PDR: lambda: [throughput(), mrr(SharpKnee(capacity=200_000.0))],
    NoteKind.LATE_FRAMES: lambda: [throughput_of([late_trial(3)])],
    NoteKind.GENERATOR_DROPS: lambda: [throughput_of([dropping_trial(1000.0, lost=3, dropped=3)])],
    NoteKind.GENERATOR_STALLS: lambda: [throughput_of([stalled_trial(0.003, 150)])],
    NoteKind.UNSENT: lambda: [mrr(SharpKnee(capacity=200_000.0), max_rate=200_000.0)],
    NoteKind.INTEGRITY: lambda: [
        throughput_of([TrialResult(TrialInput(1.0, 1000.0), TrialOutput(0.01, directions=(LOSSY,)))])
    ],
    NoteKind.MEMORY: lambda: [throughput_of(in_order(Inconstant(1e6, less=0.18, memory=18.0), TST009), (TST009,))],
    NoteKind.LOSS_AT_ANY_LOAD: lambda: [
        throughput_of([counted_trial(load, lost=round(load / 10)) for load in (400_000.0, 361_850.0, 9_001.0)])
    ],
    NoteKind.CHANCE: lambda: [throughput_of([*CHANCE, counted_trial(150e3, lost=5)])],
    NoteKind.FOREIGN_FRAMES: lambda: [throughput_of([foreign_trial(1000)])],
}
WITHOUT_REMEDY = (NoteKind.LOSS_AT_ANY_LOAD, NoteKind.GENERATOR_DROPS)
"""Doubts whose causes no counter shows."""


@pytest.mark.parametrize("kind", DOUBTED)
def test_a_doubt_has_a_remedy_only_if_something_was_counted_that_it_would_change(kind):
    (said, *_) = (doubt.text for doubt in doubts_of(DOUBTED[kind]())[-1] if doubt.kind is kind)
    assert bool(ADVICE.search(said)) is (kind not in WITHOUT_REMEDY)


def test_other_programs_are_only_stopped_if_a_sender_was_late():
    for lateness, words in (
        (0.0, "that it can send"),
        (0.0432, "A sender was late by up to 43.2 ms: stop other programs"),
    ):
        (text,) = unsent_frames([Offered(LOAD, 90_000, MissingFrames(unsent=10_000))], lateness=lateness)
        assert words in text
        assert ("other programs" in text) is bool(lateness)


def test_late_frames_of_a_generator_that_counts_no_unsent_frames_are_no_frames_of_the_sut():
    output = TrialOutput(0.1, sent_frames=1000, lost_frames=100, late_frames=60)
    assert offered_by(LOAD, output).not_by_sut == 60


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (1, "One trial says nothing about the SUT and was set aside, because it was late."),
        (2, "Set aside because they say nothing about the SUT: 2 trials (the last one because it was late)."),
    ],
)
def test_trials_that_were_set_aside_are_counted(number, words):
    result = mrr(trials=3)
    aside = [trial.model_copy(update={"set_aside": "it was late"}) for trial in result.trials[:number]]
    trials = (*aside, *result.trials[number:])
    assert list(set_aside(result.model_copy(update={"trials": trials}))) == [words]
