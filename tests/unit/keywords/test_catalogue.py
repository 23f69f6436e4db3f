"""Suites as Robot Framework sees them after the catalogue has expanded them, before it selects tests by tags."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import robot
import yaml
from robot.api import TestSuite as Suite
from robot_runs import ROOT, RobotRun

from lossratio.errors import TopologyError
from lossratio.keywords import Catalogue, SuiteExpander

SUITE = """
*** Settings ***
Metadata          Frame Sizes    64B IMIX
Resource          lossratio/resources/performance.resource
Suite Setup       Set Up Testbed    ${TOPOLOGY}    duts=${DUTS}    nic=${NIC}    dut=linux_bridge    police=50 kfps
Suite Teardown    Tear Down Testbed
Test Template     Measure MRR
Test Tags         mrr    ${FRAME_SIZE}    ${CORES}c

*** Test Cases ***
${FRAME_SIZE}-${CORES}c-eth-l2bdbase-mrr
    ${FRAME_SIZE}    profile=ethip4-udp    trials=1

Another Test
    1518B    trials=1
"""


def lab(tmp_path: Path, *models: str) -> Path:
    """A lab with two links on each of these NIC models."""
    tg, dut = {}, {}
    for number, model in enumerate((*models, *models)):
        port = {"name": f"eth{number}", "link": f"link{number}", "model": model}
        tg[f"port{number}"] = dut[f"port{number}"] = port
    nodes = {
        "TG": {"type": "TG", "host": "tg", "generator": {"kind": "afpacket"}, "interfaces": tg},
        "DUT1": {"type": "DUT", "host": "dut", "interfaces": dut},
    }
    file = tmp_path / "lab.yaml"
    file.write_text(yaml.safe_dump({"format": "lossratio-topology/1", "name": "lab", "nodes": nodes}, sort_keys=False))
    return file


def expanded(catalogue: Catalogue, text: str = SUITE, **selection) -> Suite:
    suite = Suite.from_string(text)
    suite.name = "Bridge"
    suite.visit(catalogue)
    suite.configure(**selection)
    return suite


def names(suite: Suite) -> list[str]:
    return [test.name for test in suite.all_tests]


def test_a_test_becomes_one_for_each_frame_size():
    suite = expanded(Catalogue())
    assert names(suite) == ["64B-1c-eth-l2bdbase-mrr", "IMIX-1c-eth-l2bdbase-mrr", "Another Test"]
    small, mix, _ = suite.all_tests
    assert (set(small.tags), set(mix.tags)) == ({"mrr", "64B", "1c"}, {"mrr", "IMIX", "1c"})


def test_without_sizes_of_its_own_it_has_those_of_rfc_2544_and_imix():
    suite = expanded(Catalogue(), SUITE.replace("Metadata", "# Metadata"))
    sizes = [name.partition("-")[0] for name in names(suite)[:-1]]
    assert sizes == ["64B", "128B", "256B", "512B", "1024B", "1280B", "1518B", "IMIX"]


def test_the_command_line_goes_before_the_suite():
    assert names(expanded(Catalogue("frame_sizes=128B,9000B")))[:2] == [
        "128B-1c-eth-l2bdbase-mrr",
        "9000B-1c-eth-l2bdbase-mrr",
    ]


def test_a_suite_for_several_numbers_of_cores_is_several_suites():
    text = SUITE.replace("Metadata", "Metadata    Cores    1 4\nMetadata", 1).replace("dut=", "cores=${CORES}    dut=")
    suite = expanded(Catalogue(), text)
    assert [(child.name, child.setup.args[3]) for child in suite.suites] == [("1c", "cores=1"), ("4c", "cores=4")]
    assert not suite.tests
    assert not suite.has_setup
    assert names(suite)[3:] == ["64B-4c-eth-l2bdbase-mrr", "IMIX-4c-eth-l2bdbase-mrr", "Another Test"]


def test_a_suite_is_made_for_each_value_of_the_variables_that_its_metadata_lists():
    lists = "Metadata    Tunnels    1 40\nMetadata    Mode    int policy\nMetadata          Frame"
    text = SUITE.replace("Metadata          Frame", lists).replace("-eth-l2bdbase-mrr", "-ipsec${TUNNELS}-${MODE}-mrr")
    suite = Suite.from_string(text)
    suite.visit(SuiteExpander())
    assert {one.name for one in suite.suites} == {"int 1", "int 40", "policy 1", "policy 40"}
    test = next(test for test in suite.all_tests if test.name == "IMIX-1c-ipsec40-policy-mrr")
    variables = {variable.name: variable.value[0] for variable in test.body[:3]}
    assert variables == {"${FRAME_SIZE}": "IMIX", "${TUNNELS}": "40", "${MODE}": "policy"}


def test_a_variant_has_tags_and_arguments_of_its_own():
    variants = "Metadata    Variant few    small\nMetadata    Variant many    scale police=90 kfps\nMetadata"
    text = (
        SUITE.replace("Metadata", variants, 1).replace("l2bdbase-mrr", "l2bd${VARIANT}-mrr").replace("=50 kfps", "=1")
    )
    few, many = expanded(Catalogue(), text.replace("90 kfps", "9")).suites
    assert [(suite.name, suite.setup.args[-1]) for suite in (few, many)] == [("few", "police=1"), ("many", "police=9")]
    assert names(many)[:2] == ["64B-1c-eth-l2bdmany-mrr", "IMIX-1c-eth-l2bdmany-mrr"]
    assert ({"small"} <= set(few.tests[0].tags), "scale" in many.tests[0].tags) == (True, True)


def test_a_value_of_another_list_has_tags_of_its_own_too():
    lists = (
        "Metadata    Tunnels    1 40\nMetadata    Tunnels 40    scale\nMetadata    Tunnels 60\nMetadata          Frame"
    )
    text = SUITE.replace("Metadata          Frame", lists).replace("-eth-l2bdbase-mrr", "-ipsec${TUNNELS}-mrr")
    suites = {suite.name: suite for suite in expanded(Catalogue(), text).suites}
    assert {name: "scale" in suite.tests[0].tags for name, suite in suites.items()} == {
        "1": False,
        "40": True,
        "60": False,
    }


def test_without_a_dut_a_suite_is_its_twin():
    text = SUITE.replace("Test Tags         mrr", "Test Tags         mrr    linux_bridge    eth-l2bdbase")
    suite = expanded(Catalogue(str(ROOT / "topologies" / "local-cable.yaml")), text)
    assert names(suite)[0] == "64B-1c-eth-l2bdbase-tg-mrr"
    assert suite.setup.args[1:] == ("nic=${NIC}", "duts=0", "dut=none")
    assert {"trex", "eth-l2bdbase-tg"} <= set(suite.tests[0].tags)
    assert not {"linux_bridge", "eth-l2bdbase"} & set(suite.tests[0].tags)


def test_the_topology_says_nodes_and_nic(tmp_path):
    file = lab(tmp_path, "Intel-E810CQ")
    suite = expanded(Catalogue(str(file)))
    assert suite.setup.args[:3] == (str(file), "duts=1", "nic=Intel-E810CQ")
    tags = set(suite.tests[0].tags)
    assert tags == {"mrr", "64B", "1c", "2_node_single_link_topo", "nic_intel-e810cq", "hw_env"}


def test_a_lab_with_several_nic_models_has_a_suite_for_each(tmp_path):
    catalogue = Catalogue(str(lab(tmp_path, "Intel-E810CQ", "Intel-X710")))
    assert [suite.name for suite in expanded(catalogue).suites] == ["Intel-E810CQ", "Intel-X710"]
    selected = expanded(catalogue, include_tags=["mrrANDnic_intel-x710AND1cAND64bNOTsoak"])
    assert [test.full_name for test in selected.all_tests] == ["Bridge.Intel-X710.64B-1c-eth-l2bdbase-mrr"]


def test_two_duts_are_three_nodes_unless_asked_for_one():
    file = str(ROOT / "topologies" / "local-3n.yaml")
    assert "3_node_single_link_topo" in expanded(Catalogue(file)).tests[0].tags
    with pytest.raises(TopologyError, match="no unused link between DUT1 and TG"):
        SuiteExpander(file, duts="1")


@pytest.mark.parametrize(
    ("argument", "error"),
    [
        ("nope.yaml", "Cannot read nope.yaml: No such file"),
        ("{lab}:framesizes=64B", "There is no argument 'framesizes'. The arguments are topology, frame_sizes"),
        ("framesizes=64B", "There is no argument 'framesizes'"),
        ("{lab}:cores=1:cores=2", "The argument cores is given twice: '1' and '2'. Leave one of them out"),
        ("{lab}:64B:frame_sizes=IMIX", "The argument frame_sizes is given twice: '64B' and 'IMIX'."),
        ("cores=1:{lab}", "has no name. Write it like cores=1,2. The names are topology, frame_sizes, cores"),
        ("{lab}:64B:1:1::six", "The argument 'six' has no name."),
        ("{lab}:duts=two", "duts=two: 'two' is not a whole number"),
        ("{lab}:cores=1,x", "cores=x: 'x' is not a whole number"),
        ("{lab}:cores=0", "cores=0: '0' is not a whole number above 0"),
        ("{lab}:duts=3", "DUT"),
        ("{lab}:frame_sizes=64 X", "64 X"),
    ],
)
def test_a_wrong_argument_is_one_error_and_runs_nothing(tmp_path, argument, error):
    file = tmp_path / "bridge.robot"
    file.write_text(SUITE.lstrip())
    console = io.StringIO()
    modifier = f"lossratio.keywords.Catalogue:{argument.format(lab=ROOT / 'topologies' / 'simulated.yaml')}"
    path = str(ROOT / "libraries")
    options = {"prerunmodifier": modifier, "pythonpath": path, "stdout": console, "stderr": console, "output": None}
    assert robot.run(str(file), outputdir=str(tmp_path), log=None, report=None, **options) == 252
    assert error in console.getvalue()
    assert "Traceback" not in console.getvalue()
    assert "no tests after model modifiers" in console.getvalue()


@pytest.mark.parametrize(
    ("before", "after", "error"),
    [
        (
            "64B IMIX",
            "64B  1518B,IMIX",
            "Metadata Frame Sizes: '1518B,IMIX' has a comma. Separate the values with spaces.",
        ),
        ("64B IMIX", "64b IMIX", "Metadata Frame Sizes: '64b' is not a size in bytes; write it like '64B'."),
        (
            "Metadata ",
            "Metadata    Cores    1,2\nMetadata ",
            "Metadata Cores: '1,2' has a comma. Separate the values with spaces.",
        ),
        (
            "Metadata ",
            "Metadata    Cores    1 two\nMetadata ",
            "Metadata Cores: 'two' is not a whole number above 0; write it like 1.",
        ),
        (
            "dut=linux",
            "links=two    dut=linux",
            "Suite Setup: links=two: 'two' is not a whole number; write it like 1.",
        ),
        ("duts=${DUTS}", "duts=all", "Suite Setup: duts=all: 'all' is not a whole number; write it like 1."),
    ],
)
def test_a_wrong_value_of_a_suite_is_an_error_that_names_it_and_no_suite_runs(
    lossratio, tmp_path, before, after, error
):
    folder = tmp_path / "suites"
    folder.mkdir()
    (folder / "a_right_one.robot").write_text(SUITE.lstrip())
    file = folder / "bridge.robot"
    file.write_text(SUITE.lstrip().replace(before, after, 1))
    console = io.StringIO()
    simulated = ROOT / "topologies" / "simulated.yaml"
    options = {"prerunmodifier": f"lossratio.keywords.Catalogue:{simulated}", "pythonpath": str(ROOT / "libraries")}
    streams = {"stdout": console, "stderr": console}
    assert robot.run(str(folder), outputdir=str(tmp_path), output=None, log=None, report=None, **options, **streams)
    assert f"{file}: {error}" in console.getvalue()
    assert "no tests after model modifiers" in console.getvalue()

    refused = lossratio("run", "--topology", "simulated", folder, "--output", tmp_path / "out")
    assert (refused.status, refused.err) == (2, f"Error: {file}: {error}\n")
    assert not (tmp_path / "out").exists()


def test_a_value_that_is_listed_twice_is_one_test():
    twice = SUITE.replace("64B IMIX", "64B IMIX 64B").replace("Metadata", "Metadata    Cores    1 1\nMetadata", 1)
    assert names(expanded(Catalogue(), twice)) == names(expanded(Catalogue()))
    assert names(expanded(Catalogue("frame_sizes=64B,IMIX,64B", "cores=1,1"))) == names(expanded(Catalogue()))


@pytest.mark.whole
def test_a_suite_runs_with_and_without_the_catalogue(tmp_path):
    file = tmp_path / "bridge.robot"
    file.write_text(SUITE.lstrip())
    simulated = ROOT / "topologies" / "simulated.yaml"
    runs = {
        "plain": {"variable": [f"TOPOLOGY:{simulated}", "CORES:2"]},
        "expanded": {"prerunmodifier": f"lossratio.keywords.Catalogue:{simulated}", "include": "64bAND1c"},
    }
    outcomes = {}
    for name, options in runs.items():
        directory = tmp_path / name
        status = robot.run(str(file), outputdir=str(directory), pythonpath=str(ROOT / "libraries"), **options)
        outcomes[name] = (status, list(RobotRun(directory, status).tests))
    assert outcomes == {
        "plain": (0, ["64B-2c-eth-l2bdbase-mrr", "Another Test"]),
        "expanded": (0, ["64B-1c-eth-l2bdbase-mrr"]),
    }


def test_a_suite_for_one_dut_takes_its_own_path_of_a_larger_topology(tmp_path):
    file = lab(tmp_path, "Intel-E810CQ")
    suite = expanded(Catalogue(str(file)), SUITE.replace("duts=${DUTS}", "duts=1"))
    assert "2_node_single_link_topo" in suite.tests[0].tags


def test_a_suite_whose_path_the_topology_does_not_have_has_no_topology_tag():
    file = str(ROOT / "topologies" / "local-3n.yaml")
    suite = expanded(Catalogue(file), SUITE.replace("duts=${DUTS}", "duts=1"))
    assert suite.setup.args[0] == file
    assert set(suite.tests[0].tags) == {"mrr", "64B", "1c"}


def test_a_suite_over_two_parallel_links_has_csits_tag_for_them():
    file = str(ROOT / "topologies" / "local-2links.yaml")
    assert "2_node_single_link_topo" in expanded(Catalogue(file)).tests[0].tags
    suite = expanded(Catalogue(file), SUITE.replace("duts=${DUTS}", "duts=${DUTS}    links=2"))
    assert "2_node_double_link_topo" in suite.tests[0].tags
