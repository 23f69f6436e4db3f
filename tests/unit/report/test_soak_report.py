"""Results of soak tests and of a reconfiguration: their files, pictures, pages, and what CSIT gets."""

import json
from pathlib import Path

import jsonschema
import pytest
from pydantic import ValidationError
from report_examples import RESULT, conditions, throughput
from soak_examples import MEAN, STDEV, TRIALS, fitted, lacking_frames, reconfiguration, soak, stalled
from test_csit_export import RESULT as RESULT_SCHEMA, identity, named
from test_loss_picture import hints, texts

from lossratio.drawing.plot import SET_ASIDE, mark_of
from lossratio.errors import ReportError
from lossratio.measurements.soak.view import draw_soak
from lossratio.plrsearch import CsitEstimate, LimitReached
from lossratio.report.csit import csit_export
from lossratio.report.page import report_page
from lossratio.report.run import Run
from lossratio.results.findings import doubts_of, findings_of, message
from lossratio.results.model import Outcome
from lossratio.results.note import NoteKind
from lossratio.trials.journal_lines import JournalEntry
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import TrialOutput


def known_to(share, trials):
    """A soak test whose contradicted load is this share above the verified one."""
    return soak(trials=trials, contradicted=conditions().rate(MEAN * (1 + share)))


def test_a_trial_with_a_long_stall_is_set_aside_and_marked_in_the_picture():
    result = soak(trials=[*TRIALS, stalled(0.0021)])
    assert [trial.is_evidence for trial in result.trials] == [True, True, True, False]
    assert result.trials[-1].set_aside == "the generator was stalled for 2.1 ms, but at most 2 ms are allowed"
    assert mark_of(result.trials[-1]) is SET_ASIDE
    assert SET_ASIDE.label in draw_soak(result)


def test_stalls_that_may_have_moved_the_critical_load_out_of_its_interval_are_a_doubt():
    trials = [*TRIALS, stalled(0.0012, duration=2.0), stalled(0.0009, duration=2.0)]
    ((doubt,),) = doubts_of([known_to(0.001, trials)])
    assert doubt.kind is NoteKind.GENERATOR_STALLS
    assert doubt.text.startswith("in 1 trial with loss, the generator was stalled for up to 0.06 % of their duration")


