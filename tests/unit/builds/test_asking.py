"""Builds that are asked whether they are as in earlier runs, instead of a search."""

from __future__ import annotations

import json
import shutil
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from history_examples import entry
from patches_examples import TOPOLOGY, make_repository

from lossratio.builds import (
    AbRequest,
    AsBefore,
    Bisection,
    BisectionVerdict,
    BuildRecord,
    ComparisonVerdict,
    Measured,
    bisect,
    compare_builds,
    comparison_comment,
    describe_bisection,
    describe_comparison,
    runs_before,
)
from lossratio.errors import JobError
from lossratio.history import History
from lossratio.results import Ends, RunDirectory, read_result
from lossratio.runs import RunRequest, run

ANSWER = AsBefore((1e6, 1.002e6, 0.998e6, 1.001e6, 0.999e6), 0.97, ((0.02, 0.1), (0.05, 0.02)))
NAME = "S.64B NDR"
SUITE = """*** Settings ***
Resource         lossratio/resources/performance.resource
Suite Setup      Set Up Testbed    ${TOPOLOGY}
Suite Teardown   Tear Down Testbed

*** Test Cases ***
64B-ndrpdr
    Find NDR And PDR    64B    goals=quick    latency=off    telemetry=off
1518B-ndrpdr
    Find NDR And PDR    1518B    goals=quick    latency=off    telemetry=off
"""


def searched(value):
    return Measured({NAME: Ends(value, value, 0.0)}, tests={NAME: "S.64B"})


def answered(answer=ANSWER):
    return Measured({}, as_before={NAME: answer}, tests={NAME: "S.64B"})


class Revisions:
    """Revisions r0 to r(number - 1), which are slower from one of them on."""

    def __init__(self, first, change, *, is_good_as_before=True, number=65):
        self.names = [f"r{place}" for place in range(number)]
        self._first = first
        self._change = change
        self._is_good_as_before = is_good_as_before
        self.asked = []
        self.searched = []

    def measure(self, revision, directory, wanted):
        place = int(revision[1:])
        is_changed = place >= self._first or (place == 0 and not self._is_good_as_before)
        if wanted.asks:
            self.asked.append(revision)
            if not is_changed:
                return answered()
        self.searched.append(revision)
        noise = 1.0 + 0.002 * (-1) ** len(self.searched)
        return searched(1e6 * noise * (1.0 + self._change * (place >= self._first)))

    def bisect(self, directory, *, asks=True, **options):
        search = Bisection(self.names, **options)
        self.lines = []
        return bisect(search, BuildRecord(directory, {}), self.measure, self.lines.append, asks=asks)


@pytest.mark.parametrize("first", [1, 20, 41, 64])
def test_revisions_before_the_change_are_not_searched(first, tmp_path):
    revisions = Revisions(first, -0.05)
    result = revisions.bisect(tmp_path)
    assert (result.verdict, result.candidates) == (BisectionVerdict.FOUND, (f"r{first}",))
    assert result.change == pytest.approx(-0.05, abs=0.005)
    assert sum(int(revision[1:]) < first for revision in revisions.searched) <= 2
    assert result.questions == sum("as before" in line for line in revisions.lines)
    assert result.measurements == len(revisions.lines)
    assert f"{result.questions} of which only asked whether" in describe_bisection(result, str)


def test_no_revision_is_asked_twice_and_the_last_one_is_searched(tmp_path):
    revisions = Revisions(30, -0.05)
    revisions.bisect(tmp_path)
    assert revisions.asked[0] == "r0"
    assert len(set(revisions.asked)) == len(revisions.asked)
    assert "r64" not in revisions.asked
    assert revisions.searched[0] == "r64"


def test_if_the_first_revision_is_not_as_before_nobody_else_is_asked(tmp_path):
    revisions = Revisions(30, -0.05, is_good_as_before=False)
    result = revisions.bisect(tmp_path)
    assert revisions.asked == ["r0"]
    assert result.candidates == ("r30",)
    assert result.questions == 0


def test_answers_say_nothing_about_a_change_that_is_smaller_than_those_replayed(tmp_path):
    small = Revisions(30, -0.012)
    result = small.bisect(tmp_path)
    assert result.candidates == ("r30",)
    # The revisions next to it are searched, though they were as before.
    assert "r29" in small.searched


