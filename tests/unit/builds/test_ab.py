from __future__ import annotations

import json
import re

import pytest
from patches_examples import set_capacity, write_lab


@pytest.fixture
def lab(tmp_path):
    return write_lab(tmp_path)


@pytest.fixture
def run_ab(lossratio):
    def run(lab, a, b, *more):
        options = ["--set-up-a", a, "--set-up-b", b, "--topology", lab, "--output", lab.parent / "ab"]
        return lossratio("ab", *options, *more, lab.parent / "mrr.robot")

    return run


def measurements(lab):
    lines = (lab.parent / "ab" / "measurements.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines[1:]]


def steps(done):
    return re.findall(r"^ +\d+  [AB]  .*$|.*measurements\.$", done.out, flags=re.MULTILINE)


def test_a_slower_build_is_found_in_every_test_with_exit_status_3(lab, run_ab):
    result = run_ab(lab, set_capacity(lab, 150), set_capacity(lab, 145))
    assert result.status == 3
    assert "64B-mrr MRR: B is slower than A by -3.3" in result.out
    assert "1518B-mrr MRR: B is slower than A by -3.3" in result.out
    assert [measurement["build"] for measurement in measurements(lab)] == list("ABBAABBA")


def test_builds_that_are_the_same_are_no_alarm(lab, run_ab):
    result = run_ab(lab, set_capacity(lab, 150), set_capacity(lab, 150.1), "--test", "64B-mrr")
    assert result.status == 0
    assert "B is the same as A" in result.out
    assert "1518B" not in result.out


def test_a_comparison_that_was_cut_off_goes_on_where_it_was(lab, run_ab):
    first = run_ab(lab, set_capacity(lab, 150), set_capacity(lab, 145), "--test", "64B-mrr")
    record = lab.parent / "ab" / "measurements.jsonl"
    lines = record.read_text().splitlines(keepends=True)
    record.write_text("".join(lines[:6]) + '{"build": "B", "val')
    counted = (lab.parent / "measured").with_suffix(".count")
    count = f"echo x >> '{counted}'; "
    again = run_ab(lab, set_capacity(lab, 150), set_capacity(lab, 145), "--test", "64B-mrr")
    # The measurements that were cut off are measured again, and the others are not.
    assert steps(again) == steps(first)
    assert again.out.count("Running suite") == 3
    assert len(measurements(lab)) == 8
    other = run_ab(lab, count + set_capacity(lab, 150), set_capacity(lab, 145), "--test", "64B-mrr")
    assert (other.status, "has another request" in other.err) == (2, True)


def test_a_set_up_that_fails_ends_it_with_what_was_printed(lab, run_ab):
    result = run_ab(lab, set_capacity(lab, 150), "echo no such package; exit 7")
    assert result.status == 1
    assert "The set-up of B failed with exit status 7" in result.err
    assert "no such package" in result.err
    assert [measurement["build"] for measurement in measurements(lab)] == ["A"]


def test_a_run_that_fails_ends_it_with_its_exit_status(lab, run_ab):
    result = run_ab(lab, set_capacity(lab, 150), f"echo nonsense > '{lab}'")
    assert result.status == 2
    assert "The run failed with exit status 2" in result.err


def test_a_quantity_that_nothing_measures_is_an_error(lab, run_ab):
    result = run_ab(lab, "true", "true", "--quantity", "NDR")
    assert result.status == 1
    assert "The run measured nothing called NDR" in result.err
