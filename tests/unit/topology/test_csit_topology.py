"""Topology files of FD.io CSIT load as they are: this one is ours, in their format."""

from __future__ import annotations

import logging

import pytest
import yaml

from lossratio.errors import TopologyError
from lossratio.topology import load_topology

FILE = """\
---
metadata:
  version: 0.1
  schema:
    - resources/topology_schemas/3_node_topology.sch.yaml
    - resources/topology_schemas/topology.sch.yaml
  tags: [hw, 3-node]

nodes:
  TG:
    type: TG
    subtype: TREX
    model: Example-Server
    host: 192.0.2.1
    arch: x86_64
    port: 6001
    username: tester
    password: hunter2
    interfaces:
      port1:
        mac_address: "02:00:00:00:00:01"
        pci_address: "0000:17:00.0"
        driver: ice
        link: link1
        model: Intel-E810CQ
      port2: {mac_address: "02:00:00:00:00:02", pci_address: "0000:17:00.1", link: link2, model: Intel-E810CQ}
      port3: {mac_address: "02:00:00:00:00:03", pci_address: "0000:31:00.0", link: link3, model: Intel-XXV710}
      port4: {mac_address: "02:00:00:00:00:04", pci_address: "0000:31:00.1", link: link4, model: Intel-XXV710}
      port5: {mac_address: "02:00:00:00:00:05", pci_address: "0000:4b:00.0", link: link5, model: Intel-X710}
      port6: {mac_address: "02:00:00:00:00:06", pci_address: "0000:4b:00.1", link: link5, model: Intel-X710}
  DUT1:
    type: DUT
    host: 192.0.2.2
    port: 22
    username: tester
    password: hunter3
    priv_key: |
      -----BEGIN TOP SECRET-----
    uio_driver: vfio-pci
    cryptodev:
      device1: {pci_address: "0000:76:00.0", driver: 4xxx, numvfs: 8, password: hunter4}
    interfaces:
      port1: {mac_address: "02:00:00:00:00:11", pci_address: "0000:17:00.0", link: link1, model: Intel-E810CQ}
      port2: {mac_address: "02:00:00:00:00:12", pci_address: "0000:17:00.1", link: link22, model: Intel-E810CQ}
      port3: {mac_address: "02:00:00:00:00:13", pci_address: "0000:31:00.0", link: link3, model: Intel-XXV710}
      port4: {mac_address: "02:00:00:00:00:14", pci_address: "0000:31:00.1", link: link44, model: Intel-XXV710}
      port5: {mac_address: "02:00:00:00:00:15", pci_address: "0000:31:00.2", link: link6, model: Intel-XXV710}
  DUT2:
    type: DUT
    host: 192.0.2.3
    port: 22
    username: tester
    interfaces:
      port1: {mac_address: "02:00:00:00:00:21", pci_address: "0000:17:00.0", link: link2, model: Intel-E810CQ}
      port2: {mac_address: "02:00:00:00:00:22", pci_address: "0000:17:00.1", link: link22, model: Intel-E810CQ}
      port3:
        mac_address: "02:00:00:00:00:23"
        pci_address: "0000:31:00.0"
        ip4_address: "172.16.30.3"
        link: link4
        model: Intel-XXV710
      port4: {mac_address: "02:00:00:00:00:24", pci_address: "0000:31:00.1", link: link44, model: Intel-XXV710}
"""


@pytest.fixture
def load(tmp_path):
    def load_text(text):
        file = tmp_path / "lf_3n_example.yaml"
        file.write_text(text)
        return load_topology(file)

    return load_text


def test_fields_that_mean_the_same_keep_their_meaning(load):
    topology = load(FILE)
    assert (topology.name, topology.testbed) == ("lf_3n_example", "lab")
    dut = topology.nodes["DUT1"]
    assert (dut.host, dut.port, dut.username, dut.uio_driver) == ("192.0.2.2", 22, "tester", "vfio-pci")
    tg = topology.nodes["TG"]
    assert (tg.port, tg.arch, tg.model, tg.generator.kind) == (6001, "x86_64", "Example-Server", "trex")
    port = tg.interfaces["port1"]
    assert (port.mac_address, port.pci_address) == ("02:00:00:00:00:01", "0000:17:00.0")
    assert (port.driver, port.model, port.link) == ("ice", "Intel-E810CQ", "link1")


def test_what_is_not_needed_is_carried_along(load):
    topology = load(FILE)
    assert topology.nodes["TG"].other == {"subtype": "TREX"}
    assert topology.nodes["DUT2"].interfaces["port3"].other == {"ip4_address": "172.16.30.3"}
    crypto = topology.nodes["DUT1"].other["cryptodev"]
    assert crypto == {"device1": {"pci_address": "0000:76:00.0", "driver": "4xxx", "numvfs": 8}}


def test_secrets_are_ignored_with_a_warning_that_does_not_show_them(load, caplog):
    with caplog.at_level(logging.WARNING):
        topology = load(FILE)
    (warning,) = caplog.messages
    assert "lf_3n_example.yaml: password, priv_key are ignored" in warning
    for text in (warning, topology.model_dump_json(), repr(topology)):
        assert "hunter" not in text
        assert "TOP SECRET" not in text


def test_the_path_takes_the_first_free_links_of_one_nic_model(load):
    topology = load(FILE)
    path = topology.path(nic="intel-xxv710")
    assert [str(port) for port in path.ports] == [
        "TG.port3",
        "DUT1.port3",
        "DUT1.port4",
        "DUT2.port4",
        "DUT2.port3",
        "TG.port4",
    ]
    assert {port.interface.model for port in topology.path(nic="Intel-E810CQ").ports} == {"Intel-E810CQ"}


def test_a_link_from_the_generator_to_itself_is_a_path_without_a_dut(load):
    path = load(FILE).path(duts=0)
    assert [str(port) for port in path.ports] == ["TG.port5", "TG.port6"]


def test_a_port_that_is_wired_to_nothing_is_on_no_path(load):
    port = load(FILE).nodes["DUT1"].interfaces["port5"]
    assert (port.link, port.other) == (None, {"link": "link6"})


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("type: TG", "type: XX", r"lf_3n_example.yaml:11: nodes.TG.type: must be 'TG', 'DUT' or .*, not 'XX'"),
        ("port: 6001", "port: 0", r"lf_3n_example.yaml:16: nodes.TG.port: .*not 0"),
        ("link: link2,", "link: link1,", r"link 'link1' must have two ends, but has 3"),
    ],
)
def test_a_problem_is_named_with_file_line_and_field(load, old, new, message):
    with pytest.raises(TopologyError, match=message):
        load(FILE.replace(old, new, 1))


def test_no_secret_is_in_an_error_message(load):
    data = yaml.safe_load(FILE)
    data["nodes"]["DUT1"]["password"] = {"deep": "hunter5"}
    data["nodes"]["DUT1"]["port"] = "none"
    with pytest.raises(TopologyError) as caught:
        load(yaml.safe_dump(data))
    assert "hunter" not in str(caught.value)
