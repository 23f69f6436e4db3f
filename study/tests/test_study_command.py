"""The command, as its users run it."""

import gc
import json
import re

import pytest
from click.testing import CliRunner

from lossratio.commands.main import commands
from lossratio.errors import LossRatioError
from lossratio.report import note_failure
from lossratio.trials import Journal, TrialInput, TrialOutput, TrialResult
from lossratio_study import command
from lossratio_study.algorithms import PEER
from lossratio_study.command import study
from lossratio_study.families import FAMILIES
from lossratio_study.study import Cell, Store
from lossratio_study.suts import Overhead, recorded_families


@pytest.fixture(scope="module", autouse=True)
def installed():
    """Looks when a test runs, as each process collects these tests, and loading takes a second."""
    for package in ("joblib", "pandas", "pyarrow"):
        pytest.importorskip(package)


def run(tmp_path, *arguments):
    """A small study, but with these arguments."""
    small = {"--seeds": "0..1", "--repeats": "2", "--jobs": "1", "--results": str(tmp_path)}
    words = ["--family", "sharp knee", "--goals", "G4", *arguments]
    for name, value in small.items():
        if name not in arguments:
            words += [name, value]
    return CliRunner().invoke(study, words)


@pytest.mark.whole
def test_a_small_study_prints_its_tables(tmp_path, monkeypatch):
    # A search of a thousand trials; test_study_search.py makes it.
    monkeypatch.setattr(command.figures, "decision_time_growth", lambda: 2.5)
    result = run(tmp_path, "--seeds", "0..0", "--repeats", "1", "--overhead", "0", "--overhead", "0.5")
    assert result.exit_code == 0, result.output
    assert "Overhead 0.5 s: searches" in result.output
    if command.peer.why_not_installed() is None:
        assert "Search time divided by the peer's" in result.output
        assert "Measuring the time per decision in a search of 1,000 trials" in result.output
        assert "verdict" in result.output


@pytest.mark.whole
def test_a_study_without_the_peer_says_why_and_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(command.peer, "why_not_installed", lambda: "it is not there.")
    result = run(tmp_path)
    assert result.exit_code == 0, result.output
    assert f"{PEER} is skipped: it is not there." in result.output
    assert "lossratio" in result.output


def test_a_study_of_one_overhead_alone_has_tables(tmp_path):
    result = run(tmp_path, "--algorithm", "lossratio", "--overhead", "0.5-counted")
    assert result.exit_code == 0, result.output
    assert "Overhead 0.5 s, counted" in result.output


@pytest.mark.parametrize("seeds", ["3..1", "a..b", "-1", "0..", "0..9999999", "9" * 5000])
def test_seeds_that_are_no_range_are_refused(tmp_path, seeds):
    result = run(tmp_path, "--algorithm", "lossratio", "--seeds", seeds)
    assert (result.exit_code == 0) == (seeds == "0..")
    assert ("is not a range of seeds" in result.output) == (seeds != "0..")
    assert len(result.output) < 2500


@pytest.mark.parametrize(
    ("option", "value", "answer"),
    [
        ("--repeats", "1.5", "'1.5' is not a whole number; write it like '3'."),
        ("--promises", "maybe", "'maybe' is not a whole number; write it like '3'."),
        ("--jobs", "all", "'all' is not a whole number; write it like '3'."),
        ("--jobs", "0", "Give a number of processes, or -1 for one on each core."),
        ("--results", "https://example.org/x", "is a URL. Give a path on this machine."),
        ("--replay", "x" * 5000, "does not exist. Check the path, which is relative to the working directory."),
        ("--family", "x" * 5000, "They are sharp knee, collapse"),
    ],
)
def test_a_wrong_value_is_answered_in_the_words_of_the_other_commands(tmp_path, option, value, answer):
    result = run(tmp_path, option, value)
    assert result.exit_code == 2
    assert answer in result.output
    assert len(result.output) < 1500


@pytest.mark.parametrize(
    ("contents", "problem"),
    [
        (b"\xa4\xff\x00 no text", "it is not UTF-8 text"),
        (b'{"lost": 1, "load": 5}\n', "a line has no 'frames'"),
        (b'{"lost": 1\n', "Expecting"),
        (b"", "it is not a journal"),
    ],
)
def test_a_record_that_cannot_be_read_is_named(tmp_path, contents, problem):
    (tmp_path / "a.jsonl").write_bytes(contents)
    result = CliRunner().invoke(study, ["--replay", str(tmp_path), "--results", str(tmp_path / "results")])
    assert isinstance(result.exception, LossRatioError)
    assert str(tmp_path / "a.jsonl") in str(result.exception)
    assert problem in str(result.exception)


