import json
import re
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from latency_examples import counters
from pydantic import ValidationError
from report_examples import MAX_LOAD, MIN_LOAD, RESULT, conditions, counted_trial, run, throughput
from test_csit_export import RESULT as RESULT_SCHEMA, identity, named
from test_loss_and_spectrum import hints, texts

from lossratio.drawing.plot import SET_ASIDE, mark_of
from lossratio.errors import ReportError
from lossratio.measurements import Measurement
from lossratio.measurements.latency.result import LatencyAtLoad, direction_latency
from lossratio.measurements.reconfiguration import ReconfigurationResult, reconfiguration_loss
from lossratio.measurements.soak.result import CriticalLoad, CurvePoint, FittedFunction, SoakLimit, SoakResult
from lossratio.measurements.soak.view import draw_soak
from lossratio.plrsearch import FitCheck, GuardStatement, IntervalPoint, Verdict, why_set_aside
from lossratio.report.csit import csit_export
from lossratio.report.page import report_page
from lossratio.report.run import Run
from lossratio.results import describe_trials
from lossratio.results.conditions import LoadOrigin
from lossratio.results.doubts import DoubtKind
from lossratio.results.findings import caveats_of, doubts_of, findings_of, message
from lossratio.results.model import Outcome
from lossratio.trials.journal_lines import JournalEntry
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import DirectionCounters, TrialOutput

MEAN, STDEV = 150_000.0, 500.0
TRIALS = [JournalEntry(counted_trial(load, lost=lost)) for load, lost in ((149e3, 0), (150e3, 1), (160e3, 10_000))]


def critical_load(*, limit=None, misfit=()):
    rate = conditions().rate
    loads = [MEAN + STDEV * step / 4 for step in range(-12, 13)]
    curve = tuple(
        CurvePoint(load_per_interface_fps=load, loss_ratio=10.0 ** (-9 + i / 4)) for i, load in enumerate(loads)
    )
    history = tuple(
        IntervalPoint(
            trials=trials,
            elapsed_s=5.0 * trials,
            mean_per_interface_fps=MEAN,
            least_95_per_interface_fps=MEAN - 6 * STDEV / trials,
            most_95_per_interface_fps=MEAN + 6 * STDEV / trials,
        )
        for trials in (1, 2, 3)
    )
    return CriticalLoad(
        mean=rate(MEAN),
        stdev=rate(STDEV),
        least_95=rate(MEAN - 2 * STDEV),
        most_95=rate(MEAN + 2 * STDEV),
        functions=tuple(
            FittedFunction(name=name, mean=rate(MEAN), stdev=rate(STDEV), weight=0.5, curve=curve)
            for name in ("stretch", "erf")
        ),
        history=history,
        ended_by="timeout",
        limit=limit,
        misfit=misfit,
        fit=FitCheck(chi_squared_per_trial=1.1, function_distance_stdevs=0.5, drift_ratio=None, drift_stdev_ratio=None),
    )


def max_load():
    return conditions().max_load(MAX_LOAD, LoadOrigin.GENERATOR)


def soak(*, target=1e-7, error=None, trials=TRIALS, **fields):
    test_run = run("64B-1c-ethip4-ip4base-soak", error=error)
    found = None if error else critical_load(**fields)
    stated = Measurement(test_run, None, tuple(trials), None).stated(max_load(), found and found.reason)
    return SoakResult(
        **stated | {"trials": describe_trials(trials, why_set_aside=why_set_aside)},
        target_loss_ratio=target,
        settings={},
        min_load=test_run.conditions.rate(MIN_LOAD),
        critical_load=found,
    )


def reconfiguration(*, error=None):
    test_run = run("64B-1c-ethip4-ip4base-reconf", error=error)
    loss = None if error else reconfiguration_loss(conditions().rate(1e5), 5_000)
    return ReconfigurationResult(**Measurement(test_run, None, (), None).stated(max_load()), loss=loss)


def stalled(lateness, lost=10, duration=1.0):
    load = int(MEAN / duration)
    counters = DirectionCounters("a>b", load, load, load - lost, lateness_s=lateness)
    output = TrialOutput(lost / load, sent_frames=load, lost_frames=lost, unsent_frames=0, directions=(counters,))
    return JournalEntry(TrialResult(TrialInput(duration, MEAN), output))


def known_to(share, trials):
    """A soak test whose interval reaches this share of the mean to either side."""
    rate, result = conditions().rate, soak(trials=trials)
    ends = {"least_95": rate(MEAN * (1 - share)), "most_95": rate(MEAN * (1 + share))}
    return result.model_copy(update={"critical_load": result.critical_load.model_copy(update=ends)})


