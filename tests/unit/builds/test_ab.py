from __future__ import annotations

import json
import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from patches_examples import git, make_repository, set_capacity, set_up_revision, write_lab

from lossratio.runs.builds import BuildBench
from lossratio.runs.run import RunOutcome
from lossratio.values.exit_status import ExitStatus

ROOT = Path(__file__).parents[3]


@pytest.fixture
def lab(tmp_path):
    return write_lab(tmp_path)


@pytest.fixture
def run_ab(lossratio):
    def run(lab, a, b, *more):
        options = ["--set-up-a", a, "--set-up-b", b, "--topology", lab, "--output", lab.parent / "ab"]
        return lossratio("builds", "ab", *options, *more, lab.parent / "mrr.robot")

    return run


def measurements(lab):
    lines = (lab.parent / "ab" / "measurements.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines[1:]]


def steps(done):
    """The measurements of a comparison of one test, and its verdict without line breaks."""
    made = re.findall(r"^ +\d+  [AB]  .*$", done.out, flags=re.MULTILINE)
    verdict = done.out.partition("64B-mrr MRR: ")[2]
    return [*made, " ".join(verdict.split())]


@pytest.mark.whole
def test_a_slower_build_is_found_in_every_test_with_exit_status_3(lab, run_ab):
    result = run_ab(lab, set_capacity(lab, 150), set_capacity(lab, 145))
    assert result.status == 3
    assert "64B-mrr MRR: B is slower than A by 3.3" in result.out
    assert "1518B-mrr MRR: B is slower than A by 3.3" in result.out
    assert [measurement["build"] for measurement in measurements(lab)] == list("BABAABBABABABABA")


@pytest.mark.whole
def test_the_verdicts_are_a_comment_for_a_pull_request(lab, run_ab):
    comment = lab.parent / "comment.md"
    run_ab(lab, set_capacity(lab, 150), set_capacity(lab, 145), "--certainty", "99", "--markdown", comment)
    lines = comment.read_text().splitlines()
    assert lines[0] == "### Data plane throughput of B compared with A: slower"
    assert "| test | B is | change | 99 % interval | measurements |" in lines
    row = next(line for line in lines if "64B-mrr MRR |" in line)
    # Both ends of the interval may be the same after rounding, or the values do not vary.
    interval = r"(none: the values do not vary|-\d\.\d\d %( to -\d\.\d\d %)?)"
    assert re.fullmatch(rf"\| \S*64B-mrr MRR \| \*\*slower\*\* \| -3\.3\d % \| {interval} \| \d+ \|", row)


@pytest.mark.whole
@pytest.mark.parametrize("slower", [False, True], ids=["the same", "slower"])
def test_the_how_to_for_pull_requests_works_as_it_stands(slower, lossratio, tmp_path):
    page = (ROOT / "docs" / "how-to" / "compare-builds.md").read_text()
    (suite,) = re.findall(r"```robotframework\n(.*?)```", page, flags=re.DOTALL)
    (command,) = re.findall(r"```bash\n(.*?)```", page, flags=re.DOTALL)
    repository = tmp_path / "device"
    make_repository(repository, [50, 47 if slower else 50])
    git(repository, "checkout", "--quiet", "-b", "patch")
    git(repository, "branch", "--force", "main", "HEAD~1")
    topology = write_lab(tmp_path)
    (tmp_path / "benchmark.robot").write_text(suite)
    build = tmp_path / "build.sh"
    # The build is what the device can do, whose options stay as they are.
    build.write_text(f'#!/bin/sh -e\nexport LOSSRATIO_REVISION="$1"\n{set_up_revision(repository, topology)}\n')
    build.chmod(0o755)
    words = shlex.split(command.replace("\\\n", " ").replace("$TOPOLOGY", str(topology)))
    assert words.pop(0) == "lossratio"
    result = lossratio(*words)
    assert result.status == (3 if slower else 0)
    assert (
        (tmp_path / "comment.md")
        .read_text()
        .startswith(f"### Data plane throughput of B compared with A: {'slower' if slower else 'same'}")
    )


@pytest.mark.whole
def test_builds_that_are_the_same_are_no_alarm(lab, run_ab):
    result = run_ab(lab, set_capacity(lab, 150), set_capacity(lab, 150.1), "--test", "64B-mrr")
    assert result.status == 0
    assert "B is the same as A" in result.out
    assert "1518B" not in result.out


@pytest.mark.whole
def test_a_comparison_that_was_cut_off_goes_on_where_it_was(lab, run_ab):
    first = run_ab(lab, set_capacity(lab, 150), set_capacity(lab, 145), "--test", "64B-mrr")
    record = lab.parent / "ab" / "measurements.jsonl"
    lines = record.read_text().splitlines(keepends=True)
    record.write_text("".join(lines[:6]) + '{"build": "B", "val')
    for directory in (lab.parent / "ab").glob("0*"):
        shutil.rmtree(directory)
    counted = (lab.parent / "measured").with_suffix(".count")
    count = f"echo x >> '{counted}'; "
    again = run_ab(lab, set_capacity(lab, 150), set_capacity(lab, 145), "--test", "64B-mrr")
    # The measurements that were cut off are measured again, and the others are not.
    assert steps(again) == steps(first)
    assert len(steps(first)) == 17
    assert len(list((lab.parent / "ab").glob("0*"))) == 11
    assert len(measurements(lab)) == 16
    other = run_ab(lab, count + set_capacity(lab, 150), set_capacity(lab, 145), "--test", "64B-mrr")
    assert (other.status, "belongs to another request" in other.err) == (2, True)


@pytest.mark.whole
def test_a_set_up_that_fails_ends_it_with_what_was_printed(lab, run_ab):
    result = run_ab(lab, "echo no such package; exit 7", set_capacity(lab, 145))
    assert result.status == 1
    assert "The set-up of A failed with exit status 7" in result.err
    assert "no such package" in result.err
    assert [measurement["build"] for measurement in measurements(lab)] == ["B"]


@pytest.mark.whole
def test_a_run_that_fails_ends_it_with_its_exit_status(lab, run_ab):
    result = run_ab(lab, set_capacity(lab, 150), f"echo nonsense > '{lab}'")
    assert result.status == 2
    assert "The run ended with exit status 2" in result.err
    assert result.err.endswith(". To continue, repeat the command.\n")


@pytest.mark.whole
@pytest.mark.parametrize("build", ["A", "B"])
def test_ctrl_c_during_a_run_stops_it_and_says_how_to_continue(build, lab, run_ab, monkeypatch):
    stopped = RunOutcome(ExitStatus.INTERRUPTED, lab.parent)
    measure = BuildBench.measure

    def interrupted(bench, directory):
        if directory.name.endswith(build):
            bench = replace(bench, run_suites=lambda request: stopped)
        return measure(bench, directory)

    with monkeypatch.context() as patch:
        patch.setattr(BuildBench, "measure", interrupted)
        result = run_ab(lab, set_capacity(lab, 150), set_capacity(lab, 145))
    assert result.status == 130
    kept = f"The measurements so far are kept in {lab.parent / 'ab'}. To continue, repeat the command."
    assert result.err.splitlines()[-3:] == [kept, "", "Stopped."]
    assert [one["build"] for one in measurements(lab)] == ["B"] * (build == "A")


def test_a_file_for_the_directory_of_runs_is_named_before_anything_is_set_up(lab, run_ab):
    output, touched = lab.parent / "ab", lab.parent / "touched"
    output.touch()
    done = run_ab(lab, f"touch {touched}", "true")
    assert done == (2, "", f"Error: {output}: Not a directory. Choose another directory: --output DIR.\n")
    assert not touched.exists()


@pytest.mark.whole
def test_a_quantity_that_nothing_measures_is_an_error(lab, run_ab):
    result = run_ab(lab, "true", "true", "--quantity", "NDR")
    assert result.status == 1
    assert "The run measured nothing called NDR" in result.err
