"""The plugin of pytest, in a run of its own."""

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from waiting import PATIENCE

pytestmark = pytest.mark.whole

SIMULATED = Path(__file__).parents[2] / "topologies" / "simulated.yaml"
TESTS = """
from lossratio import open_testbed

def test_fast_enough(lossratio):
    assert lossratio.ndr_pdr("64B", goals="quick").throughput("QUICK_PDR") > 50_000

def test_too_slow(lossratio):
    assert lossratio.ndr_pdr("64B", goals="quick").throughput("QUICK_PDR") > 1e9

def test_at_the_limit(lossratio):
    lossratio.ndr_pdr("64B", goals="quick", max_load="10 kfps").throughput("QUICK_NDR")

def test_of_two_devices(lossratio):
    open_testbed(lossratio.request.file, duts=2)

def test_without():
    pass
"""


def run(directory, *options):
    (directory / "test_device.py").write_text(TESTS)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "lossratio.keywords.pytest_plugin",
        "-p",
        "no:cacheprovider",
        *options,
    ]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    directory = tmp_path_factory.mktemp("device")
    (directory / "pytest.ini").write_text(f"[pytest]\nlossratio_topology = {SIMULATED}\n")
    return directory, run(directory, "--junitxml", "junit.xml").stdout


def test_a_test_passes_or_fails_by_its_throughput_and_an_irregular_one_fails(measured):
    _, printed = measured
    assert "3 failed" not in printed
    assert "2 failed, 2 passed, 1 skipped" in printed
    assert "QUICK_NDR is irregular and has no throughput to quote" in printed


def test_a_test_that_needs_more_than_the_testbed_has_is_skipped_with_the_reason(measured):
    directory, _ = measured
    skipped = ElementTree.parse(directory / "junit.xml").find(".//skipped")  # noqa: S314
    assert "path through 2 DUTs was requested, but the topology has 1 (DUT1)" in skipped.get("message")


def test_the_report_of_a_failed_test_has_its_own_result(measured):
    _, printed = measured
    part = printed.partition("test_too_slow")[2].partition("test_at_the_limit")[0]
    assert part.count("QUICK_PDR (loss ratio at most 0.5 %): regular") == 1


def test_results_are_files_and_properties(measured):
    directory, _ = measured
    assert len(list((directory / "lossratio-results" / "results").glob("*.json"))) == 3
    cases = {case.get("name"): case for case in ElementTree.parse(directory / "junit.xml").iter("testcase")}  # noqa: S314
    names = [entry.get("name") for entry in cases["test_fast_enough"].iter("property")]
    assert [name.split(": ")[-1] for name in names] == ["QUICK_NDR", "QUICK_PDR"]
    assert not list(cases["test_without"].iter("property"))


def test_without_a_topology_a_test_that_measures_says_how_to_name_one(tmp_path):
    # Settings of folders above would be taken otherwise.
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    printed = run(tmp_path).stdout
    assert "Name one with --lossratio-topology FILE" in printed
    assert "1 passed, 4 errors" in printed