def test_a_trial_with_a_long_stall_is_set_aside_and_marked_in_the_picture():
    result = soak(trials=[*TRIALS, stalled(0.0021)])
    assert [trial.is_evidence for trial in result.trials] == [True, True, True, False]
    assert result.trials[-1].set_aside == "the generator was stalled for 2.1 ms, more than 2 ms"
    assert mark_of(result.trials[-1]) is SET_ASIDE
    assert SET_ASIDE.label in draw_soak(result)


def test_stalls_that_may_have_moved_the_critical_load_out_of_its_interval_are_a_doubt():
    trials = [*TRIALS, stalled(0.0012, duration=2.0), stalled(0.0009, duration=2.0)]
    ((doubt,),) = doubts_of([known_to(0.0005, trials)])
    assert doubt.kind is DoubtKind.GENERATOR_STALLS
    assert doubt.reason.startswith("in 1 trial with loss, the generator was stalled for up to 0.06 % of their duration")


@pytest.mark.parametrize(
    ("share", "lateness", "lost"), [(0.0007, 0.0012, 10), (0.0001, 0.0009, 10), (0.0001, 0.0012, 0)]
)
def test_stalls_that_move_no_critical_load_out_of_its_interval_are_no_doubt(share, lateness, lost):
    assert doubts_of([known_to(share, [*TRIALS, stalled(lateness, lost, duration=2.0)])]) == [()]


@pytest.mark.parametrize("result", [soak(), soak(error="agent lost"), reconfiguration(), reconfiguration(error="late")])
def test_results_are_read_back_as_they_were_written(result):
    assert RESULT.validate_json(RESULT.dump_json(result)) == result
    assert report_page([Run(Path("a-run"), (result,))], "a run").count('<details class="test"') == 1


def test_only_a_failure_has_no_value():
    assert soak(error="agent lost").critical_load is None
    assert reconfiguration(error="agent lost").loss is None
    with pytest.raises(ValidationError, match="a critical load is missing if and only if"):
        RESULT.validate_python(RESULT.dump_python(soak()) | {"critical_load": None})


def test_a_critical_load_is_found_with_its_interval():
    (finding,) = findings_of([soak()])
    assert (finding.quantity, finding.outcome) == ("critical load", Outcome.MEASURED)
    assert finding.value.per_interface_fps == MEAN
    assert finding.lower_bound.per_interface_fps == MEAN - 2 * STDEV
    assert "critical load (loss ratio 1e-7):" in message(soak())


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        (
            {"misfit": ("losses come in bursts", "loss grows with time")},
            "rely on the number: losses come in bursts; loss",
        ),
        ({"limit": SoakLimit.AT_LEAST}, "ends at the maximum load, and the critical load may be above it"),
        ({"limit": SoakLimit.AT_MOST}, "ends at the minimum load, and the critical load may be below it"),
        ({"limit": SoakLimit.BEYOND_TRIALS}, "do not reach the target loss ratio, and do not show its load"),
    ],
)
def test_a_critical_load_that_must_not_be_relied_on_is_irregular(fields, why):
    result = soak(**fields)
    (finding,) = findings_of([result])
    assert finding.outcome is result.outcome is Outcome.IRREGULAR
    assert why in finding.reason
    assert f"): irregular: {finding.reason}" in message(result)


GUARD = {
    "verdict": Verdict.EXTRAPOLATED,
    "load_per_interface_fps": 149.9e3,
    "highest_load_per_interface_fps": 150e3,
    "trials": 4,
    "frames": 6_000_000,
    "lost_frames": 0,
    "burst_frames": 1.0,
    "least_loss_ratio": 0.0,
    "most_loss_ratio": 6e-7,
    "extrapolation_factor": 6.0,
    "missing_frames": 30_000_000,
    "missing_s": 7200.0,
}


def whole():
    """A soak test with everything that was inferred."""
    result = soak()
    found = result.critical_load
    inferred = {
        "mrr_per_interface_fps": MEAN + 100.0,
        "spread_per_interface_fps": 50.0,
        "capacity_stdev_per_interface_fps": 20.0,
        "log_evidence": -321.5,
        "at_min_ratio": 0.0,
        "at_max_ratio": 0.0,
    }
    more = {
        "functions": tuple(function.model_copy(update=inferred) for function in found.functions),
        "guard": GuardStatement(**GUARD),
    }
    return result.model_copy(update={"critical_load": found.model_copy(update=more)})


