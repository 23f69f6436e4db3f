from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from lossratio.errors import NotMeasuredHereError, TopologyError
from lossratio.testbed.testbed import TestbedRequest
from lossratio.topology import load_topology

TOPOLOGIES = Path(__file__).parents[3] / "topologies"

LAB = """\
format: lossratio-topology/1
name: lab7
nodes:
  TG:
    type: TG
    host: 192.0.2.1
    generator: {kind: afpacket}
    interfaces:
      port0: {name: eth1, link: left, speed: 10 Gbps}
      port1: {name: eth2, link: right}
  DUT1:
    type: DUT
    host: 192.0.2.2
    interfaces:
      east: {pci_address: "0000:3b:00.0", link: right}
      west: {name: eth1, link: left}
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "lab.yaml"
    path.write_text(text)
    return path


def test_a_lab_of_containerlab_is_sent_to_the_import(tmp_path):
    path = write(tmp_path, "name: clos\ntopology:\n  nodes:\n    leaf: {kind: linux}\n")
    with pytest.raises(TopologyError, match=r"Deploy it, and .*lossratio lab import containerlab"):
        load_topology(path)


def test_a_lab_topology_is_read_with_its_units(tmp_path):
    topology = load_topology(write(tmp_path, LAB))
    assert topology.testbed == "lab"
    assert topology.tg_name == "TG"
    assert topology.dut_names == ("DUT1",)
    assert topology.nodes["DUT1"].type == "DUT"
    assert topology.nodes["TG"].interfaces["port0"].speed == 10e9
    assert topology.nodes["TG"].connect_timeout == 10.0


def test_the_path_follows_the_links_whatever_the_ports_are_called(tmp_path):
    path = load_topology(write(tmp_path, LAB)).path()
    assert (str(path.west), str(path.east)) == ("TG.port0", "TG.port1")
    assert [(hop.node_name, str(hop.west), str(hop.east)) for hop in path.hops] == [("DUT1", "DUT1.west", "DUT1.east")]


def test_the_path_of_three_nodes_goes_through_every_dut(tmp_path):
    data = yaml.safe_load(LAB)
    data["nodes"]["DUT1"]["interfaces"]["east"]["link"] = "middle"
    data["nodes"]["DUT2"] = {
        "type": "DUT",
        "host": "192.0.2.3",
        "interfaces": {"a": {"name": "e0", "link": "right"}, "b": {"name": "e1", "link": "middle"}},
    }
    path = load_topology(write(tmp_path, yaml.safe_dump(data, sort_keys=False))).path()
    assert [(str(hop.west), str(hop.east)) for hop in path.hops] == [("DUT1.west", "DUT1.east"), ("DUT2.b", "DUT2.a")]


def test_two_links_between_the_same_nodes_are_used_once_each(tmp_path):
    cable = yaml.safe_load(LAB)
    del cable["nodes"]["DUT1"]
    ports = cable["nodes"]["TG"]["interfaces"]
    ports["port1"]["link"] = "left"
    path = load_topology(write(tmp_path, yaml.safe_dump(cable))).path()
    assert (str(path.west), str(path.east), path.hops) == ("TG.port0", "TG.port1", ())


def test_a_path_from_one_tg_to_another_one_has_a_port_on_each_and_is_not_reflected(tmp_path):
    data = yaml.safe_load(LAB)
    port1 = data["nodes"]["TG"]["interfaces"].pop("port1")
    data["nodes"]["FAR"] = {"type": "TG", "netns": "far", "interfaces": {"port1": port1}}
    topology = load_topology(write(tmp_path, yaml.safe_dump(data, sort_keys=False)))
    path = topology.path()
    assert (topology.tg_names, path.tg_names, path.is_reflected) == (("TG", "FAR"), ("TG", "FAR"), False)
    assert [str(port) for port in path.tg_ports] == ["TG.port0", "FAR.port1"]
    assert [hop.node_name for hop in path.hops] == ["DUT1"]


def edited(old: str, new: str) -> str:
    assert old in LAB
    return LAB.replace(old, new)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (edited("      port1: {", "      port1: ["), 10, "not YAML"),
        (edited("    host: 192.0.2.2", "    hots: 192.0.2.2"), 13, "nodes.DUT1.hots: unknown field"),
        (edited("nodes:\n", "mtu: 3400\nnodes:\n"), 3, "mtu: only a local testbed has an MTU for its links"),
        (edited("  DUT1:", "  TG:"), 11, "nodes.TG: the name 'TG' appears twice .first on line 4"),
        (
            edited("west: {name: eth1, link: left}", "west: {name: eth1, link: lfet}"),
            9,
            "link 'left' must have two ends",
        ),
        (edited("west: {name: eth1, link: left}", "west: {name: eth1, link: right}"), 16, "link 'right' .* but has 3"),
        (edited("    generator: {kind: afpacket}\n", ""), 4, "nodes.TG: a TG without a generator"),
        (edited("    host: 192.0.2.2\n", "    host: a\n    generator: {kind: afpacket}\n"), 14, "only a TG has a gen"),
        (edited("kind: afpacket", "kind: ixia"), 7, "nodes.TG.generator: .*ixia"),
        (edited("kind: afpacket", "kind: simulated"), 7, "'simulated' cannot be used with 'testbed: lab'"),
        (edited("name: eth2", "name: eth1"), 10, "another interface of TG is also named 'eth1'"),
        (edited("name: eth2", "name: eth*"), 10, r"'eth\*' cannot be the name of an interface: .* must not contain"),
        (edited("name: eth2", """name: 'eth"2'"""), 10, "cannot be the name of an interface"),
        (edited("    type: TG", "    type: reflector"), 3, "one at each end of the path, but it has 0"),
        (
            edited("    type: DUT", "    type: TG").replace("kind: afpacket", "kind: trex"),
            7,
            "'trex' sends and receives on one node, but there are two nodes of type TG",
        ),
        (
            edited("    type: DUT", "    type: TG\n    generator: {kind: afpacket}"),
            13,
            "the generator of TG sends at both ends of the path; leave this one out",
        ),
        (
            edited("    type: DUT", "    type: TG").replace("west: {", "port0: {"),
            14,
            "an interface of the other TG has the same key",
        ),
        (edited("10 Gbps", "10 Gigs"), 9, "not a bit rate"),
        (edited("    host: 192.0.2.1\n", ""), 4, "nodes.TG: the file does not say how to reach the node: add 'host'"),
        (edited("    host: 192.0.2.2\n", "    host: a\n    netns: b\n"), 14, "host and netns contradict each other"),
        (edited("    host: 192.0.2.2\n", "    netns: a/b\n"), 13, "nodes.DUT1.netns: "),
        (edited("{name: eth2, link: right}", "{link: right}"), 10, "neither a 'name' nor a 'pci_address'"),
        (edited("    host: 192.0.2.2", "    host: a\n    password: hunter2"), 11, "nodes.DUT1: remove the password"),
        (
            edited("    type: DUT", "    type: DUT\n    sut: {model: x}"),
            13,
            "can only be used with 'testbed: simulated'",
        ),
        (edited("format: lossratio-topology/1", "format: 1"), 1, "format: "),
        ("", 1, "must hold fields"),
        ("- 1\n", 1, "must hold fields"),
    ],
)
def test_a_problem_is_named_with_file_line_and_field(tmp_path, text, line, message):
    path = write(tmp_path, text)
    with pytest.raises(TopologyError) as caught:
        load_topology(path)
    assert re.search(f"{re.escape(str(path))}:{line}: .*{message}", str(caught.value)), str(caught.value)


def test_a_password_in_the_file_is_not_shown(tmp_path):
    path = write(tmp_path, edited("    host: 192.0.2.2", "    host: a\n    password: hunter2"))
    with pytest.raises(TopologyError) as caught:
        load_topology(path)
    assert "hunter2" not in str(caught.value)


def test_all_problems_are_reported_at_once(tmp_path):
    path = write(tmp_path, edited("name: eth2", "name: eth1").replace("    host: 192.0.2.1\n", ""))
    with pytest.raises(TopologyError) as caught:
        load_topology(path)
    assert len(str(caught.value).splitlines()) == 2


def test_a_missing_file_is_an_error_of_its_own(tmp_path):
    with pytest.raises(TopologyError, match=r"Cannot read .*missing\.yaml: No such file"):
        load_topology(tmp_path / "missing.yaml")


def test_duts_without_a_link_of_their_own_are_no_path(tmp_path):
    data = yaml.safe_load(LAB)
    data["nodes"]["DUT2"] = {"type": "DUT", "host": "a", "interfaces": {"a": {"name": "x", "link": "spare"}}}
    data["nodes"]["TG"]["interfaces"]["port2"] = {"name": "y", "link": "spare"}
    with pytest.raises(TopologyError, match="no unused link between DUT1 and DUT2"):
        load_topology(write(tmp_path, yaml.safe_dump(data, sort_keys=False)))


def three_nodes(tmp_path):
    """A path through two DUTs, and a spare link between the TG and DUT1."""
    data = yaml.safe_load(LAB)
    data["nodes"]["DUT1"]["interfaces"] |= {"middle": {"name": "e5", "link": "middle"}, "unused": {"name": "e6"}}
    data["nodes"]["TG"]["interfaces"]["port2"] = {"name": "y", "link": "back"}
    data["nodes"]["DUT2"] = {
        "type": "DUT",
        "host": "a",
        "interfaces": {"a": {"name": "x", "link": "middle"}, "b": {"name": "y", "link": "back"}},
    }
    return load_topology(write(tmp_path, yaml.safe_dump(data, sort_keys=False)))


def test_a_path_may_go_through_fewer_duts_than_there_are(tmp_path):
    topology = three_nodes(tmp_path)
    assert [hop.node_name for hop in topology.path().hops] == ["DUT1", "DUT2"]
    assert [str(port) for port in topology.path(duts=1).ports] == ["TG.port0", "DUT1.west", "DUT1.east", "TG.port1"]


def test_a_path_longer_than_the_topology_is_an_error_that_says_so(tmp_path):
    with pytest.raises(TopologyError, match=r"through 3 DUTs was requested, but the topology has 2 \(DUT1, DUT2\)"):
        three_nodes(tmp_path).path(duts=3)


def test_no_link_on_a_nic_model_is_an_error_that_names_the_models(tmp_path):
    topology = load_topology(write(tmp_path, edited("{name: eth1, link: left}", "{name: eth1, link: left, model: A}")))
    with pytest.raises(TopologyError, match=r"between TG and DUT1 on a NIC of model '.*' \(models on them: A\)"):
        topology.path(nic="Intel-X710")


def test_a_nic_model_that_no_port_can_ever_have_is_an_error_and_not_a_reason_to_skip(tmp_path):
    some = load_topology(write(tmp_path, edited("{name: eth1, link: left}", "{name: eth1, link: left, model: Acme-1}")))
    for topology, nic, said in (
        (load_topology(write(tmp_path, LAB)), "Intel-X710", "the file gives no port a 'model'"),
        (some, "Acme-2000G", r"no NIC model 'Acme-2000G'\. The models of its ports are: Acme-1\. List"),
        (some, "Acme1", r"no NIC model 'Acme1'\. Did you mean 'Acme-1'\?"),
    ):
        with pytest.raises(TopologyError, match=said) as refused:
            topology.path(nic=nic)
        assert not isinstance(refused.value, NotMeasuredHereError)


def test_a_testbed_whose_file_says_too_little_is_refused_before_any_node_is_reached(tmp_path):
    text = LAB.replace("{kind: afpacket}", "{kind: trex}").replace(
        "{name: eth1, link: left, s", '{pci_address: "0000:3b:00.0", link: left, s'
    )
    file = write(tmp_path, text)
    request = TestbedRequest(load_topology(file), file)
    with pytest.raises(TopologyError) as raised:
        _ = request.paths
    first, second = str(raised.value).splitlines()
    assert f"{file}:9: nodes.TG.interfaces.port0: TRex needs the port's 'mac_address' unless" in first
    assert f"{file}:10: nodes.TG.interfaces.port1: TRex needs the port's 'pci_address' and 'mac_address'" in second


LAB_PORTS = """\
format: lossratio-topology/1
name: routed
addresses: {kind}
nodes:
  TG:
    type: TG
    netns: tg
    generator: {{kind: afpacket}}
    interfaces:
      west: {{name: tg0, link: in, {west}}}
      east: {{name: tg1, link: out, address: 10.2.0.2/24}}
  BOX:
    type: DUT
    interfaces: {{in: {{link: in{box}}}, out: {{link: out}}}}