def test_a_missed_change_is_put_right_by_searches(tmp_path):
    class Missed(Revisions):
        def measure(self, revision, directory, wanted):
            if wanted.asks and revision == "r32":
                self.asked.append(revision)
                return answered()
            return super().measure(revision, directory, wanted)

    assert Missed(30, -0.05).bisect(tmp_path).candidates == ("r30",)


def test_a_bisection_that_was_cut_off_asks_no_more_than_it_would_have(tmp_path):
    whole = Revisions(30, -0.05).bisect(tmp_path / "whole")
    begun = tmp_path / "begun"
    begun.mkdir()
    lines = (tmp_path / "whole" / "measurements.jsonl").read_text().splitlines(keepends=True)
    (begun / "measurements.jsonl").write_text("".join(lines[:4]))
    rest = Revisions(30, -0.05)
    assert rest.bisect(begun).candidates == whole.candidates
    assert "r0" not in rest.asked


def test_a_record_with_a_damaged_answer_is_refused(tmp_path):
    Revisions(30, -0.05).bisect(tmp_path)
    file = tmp_path / "measurements.jsonl"
    file.write_text(file.read_text().replace('"missed"', '"mist"', 1))
    with pytest.raises(
        JobError, match=r"measurements.jsonl, line 2, cannot be read: measured\.as_before\..*\.missed: this field is"
    ):
        BuildRecord(tmp_path, {})


HEADER = '{"format": "lossratio-builds/3", "asked": {}}\n'
LINE = '{"build": "A", "directory": "001-A", "measured": {"values": {"T MRR": [1000.0, 1000.0, 0.0]}}}\n'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", r" is not a record of measurements"),
        ("x", r" is not a record of measurements"),
        ("[]\n", r" is not a record of measurements"),
        (HEADER + "[]\n", r", line 2, cannot be read: must hold fields"),
        (HEADER + '{"a": 1}\n', r", line 2, cannot be read: build: this field is required"),
        (
            HEADER + LINE.replace("1000.0,", '"x",', 1),
            r", line 2, cannot be read: measured\.values\.T MRR\.0: must be a number, not 'x'",
        ),
        (HEADER + LINE + "{\n", r", line 3, cannot be read: broken at line 1"),
    ],
)
def test_a_damaged_record_is_named_with_its_line_and_the_way_out(tmp_path, text, problem):
    (tmp_path / "measurements.jsonl").write_text(text)
    with pytest.raises(JobError, match=rf"measurements\.jsonl{problem}.*To begin again, use another --output\.$"):
        BuildRecord(tmp_path, {})


def test_a_mistake_in_a_request_can_be_corrected_until_something_was_measured(tmp_path):
    BuildRecord(tmp_path, {"topology": "lcal"})
    BuildRecord(tmp_path, {"topology": "local"})
    (tmp_path / "001-A").mkdir()
    with pytest.raises(JobError, match=r"belongs to another request: topology was 'local', and is now 'lab7'"):
        BuildRecord(tmp_path, {"topology": "lab7"})


def test_a_record_of_other_builds_is_refused(tmp_path):
    (tmp_path / "measurements.jsonl").write_text(HEADER + LINE)
    with pytest.raises(JobError, match=r"line 2, is of build 'A', but 'B' was to be measured there"):
        BuildRecord(tmp_path, {}).measurement(0, "B", measure=None)


@pytest.mark.parametrize(("change", "probability"), [(0.01, 1.0), (-0.02, 0.1), (0.04, 0.1), (-0.3, 0.02)])
def test_an_answer_misses_a_change_as_often_as_the_next_smaller_one_that_was_replayed(change, probability):
    assert ANSWER.probability(change) == probability


