"""A kind of measurement of another package, as the how-to adds it: measured, shown, compared, followed and resumed."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Annotated, Literal

import pytest
from added_packages import put_package
from examples import examples_in
from measurement_examples import PROFILE, ROOT, SIMULATED, place, policed
from report_examples import with_digest

from lossratio.errors import RegressionError, ReportError
from lossratio.measurements import measure
from lossratio.measurements.mrr import MaximumReceiveRate, Mrr, MrrRequest, MrrResult, MrrView, maximum_receive_rate
from lossratio.measurements.open_testbed import measured_kinds
from lossratio.report import FORMATS, compare, comparison_table, read_run, render
from lossratio.report.history import (
    History,
    TrendRequest,
    add_runs,
    analyse,
    require_no_regression,
    trend_page,
    trend_text,
)
from lossratio.results import Shown, findings_of, kind_names, kind_of, kinds, message, read_result
from lossratio.testbed import open_testbed
from lossratio.trials import read_journal
from lossratio.values.records import Rate

PAGE = (ROOT / "docs" / "how-to" / "add-a-kind-of-measurement.md").read_text()
BLOCKS = examples_in(PAGE, "python")
KIND, SCRIPT, KIND_WITH_ARGUMENTS, KIND_IN_SECONDS = BLOCKS
GROUP = "lossratio.measurement"
(SUITE,) = examples_in(PAGE, "robotframework")
MORE_TESTS = """
Worst Of Many
    Measure Worst Of Many Trials    64B    thorough=yes
    Measure Worst Of Many Trials    64B    trials=2
