"""Result files that were changed after they were written, by a disk or by a hand, are never read as results."""

import json
import random
import re
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from report_examples import mrr, mrr_results, throughput, throughput_results, with_digest

from lossratio.errors import ReportError
from lossratio.results.contradictions import contradictions_of
from lossratio.results.run_directory import RunDirectory, read_result

RUN = Path(__file__).parents[1] / "data" / "0.3.0"
"""A run of version 0.3.0: see README.md there."""
SAMPLES = sorted((RUN / "results").glob("*.json"))
SCHEMA = Path(__file__).parents[3] / "docs" / "schema" / "result.schema.json"


@pytest.mark.whole
@given(throughput_results() | mrr_results())
def test_no_result_that_this_version_builds_contradicts_itself(result):
    assert list(contradictions_of(result)) == []


@pytest.mark.whole
@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_no_flip_of_a_bit_is_accepted(path, tmp_path):
    written = RunDirectory(tmp_path).write(read_result(path))
    whole, randomness = written.read_bytes(), random.Random(path.stem)
    last = range(8 * (len(whole) - 60), 8 * len(whole))
    for place in [*randomness.sample(range(8 * len(whole)), 50), *randomness.sample(last, 20)]:
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << place % 8
        written.write_bytes(flipped)
        with pytest.raises(ReportError, match=re.escape(str(written))):
            read_result(written)


@pytest.mark.whole
def test_a_file_fits_the_schema(tmp_path):
    written = RunDirectory(tmp_path).write(throughput())
    jsonschema.Draft202012Validator(json.loads(SCHEMA.read_text())).validate(json.loads(written.read_text()))
    assert re.fullmatch("[0-9a-f]{32}", json.loads(written.read_text())["digest"])


def lose_nothing(data):
    data["trials"][0]["loss_ratio"] = 0.0


def count_backwards(data):
    data["trials"][0]["directions"][0]["received_frames"] = -1


def count_in_words(data):
    data["trials"][0]["lost_frames"] = str(data["trials"][0]["lost_frames"])


def count_a_truth(data):
    data["trials"][0]["unsent_frames"] = False


def lose_a_sum(data):
    data["trials"][0]["lost_frames"] = 7


def forward_all(data):
    data["trials"][0]["forwarding_rate_per_interface_fps"] = 400_000.0


def double_a_trial(data):
    data["trials"].insert(1, data["trials"][0])


def drop_a_trial(data):
    del data["trials"][1]


def begin_later(data):
    del data["trials"][-1]


def double_the_lower_bound(data):
    for name in data["goals"][0]["result"]["relevant_lower_bound"]:
        data["goals"][0]["result"]["relevant_lower_bound"][name] *= 2


def double_the_throughput(data):
    for name in data["goals"][1]["result"]["conditional_throughput"]:
        data["goals"][1]["result"]["conditional_throughput"][name] *= 2


def be_regular(data):
    data["goals"][0]["result"].update(regular=False, reason="the time ran out")
    data["outcome"] = "irregular"


def change_a_unit(data):
    data["goals"][0]["result"]["relevant_upper_bound"]["aggregate_l1_bps"] *= 10


def double_the_mean(data):
    for name in data["mrr"]["mean"]:
        data["mrr"]["mean"][name] *= 2


def spread_more(data):
    for name in data["mrr"]["stdev"]:
        data["mrr"]["stdev"][name] = 5.0


def lose_no_time(data):
    data["loss"]["lost_frames"] = 1000


def lose_at_no_load(data):
    for name in data["loss"]["load"]:
        data["loss"]["load"][name] = 0.0


def lose_less(data):
    data["frame_loss"]["loads"][0]["frame_loss_ratio"] = 0.0


def be_quicker(data):
    data["latency"][0]["directions"][0]["mean_us"] = 0.5


def carry_more(data):
    for load in ("stated", "verified"):
        for name in data["critical_load"][load]:
            data["critical_load"][load][name] *= 1.001


def begin_with_long_trials(data):
    data["goals"][0]["goal"]["initial_trial_duration_s"] = 99.0


def blame_nobody(data):
    data["goals"][0]["result"]["reason"] = "the time ran out"


def count_nothing(data):
    data["trials"][0]["is_evidence"] = False


def set_aside(data):
    data["trials"][1].update(is_evidence=False, set_aside="the generator was stalled for 99 ms")


