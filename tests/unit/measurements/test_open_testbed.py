"""The face for notebooks: a testbed with methods that measure, and results that show themselves."""

from __future__ import annotations

import copy
import importlib.util
import json
import pickle
import sys
from html import escape

import pytest
from every_kind import REFUSED, ask, methods
from measurement_examples import ROOT

from lossratio import LossRatioError, find_conditional_throughput, open_testbed
from lossratio.errors import DutError, ReportError
from lossratio.measurements.mrr import MrrRequest
from lossratio.measurements.open_testbed import measured_kinds
from lossratio.results import read_result

SIMULATED = ROOT / "topologies" / "simulated.yaml"


@pytest.fixture(scope="module")
def testbed(tmp_path_factory):
    with open_testbed(SIMULATED, results=tmp_path_factory.mktemp("results")) as opened:
        yield opened


@pytest.fixture(scope="module")
def result(testbed):
    return testbed.ndr_pdr("64B", goals="quick")


def test_a_search_takes_one_line(testbed, result):
    assert [report.goal.name for report in result.goals] == ["QUICK_NDR", "QUICK_PDR"]
    assert result.test.full_name == "simulated.64B QUICK_NDR, QUICK_PDR"
    again = testbed.ndr_pdr(64, goals=("QUICK_NDR", "QUICK_PDR"), max_load="100 kfps")
    assert again.max_load.rate.per_interface_fps == 100e3
    assert testbed.ndr_pdr("64B", goals="quick").test.name == "64B QUICK_NDR, QUICK_PDR (2)"


def test_the_other_measurements_take_one_line(testbed):
    assert testbed.mrr("64B").kind == "mrr"
    assert testbed.frame_loss("IMIX").kind == "frame_loss"
    soak = testbed.critical_load("64B", timeout=10.0)
    assert soak.target_loss_ratio == 1e-7


@pytest.mark.whole
@pytest.mark.parametrize("method", methods())
def test_every_kind_of_measurement_is_a_method(testbed, method):
    if method in REFUSED:
        with pytest.raises(LossRatioError, match=REFUSED[method]):
            ask(testbed, method, name=f"{method} as a method")
        return
    result = ask(testbed, method, name=f"{method} as a method")
    kind = measured_kinds()[method]
    assert result.kind == kind.name
    assert testbed.results[-1] == result
    assert read_result(testbed._directory.result_path(result.test.full_name)) == result


def test_its_methods_are_offered_in_a_notebook_with_what_they_measure(testbed):
    assert measured_kinds().keys() <= set(dir(testbed))
    assert testbed.mrr.__doc__ == MrrRequest.__doc__
    assert {"results", "duts", "close"} <= set(dir(testbed))


def test_the_progress_of_latency_is_a_line_for_each_load(testbed):
    lines = []
    testbed.latency("64B", points=["10 kfps"], duration=0.5, on_progress=lambda seen: lines.append(seen.line()))
    assert lines == ["latency at 10.000 kfps per interface; loss 0 %"]


def test_after_a_set_up_that_failed_nothing_is_measured_on_the_device_before_it(tmp_path, monkeypatch):
    def fails(*given, **settings):
        raise DutError("DUT1: the router is broken.")

    with open_testbed(SIMULATED, dut="linux_bridge", results=tmp_path) as testbed:
        with monkeypatch.context() as patch:
            patch.setattr("lossratio.testbed.open_testbed", fails)
            for dut in ("linux_router", "linux_router", None):
                with pytest.raises(DutError, match="the router is broken"):
                    testbed.mrr("64B", dut=dut)
            with pytest.raises(DutError, match="the router is broken"):
                _ = testbed.duts
            assert repr(testbed) == "<testbed simulated, linux_router>"
        assert testbed.mrr("64B").conditions.duts["DUT1"]["kind"] == "linux_router"
        assert len(testbed.results) == 1