def test_the_message_says_what_frames_at_the_load_show_and_how_many_would_verify_it():
    shown = message(whole())
    assert "extrapolated: 0 of 6,000,000 frames were lost at 149.90 kfps to 150.00 kfps" in shown
    assert "6 times the target" in shown
    assert "; another 30,000,000 frames (2 h) would verify it" in shown
    assert "): regular, extrapolated: there are too few frames or trials at the critical load" in shown
    assert "counted frames" in shown
    assert "counted frames" not in message(soak())


def guarded(**fields):
    result = whole()
    statement = replace(result.critical_load.guard, **fields)
    critical = result.critical_load.model_copy(update={"guard": statement})
    return result.model_copy(update={"critical_load": critical})


def test_a_range_of_loads_that_are_written_alike_is_one_load():
    shown = message(guarded(load_per_interface_fps=149_999.9, highest_load_per_interface_fps=150_000.1))
    assert "frames were lost at 150.00 kfps, a ratio" in shown


def test_the_number_has_beside_it_which_losses_no_trial_would_show():
    few = {"unseen_burst_trials": 1.7, "missing_trials": 6}
    shown = message(guarded(**few))
    assert "losses that come in fewer than one of 1.7 trials may be in none of these" in shown
    assert "; another 30,000,000 frames in 6 or more trials (2 h) would verify it" in shown
    verified = {"verdict": Verdict.VERIFIED, "largest_burst_frames": 105.0, "unseen_burst_trials": 29.8}
    shown = message(guarded(extrapolation_factor=0.1, missing_frames=None, missing_s=None, **verified))
    assert "): regular, verified at 149.90 kfps" in shown
    assert "unless more than 105 frames are lost at a time in fewer than one of 30 trials" in shown


@pytest.mark.parametrize(
    ("protocol", "said"),
    [
        (None, "critical load (loss ratio 1e-7 in trials of 2 s):"),
        (20.0, "(loss ratio 1e-7 in trials of 2 s and 20 s):"),
    ],
)
def test_the_headline_has_the_length_of_the_trials_beyond_which_nothing_is_known(protocol, said):
    result = guarded(protocol_s=protocol)
    critical = result.critical_load.model_copy(update={"trial_s": 2.0})
    assert said in message(result.model_copy(update={"critical_load": critical}))


def in_the_long_run(*longer, **fields):
    """What the message says of longer trials than most; None: nothing."""
    usual = [JournalEntry(counted_trial(149e3, duration=1.0)) for _ in range(4)]
    result = soak(trials=[*usual, *longer])
    critical = guarded(**fields).critical_load.model_copy(update={"trial_s": 1.0})
    shown = " ".join(message(result.model_copy(update={"critical_load": critical})).split())
    return shown.partition("in the long run not known")[2].partition(". Everything")[0].strip(" :") or None


def test_a_soak_without_long_trials_says_that_the_long_run_is_not_known():
    starved = stalled(0.05, duration=12.5)
    assert in_the_long_run() == "there were no long trials"
    uncounted = "of 12.5 s did not count, as the generator did not send all frames in time"
    assert in_the_long_run(starved, starved) == f"2 trials {uncounted}"
    one = JournalEntry(counted_trial(MEAN, lost=500, duration=12.5))
    lost = "1 trial of 12.5 s at 150.00 kfps lost 500 of 1,875,000 frames"
    assert in_the_long_run(one, starved) == f"{lost}; 1 trial {uncounted}"
    assert in_the_long_run(one) == lost


def test_long_trials_at_other_loads_are_named_with_their_losses():
    others = [JournalEntry(counted_trial(load, lost=50, duration=12.5)) for load in (149e3, 151e3)]
    lost = "2 trials of 12.5 s at 149.00 kfps to 151.00 kfps lost 100 of 3,750,000 frames"
    assert in_the_long_run(*others) == f"at the stated load: {lost}"