"""


@pytest.mark.parametrize(
    ("west", "problem"),
    [
        ("address: 10.1.0.2", "'10.1.0.2' needs the prefix length of its network"),
        ("address: [10.1.0.2/24, 10.1.1.2/24]", "address: give at most one address per IP version"),
        ("address: 127.0.0.2/8", "127.0.0.2 is multicast, loopback or unspecified"),
        ("gateway: 10.1.0.1", "to ask gateway 10.1.0.1 for its MAC, the port needs an IPv4 'address'"),
        ("address: 10.1.0.2/24, gateway: 10.2.0.1", "gateway 10.2.0.1 must be another address in 10.1.0.0/24"),
        ("address: 10.1.0.2/24, gateway: 10.1.0.2", "gateway 10.1.0.2 must be another address in 10.1.0.0/24"),
        ("network: 0.0.0.0/0", "network 0.0.0.0/0 is as large as a default route"),
        ("network: '2000::/3'", "network 2000::/3 is as large as a default route"),
        ("network: 224.1.0.0/16", "network 224.1.0.0/16 is multicast, loopback or link-local"),
        ("speed: 10 Gbps", "the file has 'addresses: lab', but this port has neither 'address' nor 'network'"),
    ],
)
def test_addresses_of_ports_fit_each_other(tmp_path, west, problem):
    (tmp_path / "lab.yaml").write_text(LAB_PORTS.format(kind="lab", west=west, box=""))
    with pytest.raises(TopologyError, match=re.escape(problem)):
        load_topology(tmp_path / "lab.yaml")


def test_traffic_leaves_the_benchmarking_networks_only_where_the_file_says_so(tmp_path):
    file = tmp_path / "lab.yaml"
    file.write_text(LAB_PORTS.format(kind="benchmark", west="network: 10.9.0.0/16", box=""))
    with pytest.raises(TopologyError, match="leave this out, or set 'addresses: lab' in the file"):
        load_topology(file)
    file.write_text(LAB_PORTS.format(kind="lab", west="network: 10.9.0.0/16", box=", address: 10.1.0.1/24"))
    with pytest.raises(TopologyError, match="only the TG's interfaces have this field"):
        load_topology(file)
    file.write_text(LAB_PORTS.format(kind="lab", west="network: 10.9.0.0/16", box=""))
    topology = load_topology(file)
    with pytest.raises(TopologyError, match=r"this traffic needs an IPv6 address of TG\.west, which has none"):
        topology.sides(topology.paths(1), {6})
    ((west, east),) = topology.sides(topology.paths(1), {4})
    assert (str(west.ipv4), west.ipv4_offset) == ("10.9.0.0/16", 0)
    assert (str(east.ipv4), east.ipv4_offset) == ("10.2.0.0/24", 1)


def test_the_data_of_a_topology_without_the_new_fields_is_as_before(tmp_path):
    file = tmp_path / "lab.yaml"
    file.write_text(LAB_PORTS.format(kind="lab", west="network: 10.9.0.0/16", box=""))
    data = load_topology(file).model_dump(mode="json")
    assert data["addresses"] == "lab"
    assert data["nodes"]["TG"]["interfaces"]["west"]["network"] == ["10.9.0.0/16"]
