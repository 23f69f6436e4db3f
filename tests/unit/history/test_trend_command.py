import getpass
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from history_examples import entry

from lossratio.commands.trend import ack, trend
from lossratio.errors import ReportError
from lossratio.report.history.store import History

STEADY = [100e3, 100.2e3, 99.9e3, 100.1e3, 99.8e3, 100.0e3, 100.1e3, 99.9e3]

SERIES, DAY = "Suite.64B-ndrpdr, NDR, on lab-1", "2026-01-09"


def history_of(path, values):
    History(path).add(
        [entry(day, value, outcome="measured" if value else "failed") for day, value in enumerate(values)]
    )
    return str(path)


@pytest.mark.whole
@pytest.mark.parametrize(
    ("newest", "status", "text"),
    [
        ([], 0, "1 steady"),
        ([90e3, 90.1e3, 90.2e3], 3, "regression: Suite.64B-ndrpdr, NDR, on lab-1"),
        ([90e3], 0, "one bad result: Suite.64B-ndrpdr, NDR, on lab-1"),
        ([None], 1, "no value any more"),
    ],
)
def test_a_trend_that_fell_is_a_regression(tmp_path, newest, status, text):
    answer = CliRunner().invoke(trend, [history_of(tmp_path, STEADY + newest)])
    assert answer.exit_code == status, answer.output
    assert text in answer.output


@pytest.mark.whole
def test_a_rise_from_zero_has_no_share(tmp_path):
    history = history_of(tmp_path, [0.0] * 8 + STEADY[:3])
    lines = CliRunner().invoke(trend, [history]).output.splitlines()
    assert lines[0].endswith(f"rose from zero since {DAY}.")
    assert "(from zero)" in lines[1]


@pytest.mark.whole
@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (STEADY, "No alarm is open."),
        (
            [*STEADY, 90e3, 90.1e3],
            f"1 of 1 series got worse and did not recover: {SERIES}, fell by 9.95 % since {DAY}.",
        ),
        (
            [*STEADY, 110e3, 110.1e3],
            f"No alarm is open, and 1 of 1 series got better: {SERIES}, rose by 10.05 % since {DAY}.",
        ),
        ([*STEADY, 90e3], "No alarm is open, but 1 of 1 series has a bad result that no second one has confirmed yet."),
        ([*STEADY, None], f"1 of 1 series no longer has a value: {SERIES}."),
        (STEADY[:2], "Undecided: 1 of 1 series has fewer than 4 values. Measure again."),
    ],
)
def test_a_trend_begins_with_what_it_proves(tmp_path, values, sentence):
    answer = CliRunner().invoke(trend, [history_of(tmp_path, values)])
    assert answer.output.splitlines()[0] == sentence


@pytest.mark.whole
def test_the_first_line_of_a_trend_names_the_largest_fall_and_counts_the_rest(tmp_path):
    history = History(tmp_path)
    newest = {"a": [95e3, 95e3], "b": [80e3, 80e3], "c": [None, None], "d": [None, None], "e": [100e3, 100e3]}
    for test, values in newest.items():
        nights = enumerate([*STEADY, *values])
        history.add([entry(day, value, test=test, outcome="measured" if value else "failed") for day, value in nights])
    answer = CliRunner().invoke(trend, [str(tmp_path)])
    assert answer.output.splitlines()[0] == (
        f"2 of 5 series got worse and did not recover: b, NDR, on lab-1, fell by 20.00 % since {DAY}, and 1 more; 2 "
        "more no longer have a value."
    )


@pytest.mark.whole
def test_one_bad_night_is_an_alarm_if_it_need_not_be_confirmed(tmp_path):
    history = history_of(tmp_path, [*STEADY, 90e3])
    assert CliRunner().invoke(trend, [history, "--confirm=1"]).exit_code == 3


def test_too_few_results_are_undecided(tmp_path):
    answer = CliRunner().invoke(trend, [history_of(tmp_path, STEADY[:2])])
    assert answer.exit_code == 4
    assert "Undecided: 1 of 1 series has fewer than 4 values." in answer.output


@pytest.mark.whole
def test_testbeds_are_never_mixed(tmp_path):
    history = History(tmp_path)
    for day in range(12):
        history.add([entry(day, 100e3 + day), entry(day, 50e3 + day, testbed="lab-2")])
    answer = CliRunner().invoke(trend, [str(tmp_path)])
    assert "2 series of 24 results: 2 steady" in answer.output
    assert "1 series of 12 results" in CliRunner().invoke(trend, [str(tmp_path), "--testbed=lab-2"]).output
    answer = CliRunner().invoke(trend, [str(tmp_path), "--testbed=lab-x"])
    assert "The history has no testbed 'lab-x'. Did you mean 'lab-" in str(answer.exception)


