"""Result files that were changed after they were written, by a disk or by a hand, are never read as results."""

import json
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from report_examples import mrr, mrr_results, throughput, throughput_results, with_digest

from lossratio.errors import ReportError
from lossratio.results.contradictions import contradictions_of
from lossratio.results.run_directory import RunDirectory, read_result

EARLIER = Path(__file__).parents[1] / "data" / "converted"
SCHEMA = Path(__file__).parents[3] / "docs" / "schema" / "result.schema.json"
SAMPLES = sorted((EARLIER / "results").glob("*.json"))
CONVERTER = Path(__file__).parents[3] / "tools" / "convert-results"
FORMAT_2 = EARLIER.with_name("format_2")
"""Results of version 0.2.0, with the schema of that version: see README.md there."""
INFERRED = (
    *("log_evidence", "mrr_per_interface_fps", "spread_per_interface_fps"),
    *("capacity_stdev_per_interface_fps", "at_min_ratio", "at_max_ratio"),
)
OF_EVERY_FRAME = (
    *("foreign_frames", "flows_with_loss", "displacement_frames", "extent_frames", "late_offset_us"),
    *("latency_median_us", "latency_99_us", "latency_most_us", "jitter_us", "clock_error_us"),
)
FORMAT_2_SAMPLES = sorted((FORMAT_2 / "results").glob("*.json"))


