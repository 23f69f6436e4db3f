import base64
import gzip
import json
import re
import zlib
from contextlib import closing
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner
from report_examples import conditions, mrr, throughput

from lossratio.commands.report import csit
from lossratio.dut import load_kind
from lossratio.errors import ReportError
from lossratio.measurements.telemetry import DutTelemetry, TelemetryTrial
from lossratio.mlrsearch import RFC2544
from lossratio.report.csit import csit_export, write_csit
from lossratio.results.conditions import LoadOrigin
from lossratio.results.machines import NodeFacts
from lossratio.results.model import TestIdentity
from lossratio.results.run_directory import RunDirectory
from lossratio.simulation.constant_capacity import SharpKnee
from lossratio.testbed.opening import open_testbed
from lossratio.traffic import load_profile

SUITE = "Tests.Vpp.Perf.Ip4.2N1L-100Ge2P1E810Cq-Avf-Ethip4-Ip4Base-"
SUITES = Path(__file__).parents[2] / "performance"

TEXT, TIME = (
    {"type": "string", "minLength": 1},
    {"type": "string", "pattern": r"^\d{4}(-\d\d){2}T(\d\d:){2}\d\d\.\d{6}Z$"},
)
NAME = {"type": "string", "minLength": 3}
NUMBER = {"type": "number", "minimum": 0}
WHOLE = {"type": "integer", "minimum": 0}


def record(required, **optional):
    return {
        "type": "object",
        "properties": {**required, **optional},
        "required": [*required],
        "additionalProperties": False,
    }


def unit(*names, value=NUMBER):
    return record({"value": value, "unit": {"enum": [*names]}})


def samples(name):
    return record(
        {"values": {"type": "array", "items": NUMBER}, "avg": NUMBER, "stdev": NUMBER, "unit": {"const": name}}
    )


RATE = record({"rate": unit("pps", "cps", "rps", "bps")}, bandwidth=unit("bps"))
BOUNDS = record({"lower": RATE}, upper=RATE)
LATENCY = record(
    {"min": WHOLE, "avg": WHOLE, "max": {"type": "integer", "minimum": 1}, "hdrh": TEXT, "unit": {"const": "us"}}
)
LATENCIES = record(dict.fromkeys(("pdr_0", "pdr_10", "pdr_50", "pdr_90"), LATENCY))
RESULT = {
    "oneOf": [
        record({"type": {"const": "unknown"}}),
        record(
            {"type": {"const": "ndrpdr"}, "ndr": BOUNDS, "pdr": BOUNDS},
            latency_forward=LATENCIES,
            latency_reverse=LATENCIES,
        ),
        record({"type": {"const": "mrr"}, "receive_rate": record({"rate": samples("pps")}, bandwidth=samples("bps"))}),
        record({"type": {"const": "soak"}, "critical_rate": BOUNDS}),
        record(
            {
                "type": {"const": "reconf"},
                "aggregate_rate": RATE,
                "loss": record({"packet": unit("packets", value=WHOLE), "time": unit("s")}),
            }
        ),
    ]
}
# CSIT's test_case.schema.yaml, version 1.5.1, of August 2026: its constraints, in our words.
SCHEMA = record(
    {
        "version": {"const": "1.5.1"},
        "start_time": TIME,
        "end_time": TIME,
        "duration": NUMBER,
        "passed": {"type": "boolean"},
        "message": {"type": "string"},
        "hosts": {"type": "array", "items": TEXT, "minItems": 1},
        **dict.fromkeys(("dut_type", "dut_version", "tg_type", "tg_version"), TEXT),
        "tags": {"type": "array", "items": {"type": "string"}},
        **dict.fromkeys(("test_id", "test_name_long", "test_name_short"), NAME),
        "test_type": {"enum": ["device", "gso", "hoststack", "mrr", "ndrpdr", "reconf", "soak"]},
        "test_documentation": {"type": "string"},
        "telemetry": {"type": "array", "items": {"type": "string"}},
        "result": RESULT,
    }
) | {
    "oneOf": [
        {"properties": {"passed": {"const": passed}, "message": text}}
        for passed, text in ((True, {"const": ""}), (False, TEXT))
    ]
}


