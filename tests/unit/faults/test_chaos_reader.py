"""The reader of the chaos runs: it agrees with the library about what is right, and finds each thing that is wrong."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lossratio.trials.counters import output_from_counters
from lossratio.trials.journal import Journal
from lossratio.trials.journal_reading import read_journal
from lossratio.trials.trial import TrialResult
from lossratio.trials.trial_input import TrialInput
from lossratio.trials.trial_output import DirectionCounters, Incident

sys.path.append(str(Path(__file__).parents[2] / "chaos"))
import reader

POLICER = reader.Truth()
TRIAL = TrialInput(duration=0.5, load=20_000.0)
"""The policer passes 6,000 of its 10,000 frames."""


def result(received=6_000, unsent=0, incidents=(), **counts):
    ways = [
        DirectionCounters(name, 10_000, 10_000 - unsent, received, lateness_s=0.0, elapsed_s=0.5, **counts)
        for name in ("port0>port1", "port1>port0")
    ]
    return TrialResult(TRIAL, replace(output_from_counters(TRIAL, ways), incidents=incidents))


def lines_of(path, *results, last_proof):
    with Journal.open(path, {"algorithm": "MRR"}) as journal:
        for number, one in enumerate(results):
            journal.append(one, verified=number < last_proof)
    return path.read_bytes().split(b"\n")[:-1]


@pytest.mark.parametrize("last_proof", [0, 1, 3])
def test_the_reader_proves_the_trials_that_the_library_proves(tmp_path, last_proof):
    lines = lines_of(tmp_path / "a.jsonl", *[result()] * 3, last_proof=last_proof)
    assert list(reader.chain(lines)) == []
    assert len(reader.trials_of(reader.proved(lines))) == len(read_journal(tmp_path / "a.jsonl").entries) == last_proof
    assert list(reader.wrong_trials(reader.trials_of(lines), POLICER)) == []


def test_a_line_that_was_changed_moved_or_left_out_is_found(tmp_path):
    lines = lines_of(tmp_path / "a.jsonl", result(), result(6_001), result(6_002), last_proof=3)
    changed = [*lines[:2], lines[2].replace(b"6001", b"6003"), lines[3]]
    for damaged in (changed, [lines[0], lines[2], lines[1], lines[3]], [*lines[:2], lines[3]]):
        assert list(reader.chain(damaged))


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (result(10_000), "lost 0.000%, and should 40.000%"),
        (result(5_000), "lost 50.000%, and should 40.000%"),
        (result(corrupted_frames=3), "faults that the bridge does not make: {'corrupted': 3}"),
    ],
)
def test_a_number_that_the_device_cannot_have_made_is_found(tmp_path, wrong, problem):
    (line,) = reader.trials_of(lines_of(tmp_path / "a.jsonl", wrong, last_proof=1))
    assert [text for text in reader.wrong_trials([line], POLICER) if problem in text]


@pytest.mark.parametrize(
    ("found", "doubts", "is_wrong"),
    [
        (result(), set(), False),
        (result(unsent=1_000), set(), True),
        (result(unsent=1_000), {"unsent frames"}, False),
        (result(), {"unsent frames"}, True),
        (result(incidents=(Incident("TG", "TG", None, "TG stood still", "stands"),)), set(), True),
    ],
)
def test_a_doubt_that_is_missing_or_one_too_many_is_found(tmp_path, found, doubts, is_wrong):
    trials = reader.trials_of(lines_of(tmp_path / "a.jsonl", found, last_proof=1))
    recorded = [{"load_per_interface_fps": 20_000.0, "loss_ratio": trials[0]["output"]["loss_ratio"]}]
    problems = list(reader.wrong_result(json.dumps({"trials": recorded}).encode(), trials, doubts, POLICER))
    # A text of the test's own has no digest.
    assert (len(problems) > 1) is is_wrong


def test_a_side_that_nothing_struck_is_not_blamed_but_for_other_work_on_this_machine():
    log = "The DUT is to blame: DUT1 forwards none.\nThe TG is to blame: processes on TG waited for a CPU for 60 %."
    assert list(reader.wrong_blame(log, [], {"DUT"})) == []
    assert list(reader.wrong_blame(log, [], {"TG"})) == ["wrong blame: the DUT: DUT1 forwards none."]