def test_long_trials_that_lose_frames_say_how_much_passes_at_most_in_the_long_run():
    usual = [JournalEntry(counted_trial(149e3, duration=1.0)) for _ in range(4)]
    # A policer of 147,000 frames/s, with a bucket of 2,000.
    lossy = JournalEntry(counted_trial(149e3, lost=38_000, duration=20.0))
    quiet = JournalEntry(counted_trial(147e3, duration=20.0))
    lost = (
        "1 trial of 20 s at 149.00 kfps lost 38,000 of 2,980,000 frames; 2 trials of 20 s at 147.00 kfps lost 0 of "
        "5,880,000 frames. Everything else stated here is about trials of 1 s"
    )
    for process, limit in (((), "at most 147.10 kfps: "), (("Frames are lost in pauses.",), "")):
        critical = guarded().critical_load.model_copy(update={"trial_s": 1.0, "process": process})
        result = soak(trials=[*usual, lossy, quiet, quiet]).model_copy(update={"critical_load": critical})
        assert f"in the long run {limit}{lost}" in " ".join(message(result).split())


def test_a_long_trial_is_no_limit_if_another_one_forwarded_more():
    usual = [JournalEntry(counted_trial(149e3, duration=1.0)) for _ in range(4)]
    # Real VPP with a policer of 30,000 frames/s on a busy machine: two of these trials lost frames in a stall.
    counts = ((30_286.0, 2_321), (28_551.0, 718), (27_055.0, 1_113), (25_596.0, 0))
    longer = [JournalEntry(counted_trial(load, lost=lost, duration=10.0)) for load, lost in counts]
    critical = guarded().critical_load.model_copy(update={"trial_s": 1.0})

    def said(trials):
        result = soak(trials=[*usual, *trials]).model_copy(update={"critical_load": critical})
        return " ".join(message(result).split()).partition("in the long run ")[2]

    lost = "1 trial of 10 s at 27.055 kfps lost 1,113 of 270,550 frames; 1 trial of 10 s at 25.596 kfps lost 0 of"
    assert said(longer).startswith(lost)
    assert said(longer[2:]).startswith(f"at most 26.944 kfps: {lost}")


def test_frames_that_were_never_sent_did_not_pass_in_the_long_run():
    usual = [JournalEntry(counted_trial(149e3, duration=1.0)) for _ in range(4)]
    lossy = JournalEntry(counted_trial(30_000.0, lost=3_000, duration=10.0))
    # The load is more than what passed in the other trial, but what was sent is less.
    unsent = JournalEntry(counted_trial(29_900.0, unsent=2_900, duration=10.0))
    critical = guarded().critical_load.model_copy(update={"trial_s": 1.0})
    result = soak(trials=[*usual, lossy, unsent]).model_copy(update={"critical_load": critical})
    assert "in the long run at most 29.700 kfps: 1 trial of 10 s" in " ".join(message(result).split())


@pytest.mark.parametrize("fields", [{"protocol_s": 12.5}, {"verdict": Verdict.CONTRADICTED}])
def test_where_long_trials_say_something_nothing_is_said_to_be_unknown(fields):
    assert in_the_long_run(**fields) is None


def verified(rarest, protocol, elapsed=300.0):
    """The result with a verified load, and what it is worth."""
    result = guarded(verdict=Verdict.VERIFIED, protocol_s=protocol, missing_frames=None, missing_s=None)
    critical = result.critical_load
    last = replace(critical.history[-1], elapsed_s=elapsed)
    fields = {"verified": critical.least_95, "rarest_s": rarest, "history": (*critical.history[:-1], last)}
    return result.model_copy(update={"critical_load": critical.model_copy(update=fields)})


def test_the_highest_verified_load_is_stated_first_with_how_rare_losses_may_be_that_were_not_seen():
    result = verified(75.0, 20.0)
    shown = " ".join(message(result).split())
    said = "regular, verified also in trials of 20 s; losses rarer than one in 75 s may not have been seen"
    assert said in shown
    assert "; to see one in 300 s, search with rarest=300 s (30 min)" in shown
    assert "highest verified load" in shown
    (finding,) = findings_of([result])
    assert finding.value == result.critical_load.verified
    assert finding.lower_bound.per_interface_fps <= finding.value.per_interface_fps
    assert any("rarer than one in 75 s" in caveat for caveat in caveats_of(finding))


LOST = "at most one in 10,000,000"
RARE = "losses that do not come from the load were seen"
NO_LOAD = "no load is verified"