def test_results_that_are_damaged_are_named_with_the_way_out(tmp_path):
    from pyarrow import Table, parquet

    small = ("--algorithm", "lossratio", "--seeds", "0", "--repeats", "1")
    assert run(tmp_path, *small).exit_code == 0
    (file,) = tmp_path.rglob("*.parquet")
    file.write_bytes(b"x")
    assert str(run(tmp_path, *small).exception) == f"{file} is damaged. Remove this file to search again."
    parquet.write_table(Table.from_pylist([{"family": "sharp knee"}]), file)
    assert re.search(r"lacks algorithm, .*\. Remove this file to search again\.$", str(run(tmp_path, *small).exception))
    (tmp_path / "file").touch()
    assert "Choose another directory: --results DIR" in str(run(tmp_path / "file" / "x", *small).exception)


@pytest.mark.whole
def test_a_scheduler_that_is_none_is_named(tmp_path):
    pytest.importorskip("distributed")
    result = run(tmp_path, "--algorithm", "lossratio", "--scheduler", "nonsense")
    said = str(result.exception)
    # If the client that did not connect were finalized while another one starts, Dask would wait for itself.
    del result
    gc.collect()
    assert "The Dask scheduler nonsense cannot be reached: " in said


def test_ctrl_c_says_how_many_cells_are_kept_and_nothing_of_joblib(lossratio_study, tmp_path, monkeypatch, recwarn):
    from joblib import parallel_config

    save = Store.save

    def interrupted(store, cell, rows):
        if list(tmp_path.rglob("*.parquet")):
            raise KeyboardInterrupt
        save(store, cell, rows)

    # Searches would catch warnings on threads beside the one that is interrupted, which Python does not support.
    rows = Cell("development", "sharp knee", "G4", Overhead(0.0), "lossratio", (0,), 1).rows()
    monkeypatch.setattr(Cell, "rows", lambda cell: rows)
    monkeypatch.setattr(Store, "save", interrupted)
    small = ("--goals", "G4", "--algorithm", "lossratio", "--seeds", "0", "--repeats", "1", "--jobs", "2")
    with parallel_config(backend="threading"):
        status, out, err = lossratio_study(*small, "--results", "kept")
    assert (status, out) == (130, "")
    assert f"Cells finished: 1 of {len(FAMILIES)}, kept in kept\n" in err
    assert "UserWarning" not in err
    assert not recwarn.list


def test_an_unknown_family_is_refused_with_those_that_there_are(tmp_path):
    result = run(tmp_path, "--family", "blunt knee")
    assert result.exit_code == 2
    assert "sharp knee, collapse" in result.output


def test_algorithms_that_cannot_search_for_the_goals_are_refused(tmp_path):
    result = run(tmp_path, "--algorithm", "MLRsearch 2019")
    assert result.exit_code == 2
    assert "None of these algorithms" in result.output


@pytest.mark.whole
def test_an_algorithm_of_another_module_is_searched_with_beside_ours(tmp_path):
    algorithms = ("--algorithm", "lossratio", "--algorithm", "TST009 bisection")
    result = run(tmp_path, *algorithms, "--goals", "G3")
    assert result.exit_code == 0, result.output
    assert "G3 TST009 bisection" in result.output
    again = run(tmp_path, *algorithms, "--goals", "G3", "--seeds", "0..1")
    assert again.output.split("G3 TST009 bisection")[1] == result.output.split("G3 TST009 bisection")[1]


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("simplex", "'simplex' is not an algorithm"),
        ("nowhere:SIMPLEX", "No module named 'nowhere'"),
        ("lossratio_study.csit:SIMPLEX", "no attribute 'SIMPLEX'"),
        (":", "module:NAME"),
        ("raises_at_import:X", "is not an algorithm (out of order)"),
        ("os:getcwd", "os:getcwd is not a lossratio_study.Algorithm"),
    ],
)
def test_an_algorithm_that_nobody_has_is_refused_with_its_reason(tmp_path, monkeypatch, name, reason):
    (tmp_path / "raises_at_import.py").write_text("raise RuntimeError('out of order')")
    monkeypatch.syspath_prepend(tmp_path)
    result = run(tmp_path, "--algorithm", name)
    assert result.exit_code == 1
    assert reason in str(result.exception)
    assert not list(tmp_path.rglob("*.parquet"))