def test_results_are_short_in_words_and_have_the_lines_of_the_console_in_notebooks(result):
    assert repr(result).startswith("<ThroughputResult 64B QUICK_NDR, QUICK_PDR: QUICK_NDR ")
    assert len(repr(result)) < 150
    shown = result._repr_html_()
    assert shown == f"<h4>{result.test.name}</h4><pre>{escape(str(result))}</pre>"
    assert "QUICK_NDR: forwards" in shown


def test_a_name_is_no_markup(testbed):
    assert "&lt;b&gt;" in testbed.mrr("64B", name="<b>")._repr_html_()


def test_plots(result):
    assert result.plot()._repr_svg_().startswith("<svg")
    assert result.plot("Search").svg
    with pytest.raises(ReportError, match=r"no picture 'Serach'\. Its pictures: .*Search"):
        result.plot("Serach")


def test_a_result_without_pictures_says_so(testbed):
    with pytest.raises(ReportError, match=r"^simulated\.no picture has no pictures\.$"):
        testbed.mrr("64B", name="no picture").plot()


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_testbed_cannot_be_duplicated_but_its_results_can(testbed, result, duplicate):
    with pytest.raises(LossRatioError, match="The testbed simulated cannot be copied or pickled"):
        duplicate(testbed)
    duplicate(result)


def test_frames(result, monkeypatch):
    frame = result.to_frame()
    assert len(frame) == len(result.trials)
    assert list(frame["loss_ratio"]) == [trial.loss_ratio for trial in result.trials]
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ReportError, match="pip install pandas"):
        result.to_frame()


def test_it_is_a_testbed_too(testbed, result, tmp_path):
    assert repr(testbed) == "<testbed simulated>"
    assert read_result(testbed._directory.result_path(result.test.full_name)) == result
    assert callable(find_conditional_throughput)
    assert testbed.duts == ()


def test_another_kind_of_dut_is_set_up_once_and_a_wrong_option_changes_nothing(tmp_path):
    with open_testbed(SIMULATED, results=tmp_path) as testbed:
        before = testbed._testbed
        with pytest.raises(DutError, match="polize"):
            testbed.mrr("64B", dut="linux_bridge", options={"polize": 1})
        assert testbed._testbed is before
        testbed.mrr("64B", dut="linux_bridge", options={"police": "50 kfps"})
        other = testbed._testbed
        assert other is not before
        testbed.mrr("64B", dut="linux_bridge", options={"police": "50 kfps"})
        assert testbed._testbed is other
        assert repr(testbed) == "<testbed simulated, linux_bridge police=50 kfps>"


@pytest.mark.parametrize("wrong", [{"goals": "slow"}, {"max_load": "many"}, {"profile": "no-such"}, {"min_load": -1}])
def test_wrong_arguments_are_errors_before_anything_is_measured(testbed, wrong):
    with pytest.raises((LossRatioError, ValueError)):
        testbed.ndr_pdr("64B", **wrong)


def test_the_notebook_shows_what_its_cells_give():
    path = ROOT / "docs" / "how-to" / "execute_notebook.py"
    module = importlib.util.module_from_spec(spec := importlib.util.spec_from_file_location("execute_notebook", path))
    spec.loader.exec_module(module)
    written = json.loads(module.NOTEBOOK.read_text())
    outputs = [output for cell in written["cells"] for output in cell.get("outputs", ())]
    assert len(outputs) == 4
    now = module.executed(json.loads(json.dumps(written)))
    assert now == written


def test_a_testbed_that_was_closed_measures_nothing_and_says_so(tmp_path):
    with open_testbed("simulated", results=tmp_path) as testbed:
        testbed.mrr("64B", trials=1)
    with pytest.raises(LossRatioError, match="The testbed simulated is closed"):
        testbed.mrr("64B", dut="linux_bridge")
    assert (testbed.request.topology.name, len(testbed.results)) == ("simulated", 1)
    testbed.close()