@pytest.mark.parametrize(
    ("share", "lateness", "lost"), [(0.0014, 0.0012, 10), (0.0002, 0.0009, 10), (0.0002, 0.0012, 0)]
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
    with pytest.raises(ValidationError, match="a failed soak test has no critical load"):
        RESULT.validate_python(RESULT.dump_python(soak()) | {"critical_load": None})


def test_a_critical_load_is_found_between_its_bounds():
    (finding,) = findings_of([soak()])
    assert (finding.quantity, finding.outcome) == ("critical load", Outcome.MEASURED)
    assert finding.value == finding.lower_bound == conditions().rate(MEAN)
    assert finding.upper_bound == conditions().rate(MEAN + STDEV)
    assert "critical load (loss ratio 1e-7 in trials of 2 s and 20 s):" in message(soak())


def test_the_page_quotes_no_load_that_lacks_frames_without_saying_so():
    note = "extrapolated: there are too few frames at the load to verify it"
    page = report_page([Run(Path("a-run"), (soak(found=lacking_frames()),))], "a run")
    assert f"<p>Note: {note}; " in page
    assert note not in report_page([Run(Path("a-run"), (soak(),))], "a run")


def test_trials_at_one_load_are_one_point_with_their_interval_around_the_knee():
    def entry(load, lost):
        output = TrialOutput(lost / load, sent_frames=int(load), lost_frames=lost, unsent_frames=0)
        return JournalEntry.of(TrialResult(TrialInput(1.0, load), output))

    trials = [entry(MEAN, lost) for lost in (9, 12, 11)] + [entry(MEAN + 100.0, 40)]
    drawn = draw_soak(soak(trials=trials))
    assert f"32 of {3 * int(MEAN):,} frames lost in 3 trials" in drawn
    assert f"40 of {int(MEAN + 100.0):,} frames lost in 1 trial" in drawn
    bars = drawn.count('stroke="#444444"') - draw_soak(soak(trials=trials[2:])).count('stroke="#444444"')
    assert bars == 1


def test_no_other_search_heads_a_page_of_soak_tests():
    page = report_page([Run(Path("a-run"), (soak(),))], "a run")
    assert "Method: search by counts for the critical load." in page
    assert "The number to quote is the critical load." in page
    assert "conditional throughput" not in page
    both = report_page([Run(Path("a-run"), (soak(), throughput()))], "a run")
    assert "Method: RFC 9971, search by counts for the critical load." in both
    assert "The number to quote is the conditional throughput or the critical load." in both


def test_the_page_quotes_no_critical_load_that_must_not_be_relied_on():
    page = report_page([Run(Path("run"), (soak(limit=LimitReached.AT_LEAST, reason="it may be above"),))], "run")
    quoted = '<th scope="col">number to quote</th>'
    assert quoted not in page
    assert '<p><span class="irregular">critical load is irregular: it may be above</span></p>' in page
    assert quoted in report_page([Run(Path("run"), (soak(),))], "run")


def test_an_irregular_load_is_not_exported_as_a_csit_result():
    with pytest.raises(ReportError, match="irregular: no load is verified"):
        csit_export(named(soak(verified=None, reason="no load is verified"), identity("soak")))


def test_a_soak_cannot_be_called_measured_when_it_is_irregular():
    data = RESULT.dump_python(soak(verified=None, reason="no load is verified"))
    with pytest.raises(ValidationError, match="an irregular soak test has a reason"):
        RESULT.validate_python(data | {"outcome": "measured"})


def test_a_reconfiguration_loses_frames_for_a_time():
    assert reconfiguration().loss.lost_time_s == 0.025
    assert "5,000 frames are lost at 100,000 frames/s of 64 B each way, as many as are sent in 25 ms" in message(
        reconfiguration()
    )


def test_the_picture_has_all_trials_and_both_functions():
    picture = draw_soak(soak(plrsearch=fitted()))
    # Two of them are near the critical load, and also in the picture of the loads over time.
    assert sum(hint.startswith("trial ") for hint in hints(picture)) == 5
    assert {"stretch", "erf", "load of the trials over time"} <= set(texts(picture))
    assert "stretch" not in texts(draw_soak(soak()))


def test_a_soak_without_trials_has_no_picture():
    assert draw_soak(soak(trials=[])) == ""


def test_csit_gets_the_verified_and_the_contradicted_load():
    whole = json.loads(json.dumps(csit_export(named(soak(), identity("soak"))).case))["result"]
    jsonschema.validate(whole, RESULT_SCHEMA)
    data = whole["critical_rate"]
    assert data["lower"]["rate"]["value"] == pytest.approx(2 * MEAN)
    assert data["upper"]["rate"]["value"] == pytest.approx(2 * (MEAN + STDEV))
    with pytest.raises(ReportError, match="the target loss ratio of CSIT's soak tests is 1e-7"):
        csit_export(named(soak(target=1e-6), identity("soak")))


def test_csit_gets_its_own_mean_less_and_plus_a_standard_deviation_also_if_no_load_is_verified():
    own = CsitEstimate(9, MEAN, STDEV, MEAN, MEAN, 1000)
    irregular = soak(csit=own, verified=None, reason="no load is verified")
    data = csit_export(named(irregular, identity("soak"))).case["result"]["critical_rate"]
    assert data["lower"]["rate"]["value"] == pytest.approx(2 * (MEAN - STDEV))
    assert data["upper"]["rate"]["value"] == pytest.approx(2 * (MEAN + STDEV))


def test_csit_gets_the_loss_of_a_reconfiguration():
    data = json.loads(json.dumps(csit_export(named(reconfiguration(), identity("reconf"))).case))["result"]
    assert data["aggregate_rate"]["rate"]["value"] == 200_000.0
    jsonschema.validate(data, RESULT_SCHEMA)
    assert data["loss"] == {"packet": {"value": 5000, "unit": "packets"}, "time": {"value": 0.025, "unit": "s"}}
