from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from patches_examples import set_capacity, write_lab

from lossratio.commands.builds import ab
from lossratio.errors import JobError


@pytest.fixture
def lab(tmp_path):
    return write_lab(tmp_path)


def run_ab(lab, a, b, *more):
    arguments = ["--set-up-a", a, "--set-up-b", b, "--topology", str(lab), "--output", str(lab.parent / "ab")]
    return CliRunner().invoke(ab, [*arguments, *more, str(lab.parent / "mrr.robot")], catch_exceptions=False)


def measurements(lab):
    lines = (lab.parent / "ab" / "measurements.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines[1:]]


def test_a_slower_build_is_found_in_every_test_with_exit_status_3(lab):
    result = run_ab(lab, set_capacity(lab, 150), set_capacity(lab, 145))
    assert result.exit_code == 3
    assert "64B-mrr MRR: B is slower than A by -3.3" in result.output
    assert "1518B-mrr MRR: B is slower than A by -3.3" in result.output
    assert [each["build"] for each in measurements(lab)] == list("ABBAABBA")


def test_builds_that_are_the_same_are_no_alarm(lab):
    result = run_ab(lab, set_capacity(lab, 150), set_capacity(lab, 150.1), "--test", "64B-mrr")
    assert result.exit_code == 0
    assert "B is the same as A" in result.output
    assert "1518B" not in result.output


def test_a_comparison_that_was_cut_off_goes_on_where_it_was(lab):
    first = run_ab(lab, set_capacity(lab, 150), set_capacity(lab, 145), "--test", "64B-mrr")
    record = lab.parent / "ab" / "measurements.jsonl"
    lines = record.read_text().splitlines(keepends=True)
    record.write_text("".join(lines[:6]) + '{"build": "B", "val')
    counted = (lab.parent / "measured").with_suffix(".count")
    count = f"echo x >> '{counted}'; "
    again = run_ab(lab, set_capacity(lab, 150), set_capacity(lab, 145), "--test", "64B-mrr")
    assert again.output == first.output
    assert len(measurements(lab)) == 8
    with pytest.raises(JobError, match="is of something else"):
        run_ab(lab, count + set_capacity(lab, 150), set_capacity(lab, 145), "--test", "64B-mrr")


def test_a_set_up_that_fails_ends_it_with_what_was_printed(lab):
    result = run_ab(lab, set_capacity(lab, 150), "echo no such package; exit 7")
    assert result.exit_code == 1
    assert "The set-up of B failed with exit status 7" in result.output
    assert "no such package" in result.output
    assert [each["build"] for each in measurements(lab)] == ["A"]


def test_a_run_that_fails_ends_it_with_its_exit_status(lab):
    result = run_ab(lab, set_capacity(lab, 150), f"echo nonsense > '{lab}'")
    assert result.exit_code == 2
    assert "The run failed with exit status 2" in result.output


def test_a_quantity_that_nothing_measures_is_an_error(lab):
    result = run_ab(lab, "true", "true", "--quantity", "NDR")
    assert result.exit_code == 1
    assert "The run measured nothing called NDR" in result.output
