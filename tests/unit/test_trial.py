from __future__ import annotations

import math
import re

import pytest
from hypothesis import given, strategies as st

from lossratio.agent.core.passes import passes_of
from lossratio.errors import SearchError
from lossratio.trials import Exchange, Step, TrialInput, TrialOutput, TrialResult, run_search
from lossratio.trials.journal import Journal
from lossratio.trials.journal_reading import read_journal


class Halving:
    """Halves the load after loss; ends after five trials."""

    def __init__(self) -> None:
        self.recorded: list[TrialResult] = []
        self.purpose = "first try"

    def next_trial(self) -> TrialInput | None:
        if len(self.recorded) == 5:
            return None
        load = 1000.0
        for result in self.recorded:
            load *= 0.5 if result.loss_ratio else 1.5
        self.purpose = f"trial {len(self.recorded) + 1}"
        return TrialInput(duration=2.0, load=load)

    def record(self, result: TrialResult) -> None:
        self.recorded.append(result)

    def result(self) -> list[TrialResult]:
        return self.recorded


class Knee:
    """Loses the frames above 700 frames per second, and can fail at a certain trial."""

    def __init__(self, fail_at: int | None = None, elapsed: float | None = None) -> None:
        self.measured = 0
        self.fail_at = fail_at
        self.elapsed = elapsed

    def measure(self, trial: TrialInput) -> TrialOutput:
        self.measured += 1
        if self.measured == self.fail_at:
            raise KeyboardInterrupt
        return TrialOutput(max(0.0, 1.0 - 700.0 / trial.load), elapsed=self.elapsed)


def test_a_search_ends_when_the_controller_asks_for_no_more_trials():
    controller, measurer, seen = Halving(), Knee(), []
    result = run_search(controller, measurer, on_trial=seen.append)
    assert result == seen
    assert measurer.measured == 5


def test_no_trial_starts_after_the_timeout_on_the_measurers_clock():
    measurer = Knee(elapsed=2.5)
    run_search(Halving(), measurer, timeout=5.0)
    assert measurer.measured == 2


def test_an_interrupted_search_continues_without_measuring_anything_twice(tmp_path):
    whole = run_search(Halving(), Knee())
    with Journal.open(tmp_path / "t.jsonl", {"goal": "x"}) as journal, pytest.raises(KeyboardInterrupt):
        run_search(Halving(), Knee(fail_at=4), journal=journal)
    assert len(read_journal(tmp_path / "t.jsonl").results) == 3

    measurer = Knee()
    with Journal.open(tmp_path / "t.jsonl", {"goal": "x"}) as journal:
        continued = run_search(Halving(), measurer, journal=journal)
    assert continued == whole
    assert measurer.measured == 2
    entries = read_journal(tmp_path / "t.jsonl").entries
    assert [entry.purpose for entry in entries] == [f"trial {number}" for number in range(1, 6)]


class Ruled(Halving):
    """Its purposes name a rule."""

    class Because:
        rule = "halve"

        def __str__(self) -> str:
            return "half of it"

    def next_trial(self) -> TrialInput | None:
        trial = super().next_trial()
        self.purpose = self.Because()
        return trial


def test_the_rule_that_chose_a_trial_is_in_the_journal_and_a_journal_without_rules_is_continued(tmp_path):
    with Journal.open(tmp_path / "t.jsonl", {}) as journal, pytest.raises(KeyboardInterrupt):
        run_search(Halving(), Knee(fail_at=4), journal=journal)
    with Journal.open(tmp_path / "t.jsonl", {}) as journal:
        run_search(Ruled(), Knee(), journal=journal)
    entries = read_journal(tmp_path / "t.jsonl").entries
    assert [entry.rule for entry in entries] == [None, None, None, "halve", "halve"]
    assert entries[3].purpose == "half of it"


def test_time_spent_before_the_interruption_counts_towards_the_timeout(tmp_path):
    with Journal.open(tmp_path / "t.jsonl", {}) as journal:
        run_search(Halving(), Knee(elapsed=2.5), journal=journal, timeout=5.0)
    measurer = Knee(elapsed=2.5)
    with Journal.open(tmp_path / "t.jsonl", {}) as journal:
        run_search(Halving(), measurer, journal=journal, timeout=7.0)
    assert measurer.measured == 1


