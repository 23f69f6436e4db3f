"""SUTs that are records of trials: what they lose at recorded loads, between them and beyond, and in which order."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, strategies as st

from lossratio.errors import SearchError
from lossratio.mlrsearch import MLRsearch, SearchGoal
from lossratio.simulation import Recorded, Replay, SimulatedMeasurer, counted, record_of, sut_from
from lossratio.trials import TrialInput, TrialOutput, TrialResult, run_search
from lossratio.trials.journal import Journal


def record(tmp_path, *trials):
    lines = [json.dumps({"load": load, "frames": frames, "lost": lost}) for load, frames, lost in trials]
    (tmp_path / "night.jsonl").write_text("\n".join(lines) + "\n")
    return tmp_path / "night.jsonl"


def losses(sut, load, trials=1, duration=1.0, seed=1):
    measurer = SimulatedMeasurer(sut, seed=seed)
    return [measurer.measure(TrialInput(duration, load)).loss_ratio for _ in range(trials)]


def test_recorded_loads_lose_what_they_lost_whatever_the_duration(tmp_path):
    sut = Recorded(record(tmp_path, (1000.0, 10_000, 100), (2000.0, 20_000, 5000)))
    assert sut.loads() == (1000.0, 2000.0)
    for duration in (1.0, 7.0):
        assert losses(sut, 1000.0, duration=duration) == [pytest.approx(0.01)]
        assert losses(sut, 2000.0, duration=duration) == [pytest.approx(0.25)]


def test_a_trial_that_lost_a_frame_loses_one_however_short_it_is_now(tmp_path):
    sut = Recorded(record(tmp_path, (1000.0, 60_000, 1)))
    assert losses(sut, 1000.0, duration=1.0) == [pytest.approx(0.001)]


@given(load=st.floats(1.0, 1e8), duration=st.floats(0.1, 60.0))
def test_a_trial_that_lost_one_frame_is_never_replayed_without_loss(load, duration):
    sent = max(1, round(load * duration))
    trial = TrialResult(TrialInput(duration, load), TrialOutput(1.0 / sent))
    replay = Replay(record_of([counted(trial)]), np.random.default_rng(1), "interpolated")
    assert replay.loss_ratio(load) > 0.0


def test_between_loads_the_logarithm_of_the_loss_ratio_is_interpolated(tmp_path):
    sut = Recorded(record(tmp_path, (1000.0, 1_000_000, 10), (4000.0, 1_000_000, 1000)))
    assert losses(sut, 2000.0, duration=500.0) == [pytest.approx(1e-4)]
    record(tmp_path, (1000.0, 1000, 0), (4000.0, 1000, 500)).rename(tmp_path / "other.jsonl")
    none = Recorded(tmp_path / "other.jsonl")
    assert losses(none, 1000.0) == [0.0]
    assert losses(none, 1010.0) == [0.0], "less than a frame is none"
    assert losses(none, 2000.0, duration=500.0)[0] == pytest.approx(0.5 * 1000**0.5 / 1000, rel=1e-3)


@pytest.mark.whole
def test_either_neighbour_gives_whole_trials_the_nearer_one_more_often(tmp_path):
    sut = Recorded(record(tmp_path, (1000.0, 1000, 0), (4000.0, 1000, 500)), "either")
    seen = losses(sut, 1500.0, trials=1000)
    assert {round(loss, 3) for loss in seen} == {0.0, 0.5}
    assert sum(seen) / 500.0 == pytest.approx(0.29, abs=0.05)


def test_beyond_the_loads_the_share_stays_below_and_the_rate_above(tmp_path):
    sut = Recorded(record(tmp_path, (1000.0, 1000, 10), (2000.0, 2000, 500)))
    assert losses(sut, 500.0, duration=10.0) == [pytest.approx(0.01)]
    assert losses(sut, 6000.0) == [pytest.approx(1.0 - 1500.0 / 6000.0)]


def test_the_order_of_the_record_is_kept(tmp_path):
    sut = Recorded(record(tmp_path, *((1000.0, 1000, lost) for lost in range(10, 20))))
    seen = [round(loss * 1000) for loss in losses(sut, 1000.0, trials=30)]
    assert seen == [10 + (seen[0] - 10 + number) % 10 for number in range(30)]
    others = {round(losses(sut, 1000.0, seed=seed)[0] * 1000) for seed in range(30)}
    assert len(others) > 4, "searches begin at other trials"


def test_a_watched_trial_loses_as_much_as_a_whole_one(tmp_path):
    sut = Recorded(record(tmp_path, (1000.0, 1000, 13)))
    whole, watched = (
        SimulatedMeasurer(sut, seed=1).measure(TrialInput(10.0, 1000.0, certain_above=limit)) for limit in (None, 0.5)
    )
    assert whole.loss_ratio == watched.loss_ratio


def test_a_journal_of_a_search_is_a_record(tmp_path):
    goal = SearchGoal(0.0, 0.5, 1.0, 5.0, 0.05)
    sut = sut_from({"model": "sharp_knee", "capacity": 5000.0})
    file = tmp_path / "search.jsonl"
    with Journal.open(file, {}) as journal:
        found = run_search(MLRsearch([goal], 1000.0, 10_000.0), SimulatedMeasurer(sut, seed=1), journal=journal)
    recorded = sut_from({"model": "recorded", "file": str(file)})
    again = run_search(MLRsearch([goal], 1000.0, 10_000.0), SimulatedMeasurer(recorded, seed=2))
    assert again[goal].relevant_lower_bound == found[goal].relevant_lower_bound


@pytest.mark.whole
def test_a_record_is_read_as_utf_8_whatever_the_encoding_of_the_locale(tmp_path):
    file = tmp_path / "night.jsonl"
    line = {"load": 1000.0, "frames": 10_000, "lost": 100, "remark": "\N{LATIN SMALL LETTER U WITH DIAERESIS}ber Nacht"}
    file.write_text(json.dumps(line, ensure_ascii=False), encoding="utf-8")
    read = "import sys; from lossratio.simulation import Recorded; print(Recorded(sys.argv[1]).loads())"
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [sys.executable, "-c", read, file],
        env={**os.environ, **ascii_only},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout.strip(), done.stderr) == ("(1000.0,)", "")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it is not a journal"),
        ('{"load": 1, "lost": 0}', "neither a journal nor a record"),
        ('{"load": 1, "frames": 5, "lost": 6}', "trial 1: 6.0 of 5.0 frames lost"),
        ("[1, 2]", "it is not a journal"),
    ],
)
def test_a_file_that_is_no_record_is_refused_with_its_name(tmp_path, text, problem):
    (tmp_path / "night.jsonl").write_text(text)
    with pytest.raises(SearchError, match=problem):
        Recorded(tmp_path / "night.jsonl").loads()
