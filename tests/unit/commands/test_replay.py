import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from lossratio.commands.replay import replay, replayed_load
from lossratio.errors import SearchError
from lossratio.measurements.throughput import replayed
from lossratio.measurements.throughput.result import describe_goal
from lossratio.mlrsearch import NDR, PDR, MLRsearch
from lossratio.plrsearch import SearchByCounts
from lossratio.simulation import SimulatedMeasurer, sut_from
from lossratio.trials import (
    Journal,
    TrialInput,
    TrialOutput,
    TrialResult,
    UnknownJournalError,
    read_journal,
    run_search,
)

CAPACITY, MIN_LOAD, MAX_LOAD = 75e3, 9001.0, 200e3
SEARCH = {
    "target_loss_ratio": 1e-5,
    "min_load_fps": MIN_LOAD,
    "max_load_fps": MAX_LOAD,
    "settings": {"timeout_s": 60.0},
}


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """A journal of a search for a critical load, with the estimate that the search ended with."""
    path = tmp_path_factory.mktemp("replay") / "trials.jsonl"
    measurer = SimulatedMeasurer(sut_from({"model": "sharp_knee", "capacity": "75 kfps"}), seed=1)
    controller = SearchByCounts(1e-5, MIN_LOAD, MAX_LOAD, timeout=60.0)
    with Journal.open(path, SEARCH) as journal:
        search_result = run_search(controller, measurer, journal=journal)
    return path, search_result


def write_journal(path, search, results=()):
    with Journal.open(path, search) as journal:
        for result in results:
            journal.append(result)
    return path


def lossy(load, lost, sent=100_000):
    return TrialResult(TrialInput(1.0, load), TrialOutput(lost / sent, sent_frames=sent, lost_frames=lost))


def estimate_of(path):
    return replayed_load(read_journal(path), path)


def test_the_same_question_has_the_same_answer(searched):
    path, search_result = searched
    assert estimate_of(path) == search_result


def test_another_journal_is_told(tmp_path):
    path = write_journal(tmp_path / "j.jsonl", {**SEARCH, "settings": {}}, [lossy(80e3, 5_000), lossy(70e3, 0)])
    with pytest.raises(SearchError, match=r"neither to a search for conditional throughput nor .* number timeout_s"):
        estimate_of(path)


def test_a_likelihood_of_another_version_is_told(tmp_path):
    settings = {"timeout_s": 60.0, "likelihood": "cubic"}
    path = write_journal(tmp_path / "j.jsonl", {**SEARCH, "settings": settings}, [lossy(80e3, 5_000)])
    with pytest.raises(SearchError, match=r"likelihood 'cubic', which this version does not know\. Use the version"):
        estimate_of(path)


def test_a_warm_up_is_no_evidence(tmp_path):
    trials = [lossy(80e3, 5_000), lossy(76e3, 1_000), lossy(70e3, 0)]
    warm = write_journal(
        tmp_path / "warm.jsonl",
        {**SEARCH, "settings": {"timeout_s": 60.0, "warm_up_duration_s": 1.0}},
        [lossy(20e3, 9_000), *trials],
    )
    plain = write_journal(tmp_path / "plain.jsonl", SEARCH, trials)
    assert estimate_of(warm) == estimate_of(plain)


def test_the_command_shows_the_estimate_and_what_is_known_without_a_model(lossratio, searched):
    path, search_result = searched
    status, out, _ = lossratio("archive", "replay", path)
    assert status == 0
    assert f"verified      {search_result.verified:,.1f} fps" in out
    for word in ("contradicted", "by a line", "Counted frames: verified: "):
        assert word in out


def test_a_result_in_place_of_its_journal_is_told_apart(lossratio, tmp_path):
    result, journal = tmp_path / "results" / "a.json", tmp_path / "trials" / "a.jsonl"
    for path in (result, journal):
        path.parent.mkdir()
        path.touch()
    status, _, err = lossratio("archive", "replay", result)
    assert status == 2
    assert f"is a result, not a journal. Name its journal: {journal}" in err


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b'{"format": "lossratio-report/1"}', "it is of the format lossratio-report/1"),
        (b'{"name": "package"}', "it is JSON"),
        (b"SQLite format 3\0abc", "it is binary"),
        (None, "No such file or directory"),
    ],
    ids=["another report", "any JSON", "binary", "missing"],
)
def test_no_journal_is_named_that_is_not_there(lossratio, tmp_path, data, words):
    path = tmp_path / "results" / "a.json"
    path.parent.mkdir()
    if data is not None:
        path.write_bytes(data)
    status, _, err = lossratio("archive", "replay", path)
    assert status == 2
    assert words in err
    assert "beside it" not in err


@pytest.mark.whole
def test_the_command_loads_no_library_that_it_does_not_need(searched):
    code = (
        "import sys\n"
        "from lossratio.commands.main import commands\n"
        f"commands(['archive', 'replay', {str(searched[0])!r}], standalone_mode=False)\n"
        "print(*sys.modules)\n"
    )
    output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    loaded = set(output.splitlines()[-1].split())
    assert "scipy.special" in loaded
    assert not loaded & {"robot", "paramiko", "matplotlib", "scipy.stats", "lossratio.topology"}


def test_a_damaged_journal_is_an_error_that_names_the_line(tmp_path):
    path = write_journal(tmp_path / "j.jsonl", SEARCH)
    path.write_text(path.read_text() + json.dumps({"input": {}}) + "\n")
    with pytest.raises(SearchError, match="line 2: there is no digest at its end"):
        estimate_of(path)


