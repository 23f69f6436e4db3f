import io
from datetime import timedelta

import latency_examples
import pyarrow.parquet as pq
import pytest
import robot

from lossratio.errors import ReportError
from lossratio.report import Run, Verdict
from lossratio.report.history.analysis import RegressionError, add_runs, require_no_regression
from lossratio.report.history.entries import entries_of
from lossratio.report.history.store import History
from lossratio.results.run_directory import read_result

HOUR = timedelta(hours=1)


@pytest.fixture
def history(tmp_path, a_run):
    history = History(tmp_path / "history")
    add_runs(history, [a_run(night) for night in range(6)])
    return history


@pytest.fixture
def result(a_run):
    """What the night after those in the history measured."""
    return read_result(next((a_run(6) / "results").glob("*ndrpdr.json")))


def slower(result):
    """The result with PDR's conditional throughput halved."""
    ndr, pdr = result.goals
    pdr_value = pdr.result.conditional_throughput
    half = {name: value / 2 for name, value in pdr_value.model_dump().items()}
    worse = pdr.result.model_copy(update={"conditional_throughput": pdr_value.model_copy(update=half)})
    return result.model_copy(update={"goals": (ndr, pdr.model_copy(update={"result": worse}))})


@pytest.mark.whole
def test_an_entry_names_its_run_build_and_traffic(tmp_path, a_run):
    run = a_run(1)
    for file in (run / "results").glob("*ndrpdr.json"):
        result = read_result(file)
        latency = latency_examples.at(1e5, latency_examples.counters(), share=0.5)
        bridge = {"DUT1": {"kind": "vpp", "version": "24.06"}, "DUT2": {"kind": "vpp", "version": "24.06"}}
        conditions = result.conditions.model_copy(update={"duts": bridge})
        changed = result.model_copy(update={"latency": (latency,), "conditions": conditions})
    mrr = read_result(next((run / "results").glob("*mrr.json")))
    ndr, pdr, mrr = entries_of(Run(run, (changed, mrr.model_copy(update={"started": changed.started + HOUR}))))
    assert {(entry["run"], entry["run_started"]) for entry in (ndr, pdr, mrr)} == {("run-1", changed.started)}
    assert (ndr["build"], mrr["build"]) == ("vpp 24.06", None)
    assert (ndr["tags"], ndr["frame_size_bytes"]) == (("64b", "ndrpdr"), 64.0)
    (point,) = pdr["latency"]
    assert (point["load"], point["direction"], point["p50_us"], point["most_us"]) == (
        "50 % of PDR",
        "port0>port1",
        10.0,
        1000.0,
    )
    History(tmp_path / "new").add([ndr, pdr, mrr])
    rows = pq.read_table(tmp_path / "new").sort_by([("test", "ascending"), ("quantity", "ascending")]).to_pylist()
    assert [row["latency"] for row in rows] == [[], [point], [point]]
    assert rows[1]["run_started"] == changed.started


@pytest.mark.whole
def test_an_unchanged_value_is_no_regression(history, result):
    trends = require_no_regression(history, result)
    assert [(trend.series.key.quantity, trend.verdict) for trend in trends] == [
        ("NDR", Verdict.STEADY),
        ("PDR", Verdict.STEADY),
    ]
    assert len(trends[0].series.times) == 7


@pytest.mark.whole
def test_a_lower_value_is_a_regression(history, result):
    with pytest.raises(RegressionError, match=r"^regression: .*, PDR, on simulated: .* \(-50\.00 %\)"):
        require_no_regression(history, slower(result))
    assert require_no_regression(history, slower(result), "NDR")


@pytest.mark.whole
def test_the_history_is_read_and_not_changed(history, result):
    before = sorted(history.path.rglob("*"))
    require_no_regression(history, result)
    assert sorted(history.path.rglob("*")) == before


@pytest.mark.whole
def test_a_result_that_is_in_the_history_already_counts_once(history, result, a_run):
    add_runs(history, [a_run(6)])
    assert len(require_no_regression(history, result)[0].series.times) == 7


@pytest.mark.whole
def test_a_test_that_is_new_has_no_verdict(history, result):
    new = result.model_copy(update={"test": result.test.model_copy(update={"name": "new"})})
    assert {trend.verdict for trend in require_no_regression(history, new)} == {Verdict.TOO_FEW}


@pytest.mark.whole
def test_a_goal_that_was_not_measured_is_an_error(history, result):
    with pytest.raises(ReportError, match=r"has no MRR\. Its quantities are NDR, PDR"):
        require_no_regression(history, result, "MRR")


LIBRARY = """
from pathlib import Path
from lossratio.measurements.throughput.goals import NdrPdrGoals
from lossratio.keywords.checks import CheckKeywords
from lossratio.keywords.session import Session
from lossratio.measurements.throughput.result import ThroughputResult

class Measured(CheckKeywords):
    def __init__(self, result):
        super().__init__(Session(NdrPdrGoals.csit.value, None))
        self.session.last_result = ThroughputResult.model_validate_json(Path(result).read_bytes())
"""
SUITE = """
*** Settings ***
Library    Measured.py    {result}
*** Test Cases ***
Regressed
    Throughput Should Not Have Regressed    {history}    goal=PDR
Steady
    Throughput Should Not Have Regressed    {history}    goal=NDR
"""


@pytest.mark.whole
def test_the_keyword_fails_the_test_that_regressed_and_no_other(tmp_path, history, result):
    worse = slower(result)
    path = tmp_path / "now.json"
    path.write_text(worse.model_copy(update={"ended": worse.ended + timedelta(seconds=1)}).model_dump_json())
    (tmp_path / "Measured.py").write_text(LIBRARY)
    (tmp_path / "suite.robot").write_text(SUITE.format(result=path, history=history.path))
    console = io.StringIO()
    status = robot.run(tmp_path / "suite.robot", output=None, log=None, report=None, stdout=console, stderr=console)
    assert status == 1, console.getvalue()
    assert "2 tests, 1 passed, 1 failed" in console.getvalue()
    assert "regression: Performance.Linux Bridge.64B-1c-eth-l2bdbase-ndrpdr, PDR, on simulated" in console.getvalue()


@pytest.mark.whole
def test_results_of_another_goal_of_the_same_name_are_no_evidence_of_a_regression(history, result):
    ndr, pdr = slower(result).goals
    other = pdr.model_copy(update={"goal": pdr.goal.model_copy(update={"loss_ratio": 1e-9})})
    (trend,) = require_no_regression(history, slower(result).model_copy(update={"goals": (ndr, other)}), "PDR")
    assert (trend.verdict, trend.series.left_out) == (Verdict.TOO_FEW, 6)