@pytest.mark.parametrize(
    ("fields", "first"),
    [
        ({}, "estimated at 150,000 {}."),
        ({"misfit": ("a reason",)}, "irregular. The estimate is 150,000 {}."),
        ({"verified": 149e3}, f"at 149,000 {{}}, {LOST} is lost, which is verified in short trials only."),
        (
            {"verified": 149e3, "doubt": RARE},
            f"irregular. The trials at 149,000 {{}} lost {LOST}, but rarer losses may exceed that.",
        ),
        ({"supported": 140e3}, "not verified, because that takes more frames. No trial contradicts 140,000 {}."),
        (
            {"supported": 140e3, "doubt": NO_LOAD},
            "not verified, and perhaps too high. No trial contradicts 140,000 {}.",
        ),
    ],
    ids=["estimate", "misfit", "verified", "rare losses", "few frames", "not verified"],
)
def test_the_first_sentence_says_no_more_than_is_proved(fields, first):
    """An interval is in the first sentences only if the result is regular, and is never that of the stated load."""
    result = soak()
    rates = {name: conditions().rate(load) for name, load in fields.items() if isinstance(load, float)}
    found = result.critical_load.model_copy(update={**fields, **rates})
    head, second, *lines = message(result.model_copy(update={"critical_load": found})).splitlines()
    assert head == f"Critical load: {first.format('frames/s of 64 B each way')}"
    is_regular = found.reason is None
    assert second.endswith("is estimated at 149,000 to 151,000 (95 % interval).") is is_regular
    names = " ".join(line[2:26].strip() for line in (second, *lines))
    assert ("doubtful estimate" in names) is not is_regular
    assert ("standard deviation" in names) is found.is_estimate


def test_the_deviation_of_the_estimate_is_not_said_to_be_that_of_a_verified_load():
    deviations = [finding.deviation for finding in findings_of([soak(), verified(75.0, 20.0)])]
    assert [deviation is None for deviation in deviations] == [False, True]


def test_a_load_that_too_few_frames_verify_has_its_scope_in_seconds_beside_it():
    result = guarded()
    seen = result.critical_load.model_copy(update={"rarest_s": 40.0})
    shown = " ".join(message(result.model_copy(update={"critical_load": seen})).split())
    assert "to verify it; losses rarer than one in 40 s may not have been seen" in shown


def test_a_load_that_was_verified_in_short_trials_only_says_so_and_a_long_search_asks_for_no_longer_one():
    shown = " ".join(message(verified(400.0, None)).split())
    assert "regular, verified in short trials only; losses rarer than one in 400 s" in shown
    assert "to see one in" not in shown


def test_the_page_quotes_no_extrapolated_load_without_saying_so():
    note = "extrapolated: there are too few frames or trials at the critical load to verify it"
    page = report_page([Run(Path("a-run"), (guarded(),))], "a run")
    assert f'<p class="doubt">{note}</p>' in page[page.index('class="quote"') :]
    assert note not in report_page([Run(Path("a-run"), (guarded(verdict=Verdict.VERIFIED),))], "a run")


def test_the_page_shows_everything_that_was_inferred():
    page = report_page([Run(Path("a-run"), (whole(),))], "a run")
    for shown in ("ln of the evidence", "-321.50", "150,100.0", "about 1: counts scatter"):
        assert shown in page
    assert "ln of the evidence" not in report_page([Run(Path("a-run"), (soak(),))], "a run")


def test_trials_at_one_load_are_one_point_with_their_interval_around_the_knee():
    def entry(load, lost):
        output = TrialOutput(lost / load, sent_frames=int(load), lost_frames=lost, unsent_frames=0)
        return JournalEntry(TrialResult(TrialInput(1.0, load), output))

    trials = [entry(MEAN, lost) for lost in (9, 12, 11)] + [entry(MEAN + 100.0, 40)]
    drawn = draw_soak(soak(trials=trials))
    assert f"32 of {3 * int(MEAN):,} frames lost in 3 trials" in drawn
    assert f"40 of {int(MEAN + 100.0):,} frames lost in 1 trial" in drawn
    bars = drawn.count('stroke="#444444"') - draw_soak(soak(trials=trials[2:])).count('stroke="#444444"')
    assert bars == 1


def test_no_other_search_heads_a_page_of_soak_tests():
    page = report_page([Run(Path("a-run"), (whole(),))], "a run")
    assert "Method: PLRsearch (draft-vpolak-bmwg-plrsearch-02)." in page
    assert "The number to quote is the critical load." in page
    assert "conditional throughput" not in page
    both = report_page([Run(Path("a-run"), (whole(), throughput()))], "a run")
    assert "Method: PLRsearch (draft-vpolak-bmwg-plrsearch-02), RFC 9971." in both
    assert "The number to quote is the conditional throughput or the critical load." in both


def test_the_page_quotes_no_critical_load_that_must_not_be_relied_on():
    page = report_page([Run(Path("run"), (soak(limit=SoakLimit.BEYOND_TRIALS),))], "run")
    assert "No number to quote" in page
    assert '<p class="quote">' not in page
    assert "do not reach the target loss ratio" in page[page.index("<tbody>") :]
    assert '<p class="quote">' in report_page([Run(Path("run"), (soak(),))], "run")


