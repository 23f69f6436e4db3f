"""Measurements on different devices under one name are never merged: comparison, hints, reports, exports."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from measurement_examples import NO_LOSS, PROFILE, place, policed
from report_examples import mrr

from lossratio.measurements.mrr import MrrRequest, measure_mrr
from lossratio.measurements.throughput.earlier import earlier_searches
from lossratio.measurements.throughput.measure import find_conditional_throughput
from lossratio.measurements.throughput.request import SearchRequest
from lossratio.report.comparison import Verdict, compare
from lossratio.report.csit import CsitExport, write_csit
from lossratio.report.junit import junit_report
from lossratio.report.metrics import openmetrics_report
from lossratio.report.run import Run, read_run
from lossratio.results.conditions import Conditions, Testbed
from lossratio.results.device import Device
from lossratio.results.view import CsitExportError
from lossratio.testbed.opening import open_testbed

SLOW = Device(kind="linux_bridge", options={"police": 50_000})
FAST = Device(kind="linux_bridge", options={"police": 60_000})


def measured(directory, **options):
    return measure_mrr(policed(**options), MrrRequest(profile=PROFILE, trials=2), place(directory))


def on(device, base=None):
    result = base or mrr()
    return result.model_copy(update={"conditions": result.conditions.model_copy(update={"device": device})})


def runs(*devices, day=0):
    """Runs with a result on each device, one after the other from a day on."""
    found = []
    for number, device in enumerate(devices):
        result = on(device)
        later = {name: getattr(result, name) + timedelta(days=day + number) for name in ("started", "ended")}
        found.append(Run(Path("a run"), (result.model_copy(update=later),)))
    return found


def test_a_result_says_its_device_as_it_counts(tmp_path):
    assert measured(tmp_path, police="50kpps").conditions.device == SLOW
    assert measured(tmp_path, police=60e3, reset="false").conditions.device == FAST
    assert measured(tmp_path, police="50 kfps").conditions.measured_on == "linux_bridge, police=50000"


def test_a_device_that_others_set_up_is_said_to_be_that(tmp_path):
    testbed = open_testbed("simulated")
    result = measure_mrr(testbed, MrrRequest(profile=PROFILE, trials=2), place(tmp_path))
    assert result.conditions.measured_on == "set up by others"


def test_another_option_is_not_comparable_and_named(tmp_path):
    runs_of = []
    for rate in ("50 kfps", "60 kfps"):
        measured(tmp_path / rate, police=rate)
        runs_of.append(read_run(tmp_path / rate))
    (compared,) = compare(runs_of[:1], runs_of[1:]).quantities
    assert compared.verdict is Verdict.NOT_COMPARABLE
    assert compared.note == "the runs differ in device (police 50000 -> 60000)"


def test_devices_that_both_sides_measured_are_each_compared_with_themselves():
    compared = compare(runs(SLOW, FAST, SLOW, FAST), runs(FAST, SLOW, FAST, SLOW, day=9)).quantities
    assert [one.quantity for one in compared] == [f"MRR (linux_bridge, police={rate})" for rate in (50_000, 60_000)]
    assert [len(one.after.values) for one in compared] == [2, 2]


def test_a_device_of_one_side_only_is_not_merged_with_another():
    compared = {one.quantity: one for one in compare(runs(SLOW), runs(SLOW, FAST, day=9)).quantities}
    assert compared["MRR"].note == "not in A"
    assert compared["MRR (linux_bridge, police=50000)"].difference is not None


def test_hints_are_of_the_same_device(tmp_path):
    request = SearchRequest(goals=(NO_LOSS,), profile=PROFILE)
    found = find_conditional_throughput(policed(police="50 kfps"), request, place(tmp_path))
    traffic = PROFILE.described()
    (result,) = (tmp_path / "results").iterdir()
    for is_journal_alone in (False, True):
        if is_journal_alone:
            result.unlink()
        assert len(earlier_searches(tmp_path, found.test, traffic, SLOW)) == 1
        assert earlier_searches(tmp_path, found.test, traffic, FAST) == ()


def test_metrics_and_hosts_get_the_device():
    run = Run(Path("a run"), (on(SLOW),))
    samples = [line for line in openmetrics_report([run]).splitlines() if line.startswith("lossratio_")]
    assert samples
    assert all('device="linux_bridge, police=50000"' in line for line in samples)
    assert '<property name="device" value="linux_bridge, police=50000" />' in junit_report([run])


def lab(**interface):
    port = {"model": None, "speed": None, **interface}
    nodes = {
        "TG": {"type": "TG", "interfaces": {"p0": port, "p1": port}},
        "DUT1": {"type": "DUT", "host": "a", "interfaces": {"p0": port, "p1": port}},
    }
    path = ("TG.p0", "DUT1.p0", "DUT1.p1", "TG.p1")
    return Testbed(name="lab", file=None, topology={"nodes": nodes, "mtu": None}, path=path)


def test_what_counts_of_a_lab():
    assert lab().facts_that_count() == {}
    assert lab(pci_address="0000:00:01.0").facts_that_count() == {}
    assert lab(model="Intel-X710").facts_that_count() == {"testbed nic": "Intel-X710"}
    two = lab(model="Intel-X710").model_copy(update={"links": 2})
    assert two.facts_that_count() == {"testbed nic": "Intel-X710", "testbed links": 2}


def test_another_nic_is_another_series():
    conditions: Conditions = on(SLOW).conditions
    words = {
        conditions.model_copy(update={"testbed": lab(model=model)}).measured_on
        for model in ("Intel-X710", "Intel-E810CQ", None)
    }
    assert len(words) == 3


def test_two_results_of_one_name_of_csit_are_not_written_over_each_other(tmp_path):
    case = {
        "test_id": "tests.vpp.perf.a.64b-1c-b-mrr",
        "version": "1.5.1",
        "start_time": "2026-01-01T00:00:00.0Z",
        "end_time": "2026-01-01T00:00:01.0Z",
        "hosts": [],
    }
    export = CsitExport("csit-vpp-perf-mrr-daily-master-x-2n-lab", case)
    with pytest.raises(CsitExportError, match="Two results have CSIT's name"):
        write_csit(tmp_path, [export, replace(export, case={**case, "version": "other"})], build=1)
    assert not list(tmp_path.iterdir())