LIES = [
    ("Sim.Throughput", lose_nothing, "trial 1: loss_ratio is 0.0, but the counted frames give 0."),
    ("Sim.Throughput", count_backwards, "must be at least 0"),
    ("Sim.Throughput", count_in_words, "must be a whole number"),
    ("Sim.Throughput", count_a_truth, "must be a whole number"),
    ("Sim.Throughput", lose_a_sum, "trial 1: lost_frames is 7, but the directions' counters add up to"),
    ("Sim.Throughput", forward_all, "trial 1: forwarding_rate_per_interface_fps is 400000.0, but load"),
    ("Sim.Throughput", double_a_trial, "trials: number 1 is in place 2"),
    ("Sim.Throughput", drop_a_trial, "trials: number 3 is in place 2"),
    ("Sim.Throughput", begin_later, "goal QUICK_NDR: relevant_upper_bound.per_interface_fps is"),
    ("Sim.Throughput", double_the_lower_bound, "goal QUICK_NDR: relevant_lower_bound.per_interface_fps is"),
    ("Sim.Throughput", double_the_throughput, "goal QUICK_PDR: conditional_throughput.per_interface_fps is"),
    ("Sim.Throughput", be_regular, "goal QUICK_NDR: regular is False, but the trials give True"),
    ("Sim.At_The_Maximum", blame_nobody, "reason is 'the time ran out', but the trials give"),
    ("Sim.Throughput", set_aside, "trials: is_evidence or set_aside is wrong: the warm-up has 1 trial"),
    ("Sim.MRR", count_nothing, "trials: is_evidence or set_aside is wrong: the warm-up has 0 trials"),
    ("Sim.Frame_Loss", set_aside, "trials: is_evidence or set_aside is wrong"),
    ("Real.Reconfiguration", count_nothing, "trials: is_evidence or set_aside is wrong"),
    ("Real.Reconfiguration", lose_at_no_load, "division by zero"),
    ("Real.Reconfiguration", lose_no_time, "loss.lost_time_s is"),
    ("Sim.Throughput", change_a_unit, "relevant_upper_bound.aggregate_l1_bps is"),
    ("Sim.Throughput", begin_with_long_trials, "initial_trial_duration must be"),
    ("Sim.MRR", double_the_mean, "mrr.mean.per_interface_fps is"),
    ("Sim.MRR", spread_more, "mrr.stdev.per_interface_fps is 5.0"),
    ("Sim.Frame_Loss", lose_less, "frame_loss.loads[0].frame_loss_ratio is 0.0"),
    ("Sim.Throughput", be_quicker, "latency[0] of port0>port1: smallest, mean and largest latency are out of order"),
    ("Sim.Soak", carry_more, "critical_load.verified is"),
]


@pytest.mark.whole
@pytest.mark.parametrize(("sample", "lie", "problem"), LIES, ids=lambda value: getattr(value, "__name__", None))
def test_a_result_that_lies_is_refused_although_its_digest_fits(sample, lie, problem, tmp_path):
    data = json.loads((RUN / "results" / f"{sample}.json").read_text())
    lie(data)
    path = tmp_path / "lie.json"
    path.write_bytes(with_digest(data))
    with pytest.raises(ReportError, match=rf"lie\.json .*{re.escape(problem)}"):
        read_result(path)


def test_trials_of_a_soak_test_are_set_aside_for_their_counters_only():
    result = read_result(RUN / "results" / "Sim.Soak.json")
    assert list(contradictions_of(result)) == []
    reason = "the generator was stalled for 99 ms"
    aside = result.trials[1].model_copy(update={"is_evidence": False, "set_aside": reason})
    lying = result.model_copy(update={"trials": (result.trials[0], aside, *result.trials[2:])})
    wrong = "trials: is_evidence or set_aside is wrong: the warm-up has 0 trials"
    assert list(contradictions_of(lying)) == [f"{wrong}: those of trial 2, whose counters make None"]


def test_a_search_may_end_early_for_any_reason():
    result = throughput(trials=5)
    first, *rest = result.goals
    late = first.result.model_copy(update={"reason": "the time ran out"})
    lying = result.model_copy(update={"goals": (first.model_copy(update={"result": late}), *rest)})
    assert list(contradictions_of(lying)) == []


def test_a_lie_is_refused_and_the_version_is_named(tmp_path):
    data = json.loads(RunDirectory(tmp_path).write(mrr()).read_text())
    double_the_mean(data)
    path = tmp_path / "lie.json"
    path.write_bytes(with_digest(data))
    with pytest.raises(ReportError, match=r"lie\.json is damaged: mrr\.mean.*measured by lossratio 0\.1\.0"):
        read_result(path)


def test_a_change_that_makes_no_difference_to_any_number_is_noticed(tmp_path):
    path = RunDirectory(tmp_path).write(mrr())
    path.write_text(path.read_text().replace("bookworm", "trixie", 1))
    with pytest.raises(ReportError, match=r"is damaged: its digest does not match.*lossratio archive repair"):
        read_result(path)