def identity(kind="ndrpdr", *, suite=None, name=None, tags=("64B", "1C", "2T1C")):
    return TestIdentity(
        name=name or f"64B-1c-ethip4-ip4base-{kind}", suite=suite or f"{SUITE}{kind.capitalize()}", tags=tags
    )


def named(result, test=None):
    """A result of a CSIT test; its DUT says what it is."""
    nodes = {"DUT1": NodeFacts(kernel="6.1.0"), "TG": NodeFacts()}
    updated = result.conditions.model_copy(update={"nodes": nodes})
    return result.model_copy(update={"test": test or identity(), "conditions": updated})


def on_nic(result, **interface):
    """The result on a DUT whose interfaces have such a NIC."""
    testbed = result.conditions.testbed
    topology = json.loads(json.dumps(testbed.topology))
    for port in topology["nodes"]["DUT1"]["interfaces"].values():
        port.update(interface)
    changed = testbed.model_copy(update={"topology": topology})
    return result.model_copy(update={"conditions": result.conditions.model_copy(update={"testbed": changed})})


def identity_of(kind):
    return load_kind(kind).identity(load_kind(kind).options_type())


def as_kind(result, kind, **facts):
    duts = {"DUT1": {**result.conditions.duts["DUT1"], **identity_of(kind), **facts}}
    return result.model_copy(update={"conditions": result.conditions.model_copy(update={"duts": duts})})


def fields(export):
    return json.loads(json.dumps(export.case))


def our(kind="ndrpdr", suite="Performance.Linux Bridge", body="eth-l2bdbase", **changes):
    return identity(kind, suite=suite, name=f"64B-1c-{body}-{kind}", tags=("64B", "1c"), **changes)


def telemetry_trial():
    dut = DutTelemetry(
        node="DUT1",
        kind="vpp",
        received_frames={"west": 10},
        transmitted_frames={"east": 9},
        dropped_frames={"ring, east": 1},
        unaccounted_frames=0,
        details={},
        told={},
    )
    return TelemetryTrial(
        load=conditions().rate(1e4), goal="PDR", duration_s=1.0, sent_frames=10, received_frames=9, duts=(dut,)
    )


def test_names_of_csits_form_stay():
    export = csit_export(named(throughput()))
    names = export.case
    assert names["test_id"] == (
        "tests.vpp.perf.ip4.2n1l-100ge2p1e810cq-avf-ethip4-ip4base-ndrpdr.64b-1c-avf-ethip4-ip4base-ndrpdr"
    )
    assert (names["test_name_short"], names["test_name_long"]) == (
        "avf-ethip4-ip4base",
        "e810cq-64b-2t1c-avf-ethip4-ip4base",
    )
    assert export.path == f"{names['test_id'].replace('.', '/')}.info.json.gz"
    untagged = csit_export(named(throughput(), identity(tags=("64B", "1C")))).case
    assert untagged["test_name_long"] == "e810cq-64b-1c-avf-ethip4-ip4base"


@pytest.mark.parametrize(
    ("kind", "interface", "body", "expected"),
    [
        (
            "linux_bridge",
            {"model": "Intel-X710"},
            "eth-l2bdbase",
            "linux_bridge.perf.l2.2n1l-10ge2p1x710-eth-l2bdbase-ndrpdr.64b-1c-eth-l2bdbase-ndrpdr",
        ),
        (
            "vpp",
            {"model": "Mellanox-CX7VEAT", "driver": "mlx5_core"},
            "ethip6-ip6base",
            "vpp.perf.ip6.2n1l-200ge2p1cx7veat-mlx5-ethip6-ip6base-ndrpdr.64b-1c-mlx5-ethip6-ip6base-ndrpdr",
        ),
        (
            "vpp",
            {"model": "Intel-E810CQ", "driver": "vfio-pci"},
            "ethip4vxlan-l2bdbase",
            "vpp.perf.ip4_tunnels.2n1l-100ge2p1e810cq-ethip4vxlan-l2bdbase-ndrpdr.64b-1c-ethip4vxlan-l2bdbase-ndrpdr",
        ),
        (
            "testpmd",
            {"model": "Lab Card 3", "speed": 25e9},
            "eth-l2xcbase-testpmd",
            "dpdk.perf.2n1l-25ge2p1labcard3-eth-l2xcbase-testpmd-ndrpdr.64b-1c-eth-l2xcbase-testpmd-ndrpdr",
        ),
    ],
)
def test_names_of_ours_get_nodes_nic_and_driver_of_the_result(kind, interface, body, expected):
    result = as_kind(on_nic(named(throughput(), our(body=body)), **interface), kind)
    assert csit_export(result).case["test_id"] == f"tests.{expected}"


