"""Damaged journals and results are repaired as far as they are good, and the originals stay."""

import json
import os
import re
import shlex
from pathlib import Path

import pytest
from at_least_one import at_least_one
from click.testing import CliRunner
from report_examples import mrr

from lossratio.commands.report import repair
from lossratio.errors import DamagedFileError, NewerFileError, ReportError, SearchError, StorageError
from lossratio.results.repair import repair as repair_files, results_set_aside, unreadable_in
from lossratio.results.run_directory import RunDirectory, read_result
from lossratio.trials.digest import add_digest, take_digest
from lossratio.trials.journal import Journal
from lossratio.trials.journal_lines import FORMAT
from lossratio.trials.journal_reading import read_journal
from lossratio.version import __version__

RUN = Path(__file__).parents[1] / "data" / "0.3.0"


@pytest.fixture
def run(tmp_path):
    """A run with a result, its journal with digests, and the entries in it."""
    return run_with(mrr(), tmp_path)


def search_of(result):
    """The header that the journal of a result has."""
    conditions = result.conditions.model_dump(mode="json", include={"traffic", "load", "timing"})
    search = {**conditions, "max_load_fps": result.max_load.rate.per_interface_fps}
    if result.kind == "throughput":
        search["goals"] = [report.goal.model_dump(mode="json") for report in result.goals]
        search |= {"settings": result.settings, "min_load_fps": result.min_load.per_interface_fps}
    return search


def run_with(result, tmp_path):
    directory = RunDirectory(tmp_path / "run")
    directory.write(result)
    with Journal.open(directory.journal_path(result.test.full_name), search_of(result)) as journal:
        for trial in result.trials:
            journal.append(trial.as_result(), trial.purpose)
    return directory


@pytest.fixture
def journal(run):
    return next((run.path / "trials").glob("*.jsonl"))


@pytest.fixture
def result(run):
    return next((run.path / "results").glob("*.json"))


def invoke(*paths):
    answer = CliRunner().invoke(repair, [str(path) for path in paths])
    assert not isinstance(answer.exception, Exception) or isinstance(answer.exception, SystemExit), answer.exception
    return answer


def damage(path, old, new, count=1):
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new, count))
    return path.read_bytes()


def test_good_files_are_left_as_they_are(run):
    before = {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}
    answer = invoke(run.path)
    assert answer.exit_code == 0
    assert "10 trials are valid" in answer.output
    assert "it is intact" in answer.output
    assert {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()} == before


def test_the_trials_before_a_damaged_line_are_kept_and_the_search_goes_on_from_there(journal):
    lines = journal.read_bytes().splitlines(keepends=True)
    damaged = b"".join([*lines[:5], lines[5].replace(b'"load":4', b'"load":5'), *lines[6:]])
    journal.write_bytes(damaged)
    way_out = re.escape(f"lossratio archive repair {shlex.quote(str(journal))}")
    with pytest.raises(SearchError, match=f"line 6: .*To save the trials before that line: {way_out}"):
        read_journal(journal)
    answer = invoke(journal)
    assert answer.exit_code == 1
    assert "its first 4 trials are kept, without 6 lines" in answer.output
    assert journal.read_bytes() == b"".join(lines[:5])
    assert journal.with_name(f"{journal.name}.damaged").read_bytes() == damaged
    assert len(read_journal(journal).entries) == 4
    Journal.open(journal, search_of(mrr())).close()


def test_a_hole_is_never_filled_with_what_comes_after_it(journal):
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:3] + lines[4:]))
    invoke(journal)
    assert journal.read_bytes() == b"".join(lines[:3])


def test_a_journal_without_a_header_is_set_aside(journal):
    damage(journal, b'"search"', b'"Search"')
    answer = invoke(journal)
    assert answer.exit_code == 1
    assert "nothing in it can be used" in answer.output
    assert not journal.exists()
    assert journal.with_name(f"{journal.name}.damaged").exists()


def test_a_journal_that_was_cut_off_is_not_damaged(journal):
    whole = journal.read_bytes()
    for length in (len(whole) - 10, 20, 0):
        journal.write_bytes(whole[:length])
        assert invoke(journal).exit_code == 0
        assert journal.read_bytes() == whole[:length]
        assert unreadable_in(journal.parent.parent) == []


def test_a_journal_of_one_trial_has_one_trial(journal):
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:2]))
    assert "1 trial is valid" in invoke(journal).output
    journal.write_bytes(b"".join(lines[:2]) + b"{}\n")
    assert "its first trial is kept, without 1 line" in invoke(journal).output


