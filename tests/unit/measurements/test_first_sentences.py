"""The first line of every result: a sentence for people who read nothing else."""

from __future__ import annotations

import re
from functools import partial
from types import SimpleNamespace

import pytest
from report_examples import counted_trial

from lossratio import open_testbed
from lossratio.measurements.connection_mrr import ConnectionMrrResult
from lossratio.measurements.throughput import ThroughputResult
from lossratio.results import message
from lossratio.results.doubts import drift
from lossratio.results.kinds import built_in_kinds
from lossratio.results.note import NoteKind, Weight
from lossratio.results.trials import describe_trials
from lossratio.trials.journal_lines import JournalEntry

WAY = "frames/s of 64 B each way"
NUMBER = r"[\d.]+"
SENTENCES = {
    "mrr": f"MRR: forwards 75,500 {WAY} at the maximum load of 400,000 "
    f"in trials of 1 s: {NUMBER} % of the frames sent are lost.",
    "latency": f"Latency: at 10,000 {WAY} "
    f"in a trial of 1 s, a frame takes {NUMBER} µs on average in the slower direction "
    f"and {NUMBER} µs at most.",
    "frame_loss": f"Frame loss rate: {NUMBER} % of the frames are lost at the "
    f"maximum load of 400,000 {WAY} in trials of 60 s, and none "
    "at 40,000.",
    "back_to_back": "Back-to-back frames: a burst of 615 frames of 64 B each way at 400,000 frames/s loses nothing; "
    f"the buffer holds {NUMBER} ms of traffic.",
    "recovery": f"System recovery: after 60 s of overload, frames are lost for {NUMBER} ms more on average once the "
    "load is halved.",
    "reset_time": r"Reset \(software reset of the devices\): frames are lost for 300.01 ms on average.",
}
ARGUMENTS = {
    "latency": {"points": ["10 kpps", "100 kpps"], "duration": "1 s"},
    "back_to_back": {"throughput": "75 kpps", "repeats": 1},
    "recovery": {"throughput": "75 kpps", "repeats": 1},
    "reset_time": {"throughput": "75 kpps", "repeats": 1},
}


@pytest.fixture(scope="module")
def device():
    with open_testbed("simulated-device") as testbed:
        yield testbed


@pytest.mark.parametrize("method", SENTENCES)
def test_a_result_begins_with_a_sentence(device, method):
    result = getattr(device, method)("64B", **ARGUMENTS.get(method, {}))
    assert re.fullmatch(SENTENCES[method], message(result).splitlines()[0])


def test_a_rate_that_is_the_maximum_load_is_no_limit(device):
    mrr = device.mrr("64B", max_load="20 kpps", trials=1)
    assert message(mrr).startswith(
        "MRR: forwards 20,000 frames/s of 64 B each way at the maximum load of 20,000 in a trial of 1 s: no frame "
    )
    loss = device.frame_loss("64B", max_load="20 kpps")
    assert message(loss).startswith(
        "Frame loss rate: no frame is lost at the maximum load of 20,000 frames/s of 64 B each way "
        "in trials of 60 s, and none at 18,000."
    )


def test_a_soak_test_says_whether_its_load_is_verified(device):
    first = message(device.critical_load("64B", timeout="1 min")).splitlines()[0]
    assert re.fullmatch(
        r"Critical load: (at [\d,]+ frames/s of 64 B each way, at most one in 10,000,000 is lost "
        r"\(verified (also in trials of \d+ s|in trials of 2 s only)\); losses that come less often than every "
        r"\d+ s may have gone unseen"
        r"|not verified, (because that takes more frames|and perhaps too high). "
        r"The search ended at [\d,]+ frames/s of 64 B each way)\.",
        first,
    )


def test_only_frames_of_several_sizes_have_an_average(device):
    closing = "frames of 64 bytes; 1 trial in "
    assert closing in " ".join(message(device.mrr("64B", trials=1)).split())
    assert "frames of 353.833 bytes on average; " in message(device.mrr("IMIX_v4_1", trials=1))


def test_every_kind_has_a_sentence():
    kinds = built_in_kinds()
    without = [kind.name for kind in kinds if NoteKind.FOUND not in {rule.kind for rule in kind.view().rules}]
    assert len(kinds) > 10
    assert without == []


def test_every_doubt_names_its_test():
    rules = {rule for kind in built_in_kinds() for rule in kind.view().rules if rule.weight is Weight.DOUBT}
    assert len(rules) > 20
    assert [rule.kind for rule in rules if not rule.evidence.endswith(".")] == []


def test_a_load_of_connections_is_written_in_connections():
    classes = [kind.result for kind in built_in_kinds()]
    written = {one: one.written(one, 100.0) for one in classes if "Connection" in one.__name__}
    assert len(written) == 4
    assert set(written.values()) == {"100 connections/s"}
    assert ThroughputResult.written(ThroughputResult, 100.0) == "100 fps per interface"


def test_doubts_write_loads_as_their_kind_does():
    slower = [JournalEntry.of(counted_trial(100_000.0, lost=1_000 * number)) for number in range(12)]
    result = SimpleNamespace(
        evidence=describe_trials(slower), written=partial(ConnectionMrrResult.written, ConnectionMrrResult)
    )
    (said,) = drift(result)
    assert said.startswith("the last third of 12 trials at 100,000 connections/s forwards")
