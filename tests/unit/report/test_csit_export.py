import json

import pytest
from click.testing import CliRunner
from report_examples import mrr, throughput

from lossratio.commands.report import csit
from lossratio.errors import ReportError
from lossratio.mlrsearch import RFC2544
from lossratio.report.csit import csit_export, csit_names
from lossratio.results.conditions import NodeFacts
from lossratio.results.model import TestIdentity
from lossratio.results.run_directory import RunDirectory
from lossratio.simulation.constant_capacity import SharpKnee

SUITE = "Tests.Vpp.Perf.Ip4.2N1L-100Ge2P1E810Cq-Avf-Ethip4-Ip4Base-"


def identity(kind="ndrpdr", *, suite=None, name=None, tags=("64B", "1C", "2T1C")):
    return TestIdentity(
        name=name or f"64B-1c-ethip4-ip4base-{kind}", suite=suite or f"{SUITE}{kind.capitalize()}", tags=tags
    )


def named(result, test=None):
    """A result of a CSIT test; its DUT says what it is."""
    nodes = {"DUT1": NodeFacts(kernel="6.1.0"), "TG": NodeFacts()}
    conditions = result.conditions.model_copy(update={"nodes": nodes})
    return result.model_copy(update={"test": test or identity(), "conditions": conditions})


def test_names_are_taken_apart_as_csits_dashboards_do():
    names = csit_names(identity())
    assert names.test_id == (
        "tests.vpp.perf.ip4.2n1l-100ge2p1e810cq-avf-ethip4-ip4base-ndrpdr.64b-1c-ethip4-ip4base-ndrpdr"
    )
    assert (names.name_short, names.name_long) == ("ethip4-ip4base", "e810cq-64b-2t1c-ethip4-ip4base")
    assert names.path == (
        "tests/vpp/perf/ip4/2n1l-100ge2p1e810cq-avf-ethip4-ip4base-ndrpdr/64b-1c-ethip4-ip4base-ndrpdr.info.json"
    )


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        (identity(suite="Performance.Linux Bridge"), "The suite 'linux_bridge' has no name like CSIT's"),
        (identity(name="Bridge"), "The test 'Bridge' has no name like CSIT's"),
        (identity(name="64B-1c-ethip6-ip6base-ndrpdr"), "does not have the name of its suite"),
        (identity("latency"), "do not end with one of CSIT's types"),
        (identity(tags=("64B", "1C")), "has no tag like 2T1C"),
        (identity(tags=("2T2C",)), "has no tag like 2T1C"),
    ],
)
def test_names_that_cannot_be_mapped_are_refused_with_the_reason(test, reason):
    with pytest.raises(ReportError, match=reason):
        csit_export(named(throughput(), test))


def test_the_lower_bound_of_csit_is_the_conditional_throughput():
    result = named(throughput())
    data = json.loads(csit_export(result).case.model_dump_json(exclude_none=True))["result"]
    pdr = result.goals[1].result
    assert data["type"] == "ndrpdr"
    assert data["pdr"]["lower"]["rate"] == {"value": pdr.conditional_throughput.aggregate_fps, "unit": "pps"}
    assert data["pdr"]["upper"]["rate"] == {"value": pdr.relevant_upper_bound.aggregate_fps, "unit": "pps"}
    assert data["ndr"]["lower"]["bandwidth"]["value"] == pytest.approx(data["ndr"]["lower"]["rate"]["value"] * 84 * 8)
    assert set(data) == {"type", "ndr", "pdr"}


def test_a_case_has_the_fields_of_model_1_5_1_and_no_others():
    data = json.loads(csit_export(named(throughput())).case.model_dump_json(exclude_none=True))
    assert set(data) == {
        *("version", "start_time", "end_time", "duration", "passed", "message", "hosts", "dut_type", "tg_type"),
        *("dut_version", "tg_version", "tags", "telemetry", "test_documentation", "test_id", "test_name_short"),
        *("test_name_long", "test_type", "result"),
    }
    assert (data["version"], data["passed"], data["message"]) == ("1.5.1", True, "")
    assert data["start_time"] == "2026-08-01T12:00:00.250000Z"
    assert (data["dut_type"], data["dut_version"]) == ("LINUX_BRIDGE", "6.1.0")


def test_mrr_has_its_samples():
    data = json.loads(csit_export(named(mrr(), identity("mrr"))).case.model_dump_json())["result"]["receive_rate"]
    assert data["rate"] == {"values": [300_000.0] * 10, "avg": 300_000.0, "stdev": 0.0, "unit": "pps"}
    assert data["bandwidth"]["avg"] == pytest.approx(300_000 * 84 * 8)


def test_what_all_that_can_be_sent_is_has_no_upper_bound():
    data = csit_export(named(throughput(SharpKnee(capacity=1e7)))).case
    assert data.result.ndr.upper is None
    assert "upper" not in json.loads(data.model_dump_json(exclude_none=True))["result"]["ndr"]


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (lambda: named(throughput(error="agent lost")), "failed, so there is no result to export: agent lost"),
        (lambda: named(throughput(goals=(RFC2544,))), "has no goal with the attributes of CSIT's NDR"),
        (lambda: named(throughput(trials=12)), "NDR of .* is irregular"),
        (lambda: named(mrr()), "is called ndrpdr, and its result is mrr"),
        (lambda: named(throughput(), identity("mrr")), "is called mrr, and its result is ndrpdr"),
    ],
)
def test_results_with_another_meaning_are_refused_with_the_reason(result, reason):
    with pytest.raises(ReportError, match=reason):
        csit_export(result())


def test_a_dut_of_unknown_version_is_refused():
    result = throughput().model_copy(update={"test": identity()})
    with pytest.raises(ReportError, match="does not say what kind and version its DUT was"):
        csit_export(result)


def test_the_command_writes_what_it_can_and_says_what_it_cannot(tmp_path):
    run = RunDirectory(tmp_path / "run")
    run.write(named(throughput()))
    run.write(mrr())
    answer = CliRunner().invoke(csit, [str(run.path), str(tmp_path / "csit")])
    assert answer.exit_code == 1
    (file,) = (tmp_path / "csit").rglob("*.info.json")
    assert file.parent.name == "2n1l-100ge2p1e810cq-avf-ethip4-ip4base-ndrpdr"
    assert "Not exported: The suite 'linux_bridge' has no name like CSIT's" in answer.stderr