def test_each_result_is_on_disk_before_the_next_trial_starts(tmp_path):
    path = tmp_path / "t.jsonl"

    class Looking(Knee):
        def measure(self, trial: TrialInput) -> TrialOutput:
            assert len(read_journal(path).results) == self.measured
            return super().measure(trial)

    with Journal.open(path, {}) as journal:
        run_search(Halving(), Looking(), journal=journal)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("field", ["duration", "load"])
def test_a_trial_input_refuses_what_cannot_be_measured(field, bad):
    with pytest.raises(SearchError, match=field):
        TrialInput(**{"duration": 1.0, "load": 1.0, field: bad})


def test_a_burst_lasts_as_long_as_its_frames_take():
    trial = TrialInput.burst(300, 1000.0)
    assert (trial.duration, trial.load, trial.parts) == (0.3, 1000.0, (Step(0.3, 1000.0),))


def test_a_schedule_has_the_mean_load_of_its_steps():
    trial = TrialInput.schedule(Step(60.0, 110.0), Step(20.0, 50.0))
    assert (trial.duration, trial.load) == (80.0, 95.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: TrialInput.burst(0, 1.0),
        lambda: TrialInput.burst(1, 0.0),
        lambda: TrialInput.burst(1, math.inf),
        TrialInput.schedule,
        lambda: Step(1.0, -1.0),
        lambda: TrialInput(1.0, 100.0, frames=101),
        lambda: TrialInput(1.0, 100.0, steps=(Step(1.0, 99.0),)),
        lambda: TrialInput(1.0, 100.0, frames=100, steps=(Step(1.0, 100.0),)),
    ],
)
def test_a_burst_or_schedule_that_contradicts_itself_is_refused(make):
    with pytest.raises(SearchError):
        make()


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan])
def test_a_loss_ratio_outside_0_and_1_is_refused(bad):
    with pytest.raises(SearchError, match=r"loss.ratio"):
        TrialOutput(bad)


@given(duration=st.floats(0.001, 1e4), load=st.floats(1.0, 1e9), loss_ratio=st.floats(0.0, 1.0))
def test_the_defaults_of_a_result_are_the_rfcs(duration, load, loss_ratio):
    result = TrialResult(TrialInput(duration, load), TrialOutput(loss_ratio))
    assert result.effective_duration == duration
    assert result.elapsed == duration
    assert result.forwarding_rate == load * (1.0 - loss_ratio)


def test_no_frames_are_not_taken_for_no_loss():
    with pytest.raises(SearchError, match="no frame"):
        TrialOutput(0.0, sent_frames=0)
    assert TrialOutput(1.0, sent_frames=0, unsent_frames=10).loss_ratio == 1.0


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("answer_ratio", value) for value in (0, -1.0, math.inf, math.nan, True, "1", [1.0])),
        *(("data_frames", value) for value in (-1, 1.0, False, "2", None)),
        *(("closing", value) for value in ("FIN", "", False, ["fin"])),
        *(("established", value) for value in (1, None, "no")),
    ],
)
def test_an_exchange_that_makes_no_sense_is_refused_by_the_name_of_its_field(field, value):
    with pytest.raises(SearchError, match=re.escape(repr(value))) as refused:
        Exchange(**{field: value})
    assert field.partition("_")[0] in str(refused.value).lower() or field == "closing"


@pytest.mark.parametrize(
    ("exchange", "is_tcp", "frames"),
    [
        # FD.io CSIT's connections per second, and its throughput of established connections.
        (Exchange(), False, 2),
        (Exchange(closing="fin"), True, 7),
        (Exchange(data_frames=4), False, 10),
        (Exchange(data_frames=5, closing="fin"), True, 16),
        (Exchange(), True, 3),
        (Exchange(closing="rst"), True, 4),
    ],
)
def test_a_connection_has_as_many_frames_as_the_generator_sends_over_it(exchange, is_tcp, frames):
    assert exchange.passes(is_tcp=is_tcp) == len(passes_of(exchange, is_tcp=is_tcp)) == frames