def test_a_veth_link_has_the_speed_that_it_reports():
    facts = {"kind": "veth", "speed_mbps": "10000"}
    result = named(throughput(), our())
    ports = [port["name"] for port in result.conditions.testbed.topology["nodes"]["DUT1"]["interfaces"].values()]
    result = as_kind(result, "linux_bridge", interfaces=dict.fromkeys(map(str, ports), facts))
    assert csit_export(result).case["test_name_long"] == "veth-64b-1c-eth-l2bdbase"
    assert ".2n1l-10ge2p1veth-eth-l2bdbase-ndrpdr." in csit_export(result).case["test_id"]


@pytest.mark.whole
def test_every_test_of_the_shipped_suites_that_csit_has_gets_a_name():
    seen = 0
    for suite in SUITES.glob("*.robot"):
        for name in re.findall(
            r"^\$\{FRAME_SIZE\}-\$\{CORES\}c-(\S+)-(?:ndrpdr|mrr|soak|reconf)$", suite.read_text(), re.M
        ):
            name = re.sub(r"\$\{\w+\}", "4", name)
            test = identity(suite=f"Performance.{suite.stem}", name=f"IMIX-2c-{name}-mrr", tags=())
            case = csit_export(on_nic(named(mrr(), test), model="Intel-E810CQ")).case
            assert case["test_name_short"] == name
            seen += 1
    assert seen > 50


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        (identity(name="Bridge"), "cannot read the name of the test 'Bridge'"),
        (identity(name="64B-1c-ethip6-ip6base-ndrpdr"), "name different features"),
        (identity("latency"), "must end with one of CSIT's types"),
        (identity("mrr", suite=f"{SUITE}Ndrpdr"), "has the type ndrpdr, but the test has the type mrr"),
        (our(), r"the NIC of the DUT, but .* lacks it\. Add model: and speed:"),
    ],
)
def test_names_that_cannot_be_mapped_are_refused_with_the_reason(test, reason):
    with pytest.raises(ReportError, match=reason):
        csit_export(named(throughput(), test))


def test_the_lower_bound_of_csit_is_the_conditional_throughput():
    result = named(throughput())
    data = fields(csit_export(result))["result"]
    pdr = result.goals[1].result
    assert data["type"] == "ndrpdr"
    assert data["pdr"]["lower"]["rate"] == {"value": pdr.conditional_throughput.aggregate_fps, "unit": "pps"}
    assert data["pdr"]["upper"]["rate"] == {"value": pdr.relevant_upper_bound.aggregate_fps, "unit": "pps"}
    assert data["ndr"]["lower"]["bandwidth"]["value"] == pytest.approx(data["ndr"]["lower"]["rate"]["value"] * 84 * 8)
    assert set(data) == {"type", "ndr", "pdr"}


@pytest.mark.parametrize("result", [throughput, mrr], ids=["ndrpdr", "mrr"])
def test_a_case_follows_model_1_5_1(result):
    kind = "mrr" if result is mrr else "ndrpdr"
    data = fields(csit_export(named(result(), identity(kind))))
    jsonschema.validate(data, SCHEMA)
    assert data["start_time"] == "2026-08-01T12:00:00.250000Z"
    assert (data["dut_type"], data["dut_version"], data["tg_type"]) == ("linux_bridge", "6.1.0", "simulated")


def test_a_failed_test_keeps_its_message_and_no_number():
    data = fields(csit_export(named(throughput(error="agent lost"))))
    jsonschema.validate(data, SCHEMA)
    assert (data["passed"], data["message"], data["result"]) == (False, "agent lost", {"type": "unknown"})


def test_the_duts_counters_are_telemetry_in_one_compressed_text():
    data = fields(csit_export(named(throughput().model_copy(update={"telemetry": (telemetry_trial(),)}))))
    jsonschema.validate(data, SCHEMA)
    (text,) = data["telemetry"]
    lines = zlib.decompress(base64.b64decode(text)).decode().splitlines()
    assert re.fullmatch(r"dut_dropped_frames\{hostname='DUT1',rate='pdr',place='ring_east'\} 1\.0 \d{13}", lines[2])
    assert len(lines) == 4


