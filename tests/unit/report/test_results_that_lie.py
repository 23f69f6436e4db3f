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


def change_a_unit(data):
    data["goals"][0]["result"]["relevant_upper_bound"]["aggregate_l1_bps"] *= 10


LIES = [
    ("Sim.Throughput", lose_nothing, "trial 1: loss_ratio is 0.0, but the counted frames give 0."),
    ("Sim.Throughput", count_backwards, "must be at least 0"),
    ("Sim.Throughput", count_in_words, "must be a whole number"),
    ("Sim.Throughput", count_a_truth, "must be a whole number"),
    ("Sim.Throughput", lose_a_sum, "trial 1: lost_frames is 7, but the directions' counters add up to"),
    ("Sim.Throughput", forward_all, "trial 1: forwarding_rate_per_interface_fps is 400000.0, but load"),
    ("Sim.Throughput", double_a_trial, "trials: number 1 is in place 2"),
    ("Sim.Throughput", drop_a_trial, "trials: number 3 is in place 2"),
    ("Sim.Throughput", change_a_unit, "relevant_upper_bound.aggregate_l1_bps is"),
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


def test_a_lie_is_refused_and_the_version_is_named(tmp_path):
    data = json.loads(RunDirectory(tmp_path).write(mrr()).read_text())
    data["mrr"]["mean"]["aggregate_fps"] *= 2
    path = tmp_path / "lie.json"
    path.write_bytes(with_digest(data))
    with pytest.raises(ReportError, match=r"lie\.json is damaged: mrr\.mean.*measured by lossratio 0\.1\.0"):
        read_result(path)


def test_a_change_that_makes_no_difference_to_any_number_is_noticed(tmp_path):
    path = RunDirectory(tmp_path).write(mrr())
    path.write_text(path.read_text().replace("bookworm", "trixie", 1))
    with pytest.raises(ReportError, match=r"is damaged: its digest does not match.*lossratio archive repair"):
        read_result(path)
