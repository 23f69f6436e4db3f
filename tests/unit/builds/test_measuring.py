"""What a measurement of a build gives to compare, and what it does not."""

import pytest
from latency_examples import at, counters, result as latency
from report_examples import counted_trial, mrr, run, setup, throughput, throughput_of

from lossratio.errors import BuildError, JobError
from lossratio.measurements.throughput import ThroughputResult
from lossratio.measurements.throughput.evidence import search_fields
from lossratio.mlrsearch import NDR, GoalResult, IrregularReason
from lossratio.results.run_directory import RunDirectory
from lossratio.runs.builds.measuring import Bench, BuildBench
from lossratio.runs.builds.record import FORMAT, BuildRecord
from lossratio.runs.robot_run import RunRequest
from lossratio.runs.run import RunOutcome
from lossratio.simulation.constant_capacity import SharpKnee
from lossratio.trials.journal_lines import JournalEntry
from lossratio.values.exit_status import ExitStatus


def measured(tmp_path, *results, quantity=None, warn=lambda caveat: None):
    for result in results:
        RunDirectory(tmp_path).write(result)
    bench = BuildBench(RunRequest((), ()), quantity, warn, lambda request: RunOutcome(ExitStatus.PASSED))
    return bench.measure(tmp_path).values


def stopped(reason, bound):
    goal_result = GoalResult(NDR, False, bound, None, bound, reason)
    entries = [] if bound is None else [JournalEntry.of(counted_trial(bound))] * 30
    return ThroughputResult(**search_fields(run(), *setup(run()), {NDR: goal_result}, entries))


def test_a_latency_is_no_throughput_of_nothing(tmp_path):
    values = measured(tmp_path, latency(at(1e5, counters())), mrr())
    assert [name.split()[-1] for name in values] == ["MRR"]


@pytest.mark.parametrize("reason", [IrregularReason.TIMEOUT, IrregularReason.STALLED, IrregularReason.STOPPED_EARLY])
@pytest.mark.parametrize("bound", [None, 1e5])
def test_a_search_that_was_not_finished_gives_no_value(tmp_path, reason, bound):
    with pytest.raises(BuildError, match=rf"NDR has no value to compare: irregular: {reason}"):
        measured(tmp_path, stopped(reason, bound))


@pytest.mark.whole
def test_a_measurement_that_failed_gives_no_value(tmp_path):
    with pytest.raises(BuildError, match="MRR has no value to compare: failed: agent lost"):
        measured(tmp_path, mrr(error="agent lost"), throughput())


def test_a_build_that_does_not_forward_even_the_minimum_load_has_a_throughput_of_nothing(tmp_path):
    (value,) = measured(tmp_path, throughput(SharpKnee(capacity=1e3), (NDR,))).values()
    assert value == (0.0, 0.0, 0.0)


def test_a_build_faster_than_the_generator_counts_with_the_offered_load_and_a_warning(tmp_path):
    warnings = []
    fast = throughput(SharpKnee(capacity=9e6), (NDR,))
    (value,) = measured(tmp_path, fast, warn=warnings.append).values()
    assert value.least == value.most == fast.max_load.rate.per_interface_fps
    assert "irregular: the generator's maximum load is a lower bound" in warnings[0]


def test_frames_that_the_generator_could_not_send_are_reported(tmp_path):
    trials = [counted_trial(1e5) for _ in range(40)] + [counted_trial(1.004e5, unsent=1000)] * 40
    warnings = []
    measured(tmp_path, throughput_of(trials), warn=warnings.append)
    assert "unsent frames, not lost ones" in warnings[0]


def test_a_record_of_another_version_is_not_continued_because_its_rates_were_aggregates(tmp_path):
    BuildRecord(tmp_path, {"tests": ["x"]})
    assert BuildRecord(tmp_path, {"tests": ["x"]}).measurements == []
    file = tmp_path / "measurements.jsonl"
    file.write_text(file.read_text().replace(FORMAT, "lossratio-builds/1"))
    with pytest.raises(JobError, match="another version of lossratio and cannot be continued"):
        BuildRecord(tmp_path, {"tests": ["x"]})


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (r"printf '\257\001'; exit 7", "The set-up of A failed with exit status 7: .*\n\ufffd"),
        ("kill -9 $$", "The set-up of A was ended by signal 9: kill"),
    ],
)
def test_a_set_up_that_fails_is_named_also_if_its_output_is_no_text(command, said):
    with pytest.raises(BuildError, match=said):
        Bench().set_up(command, "A")