def test_mrr_has_its_samples():
    data = fields(csit_export(named(mrr(), identity("mrr"))))["result"]["receive_rate"]
    assert data["rate"] == {"values": [300_000.0] * 10, "avg": 300_000.0, "stdev": 0.0, "unit": "pps"}
    assert data["bandwidth"]["avg"] == pytest.approx(300_000 * 84 * 8)


def test_all_that_a_link_can_carry_has_no_upper_bound():
    data = csit_export(named(throughput(SharpKnee(capacity=1e7), origin=LoadOrigin.LINK)))
    assert "upper" not in data.case["result"]["ndr"]
    assert "upper" not in fields(data)["result"]["ndr"]


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (lambda: named(throughput(goals=(RFC2544,))), "has no goal with the attributes of CSIT's NDR"),
        (lambda: named(throughput(trials=12)), "NDR of .* is irregular"),
        (
            lambda: named(throughput(SharpKnee(capacity=1e7))),
            "irregular: the generator's maximum load is a lower bound",
        ),
        (lambda: named(mrr()), "is named ndrpdr, but its result is mrr"),
        (lambda: named(throughput(), identity("mrr")), "is named mrr, but its result is ndrpdr"),
    ],
)
def test_results_with_another_meaning_are_refused_with_the_reason(result, reason):
    with pytest.raises(ReportError, match=reason):
        csit_export(result())


def test_a_dut_of_unknown_version_is_refused():
    result = throughput().model_copy(update={"test": identity()})
    with pytest.raises(ReportError, match="need the version of the DUT, but"):
        csit_export(result)


def test_a_simulated_dut_has_the_version_that_its_topology_file_names(tmp_path):
    text = Path("topologies/simulated.yaml").read_text()
    named_version = tmp_path / "simulated.yaml"
    named_version.write_text(text.replace("capacity: 150 kfps}", "capacity: 150 kfps, version: v26.06}"))
    with (
        closing(open_testbed(named_version, dut="linux_bridge")) as testbed,
        testbed.ready_for(load_profile("ethip4-udp", frame_size="64")) as ready,
    ):
        conditions = ready.conditions
    assert conditions.duts["DUT1"]["model"] == {"model": "sharp_knee", "capacity": "150 kfps"}
    result = throughput().model_copy(update={"test": identity(), "conditions": conditions})
    assert csit_export(result).case["dut_version"] == "v26.06"


def test_a_job_has_what_the_dashboards_take_from_its_name():
    assert csit_export(named(mrr(), identity("mrr"))).job == "csit-linux_bridge-perf-mrr-daily-master-x-2n-simulated"


def test_a_job_that_the_dashboards_do_not_read_is_refused(tmp_path):
    with pytest.raises(ReportError, match="cannot read the name of the job 'nightly'"):
        write_csit(tmp_path, [csit_export(named(mrr(), identity("mrr")))], job="nightly", build=1)


@pytest.mark.whole
def test_the_command_writes_what_it_can_and_names_the_rest(tmp_path):
    run = RunDirectory(tmp_path / "run")
    run.write(named(throughput()))
    run.write(mrr())
    answer = CliRunner().invoke(csit, [str(run.path), str(tmp_path / "csit"), "--build", "7"])
    assert answer.exit_code == 1
    build = tmp_path / "csit" / "csit-linux_bridge-perf-ndrpdr-daily-master-x-2n-simulated" / "7"
    (file,) = (path for path in build.rglob("*.info.json.gz") if path.name != "suite.info.json.gz")
    assert str(file) in answer.stdout
    jsonschema.validate(json.loads(gzip.decompress(file.read_bytes())), SCHEMA)
    whole = json.loads(gzip.decompress((build / "tests" / "suite.info.json.gz").read_bytes()))
    assert (whole["version"], whole["duration"], whole["suite_name"]) == ("1.5.1", 40.0, "Tests")
    assert "but the result of Performance.Linux Bridge.64B-1c-eth-l2bdbase-mrr lacks it. Add model" in answer.stderr