def test_a_misfit_is_not_exported_as_a_csit_result():
    with pytest.raises(ReportError, match="do not rely on the number: bursts"):
        csit_export(named(soak(misfit=("bursts",)), identity("soak")))


def test_a_soak_cannot_be_called_measured_when_its_model_does_not_fit():
    data = RESULT.dump_python(soak(misfit=("bursts",)))
    with pytest.raises(ValidationError, match="if and only if its critical load has a reason"):
        RESULT.validate_python(data | {"outcome": "measured"})


def test_a_reconfiguration_loses_frames_for_a_time():
    assert reconfiguration().loss.lost_time_s == 0.025
    assert "5,000 frames are lost at 100,000 frames/s of 64 B each way, as many as are sent in 0.025 s" in message(
        reconfiguration()
    )


def test_the_picture_has_all_trials_and_both_functions():
    picture = draw_soak(soak())
    assert sum(hint.startswith("trial ") for hint in hints(picture)) == 3
    assert {"stretch", "erf", "95 % interval and median of the critical load over time"} <= set(texts(picture))


def test_a_soak_without_trials_has_no_picture():
    assert draw_soak(soak(trials=[])) == ""


def test_csit_gets_the_mean_less_and_plus_a_standard_deviation():
    whole = json.loads(json.dumps(csit_export(named(soak(), identity("soak"))).case))["result"]
    jsonschema.validate(whole, RESULT_SCHEMA)
    data = whole["critical_rate"]
    assert data["lower"]["rate"]["value"] == pytest.approx(2 * (MEAN - STDEV))
    assert data["upper"]["rate"]["value"] == pytest.approx(2 * (MEAN + STDEV))
    with pytest.raises(ReportError, match="have a target loss ratio of 1e-7"):
        csit_export(named(soak(target=1e-6), identity("soak")))


def test_csit_gets_no_more_than_what_passes_in_the_long_run():
    """The mean is that of trials of usual length."""
    rate, result = conditions().rate, soak()
    ends = {"least_95": rate(MEAN - 5 * STDEV), "most_95": rate(MEAN - 3 * STDEV)}
    limited = result.model_copy(update={"critical_load": result.critical_load.model_copy(update=ends)})
    data = csit_export(named(limited, identity("soak"))).case["result"]["critical_rate"]
    assert data["lower"]["rate"]["value"] == data["upper"]["rate"]["value"] == pytest.approx(2 * (MEAN - 3 * STDEV))


def test_csit_gets_the_loss_of_a_reconfiguration():
    data = json.loads(json.dumps(csit_export(named(reconfiguration(), identity("reconf"))).case))["result"]
    assert data["aggregate_rate"]["rate"]["value"] == 200_000.0
    jsonschema.validate(data, RESULT_SCHEMA)
    assert data["loss"] == {"packet": {"value": 5000, "unit": "packets"}, "time": {"value": 0.025, "unit": "s"}}


def test_latency_is_shown_with_the_load_that_it_was_measured_at():
    counted = counters(least_us=5.0, mean_us=9.25, most_us=80.0)
    direction = replace(direction_latency(counted), percentiles_us={"99": 30.0})
    latency = LatencyAtLoad(goal="PDR", share_ratio=0.9, load=conditions().rate(135e3), directions=(direction,))
    result = throughput().model_copy(update={"latency": (latency,)})
    page = report_page([Run(Path("a-run"), (RESULT.validate_json(RESULT.dump_json(result)),))], "a run")
    assert "90 % of PDR, 135.00 kfps per interface" in page
    assert "99 %: 30.0 µs" in page


def test_a_file_of_before_there_was_latency_stays_readable():
    data = RESULT.dump_python(throughput(), mode="json")
    del data["latency"]
    assert RESULT.validate_python(data).latency == ()


def test_the_stated_load_is_named_by_what_it_is():
    older = soak()
    median = conditions().rate(MEAN - STDEV)
    newer = older.model_copy(update={"critical_load": older.critical_load.model_copy(update={"median": median})})
    stated, later = (re.search(r"(estimate \(\w+\)) +([\d,]+) fps", str(one)).groups() for one in (older, newer))
    assert stated == ("estimate (mean)", "150,000")
    assert later == ("estimate (median)", f"{MEAN - STDEV:,.0f}")
