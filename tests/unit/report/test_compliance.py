import pytest
from report_examples import BY_THE_BOOK, counted_trial, throughput_of

from lossratio.measurements import CsitExportError
from lossratio.measurements.throughput.compliance import Compliance, compliance_of
from lossratio.measurements.throughput.view import ThroughputView
from lossratio.mlrsearch import NDR, PDR, RFC2544, TST009, SearchGoal

SHORT = SearchGoal(0.0, 0.0, 10.0, 10.0, 0.005, name="short")


@pytest.mark.parametrize(
    ("goal", "compliance", "reason"),
    [
        (RFC2544, Compliance.UNCONDITIONAL, None),
        (SHORT, Compliance.CONDITIONAL, "the final trial is 10 s"),
        (TST009, Compliance.NONE, "more may be lost in 0.5 of the trials' time"),
        (NDR, Compliance.NONE, "more may be lost in 0.5 of the trials' time"),
        (PDR, Compliance.NONE, "a loss ratio of 0.005 is allowed"),
    ],
)
def test_goals_comply_as_rfc_9971_says(goal, compliance, reason):
    (statement,) = compliance_of(throughput_of([counted_trial(50_000.0)], (goal,)))
    assert statement.compliance is compliance
    assert reason is None or reason in statement.reasons


def test_departures_of_the_trial_are_said_whatever_the_goal_is():
    result = throughput_of([counted_trial(50_000.0)], (RFC2544,))
    assert compliance_of(result)[0].reasons[-1].startswith("the trial departs from section 23: learning frames")


def test_a_trial_by_the_book_leaves_nothing_to_say():
    result = throughput_of([counted_trial(50_000.0)], (RFC2544,))
    conditions = result.conditions.model_copy(update={"timing": BY_THE_BOOK})
    assert compliance_of(result.model_copy(update={"conditions": conditions}))[0].reasons == ()


def with_early_verdicts(goal):
    result = throughput_of([counted_trial(50_000.0)], (goal,))
    return result.model_copy(update={"settings": {**result.settings, "early_verdict": True}})


def test_with_early_verdicts_no_goal_complies_unconditionally():
    (statement,) = compliance_of(with_early_verdicts(RFC2544))
    assert (statement.compliance, statement.reasons[0]) == (Compliance.CONDITIONAL, "high-loss trials end early")


def test_with_early_verdicts_nothing_is_exported_as_csits():
    with pytest.raises(
        CsitExportError, match="measured with early verdicts, but CSIT's trials take their whole duration"
    ):
        ThroughputView().csit(with_early_verdicts(NDR))