def test_trials_that_nothing_proves_are_no_good_trials(journal):
    contents = read_journal(journal)
    with Journal.open(journal, contents.search) as more:
        for _ in range(2):
            more.append(contents.results[-1], verified=False)
    proved = len(contents.entries)
    assert f"{proved} trials are valid; nothing proves the next 2" in invoke(journal).output
    journal.write_bytes(journal.read_bytes() + b"{}\n")
    done = f"its first {proved} trials are kept, without 1 line; nothing proves the next 2"
    assert done in invoke(journal).output
    assert len(read_journal(journal).unproved) == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"bookworm", b"trixie"),
        (b'"purpose": null', b'"purpose": "luck"'),
        (b'"mean": {', b'"mean": }'),
        (b'"kind": "mrr"', b""),
    ],
)
def test_a_damaged_result_is_set_aside_until_a_resumed_run_makes_it_again(run, result, old, new):
    damage(result, old, new, count=1)
    answer = invoke(result)
    assert answer.exit_code == 1
    assert "lossratio run --resume" in answer.output
    assert not result.exists()
    assert results_set_aside(run.path) == {result.stem}


def test_a_result_without_a_journal_is_set_aside(run, result, journal):
    journal.unlink()
    damage(result, b"bookworm", b"trixie", count=1)
    invoke(result)
    assert not result.exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("newer.json", b'{"format": "lossratio-result/99"}'),
        ("run.json", b'{"format": "lossratio-run/1"}'),
        ("newer.jsonl", add_digest(b'{"format": "lossratio-journal/3", "created": "", "search": {}}')[0] + b"\n"),
        ("newest.jsonl", b'{"format": "lossratio-journal/9", "search": {}}\n'),
        ("other.jsonl", b'{"event": "login"}\n{"event": "logout"}\n'),
    ],
)
def test_files_of_a_newer_version_or_another_kind_are_left_as_they_are(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content)
    answer = invoke(path)
    assert answer.exit_code == 2
    assert "it is left as it is" in answer.output
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {name: content}


def test_a_result_of_a_newer_version_is_not_damaged_and_its_version_is_named(run, result):
    """In a newer format, or with values that this version does not know."""
    text = take_digest(result.read_bytes().removesuffix(b"\n"))[0].replace(b'"0.1.0"', b'"12.3"')
    for old, new, form in (
        (b'"lossratio-result/2"', b'"lossratio-result/9"', " in the format 'lossratio-result/9'"),
        (b'"kind": "mrr"', b'"kind": "mrr_of_tomorrow"', ""),
        (b'"outcome": "', b'"outcome": "very ', ""),
    ):
        assert text.count(old) == 1
        result.write_bytes(add_digest(text.replace(old, new))[0] + b"\n")
        (error,) = unreadable_in(run.path)
        assert isinstance(error, NewerFileError)
        assert str(error).startswith(
            f"Lossratio 12.3 wrote {result}{form}, which this version, {__version__}, cannot read"
        )
        assert "it is left as it is" in invoke(result).output


def test_a_journal_of_a_newer_version_is_not_damaged_and_its_version_is_named(run, journal):
    about = {"conditions": {"controller": {"lossratio_version": "12.3"}}}
    header = json.dumps({"format": FORMAT, "created": "", "search": {}, "about": about}).encode()
    newer = header.replace(FORMAT.encode(), b"lossratio-journal/99")
    for first, second, form in (
        (newer, b'{"trial": "of tomorrow"}', " in the format 'lossratio-journal/99'"),
        (header, b'{"trial": "of tomorrow"}', ""),
    ):
        line, digest = add_digest(first)
        journal.write_bytes(line + b"\n" + add_digest(second, digest)[0] + b"\n")
        (error,) = unreadable_in(run.path)
        assert isinstance(error, NewerFileError)
        assert str(error).startswith(
            f"Lossratio 12.3 wrote {journal}{form}, which this version, {__version__}, cannot "
        )
        assert "it is left as it is" in invoke(journal).output
    journal.write_bytes(line + b"\n" + b'{"trial": "of today", "digest": ""}\n')
    (error,) = unreadable_in(run.path)
    assert not isinstance(error, NewerFileError)


def test_the_rest_of_a_run_is_repaired_beside_what_is_left_as_it_is(run, journal):
    (journal.parent / "a.jsonl").write_text("{}\n")
    damage(journal, b'"load":4', b'"load":5')
    answer = invoke(run.path)
    assert answer.exit_code == 2
    assert "its first 0 trials are kept" in answer.output