@pytest.mark.whole
def test_a_series_whose_test_is_not_run_any_more_is_reported_as_old(tmp_path):
    history = history_of(tmp_path, [*STEADY, 90e3, 90.1e3])
    other = "Suite.IMIX-ndrpdr"
    History(tmp_path).add([entry(day, value, test=other) for day, value in enumerate(STEADY, start=5)])
    answer = CliRunner().invoke(trend, [history])
    assert "old" not in answer.output.lower()
    History(tmp_path).add([entry(16, 100e3, test=other), entry(40, 1e6, testbed="lab-2")])
    for options in ((), ("--test=*64B*",)):
        answer = CliRunner().invoke(trend, [history, *options])
        assert answer.exit_code == 3
        old = "; old: not measured since 2026-01-10 03:00 UTC, 7 days before the testbed's newest result"
        assert answer.output.splitlines()[1].endswith(old)
        assert "Old: 1 of these series" in answer.output


@pytest.mark.whole
def test_a_page_and_a_junit_file_are_written(tmp_path):
    page, junit = tmp_path / "trend.html", tmp_path / "junit.xml"
    history = history_of(tmp_path / "history", [*STEADY, 90e3, 90.1e3])
    CliRunner().invoke(trend, [history, f"--html={page}", f"--junit={junit}"])
    assert page.read_text().count('role="img"') == 1
    (suite,) = ElementTree.parse(junit).getroot()  # noqa: S314 (our own)
    assert suite.find("testcase/failure").get("message").startswith("regression")


@pytest.mark.whole
def test_annotations_in_the_folder_are_known_changes(tmp_path):
    history = history_of(tmp_path, [*STEADY, 90e3, 90.1e3])
    (tmp_path / "annotations.yaml").write_text("changes:\n- {date: 2026-01-09, note: new kernel}\n")
    answer = CliRunner().invoke(trend, [history])
    assert answer.exit_code == 0
    assert "known change" in answer.output
    assert "known: new kernel" in answer.output


@pytest.mark.whole
@pytest.mark.parametrize(
    ("newest", "file"), [([90e3, 90.1e3] * 6, None), ([None], "changes: # ours\n- {date: 2025-01-01, note: x}\n")]
)
def test_an_alarm_stays_until_it_is_explained_by_name_and_no_other_series_is(tmp_path, newest, file):
    history = history_of(tmp_path, STEADY + newest)
    other = [
        entry(day, value and value / 2, test="64B [x]*", outcome="measured" if value else "failed")
        for day, value in enumerate(STEADY + newest)
    ]
    History(tmp_path).add(other)
    annotations = tmp_path / "annotations.yaml"
    if file is not None:
        annotations.write_text(file)
    status = 1 if newest == [None] else 3
    assert CliRunner().invoke(trend, [history]).exit_code == status
    note = 'board "B": 100 % slower, # too'
    answer = CliRunner().invoke(ack, [history, note, "--by=ann", "--test=64B*"])
    assert answer.exit_code == 0, answer.output
    assert answer.output.startswith("explained: ")
    after = CliRunner().invoke(trend, [history])
    assert (after.exit_code, f"known: {note} (ann)" in after.output) == (status, newest == [None])
    assert annotations.read_text().startswith(file or "changes:\n")
    assert CliRunner().invoke(ack, [history, note]).exit_code == 0
    assert CliRunner().invoke(trend, [history]).exit_code == 0
    answer = CliRunner().invoke(ack, [history, note])
    assert (answer.exit_code, "has no such open alarm" in answer.output) == (2, True)


@pytest.mark.whole
@pytest.mark.parametrize(
    ("option", "meant"), [("--quantity=NRD", "'NRD'. Did you mean 'NDR'?"), ("--test=Suite.64B-ndrpd", "-ndrpdr'?")]
)
def test_a_misspelt_test_or_quantity_is_answered_with_the_right_one(tmp_path, option, meant):
    answer = CliRunner().invoke(trend, [history_of(tmp_path, STEADY), option])
    assert isinstance(answer.exception, ReportError)
    assert str(answer.exception).endswith(meant)


@pytest.mark.whole
def test_who_looks_at_an_alarm_is_noted_and_the_alarm_stays_open(tmp_path):
    history = history_of(tmp_path / "history", [*STEADY, 90e3, 90.1e3])
    answer = CliRunner().invoke(ack, [history, "I look at it", "--by=ann", "--keep-open"])
    assert answer.exit_code == 0
    assert answer.output.startswith("noted: regression: ")
    page = tmp_path / "trend.html"
    after = CliRunner().invoke(trend, [history, f"--html={page}"])
    assert (after.exit_code, "noted: I look at it (ann)" in after.output) == (3, True)
    assert "I look at it (ann)" in page.read_text()
    CliRunner().invoke(ack, [history, "new kernel", "--by=bob"])
    assert "known: new kernel (bob)" in CliRunner().invoke(trend, [history]).output