@pytest.mark.parametrize("path", FORMAT_2_SAMPLES, ids=lambda path: path.stem)
def test_results_of_version_0_2_are_read_and_written_with_the_same_content(path, tmp_path):
    result, as_written = read_result(path), json.loads(path.read_bytes())
    assert result.format == "lossratio-result/2"
    assert result.conditions.controller.lossratio_version == "0.2.0"
    again = json.loads(RunDirectory(tmp_path).write(result).read_bytes())
    # Each trial has a rule now, the time of an early verdict and a rest, and so the digest is another one.
    added = [(trial.pop("rule"), trial.pop("decided_after_s"), trial.pop("rest_s")) for trial in again["trials"]]
    assert added == [(None, None, 0.0)] * len(as_written["trials"])
    # And it may have opened connections, which were answered and forgotten.
    assert {trial.pop("forgotten_s") for trial in again["trials"]} <= {None}
    # And a test has what Robot Framework called it, besides its own name.
    assert again["test"].pop("long_name") is None
    # And late frames are with the trial that sent them, and those of earlier ones are counted apart.
    assert all(way.pop("earlier_late_frames") == [] for trial in again["trials"] for way in trial["directions"])
    # And each direction says how many connections each pass left.
    assert all(way.pop("left_frames") == [] for trial in again["trials"] for way in trial["directions"])
    # And each incident says how many lost frames it explains.
    incidents = [incident for trial in again["trials"] for incident in trial["incidents"]]
    assert {incident.pop("explained_frames") for incident in incidents} <= {0}
    # And each direction says which fields came back changed.
    assert all(way.pop("changed_fields") == [] for trial in again["trials"] for way in trial["directions"])
    assert {trial.pop("late_frames") for trial in again["trials"]} <= {0}
    # And each direction has the frames of each stream.
    assert all(way.pop("by_stream") == [] for trial in again["trials"] for way in trial["directions"])
    # And each direction has findings of generators that look at every frame.
    directions = [direction for trial in again["trials"] for direction in trial["directions"]]
    assert {direction.pop(name) for direction in directions for name in OF_EVERY_FRAME} <= {None}
    assert {direction.pop("unanswered_frames") for direction in directions} <= {None}
    # And each direction says how often the device rejected a connection.
    assert {direction.pop("rejection_frames") for direction in directions} <= {None}
    # And where frames were lost, which queues dropped them, and what was tried to find out why.
    assert {direction.pop("losses") for direction in directions} <= {None}
    assert {again.pop(name, None) for name in ("loss_places", "experiments", "queue_drops")} == {None}
    # And of those that count streams.
    assert all((direction.pop("streams"), direction.pop("refused_frames")) == ([], 0) for direction in directions)
    assert {direction.pop("load_ratio") for direction in directions} <= {1.0}
    # And soak tests have more of what was inferred.
    if found := again.get("critical_load"):
        unknown = ("median", "guard", "csit", "variation", "verified", "supported", "trial_s", "rarest_s", "doubt")
        assert {found.pop(name) for name in (*unknown, "bucket", "pauses")} == {None}
        assert {found.pop(name) for name in ("chance_stdev_ratio", "shared_stdev_ratio")} == {None}
        assert found.pop("process") == []
        assert found.pop("stopping_factor") == 1.0
        newer = ("replicates_chi_squared", "replicates_freedom", "described_below_fps", "heavy_tails_ratio")
        assert {found["fit"].pop(name) for name in (*newer, "scatter", "batch_frames")} == {None}
        assert {point.pop("median_per_interface_fps") for point in found["history"]} == {None}
        assert {function.pop(name) for function in found["functions"] for name in INFERRED} == {None}
    latencies = [direction for at_load in again.get("latency", ()) for direction in at_load["directions"]]
    assert {direction.pop(name) for direction in latencies for name in ("variation_us", "middle_us")} <= {None}
    # And latencies between two machines have the error of both clocks.
    assert {direction.pop("clock_error_us") for direction in latencies} <= {0.0}
    # And DUTs report numbers with units, and the load of their parts.
    duts = [dut for trial in again.get("telemetry", ()) for dut in trial["duts"]]
    assert [dut.pop(name) for dut in duts for name in ("statistics", "workers", "queues", "cpus")] == [[]] * 4 * len(
        duts
    )
    assert {**again, "digest": None} == {**as_written, "digest": None}
    schema = json.loads((FORMAT_2 / "result.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(as_written)


def test_there_is_a_result_of_each_kind_of_that_version_among_those_of_format_2():
    of_that_version = {"frame_loss", "latency", "mrr", "reconfiguration", "soak", "throughput"}
    assert {read_result(path).kind for path in FORMAT_2_SAMPLES} == of_that_version


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


def spread_less(data):
    for name in data["mrr"]["stdev"]:
        data["mrr"]["stdev"][name] = 0.0


def lose_no_time(data):
    data["loss"]["lost_frames"] = 1000


def lose_less(data):
    data["frame_loss"]["loads"][0]["frame_loss_ratio"] = 0.0


def be_quicker(data):
    data["latency"][0]["directions"][0]["mean_us"] = 0.5


def carry_more(data):
    for name in data["critical_load"]["mean"]:
        data["critical_load"]["mean"][name] *= 1.01


def repeat_better(data):
    data["spread"][0]["values_fps"][-1] *= 2


def begin_with_long_trials(data):
    data["goals"][0]["goal"]["initial_trial_duration_s"] = 99.0


def lose_at_no_load(data):
    for name in data["loss"]["load"]:
        data["loss"]["load"][name] = 0.0


def blame_nobody(data):
    data["goals"][0]["result"]["reason"] = "the time ran out"


def count_nothing(data):
    data["trials"][0]["is_evidence"] = False


def set_aside(data):
    data["trials"][1].update(is_evidence=False, set_aside="the generator was stalled for 99 ms")


LIES = [
    ("Sim.Throughput", lose_nothing, "trial 1: loss_ratio is 0.0, and the frames counted make 0."),
    ("Sim.Throughput", count_backwards, "must be at least 0"),
    ("Sim.Throughput", count_in_words, "must be a whole number"),
    ("Sim.Throughput", count_a_truth, "must be a whole number"),
    ("Sim.Throughput", lose_a_sum, "trial 1: lost_frames is 7, and the directions' counters make"),
    ("Sim.Throughput", forward_all, "trial 1: forwarding_rate_per_interface_fps is 400000.0, and load"),
    ("Sim.Throughput", double_a_trial, "trials: number 1 is in place 2"),
    ("Sim.Throughput", drop_a_trial, "trials: number 3 is in place 2"),
    ("Sim.Throughput", begin_later, "goal PDR: relevant_upper_bound.per_interface_fps is"),
    ("Sim.Throughput", double_the_lower_bound, "goal PDR: relevant_lower_bound.per_interface_fps is"),
    ("Sim.Throughput", double_the_throughput, "goal NDR: conditional_throughput.per_interface_fps is"),
    ("Sim.Throughput", be_regular, "goal PDR: regular is False, but the trials give True"),
    ("self-test_64", blame_nobody, "reason is 'the time ran out', but the trials give"),
    ("Sim.Throughput", set_aside, "trials: is_evidence or set_aside is wrong: the warm-up has 1 trial"),
    ("Sim.MRR", count_nothing, "trials: is_evidence or set_aside is wrong: the warm-up has 0 trials"),
    ("Sim.Frame_Loss", set_aside, "trials: is_evidence or set_aside is wrong"),
    ("Sim.Latency", count_nothing, "trials: is_evidence or set_aside is wrong"),
    ("Real.Real_Reconfiguration", count_nothing, "trials: is_evidence or set_aside is wrong"),
    ("Sim.Throughput", change_a_unit, "relevant_upper_bound.aggregate_l1_bps is"),
    ("Sim.Throughput", begin_with_long_trials, "initial_trial_duration must be"),
    ("Real.Real_Reconfiguration", lose_at_no_load, "division by zero"),
    ("Sim.MRR", double_the_mean, "mrr.mean.per_interface_fps is"),
    ("Real.Real_MRR", spread_less, "mrr.stdev.per_interface_fps is 0.0"),
    ("Real.Real_Reconfiguration", lose_no_time, "loss.lost_time_s is 0.0"),
    ("Sim.Frame_Loss", lose_less, "frame_loss.loads[0].frame_loss_ratio is 0.0"),
    ("Sim.Latency", be_quicker, "latency[0] of port0>port1: least, mean and largest latency are out of order"),
    ("Sim.Soak", carry_more, "critical_load.mean is"),
    ("Sim.Repeated", repeat_better, "spread of QUICK_NDR: its last value is not the conditional throughput"),
]


@pytest.mark.whole
@pytest.mark.parametrize(("sample", "lie", "problem"), LIES, ids=lambda value: getattr(value, "__name__", None))
def test_a_result_that_lies_is_refused_although_its_digest_fits(sample, lie, problem, tmp_path):
    data = json.loads((EARLIER / "results" / f"{sample}.json").read_text())
    lie(data)
    path = tmp_path / "lie.json"
    path.write_bytes(with_digest(data))
    with pytest.raises(ReportError, match=rf"lie\.json .*{re.escape(problem)}"):
        read_result(path)


def test_trials_of_a_soak_test_are_set_aside_for_their_counters_only():
    result = read_result(EARLIER / "results" / "Sim.Soak.json")
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


@pytest.fixture
def old_run(tmp_path):
    return Path(shutil.copytree(EARLIER.with_name("format_1"), tmp_path / "run"))


def convert(run):
    return subprocess.run([sys.executable, CONVERTER, run], check=False, capture_output=True, text=True)


@pytest.mark.whole
def test_a_result_of_version_0_1_is_refused_until_it_is_converted(old_run):
    path = old_run / "results" / "Sim.MRR.json"
    old = path.read_bytes()
    with pytest.raises(ReportError, match=r"has the format 'lossratio-result/1'.*tools/convert-results"):
        read_result(path)
    answer = convert(old_run)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert read_result(path) == read_result(EARLIER / "results" / "Sim.MRR.json")
    assert path.with_name("Sim.MRR.json.format-1").read_bytes() == old
    assert len(RunDirectory(old_run).results()) == 2
    assert convert(old_run).stdout == ""


@pytest.mark.whole
def test_an_old_result_that_contradicts_itself_is_not_converted(old_run):
    path = old_run / "results" / "Sim.MRR.json"
    data = json.loads(path.read_text())
    double_the_mean(data)
    path.write_text(json.dumps(data))
    lie = path.read_bytes()
    answer = convert(old_run)
    assert answer.returncode == 1
    assert "Sim.MRR.json is damaged: mrr.mean" in answer.stderr
    assert path.read_bytes() == lie
    assert [path.name for path in (old_run / "results").glob("*.format-1")] == ["Sim.Throughput.json.format-1"]