class Builds:
    """Builds with two tests, of which one may have changed."""

    def __init__(self, changed=()):
        self._changed = changed
        self.wanted = []

    def measure(self, build, directory, wanted):
        self.wanted.append((build, wanted))
        names = {"64B NDR": "64B", "1518B NDR": "1518B"}
        chosen = {name: test for name, test in names.items() if not wanted.tests or test in wanted.tests}
        is_as_before = {name: wanted.asks and (build, test) not in self._changed for name, test in chosen.items()}
        slower = {name: 0.95 if (build, test) in self._changed else 1.0 for name, test in chosen.items()}
        values = {
            name: Ends(1e6 * slower[name] + len(self.wanted), 1e6 * slower[name] + len(self.wanted), 0.0)
            for name in chosen
            if not is_as_before[name]
        }
        answers = {name: ANSWER for name in chosen if is_as_before[name]}
        return Measured(values, as_before=answers, tests=chosen if wanted.asks else {})


def compare(directory, builds, least_change=0.05):
    request = AbRequest(least_change)
    record = BuildRecord(directory, {})
    results = compare_builds(request, record, builds.measure, lambda line: None, asks=True)
    return results, comparison_comment(results, record, request)


def test_builds_that_are_as_before_are_the_same_after_one_block(tmp_path):
    builds = Builds()
    results, comment = compare(tmp_path, builds)
    assert [build for build, _ in builds.wanted] == list("ABBA")
    assert {result.verdict for result in results.values()} == {ComparisonVerdict.SAME}
    text = describe_comparison("64B NDR", results["64B NDR"])
    assert text == (
        "64B NDR: B is the same as A: both are as before, asked 4 times and not searched; the least change "
        "would be missed with a probability of 2.0 %."
    )
    assert "64B NDR: both builds are as before" in comment
    assert "mermaid" not in comment


@pytest.mark.parametrize("build", ["A", "B"])
def test_only_the_test_that_is_not_as_before_is_compared_by_searches(build, tmp_path):
    builds = Builds(changed={(build, "64B")})
    results, comment = compare(tmp_path, builds)
    assert results["1518B NDR"].missed == 0.02
    assert results["64B NDR"].missed is None
    expected = ComparisonVerdict.SLOWER if build == "B" else ComparisonVerdict.FASTER
    assert results["64B NDR"].verdict is expected
    after = [wanted for _, wanted in builds.wanted[4:]]
    assert {(wanted.asks, wanted.tests) for wanted in after} == {(False, ("64B",))}
    assert comment.count("mermaid") == 1


def test_builds_are_searched_if_the_question_misses_the_least_change_too_often(tmp_path):
    builds = Builds()
    results, _ = compare(tmp_path, builds, least_change=0.02)
    assert all(result.missed is None for result in results.values())
    assert [wanted.asks for _, wanted in builds.wanted].count(True) == 1


def use(capacity, directory):
    """Puts a build in place: a record with a knee at so many kfps in both directions together."""
    loads = [1e3 * kfps for kfps in range(50, 200)]
    lines = [json.dumps({"load": load, "frames": load, "lost": max(0.0, load - 1e3 * capacity)}) for load in loads]
    (directory / "build.jsonl").write_text("\n".join(lines) + "\n")


@pytest.fixture(scope="module")
def five_nights(tmp_path_factory):
    """A device whose build is a record of trials, with five runs."""
    directory = tmp_path_factory.mktemp("five")
    (directory / "robot.toml").touch()
    (directory / "search.robot").write_text(SUITE)
    model = "{model: recorded, file: build.jsonl}"
    (directory / "lab.yaml").write_text(TOPOLOGY.replace("{model: sharp_knee, capacity: 150 kfps}", model))
    for capacity in (90, 100):
        use(capacity, directory)
        (directory / "build.jsonl").rename(directory / f"{capacity}.jsonl")
    use(100, directory)

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(directory)
        for number in range(5):
            options = ("--outputdir", f"nights/{number}", "--console", "none")
            request = RunRequest((Path("lab.yaml"),), (Path("search.robot"),), robot_options=options)
            assert run(request).status == 0
    return directory


@pytest.fixture
def lab(five_nights, tmp_path):
    shutil.copytree(five_nights, tmp_path, dirs_exist_ok=True)
    return tmp_path


def ab(lossratio, lab, b, *more):
    copy = "cp {}.jsonl build.jsonl"
    options = ["--set-up-a", copy.format(100), "--set-up-b", copy.format(b), "--topology", "lab.yaml"]
    return lossratio("builds", "ab", *options, "--output", "ab", *more, "search.robot")