@pytest.mark.whole
def test_a_user_without_a_name_is_asked_for_one(tmp_path, monkeypatch):
    def is_unknown():
        raise KeyError("getpwuid(): uid not found: 1234")

    history = history_of(tmp_path, [*STEADY, 90e3, 90.1e3])
    monkeypatch.setattr(getpass, "getuser", is_unknown)
    answer = CliRunner().invoke(ack, [history, "new kernel"])
    assert (answer.exit_code, "--by NAME" in answer.output) == (2, True)
    assert CliRunner().invoke(ack, [history, "new kernel", "--by=ann"]).exit_code == 0


@pytest.mark.whole
def test_a_file_of_known_changes_without_a_place_at_its_end_is_kept_as_it_is(tmp_path):
    history = history_of(tmp_path, [*STEADY, None])
    (tmp_path / "annotations.yaml").write_text("changes: [{date: 2025-01-01, note: x}]\n")
    answer = CliRunner().invoke(ack, [history, "why"])
    assert isinstance(answer.exception, ReportError)
    assert 'Add this entry by hand:\n  - {"date": "2026-01-09", "note": "why"' in str(answer.exception)
    assert [path.name for path in tmp_path.glob("*anno*")] == ["annotations.yaml"]


@pytest.mark.whole
def test_runs_are_added_first(tmp_path, a_run):
    history = tmp_path / "history"
    for number in range(5):
        answer = CliRunner().invoke(trend, [str(history), f"--add={a_run(number)}"])
    assert "3 series of 15 results: 3 steady" in answer.output
    assert answer.exit_code == 0
    assert len(list(Path(history).rglob("*.parquet"))) == 5


@pytest.mark.whole
def test_two_bands_are_shown_on_the_console_and_in_json(tmp_path):
    states = [100e3 if state == "1" else 95e3 for state in "1011010010111010010110"]
    values = [level * (1.0 + 0.002 * (-1) ** night) for night, level in enumerate(states)]
    history, file = history_of(tmp_path / "history", values), tmp_path / "trend.json"
    History(tmp_path / "history").add([entry(day, value, test="Suite.plain") for day, value in enumerate(STEADY)])
    answer = CliRunner().invoke(trend, [history, f"--json={file}"])
    assert answer.exit_code == 0, answer.output
    assert "steady: Suite.64B-ndrpdr, NDR, on lab-1: two bands: 94.962 kfps in 10 results" in answer.output
    assert "Two bands: 1 of these series" in answer.output
    written = json.loads(file.read_text())
    banded, plain = written["trends"]
    assert (banded["test"], banded["verdict"], banded["is_alarm"]) == ("Suite.64B-ndrpdr", "steady", False)
    assert banded["bands"]["low"] == pytest.approx(95e3, rel=3e-3)
    assert banded["bands"]["high"] == pytest.approx(100e3, rel=3e-3)
    assert (banded["bands"]["in_lower"], banded["bands"]["in_upper"]) == (10, 12)
    assert plain["bands"] is None
    assert plain["newest"]["value"] == STEADY[-1]


@pytest.mark.whole
def test_json_has_null_for_a_value_that_is_missing(tmp_path):
    history, file = history_of(tmp_path / "history", [*STEADY, 90e3, 90.1e3, None]), tmp_path / "trend.json"
    CliRunner().invoke(trend, [history, f"--json={file}"])
    (alarm,) = json.loads(file.read_text(), parse_constant=pytest.fail)["trends"]
    assert (alarm["verdict"], alarm["is_alarm"], alarm["newest"]["value"]) == ("no value any more", True, None)


def test_a_history_without_a_usable_row_is_named_and_has_no_verdict(tmp_path):
    history = history_of(tmp_path / "history", [float("inf")])
    answer = CliRunner().invoke(trend, [history])
    assert answer.exit_code == 4, answer.output
    assert "is left out: it has a row without a name" in answer.output


@pytest.mark.whole
def test_a_trend_of_quick_goals_says_so(tmp_path):
    history = history_of(tmp_path / "history", STEADY)
    assert "Quick goals" not in CliRunner().invoke(trend, [history]).output
    History(tmp_path / "history").add([entry(day, value, quantity="QUICK_PDR") for day, value in enumerate(STEADY)])
    shown = CliRunner().invoke(trend, [history]).output
    assert "Quick goals: QUICK_PDR. Their searches collect a tenth of the evidence." in shown
