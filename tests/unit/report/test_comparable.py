"""Verdicts that would be wrong without a word: other conditions, limits, results that are there twice."""

import pytest
from latency_examples import at, counters, failed, result as latency
from report_examples import MAX_LOAD, conditions, mrr, throughput
from soak_examples import soak

from lossratio.mlrsearch import NDR
from lossratio.report.comparison import Verdict, compare, comparison_table
from lossratio.report.failures import WithoutResult
from lossratio.report.run import Run
from lossratio.results import digest_of, findings_of
from lossratio.results.conditions import LoadOrigin
from lossratio.results.note import NoteKind, noted
from lossratio.simulation.constant_capacity import SharpKnee


def in_runs(*results):
    return [Run(f"run-{number}", (result,)) for number, result in enumerate(results)]


def quantity_of(before, after):
    (quantity,) = compare(in_runs(*before), in_runs(*after)).quantities
    return quantity


def with_rate(per_interface, base=None):
    base = base or mrr()
    rates = {"mean": conditions().rate(per_interface), "stdev": conditions().rate(0.0)}
    return base.model_copy(update={"mrr": base.mrr.model_copy(update=rates)})


def under(result, **changed):
    return result.model_copy(update={"conditions": result.conditions.model_copy(update=changed)})


def other_path(result):
    testbed = result.conditions.testbed
    return under(result, testbed=testbed.model_copy(update={"path": testbed.path[::-1]}))


def smaller_load(result):
    return result.model_copy(update={"max_load": conditions().max_load(MAX_LOAD / 2, LoadOrigin.GENERATOR)})


def longer_trials(result):
    trials = tuple(trial.model_copy(update={"duration_s": 10.0}) for trial in result.trials)
    return result.model_copy(update={"trials": trials})


def fatter_frames(result):
    load = result.conditions.load.model_copy(update={"encapsulation_overhead_bytes": 50})
    return under(result, load=load)


@pytest.mark.parametrize(
    ("other", "aspect"),
    [
        (other_path, "traffic path"),
        (smaller_load, "load"),
        (longer_trials, "trial duration"),
        (fatter_frames, "directions"),
    ],
)
def test_rates_of_other_conditions_are_not_compared(other, aspect):
    quantity = quantity_of([with_rate(1e5), with_rate(1.01e5)], [other(with_rate(8e4)), other(with_rate(8.1e4))])
    assert (quantity.verdict, quantity.note) == (Verdict.NOT_COMPARABLE, f"the runs differ in {aspect}")


def test_rates_with_early_verdicts_are_neither_compared_with_others_nor_in_their_trend():
    def early(result):
        return result.model_copy(update={"settings": {**result.settings, "early_verdict": True}})

    whole = throughput(goals=(NDR,))
    found = quantity_of([whole], [early(whole)])
    assert (found.verdict, found.note) == (Verdict.NOT_COMPARABLE, "the runs differ in goal")
    keys = [digest_of(finding) for finding in findings_of([whole, early(whole), early(whole)])]
    assert keys[0] != keys[1] == keys[2]


def test_the_same_traffic_in_the_words_of_another_version_is_the_same():
    described = with_rate(1e5).conditions.traffic.model_copy(update={"profile": {"name": "ethip4-udp", "new": None}})
    quantity = quantity_of([with_rate(1e5), with_rate(1.01e5)], [under(with_rate(8e4), traffic=described)] * 2)
    assert quantity.verdict is Verdict.TOO_FEW


def test_critical_loads_of_other_target_loss_ratios_are_not_compared():
    quantity = quantity_of([soak()], [soak(target=1e-3)])
    assert (quantity.verdict, quantity.note) == (Verdict.NOT_COMPARABLE, "the runs differ in target loss ratio")


def test_results_that_failed_beside_others_are_reported():
    quantity = quantity_of(
        [with_rate(1e5 + step) for step in range(3)], [with_rate(1e5 + 0.5), mrr(error="agent lost")]
    )
    assert quantity.verdict is Verdict.UNCHANGED
    assert quantity.note == "B, 1 of 2 failed: agent lost"


@pytest.mark.whole
def test_values_that_are_the_generators_maximum_load_are_reported():
    fast = [throughput(SharpKnee(capacity=9e6), (NDR,), seed=seed) for seed in (1, 2)]
    fast[1] = fast[1].model_copy(update={"remarks": (noted("another night"),)})
    quantity = quantity_of([throughput(goals=(NDR,), seed=seed) for seed in (1, 2)], fast)
    assert "B, 2 of 2 irregular: the generator's maximum load" in quantity.note
    assert "the generator's maximum load" in comparison_table(
        compare(in_runs(throughput(goals=(NDR,))), in_runs(fast[0]))
    )


def test_a_rate_that_the_sut_did_not_limit_is_reported():
    quantity = quantity_of([mrr()], [mrr(SharpKnee(capacity=1e7), max_rate=380_000)])
    assert quantity.note.startswith("B: up to 4.999 % of the frames at one load were unsent")
    assert quantity.note.endswith("; B, 1 of 1 no frame was lost at maximum load: the SUT may forward more")


def test_values_of_conditions_that_changed_during_the_measurement_have_a_caveat():
    forced = with_rate(1e5).model_copy(
        update={"remarks": (noted("resumed by force, although DUT1 is another one", NoteKind.CAVEAT),)}
    )
    assert "B, 1 of 1 resumed by force, although DUT1 is another one" in quantity_of([with_rate(1e5)], [forced]).note


def test_a_quantity_without_a_single_value_is_not_compared():
    quantity = quantity_of([latency(at(1e5, counters()))], [latency(at(1e5, counters()), at(2e5, counters()))])
    note = "latency has no single value: see the reports"
    assert (quantity.verdict, quantity.note) == (Verdict.NOT_COMPARABLE, note)


def test_a_latency_that_cannot_be_measured_any_more_is_a_regression():
    quantity = quantity_of([latency(at(1e5, counters()))], [latency(failed(1e5))])
    assert quantity.verdict is Verdict.REGRESSION
    assert "B has no value" in quantity.note
    assert "Interface tg0 went down" in quantity.note


def test_a_run_that_is_there_twice_counts_once():
    result = with_rate(1e5)
    (quantity,) = compare([*in_runs(result), *in_runs(result, with_rate(2e5))], in_runs(with_rate(9e4))).quantities
    assert (len(quantity.before.values), len(quantity.after.values)) == (2, 1)


def test_no_result_is_compared_with_itself():
    tonight = with_rate(9e4)
    (quantity,) = compare(in_runs(with_rate(1e5), tonight), in_runs(tonight)).quantities
    assert quantity.before.values == (1e5,)


def test_tests_that_were_cut_off_are_reported():
    cut_off = WithoutResult("64B-ndrpdr", "", "cut off", "the run ended")
    after = Run("tonight", (with_rate(9e4),), (cut_off,))
    assert "tonight: 64B-ndrpdr was cut off: the run ended" in comparison_table(
        compare(in_runs(with_rate(1e5)), [after])
    )