def test_the_lossratio_command_passes_all_options_on():
    shown = CliRunner().invoke(commands, ["study", "--help"])
    assert "--scheduler" in shown.output
    refused = CliRunner().invoke(commands, ["study", "--seeds", "x"])
    assert "'x' is not a range of seeds" in refused.output
    assert refused.exit_code == 2


@pytest.mark.whole
def test_searches_with_and_without_hints_are_set_side_by_side(tmp_path):
    result = run(tmp_path, "--hints", "unchanged", "--hints", "1 %")
    assert result.exit_code == 0, result.output
    assert "time / without hints, unchanged" in result.output
    assert "change of 1 % seen less often" in result.output
    assert "Divided by the search time without hints, 1 %" in result.output


def test_a_study_of_records_shows_between_which_loads_the_bounds_were(tmp_path):
    (tmp_path / "nights").mkdir()
    loads = [*range(10_000, 100_000, 10_000)] * 10
    lines = [{"load": load, "frames": load, "lost": max(0, load - 50_000)} for load in loads]
    (tmp_path / "nights" / "one.jsonl").write_text("\n".join(map(json.dumps, lines)))
    note_failure(tmp_path / "nights", "A test that failed", "No trial was measured.")
    options = ("--goals", "G4", "--algorithm", "lossratio", "--repeats", "1", "--jobs", "1", "--results", str(tmp_path))
    result = CliRunner().invoke(study, ["--replay", str(tmp_path / "nights"), *options])
    assert result.exit_code == 0, result.output
    (line,) = (line for line in result.output.splitlines() if line.startswith("one.jsonl: G4, quick NDR, lossratio"))
    *_, least, median, most, regular, _, searches = line.split()
    assert float(least) == float(median) == float(most) == pytest.approx(50_000, rel=0.01)
    assert regular == searches == "2"
    page = (tmp_path / "replay.html").read_text()
    assert str(tmp_path / "replay.html") in result.output
    assert "records: 1, searches on each: 2" in page
    (row,) = re.findall(r"<tr data-goal=.*</tr>", page)
    assert "quick NDR: quick NDR" in row
    assert re.search(r">\d+<.*>0.00<.*>(49|50)\.\d+ kfps<.*>2 of 2<", row)
    assert page.count("<title>", page.index("<svg")) == 1 + 2, "the picture has a title, and each search a hint"


def test_a_directory_without_records_is_refused(tmp_path):
    result = CliRunner().invoke(study, ["--replay", str(tmp_path)])
    assert result.exit_code != 0
    assert "no record of trials" in str(result.exception or result.output)


def journal_of_a_night(folder, name, began):
    """A journal with a dozen trials: all of them pass up to 50 kfps."""
    about = {"test": {"suite": "A Suite", "name": name}}
    search = {"traffic": {"profile": "ethip4-udp"}, "dut": None}
    folder.mkdir(parents=True)
    with Journal.open(folder / f"{name}.jsonl", search, about) as journal:
        for number in range(12):
            load = 10_000.0 * (1 + (began + number) % 10)
            journal.append(TrialResult(TrialInput(1.0, load), TrialOutput(max(0.0, 1.0 - 50_000.0 / load))))


@pytest.mark.whole
def test_nights_of_one_test_are_one_record_and_repeat_only_with_enough_trials(tmp_path):
    for night in range(3):
        journal_of_a_night(tmp_path / "nights" / str(night) / "trials", "steady", night)
    journal_of_a_night(tmp_path / "nights" / "9" / "trials", "other", 0)
    families = recorded_families(tmp_path / "nights")
    assert [(name, len(family.record.files)) for name, family in families.items()] == [
        ("0/trials/steady.jsonl", 3),
        ("9/trials/other.jsonl", 1),
    ]
    record = families["0/trials/steady.jsonl"].record
    assert record.fewest_trials(50_000.0, 50_001.0) == 3
    options = ("--goals", "G4", "--algorithm", "lossratio", "--repeats", "1", "--jobs", "1", "--results", str(tmp_path))
    CliRunner().invoke(study, ["--replay", str(tmp_path / "nights"), *options], catch_exceptions=False)
    rows = re.findall(r"<tr data-goal=.*</tr>", (tmp_path / "replay.html").read_text())
    assert len(rows) == 2
    assert all(">0.00<" not in row for row in rows)