@pytest.mark.whole
@pytest.mark.parametrize(("b", "status"), [(100, 0), (90, 3)])
def test_suites_ask_and_a_slower_build_is_searched(b, status, lab, lossratio):
    done = ab(lossratio, lab, b, "--as-before", "nights", "--least-change", "5")
    assert done.status == status, (done.out, done.err)
    files = [*(lab / "ab" / "001-A" / "results").glob("*.json")]
    assert all(read_result(file).is_as_before for file in files)
    if status == 0:
        assert done.out.count("B is the same as A: both are as before, asked 4 times") == 4
        assert "  4  A  2 of 2 tests as before" in done.out
    else:
        assert "  2  B  0 of 2 tests as before" in done.out
        assert done.out.count("B is slower than A by ") == 4


@pytest.mark.whole
def test_an_alarm_is_bisected_with_the_nights_before_it(lab, lossratio):
    revision = 'cp "$(git -C repository show "$LOSSRATIO_REVISION:capacity").jsonl" build.jsonl\n'
    (lab / "make.sh").write_text(revision)
    revisions = make_repository(lab / "repository", [100] * 5 + [90] * 3)
    name = {"test": "Search.64B-ndrpdr", "quantity": "QUICK_NDR", "testbed": "simulated"}
    values = [50e3 + 50.0 * (night % 3) for night in range(8)] + [45e3, 45.1e3]
    now = datetime.now(timezone.utc)
    entries = [
        {
            **entry(night, value, **name),
            "started": now + timedelta(minutes=20.0 * (night - 7.5)),
            "build": f"device 1.0~{night}-g{revisions[0 if night < 8 else -1][:9]}",
        }
        for night, value in enumerate(values)
    ]
    History(lab / "history").add(entries)
    options = ["--repository", "repository", "--set-up", "sh make.sh", "--topology", "lab.yaml"]
    options += ["--as-before", "nights", "--output", "bisect", "--history", "history", "search.robot"]
    done = lossratio("builds", "bisect", *options)
    assert done.status == 0, (done.out, done.err)
    assert "of which only asked" in done.out
    assert done.out.endswith("change 5\n")
    first, *_ = sorted((lab / "bisect").glob(f"*/*-{revisions[4][:12]}/results/*.json"))
    assert read_result(first).is_as_before


@pytest.mark.whole
def test_a_bisection_of_an_alarm_leaves_out_the_nights_with_it(lab):
    name = "Search.64B-ndrpdr"
    times = sorted(read_result(RunDirectory(run).result_path(name)).started for run in (lab / "nights").iterdir())
    links = runs_before(times[3], name, lab / "nights", lab / "links")
    assert sorted(link.name for link in links.iterdir()) == ["0", "1", "2"]
    assert runs_before(datetime.now(timezone.utc), name, lab / "nights", links) == links
    assert len([*links.iterdir()]) == 5


@pytest.mark.whole
def test_a_suite_that_takes_no_hints_is_searched_and_named(lab, lossratio):
    library = "Library    lossratio.keywords.LossRatio"
    own = SUITE.replace("Resource         lossratio/resources/performance.resource", library)
    (lab / "search.robot").write_text(own.split("1518B")[0])
    done = ab(lossratio, lab, 100, "--as-before", "nights", "--least-change", "5")
    assert done.status == 0, (done.out, done.err)
    why = "it is not a search, or its suite does not take HINTS"
    assert f"was searched without asking first whether it is as before: {why}" in done.err
    assert "asked" not in done.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--as-before", "nights"], "--as-before misses many changes below 2 %: add --least-change 2"),
        (["--as-before", "nights", "--least-change", "5", "--in-place", "64B"], "leave out --as-before or --in-place"),
        (["--as-before", "nowhere", "--least-change", "5"], "'nowhere' does not exist"),
    ],
)
def test_what_cannot_be_asked_is_said_before_a_build_is_set_up(options, message, lossratio, tmp_path):
    (tmp_path / "nights").mkdir()
    suites = [] if "--in-place" in options else ["linux_router"]
    fixed = ["--set-up-a", "touch set-up", "--set-up-b", "true", "--topology", "simulated"]
    done = lossratio("builds", "ab", *fixed, "--output", "ab", *options, *suites)
    assert done.status == 2
    assert message in done.err
    assert not (tmp_path / "set-up").exists()
