import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from lossratio.commands.replay import soak
from lossratio.commands.replay_estimate import ReplayRequest, replay
from lossratio.errors import SearchError
from lossratio.plrsearch import LikelihoodName, PLRsearch, Weighting
from lossratio.simulation import SimulatedMeasurer, sut_from
from lossratio.trials.journal import Journal
from lossratio.trials.trial import TrialInput, TrialOutput, TrialResult, run_search

CAPACITY, MIN_LOAD, MAX_LOAD = 75e3, 9001.0, 200e3
SEARCH = {"target_loss_ratio": 1e-5, "min_load_fps": MIN_LOAD, "max_load_fps": MAX_LOAD, "settings": {}}


@pytest.fixture(scope="module")
def searched(tmp_path_factory):
    """A journal of a search for a critical load, with the estimate that the search ended with."""
    path = tmp_path_factory.mktemp("replay") / "trials.jsonl"
    measurer = SimulatedMeasurer(sut_from({"model": "sharp_knee", "capacity": "75 kfps"}), seed=1)
    controller = PLRsearch(1e-5, MIN_LOAD, MAX_LOAD, timeout=60.0)
    with Journal.open(path, SEARCH) as journal:
        found = run_search(controller, measurer, journal=journal)
    return path, found


def write_journal(path, search, results=()):
    with Journal.open(path, search) as journal:
        for result in results:
            journal.append(result)
    return path


def lossy(load, lost, sent=100_000):
    return TrialResult(TrialInput(1.0, load), TrialOutput(lost / sent, sent_frames=sent, lost_frames=lost))


def test_the_same_question_has_the_same_answer(searched):
    path, found = searched
    again = replay(path, ReplayRequest())
    assert (again.mean, again.stdev) == (found.mean, found.stdev)


def test_a_larger_target_allows_a_larger_load(searched):
    path, found = searched
    assert replay(path, ReplayRequest(target_loss_ratio=1e-2)).mean > found.mean


def test_other_likelihoods_and_weightings_are_taken_when_asked_for(searched):
    path, _ = searched
    found = replay(path, ReplayRequest(likelihood=LikelihoodName.POISSON, weighting=Weighting.EQUAL))
    assert (found.likelihood, found.weighting) == (LikelihoodName.POISSON, Weighting.EQUAL)
    assert found.combined.weights == (0.5, 0.5)


def test_a_search_for_something_else_needs_a_target(tmp_path):
    search = {"algorithm": "MLRsearch", "min_load_fps": MIN_LOAD, "max_load_fps": MAX_LOAD, "settings": {}}
    path = write_journal(tmp_path / "j.jsonl", search, [lossy(80e3, 5_000), lossy(70e3, 0)])
    with pytest.raises(SearchError, match="does not say target_loss_ratio: give it with --target-loss-ratio"):
        replay(path, ReplayRequest())
    assert 70e3 < replay(path, ReplayRequest(target_loss_ratio=1e-3)).mean < 80e3


def test_a_warm_up_is_no_evidence(tmp_path):
    trials = [lossy(80e3, 5_000), lossy(76e3, 1_000), lossy(70e3, 0)]
    warm = write_journal(
        tmp_path / "warm.jsonl", {**SEARCH, "settings": {"warm_up_duration_s": 1.0}}, [lossy(20e3, 9_000), *trials]
    )
    plain = write_journal(tmp_path / "plain.jsonl", SEARCH, trials)
    assert replay(warm, ReplayRequest()).mean == replay(plain, ReplayRequest()).mean


def test_the_command_tells_both_functions_and_whether_the_model_fits(searched):
    path, found = searched
    result = CliRunner().invoke(soak, ["--replay", str(path)], catch_exceptions=False)
    assert result.exit_code == 0
    assert f"combined  mean {found.mean:,.1f} fps" in result.output
    for word in ("stretch", "erf", "weight", "The model"):
        assert word in result.output


def test_the_command_loads_no_library_that_it_does_not_need(searched):
    code = (
        "import sys\n"
        "from lossratio.commands.main import commands\n"
        f"commands(['soak', '--replay', {str(searched[0])!r}], standalone_mode=False)\n"
        "print(*sys.modules)\n"
    )
    output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    loaded = set(output.splitlines()[-1].split())
    assert "scipy.special" in loaded
    assert not loaded & {"robot", "pydantic", "paramiko", "matplotlib", "scipy.stats", "lossratio.topology"}


def test_the_command_takes_every_likelihood_and_weighting_there_is():
    choices = {option.name: set(option.type.choices) for option in soak.params if hasattr(option.type, "choices")}
    assert choices["likelihood"] == {each.value for each in LikelihoodName}
    assert choices["weighting"] == {each.value for each in Weighting}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--target-loss-ratio", "much"], "'much' is not a ratio"),
        (["--min-load", "-1 kpps"], "'-1 kpps' is not a frame rate"),
        (["--max-load", "fast"], "'fast' is not a frame rate"),
    ],
)
def test_what_is_no_quantity_is_an_error_that_names_the_option(searched, arguments, message):
    done = CliRunner().invoke(soak, ["--replay", str(searched[0]), *arguments])
    assert done.exit_code == 2
    assert arguments[0] in done.stderr
    assert message in done.stderr


def test_a_loss_ratio_that_makes_no_sense_is_an_error(searched):
    arguments = ["--replay", str(searched[0]), "--target-loss-ratio", "2"]
    with pytest.raises(SearchError, match="ratio"):
        CliRunner().invoke(soak, arguments, catch_exceptions=False)


def test_a_damaged_journal_is_an_error_that_names_the_line(tmp_path):
    path = write_journal(tmp_path / "j.jsonl", SEARCH)
    path.write_text(path.read_text() + json.dumps({"input": {}}) + "\n")
    with pytest.raises(SearchError, match="line 2: there is no digest at its end"):
        replay(path, ReplayRequest())