"""


@pytest.fixture(scope="module")
def our_kinds(tmp_path_factory):
    directory = tmp_path_factory.mktemp("site")
    entries = ("worst = our_kinds:Worst", "worst_of_many = our_kinds:WorstOfMany", "lost_time = our_kinds:LostTime")
    text = f"{KIND}\n{KIND_WITH_ARGUMENTS}\n{KIND_IN_SECONDS}"
    put_package(directory, "our_kinds", {GROUP: entries}, our_kinds=text)
    sys.path.insert(0, str(directory))
    import our_kinds

    yield our_kinds
    sys.path.remove(str(directory))


@pytest.fixture(scope="module")
def runs(our_kinds, tmp_path_factory):
    """Two runs with two trials each."""
    directory = tmp_path_factory.mktemp("runs")
    for name in ("a", "b"):
        with policed(police="50 kfps") as testbed:
            measure(
                our_kinds.Worst(), testbed, our_kinds.WorstRequest(profile=PROFILE, trials=2), place(directory / name)
            )
    return [directory / name for name in ("a", "b")]


@pytest.fixture(scope="module")
def lost_times(our_kinds, tmp_path_factory):
    """Runs with times in seconds: two of a DUT that forwards 50,000 frames per second, then two of 25,000."""
    directory = tmp_path_factory.mktemp("lost_times")
    runs = [directory / name for name in ("a", "b", "c", "d")]
    for run, capacity in zip(runs, ("50 kfps", "50 kfps", "25 kfps", "25 kfps"), strict=True):
        # The same device by its options, and slower: another police rate would be another device.
        topology = directory / "simulated.yaml"
        topology.write_text(SIMULATED.read_text().replace("capacity: 150 kfps", f"capacity: {capacity}"))
        with open_testbed(topology) as testbed:
            measure(our_kinds.LostTime(), testbed, our_kinds.WorstRequest(profile=PROFILE, trials=2), place(run))
    return runs


def test_the_kind_is_found_by_its_entry_point(our_kinds):
    assert "worst" in kind_names()
    assert isinstance(kind_of("worst"), our_kinds.Worst)


def test_its_result_is_in_words_and_in_every_report(runs):
    run = read_run(runs[0])
    (result,) = run.results
    assert re.match(r"worst: measured\n  worst trial +51,000 fps per interface", message(result))
    for report_format in FORMATS.names():
        text = render(report_format, [run])
        assert "worst" in text
        assert "a test" in text
    assert ",worst,worst trial,,measured," in render("csv", [run])
    assert 'name="worst trial aggregate fps"' in render("junit", [run])


def test_its_values_are_compared_and_followed(runs, tmp_path):
    table = comparison_table(compare([read_run(runs[0])], [read_run(runs[1])]))
    assert "worst trial" in table
    assert "not comparable" not in table
    history = History(tmp_path)
    add_runs(history, runs)
    analysis = analyse(history, TrendRequest())
    assert [trend.series.key.quantity for trend in analysis.trends] == ["worst trial"]


def test_values_in_seconds_have_their_unit_in_every_report(lost_times):
    run = read_run(lost_times[0])
    (result,) = run.results
    seconds = f"{result.lost_time_s:.5g} s"
    assert 0.0 < result.lost_time_s < 1.0
    assert re.match(rf"lost_time: measured\n  lost time +{re.escape(seconds)}\n", message(result))
    assert f">{seconds}</td>" in render("html", [run])
    assert f" | {seconds} | measured | lost time | 64 B | – | – | – | " in render("md", [run])
    assert f'<property name="lost time s" value="{result.lost_time_s!r}" />' in render("junit", [run])
    (row,) = csv.DictReader(render("csv", [run]).splitlines())
    assert (row["unit"], float(row["value"])) == ("s", result.lost_time_s)
    assert {row[name] for name in row if name.endswith(("_per_interface_fps", "_l1_bps", "maximum_ratio"))} == {""}


def test_a_longer_time_is_worse_and_a_shorter_one_is_better(lost_times):
    before, after = [[read_run(run) for run in runs] for runs in (lost_times[:2], lost_times[2:])]
    worse, better = compare(before, after), compare(after, before)
    assert [quantity.verdict.value for quantity in worse.quantities] == ["seems worse"]
    assert [quantity.verdict.value for quantity in better.quantities] == ["seems better"]
    assert re.search(r"lost time +0\.\d+ s ± .* 0\.\d+ s ± ", comparison_table(worse))
    what = "than A in 1 of 1 quantity: a suite.a test, lost time,"
    assert comparison_table(worse).startswith(f"B seems worse {what} rose ")
    assert comparison_table(better).startswith(f"B seems better {what} fell ")


@pytest.mark.whole
def test_a_time_that_got_longer_lately_is_an_alarm_of_the_trend(lost_times, tmp_path):
    history = History(tmp_path)
    add_runs(history, lost_times)
    analysis = analyse(history, TrendRequest())
    first, line, *_ = trend_text(analysis).splitlines()
    assert re.match(r"1 of 1 series got worse and did not recover: a suite\.a test, lost time, on .*, rose by ", first)
    assert re.match(r"regression: a suite\.a test, lost time, on .*: 0\.\d+ s to 0\.\d+ s \(\+", line)
    assert "lost time, s</text>" in trend_page(analysis, "trends")


@pytest.mark.whole
def test_the_demand_that_a_time_has_not_regressed_fails_where_it_got_longer(lost_times, tmp_path):
    history = History(tmp_path)
    add_runs(history, lost_times[:3])
    results = [read_run(run).results[0] for run in lost_times]
    with pytest.raises(RegressionError, match=r"0\.\d+ s to 0\.\d+ s"):
        require_no_regression(history, results[-1])


def test_a_value_that_does_not_fit_its_unit_is_one_error_that_names_the_kind(runs, lost_times):
    (worst,), (lost_time,) = read_run(runs[0]).results, read_run(lost_times[0]).results
    for result, wanted in (
        (worst.model_copy(update={"worst": 5.0}), "'worst' .* is in fps, which needs a lossratio.values.Rate"),
        (lost_time.model_copy(update={"lost_time_s": -1.0}), "'lost_time' .* is in s, which needs a finite"),
    ):
        with pytest.raises(ReportError, match=wanted):
            list(findings_of([result]))


class BestMrr(Mrr):
    best: Annotated[Rate, Shown("best trial")]
    """The highest of the values."""


class BestResult(MrrResult):
    kind: Literal["best"] = "best"
    mrr: BestMrr | None


BestView = MrrView


class Best(MaximumReceiveRate):
    name, algorithm, result = "best", "MRR with its best trial", BestResult

    def found_in(self, result, trials):
        mrr = maximum_receive_rate(trials, result.conditions)
        return BestMrr(**dict(mrr), best=max((value.forwarding_rate for value in mrr.values), key=by_aggregate))


def by_aggregate(rate):
    return rate.aggregate_fps


@pytest.mark.whole
def test_a_quantity_that_a_kind_gains_is_declared_in_its_record_alone(tmp_path, monkeypatch):
    entry = EntryPoint("best", f"{__name__}:Best", kinds.GROUP)
    monkeypatch.setattr(kinds, "_KINDS", replace(kinds._KINDS, own=(*kinds._KINDS.own, entry)))
    runs = [tmp_path / "a", tmp_path / "b"]
    for run in runs:
        with policed(police="50 kfps") as testbed:
            measure(Best(), testbed, MrrRequest(profile=PROFILE, trials=2), place(run))
    run = read_run(runs[0])
    (result,) = run.results
    assert re.search(r"\n  best trial +51,000 fps per interface +102,000 fps aggregate", message(result))
    described = BestResult.model_json_schema()["$defs"]["BestMrr"]["properties"]["best"]
    assert described["description"] == "The highest of the values."
    assert (
        json.loads(render("json", [run]))["runs"][0]["results"][0]["result"]["mrr"]["best"]["aggregate_fps"]
        == 102_000.0
    )
    rows = csv.DictReader(render("csv", [run]).splitlines())
    table = {row["goal"]: float(row["value"]) for row in rows}
    assert table == {"MRR": 102_000.0, "best trial": 102_000.0}
    assert 'name="best trial aggregate fps" value="102000.0"' in render("junit", [run])
    assert re.search(r'quantity="best trial".* 102000', render("openmetrics", [run]))
    for report_format in ("html", "md"):
        assert "best trial" in render(report_format, [run])
    assert "best trial" in comparison_table(compare([run], [read_run(runs[1])]))
    history = History(tmp_path / "history")
    add_runs(history, runs)
    assert [trend.series.key.quantity for trend in analyse(history, TrendRequest()).trends] == ["MRR", "best trial"]


def test_it_is_resumed_from_its_journal(our_kinds, runs, tmp_path):
    (result,) = read_run(runs[0]).results
    journal = next((runs[0] / "trials").iterdir())
    (tmp_path / "trials").mkdir()
    lines = journal.read_bytes().splitlines(keepends=True)
    (tmp_path / "trials" / journal.name).write_bytes(b"".join(lines[:2]))
    with policed(police="50 kfps") as testbed:
        request = our_kinds.WorstRequest(profile=PROFILE, trials=2)
        again = measure(our_kinds.Worst(), testbed, request, place(tmp_path, resume=tmp_path))
    assert len(again.trials) == 2
    assert again.trials[0] == result.trials[0]
    assert len(read_journal(tmp_path / "trials" / journal.name).entries) == 2


def robot(our_kinds, directory, suite, *, path=()):
    """Runs a suite on the simulated testbed, with the packages of our kinds and of other folders."""
    (directory / "suite.robot").write_text(suite)
    topology = ROOT / "topologies" / "simulated.yaml"
    options = ["--outputdir", str(directory / "out"), "--variable", f"TOPOLOGY:{topology}"]
    command = [sys.executable, "-m", "robot", *options, str(directory / "suite.robot")]
    home = Path(our_kinds.__file__).parent
    search_path = os.pathsep.join(map(str, [*path, home, *filter(None, sys.path)]))
    environment = {**os.environ, "PYTHONPATH": search_path}
    return subprocess.run(command, check=False, capture_output=True, text=True, env=environment)


@pytest.mark.whole
def test_a_suite_has_its_keyword_and_shows_it_on_the_console(our_kinds, tmp_path):
    answer = robot(our_kinds, tmp_path, SUITE + MORE_TESTS)
    assert answer.returncode == 0, answer.stdout
    assert "trial   1" in answer.stdout
    assert "worst trial" in answer.stdout
    assert "50 trials" in answer.stdout
    assert "5 trials" in answer.stdout
    numbers = [len(result.trials) for result in read_run(tmp_path / "out").results]
    assert sorted(numbers) == [2, 3, 50]
    assert "worst trial" in (tmp_path / "out" / "lossratio.html").read_text()


@pytest.mark.whole
def test_a_kind_that_is_broken_has_no_keyword_and_a_warning_says_why(our_kinds, tmp_path):
    missing = "import nothing_of_that_name"
    put_package(tmp_path, "no_import", {GROUP: ["no_import = no_import:Kind"]}, no_import=missing)
    same_keyword = KIND.replace('"worst"', '"again"')
    put_package(tmp_path, "again", {GROUP: ["again = again:Worst"]}, again=same_keyword)
    unknown_type = KIND_WITH_ARGUMENTS.replace('"worst_of_many"', '"unknown"').replace(": bool", ': "Nothing"')
    begin = "from typing import Literal\nfrom our_kinds import Worst, WorstResult\n"
    text = begin + unknown_type.replace("Of Many", "Of None")
    put_package(tmp_path, "unknown", {GROUP: ["unknown = unknown:WorstOfMany"]}, unknown=text)
    answer = robot(our_kinds, tmp_path, SUITE, path=[tmp_path])
    assert answer.returncode == 0, answer.stdout
    assert "'worst' calls its keyword 'Measure Worst Trial', but another kind has that name" in answer.stderr
    assert "'unknown' cannot be created: name 'Nothing' is not defined." in answer.stderr
    assert "'no_import' of no_import 1.0 (no_import:Kind) cannot be loaded: ModuleNotFoundError" in answer.stderr
    assert "A kind of measurement has no keyword: " in answer.stderr


def test_a_testbed_has_its_method(our_kinds, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    exec(SCRIPT, {})  # noqa: S102
    assert re.match(r"worst: measured\n  worst trial ", capsys.readouterr().out)
    (result,) = read_run(tmp_path / "results").results
    assert (result.kind, len(result.trials)) == ("worst", 3)
    assert result.test.name == "64B worst"
    assert "worst_trial" in measured_kinds()


def test_a_kind_does_not_inherit_the_keyword_of_the_kind_that_it_is_made_of(our_kinds):
    assert kind_of("lost_time").keyword is None
    assert kind_of("lost_time").method is None
    assert kind_of("lost_time").noun == "lost time"


def test_a_result_of_a_kind_that_is_not_installed_names_what_is_missing(runs, tmp_path):
    results = tmp_path / "results"
    results.mkdir()
    text = next((runs[0] / "results").iterdir()).read_text().replace('"worst"', '"gone"')
    (results / "a.json").write_bytes(with_digest(json.loads(text)))
    with pytest.raises(ReportError, match=r"a\.json cannot be read: .*'gone'.*entry point 'gone' of the group"):
        read_result(results / "a.json")


@pytest.mark.parametrize(
    ("module", "text", "complaint"),
    [
        ("no_import", "import nothing_of_that_name", "no_import 1.0.*cannot be loaded: ModuleNotFoundError"),
        ("no_kind", "Kind = 1", "no_kind 1.0.*is not a subclass of lossratio.results.Kind"),
        (
            "no_method",
            "from our_kinds import Worst, WorstResult\n"
            "from lossratio.measurements import MeasuredKind\n"
            "class Kind(MeasuredKind):\n    name = 'no_method'\n    result = WorstResult\n",
            "no_method 1.0.*lacks build, controller\\.",
        ),
    ],
)
def test_a_broken_package_is_one_error_that_names_it(our_kinds, runs, install_package, module, text, complaint):
    install_package(module, {GROUP: [f"{module} = {module}:Kind"]}, **{module: text})
    with pytest.raises(ReportError, match=complaint):
        kind_of(module)
    assert not read_run(runs[0]).lacks