def test_the_rest_of_a_run_is_repaired_beside_a_journal_that_cannot_be_read(run, journal):
    (journal.parent / "a.jsonl").mkdir()
    damage(journal, b'"load":4', b'"load":5')
    answer = invoke(run.path)
    assert answer.exit_code == 2
    assert "a.jsonl: it is left as it is" in answer.output
    assert "its first 0 trials are kept" in answer.output


@pytest.mark.whole
def test_a_flip_in_the_name_of_the_format_is_repaired(run, result, journal):
    """Most flips make it that of a version that nobody has, or of nothing that is known."""
    good = read_result(result)
    for place in range(len(b'"format": "lossratio-result/2')):
        for path, start in ((result, b'"format": "lossratio-result'), (journal, b'"format": "lossratio-journal')):
            whole = path.read_bytes()
            flipped = bytearray(whole)
            flipped[whole.index(start) + place] ^= 1 << place % 7
            path.write_bytes(flipped)
            assert invoke(path).exit_code == 1
            assert path == journal or not path.exists() or read_result(path).trials == good.trials
            for file in at_least_one(path.parent.iterdir()):
                file.unlink()
            path.write_bytes(whole)


def test_the_number_of_the_format_is_what_its_digest_fits(run, result):
    damage(result, b"lossratio-result/2", b"lossratio-result/3")
    with pytest.raises(
        ReportError, match=r"'format' is 'lossratio-result/3', but its digest belongs to 'lossratio-res"
    ):
        read_result(result)
    assert invoke(result).exit_code == 1
    assert not result.exists()


@pytest.mark.parametrize(("old", "new"), [(b"l2bdbase-mrr", b"l2bdbase-mzr"), (b"Linux Bridge", b"Linux Cridge")])
def test_a_result_with_the_name_of_another_test_is_set_aside(run, result, old, new):
    damage(result, old, new)
    invoke(result)
    assert not result.exists()


def test_a_second_repair_keeps_the_first_original(journal):
    for _ in range(2):
        lines = journal.read_bytes().splitlines(keepends=True)
        journal.write_bytes(b"".join([*lines[:-1], b"{}\n"]))
        invoke(journal)
    names = sorted(path.name.partition(".jsonl")[2] for path in journal.parent.iterdir())
    assert names == ["", ".damaged", ".damaged-2"]


@pytest.mark.parametrize("name", ["missing.json", "notes.txt", "empty"])
def test_what_is_neither_is_refused(tmp_path, name):
    (tmp_path / "notes.txt").write_text("")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ReportError, match=r"is neither a journal .*, nor a result .*, nor the directory of a run"):
        list(repair_files(tmp_path / name))


def test_where_there_is_nothing_to_repair_this_is_said(lossratio, tmp_path):
    (tmp_path / "trials").mkdir()
    expected = f"{tmp_path}: nothing to repair. It has no journal (trials/*.jsonl) and no result (results/*.json).\n"
    assert lossratio("archive", "repair", tmp_path) == (0, expected, "")


def test_where_there_is_no_room_the_original_stays(journal, monkeypatch):
    damaged = damage(journal, b'"load":4', b'"load":5')
    monkeypatch.setattr(os, "fsync", no_space_left)
    with pytest.raises(StorageError, match=r"No space left on device.*It is unchanged. Free some space"):
        list(repair_files(journal))
    assert journal.read_bytes() == damaged


def no_space_left(handle):
    raise OSError(28, os.strerror(28))


@pytest.mark.parametrize("file", ["journal", "result"])
def test_who_repairs_is_not_advised_to_repair(request, file):
    path = request.getfixturevalue(file)
    damage(path, b'"lost_frames":', b'"lost_frames":1')
    answer = invoke(path)
    assert answer.exit_code == 1
    assert "damaged" in answer.stderr
    assert "archive repair" not in answer.output


def test_an_error_about_damage_has_the_damage_without_the_advice_whatever_the_path_is(run):
    moved = run.path.rename(run.path.with_name("a To b: lossratio archive repair c"))
    (journal,) = moved.glob("trials/*.jsonl")
    damage(journal, b'"lost_frames":', b'"lost_frames":1')
    with pytest.raises(DamagedFileError) as raised:
        read_journal(journal)
    assert raised.value.damage.startswith(f"{journal}, line 2: ")
    assert raised.value.damage.endswith("The journal is damaged there.")
    assert raised.value.damage in invoke(journal).stderr