@pytest.fixture(scope="module")
def throughput(tmp_path_factory):
    """A journal of a search for NDR and PDR, with the result that the search ended with."""
    path = tmp_path_factory.mktemp("replay") / "throughput.jsonl"
    measurer = SimulatedMeasurer(sut_from({"model": "sharp_knee", "capacity": "75 kfps"}), seed=1)
    search = {
        "algorithm": "MLRsearch",
        "goals": [describe_goal(goal).model_dump(mode="json") for goal in (NDR, PDR)],
        "min_load_fps": MIN_LOAD,
        "max_load_fps": MAX_LOAD,
        "settings": {"timeout_s": None, "warm_up_duration_s": 1.0, "fail_fast": True},
    }
    controller = MLRsearch((NDR, PDR), MIN_LOAD, MAX_LOAD, warm_up_duration=1.0)
    with Journal.open(path, search) as journal:
        return path, run_search(controller, measurer, journal=journal)


def test_a_search_for_conditional_throughput_ends_with_the_same_bounds_again(throughput):
    path, search_result = throughput
    again = replayed(read_journal(path)).result()
    assert list(again.items()) == list(search_result.items())
    assert (again.finished, again.trials, again.elapsed) == (True, search_result.trials, search_result.elapsed)


def test_the_command_shows_bounds_and_conditional_throughput_of_each_goal(lossratio, throughput):
    path, search_result = throughput
    status, out, _ = lossratio("archive", "replay", path)
    assert (status, "Critical load" in out) == (0, False)
    for goal, line in zip(search_result, out.splitlines()[1:], strict=True):
        result = search_result[goal]
        assert line.split()[0] == str(goal)
        assert f"throughput {result.conditional_throughput:,.1f} fps" in line
        assert f"{result.relevant_lower_bound:,.1f} fps to {result.relevant_upper_bound:,.1f} fps  regular" in line


def test_a_search_that_was_cut_off_is_replayed_as_far_as_it_goes(lossratio, throughput, tmp_path):
    path = tmp_path / "cut.jsonl"
    path.write_text("".join(throughput[0].read_text().splitlines(keepends=True)[:6]))
    status, out, _ = lossratio("archive", "replay", path)
    assert (status, "5 trials" in out, "not finished" in out) == (0, True, True)
    assert "irregular: the search was stopped before its end" in out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"goals": "NDR"}, "what its goals are"),
        ({"max_load_fps": "fast"}, "max_load_fps: must be a number, not 'fast'"),
    ],
)
def test_a_header_that_makes_no_sense_is_an_error(lossratio, throughput, tmp_path, change, message):
    search = {**read_journal(throughput[0]).search, **change}
    path = write_journal(tmp_path / "j.jsonl", search)
    done = lossratio("archive", "replay", path)
    assert (done.status, message in done.err) == (2, True)


def test_early_verdicts_are_replayed(tmp_path):
    controller = MLRsearch([NDR], MIN_LOAD, MAX_LOAD, early_verdict=True)
    limits = {"min_load_fps": MIN_LOAD, "max_load_fps": MAX_LOAD}
    search = {"goals": [describe_goal(NDR).model_dump(mode="json")], "settings": {"early_verdict": True}, **limits}
    measurer = SimulatedMeasurer(sut_from({"model": "sharp_knee", "capacity": "75 kfps"}), seed=1)
    path = tmp_path / "trials.jsonl"
    with Journal.open(path, search) as journal:
        found = run_search(controller, measurer, journal=journal)
    assert any(trial.is_early for trial in read_journal(path).results)
    again = replayed(read_journal(path)).result()
    assert (dict(again), again.finished, again.elapsed) == (dict(found), True, found.elapsed)


@pytest.mark.parametrize(
    ("name", "contents", "kind"),
    [
        ("sim.yaml", b"# a comment\nformat: lossratio-topology/1\nname: s\n", "of the format lossratio-topology/1"),
        ("of-a-test", b'{"format": "lossratio-result/2",\n"test": {}}\n', "of the format lossratio-result/2"),
        ("page.html", b"<!DOCTYPE html>\n<p>\n", "HTML or XML"),
        ("suite.robot", b"*** Settings ***\n", "a suite of Robot Framework"),
        ("trials.gz", b"\x1f\x8b\x08\n", "compressed (gzip); unpack it first"),
        ("noise", bytes(range(128, 256)) + b"\n", "binary"),
        ("notes.txt", "schöne Last\n".encode(), "text without a format of lossratio"),
        ("void", b"", "empty"),
    ],
)
def test_a_file_that_is_no_journal_is_called_what_it_is_and_not_damaged(tmp_path, name, contents, kind):
    path = tmp_path / name
    path.write_bytes(contents)
    run = CliRunner().invoke(replay, [str(path)])
    assert str(run.exception) == (
        f"{path} is not a journal: it is {kind}. Journals are the files trials/*.jsonl in the directory of a run."
    )
    assert isinstance(run.exception, UnknownJournalError)


def test_a_journal_with_any_name_can_be_damaged(tmp_path):
    path = write_journal(tmp_path / "saved", SEARCH)
    path.write_bytes(path.read_bytes().replace(b"geometric", b"geom").replace(b'": {', b'" {', 1))
    with pytest.raises(SearchError, match="The journal is damaged there"):
        read_journal(path)


def test_of_a_directory_a_journal_is_to_be_named(tmp_path):
    assert "is a directory without journals" in CliRunner().invoke(replay, [str(tmp_path)]).output
    (tmp_path / "trials").mkdir()
    for number in range(6):
        write_journal(tmp_path / "trials" / f"{number}.jsonl", SEARCH)
    said = " ".join(CliRunner().invoke(replay, [str(tmp_path)]).output.split())
    assert f"Name one of its journals: {tmp_path}/trials/0.jsonl, " in said
    assert said.endswith("4.jsonl and 1 more.")
