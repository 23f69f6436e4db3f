"""Topology files are made from labs of containerlab and netlab as they are."""

from __future__ import annotations

import json

import pytest
import yaml
from lab_examples import ADDRESSED, ROUND

from lossratio.errors import TopologyError
from lossratio.topology import import_lab, read_containerlab, read_netlab


@pytest.fixture
def lab(tmp_path):
    def read(text, name="a.clab.yml", reader=read_containerlab, **options):
        path = tmp_path / name
        path.write_text(text)
        return yaml.safe_load(import_lab(reader(path), path, **options))

    return read


def path_of(topology):
    return [name for name in topology["nodes"] if name != "TG"]


def interfaces(topology, node):
    return list(topology["nodes"][node]["interfaces"])


def test_the_generator_is_on_a_host_with_two_links_and_the_path_goes_round(lab):
    topology = lab(ROUND)
    assert topology["nodes"]["TG"]["netns"] == "clab-round-tester"
    assert path_of(topology) == ["r1", "r2"]
    assert interfaces(topology, "r1") == ["e1-1", "e1-2"]
    assert topology["nodes"]["r1"]["interfaces"]["e1-2"]["other"] == {"alias": "ethernet-1/2"}
    assert topology["nodes"]["r2"]["interfaces"]["e1-2"]["other"] == {"ipv4": "192.0.2.1/30"}


def test_a_namespace_of_its_own_is_joined_to_routers_where_no_host_has_two_links(lab):
    topology = lab(
        ROUND.replace('    - endpoints: ["r2:e1-2", "tester:eth2"]', '    - endpoints: ["r2:e1-2", "r2:e1-9"]')
    )
    assert topology["nodes"]["TG"]["netns"] == "lossratio-round"
    assert interfaces(topology, "TG") == ["lr0", "lr1"]
    assert path_of(topology) == ["r1", "r2"]
    assert topology["nodes"]["r1"]["interfaces"]["e1-3"] == {"name": "e1-3", "link": "join0"}


def test_the_path_goes_through_the_duts_that_are_asked_for(lab):
    direct = '    - endpoints: ["tester:eth3", "r1:e1-3"]\n'
    assert path_of(lab(ROUND + direct)) == ["r1"]
    assert path_of(lab(ROUND + direct, duts=["r2"])) == ["r1", "r2"]
    assert path_of(lab(ROUND, tg="r1")) == ["tester", "r2"]
    assert path_of(lab(ROUND, join=["r2"])) == ["r2"]


CLIENTS = """\
name: office
topology:
  defaults: {kind: linux, image: "alpine:3"}
  nodes:
    pc1: {exec: ["ip addr add 192.0.2.2/30 dev eth1", "ip route add 198.51.100.0/24 via 192.0.2.1"]}
    r1: {kind: nokia_srlinux}
    r2: {}
    pc2:
      exec: ["ip address add 198.51.100.2/24 dev eth1", "ip -4 route replace default via 198.51.100.1 dev eth1"]
    server3:
  links:
    - endpoints: ["pc1:eth1", "r1:e1-1"]
    - endpoints: ["r1:e1-2", "r2:eth1"]
    - endpoints: ["server3:eth1", "r1:e1-3"]
    - endpoints: ["r2:eth2", "pc2:eth1"]
    - endpoints: ["server3:eth2", "r2:eth3"]
"""


def test_the_generator_is_on_two_end_systems_and_the_path_is_the_one_between_them(lab):
    nodes = lab(CLIENTS)["nodes"]
    assert list(nodes) == ["pc1", "pc2", "r1", "r2"]
    assert [node["type"] for node in nodes.values()] == ["TG", "TG", "DUT", "DUT"]
    assert [node.get("generator") for node in nodes.values()] == [{"kind": "afpacket"}, None, None, None]
    assert (nodes["pc1"]["netns"], nodes["pc2"]["netns"]) == ("clab-office-pc1", "clab-office-pc2")
    links = [{name: port["link"] for name, port in node["interfaces"].items()} for node in nodes.values()]
    assert links == [
        {"pc1": "link1"},
        {"pc2": "link3"},
        {"e1-1": "link1", "e1-2": "link2"},
        {"eth1": "link2", "eth2": "link3"},
    ]


def test_addresses_and_next_hops_come_from_the_commands_of_the_nodes(lab):
    nodes = lab(CLIENTS, lab_addresses=True)["nodes"]
    ends = [nodes[name]["interfaces"][name] for name in ("pc1", "pc2")]
    assert [end["name"] for end in ends] == ["eth1", "eth1"]
    assert [(end["address"], end["gateway"]) for end in ends] == [
        (["192.0.2.2/30"], ["192.0.2.1"]),
        (["198.51.100.2/24"], ["198.51.100.1"]),
    ]
    nonsense = CLIENTS.replace("192.0.2.2/30", "1.2.3/99").replace("via 198.51.100.1", "via 1.2")
    assert "gateway" not in lab(nonsense)["nodes"]["pc1"]["interfaces"]["pc1"]


def test_other_ends_can_be_chosen_and_no_path_goes_through_an_end_system(lab):
    # Over the server it would be as short.
    closed = CLIENTS.replace('["r1:e1-2", "r2:eth1"]', '["r1:e1-2", "pc1:eth2"]')
    assert list(lab(CLIENTS, ends=["server3"])["nodes"]) == ["server3", "pc1", "r1"]
    assert list(lab(CLIENTS, ends=["pc2", "server3"])["nodes"]) == ["pc2", "server3", "r2"]
    assert list(lab(CLIENTS, ends=["pc2", "server3"], duts=["r1"])["nodes"]) == ["pc2", "server3", "r2", "r1"]
    assert list(lab(closed)["nodes"]) == ["pc1", "server3", "r1"]
    with pytest.raises(
        TopologyError, match=r"no path from pc1 to pc2 over.*--end NODE; the lab's end systems are pc1, pc2, server3\."
    ):
        lab(closed, ends=["pc1", "pc2"])
    with pytest.raises(TopologyError, match="Choose one place for the generator"):
        lab(CLIENTS, ends=["pc1"], tg="pc2")


def test_it_is_said_what_each_path_crosses(tmp_path):
    path = tmp_path / "office.clab.yml"
    path.write_text(CLIENTS)
    text = import_lab(read_containerlab(path), path)
    assert "# The generator is on both ends of the path, pc1 and pc2.\n" in text
    assert "# The path goes through r1 (nokia_srlinux), r2 (linux).\n" in text
    assert "# From pc1 to server3 it would go through r1 (nokia_srlinux): --end pc1 --end server3.\n" in text
    assert "# From pc2 to server3 it would go through r2 (linux): --end pc2 --end server3.\n" in text


@pytest.mark.parametrize("name", ["r7", "rt2", "sw1", "r-as100", "core-r1", "gw"])
def test_a_node_with_the_name_of_a_router_has_no_end_of_the_traffic(tmp_path, name):
    path = tmp_path / "office.clab.yml"
    path.write_text(CLIENTS.replace("pc1", name))
    assert not read_containerlab(path).nodes[name].may_be_host
    assert read_containerlab(path).nodes["pc2"].may_be_host


def test_a_lab_without_a_name_takes_one(tmp_path):
    path = tmp_path / "office.clab.yml"
    path.write_text(CLIENTS.replace("name: office\n", ""))
    with pytest.raises(TopologyError, match=r"the lab has no name\. Give the name it is deployed with: --name NAME"):
        read_containerlab(path)
    named = read_containerlab(path, "mine")
    assert (named.name, named.nodes["pc1"].reach) == ("mine", {"netns": "clab-mine-pc1"})
    (tmp_path / "lab.json").write_text(json.dumps({**NETLAB, "name": ""}))
    with pytest.raises(TopologyError, match="--name NAME"):
        read_netlab(tmp_path / "lab.json")
    assert read_netlab(tmp_path / "lab.json", "mine").name == "mine"


def test_next_hops_of_the_generator_are_those_of_the_lab(lab):
    tg = lab(ADDRESSED)["nodes"]["TG"]["interfaces"]
    assert tg["eth1"]["address"] == ["192.0.2.6/30", "2001:db8::2/64"]
    assert tg["eth1"]["gateway"] == ["192.0.2.5", "2001:db8::1"]
    assert (tg["eth2"]["address"], tg["eth2"]["gateway"]) == (["192.0.2.2/30"], ["192.0.2.1"])
    assert "addresses" not in lab(ADDRESSED)
    assert lab(ADDRESSED, lab_addresses=True)["addresses"] == "lab"
    # One end has no address, or the ends are in different networks: nothing is guessed.
    apart = ADDRESSED.replace("192.0.2.5/30", "192.0.2.9/30").replace("2001:db8::1/", "2001:db9::1/")
    for text in (ROUND, apart):
        assert "gateway" not in lab(text)["nodes"]["TG"]["interfaces"]["eth1"]
    with pytest.raises(TopologyError, match="it does not give the addresses of both links of the generator"):
        lab(ROUND, lab_addresses=True)


@pytest.mark.parametrize(
    ("kind", "port", "name"),
    [
        ("nokia_srlinux", "ethernet-1/2/3", "e1-2-3"),
        ("nokia_srsim", "1/x2/3/c4/5", "e1-x2-3-c4-5"),
        ("cisco_iol", "Ethernet1/2", "eth6"),
        ("juniper_vmx", "ge-0/0/0", "eth1"),
        ("cjunosevolved", "et-0/0/0", "eth4"),
        ("vr-sros", "1/1/3", "eth3"),
        ("nokia_sros", "1/1/c3/1", "eth3"),
        ("cisco_xrv9k", "Gi0/0/0/2", "eth3"),
        ("cisco_csr1000v", "GigabitEthernet3", "eth2"),
        ("mikrotik_ros", "ether2", "eth1"),
        ("f5_bigip-ve", "1.2", "eth2"),
        ("arista_ceos", "eth7", "eth7"),
    ],
)
def test_ports_have_the_names_that_they_have_in_linux(lab, kind, port, name):
    text = ROUND.replace("r1: {kind: nokia_srlinux}", f"r1: {{kind: {kind}}}").replace("r1:ethernet-1/2", f"r1:{port}")
    assert name in interfaces(lab(text), "r1")


@pytest.mark.parametrize(
    ("line", "netns"),
    [
        ("", "clab-round-tester"),
        ('prefix: ""\n', "tester"),
        ("prefix: __lab-name\n", "round-tester"),
        ("prefix: ${PREFIX:=mine}\n", "mine-round-tester"),
        ("prefix: ${HOME_PREFIX}\n", "given-round-tester"),
    ],
)
def test_namespaces_are_called_as_containerlab_calls_them(lab, monkeypatch, line, netns):
    monkeypatch.setenv("HOME_PREFIX", "given")
    assert lab(line + ROUND)["nodes"]["TG"]["netns"] == netns


def test_kinds_come_from_groups_and_defaults_and_namespaces_from_network_modes(lab):
    text = """\
name: g
topology:
  defaults: {group: routers}
  groups:
    hosts: {kind: linux}
    routers: {kind: nokia_srsim}
  nodes:
    t: {group: hosts}
    card:
    iom: {network-mode: "container:card"}
  links:
    - endpoints: ["t:eth1", "card:1/1/1"]
    - {type: veth-stitch, endpoints: [{node: t, interface: eth2}, {node: iom, interface: 2/1/c1/1}]}
"""
    topology = lab(text)
    assert path_of(topology) == ["card"]
    assert interfaces(topology, "card") == ["e1-1-1", "e2-1-c1-1"]


SHARED = """\
name: shared
topology:
  nodes:
    t: {kind: linux}
    a: {kind: linux, image: frr, network-mode: "container:b"}
    b: {kind: linux, image: frr, network-mode: "container:c"}
    c: {kind: linux, image: frr}
  links:
    - endpoints: ["t:eth1", "a:eth1"]
    - endpoints: ["t:eth2", "b:eth2"]
"""


def test_a_namespace_that_is_shared_over_several_nodes_has_all_their_ports(lab):
    topology = lab(SHARED)
    assert path_of(topology) == ["c"]
    assert topology["nodes"]["c"]["netns"] == "clab-shared-c"
    assert interfaces(topology, "c") == ["eth1", "eth2"]


@pytest.mark.parametrize("other", ["a", "c"])
def test_namespaces_that_are_shared_in_a_circle_are_refused(lab, other):
    circle = SHARED.replace("c: {kind: linux, image: frr}", f'c: {{kind: linux, network-mode: "container:{other}"}}')
    with pytest.raises(TopologyError, match=r"a\.clab\.yml:7: topology\.nodes\.c: network-mode: .* in a circle"):
        lab(circle)


def test_a_bridge_is_a_device_and_other_links_are_left_out_with_the_reason(tmp_path):
    path = tmp_path / "b.clab.yml"
    path.write_text("""\
name: b
topology:
  nodes:
    t: {kind: linux}
    br: {kind: bridge}
  links:
    - endpoints: ["t:eth1", "br:p1"]
    - endpoints: ["br:p2", "t:eth2"]
    - endpoints: ["t:eth3", "host:p3"]
    - endpoints: ["t:eth4", "mgmt-net:p4"]
    - endpoints: ["macvlan:eno1", "t:eth5"]
    - {type: vxlan, endpoint: {node: t, interface: eth6}, remote: 192.0.2.9, vni: 7, dst-port: 4789}
    - {type: dummy, endpoint: {node: t, interface: eth7}}
""")
    text = import_lab(read_containerlab(path), path)
    assert yaml.safe_load(text)["nodes"]["br"] == {
        "type": "DUT",
        "model": "bridge",
        "interfaces": {"p1": {"name": "p1", "link": "link1"}, "p2": {"name": "p2", "link": "link2"}},
    }
    assert text.count("# Left out: link ") == 5
    assert "t:eth6 (vxlan): its other end is on another machine" in text


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('"r2:e1-1"', '"r3:e1-1"', "links.1: there is no node 'r3'"),
        ('"r2:e1-1"', '"r2"', "'r2' is not an end of a link"),
        (
            '"r2:e1-1"',
            '"r2:GigabitEthernet0/0/0"',
            "a node of kind nokia_srlinux has no interface 'GigabitEthernet0/0/0'",
        ),
        ('"r1:e1-1"]', '"r1:e1-1", "r2:e1-9"]', "links.0: a link of type veth needs 2 ends"),
        ("r2: {kind: nokia_srlinux}", "r2:", "nodes.r2: this node has no kind"),
        ("name: round", "name: lab-${NOT_SET}", "a variable that is not set"),
        ("name: round", "name: lab-__gitHash__", "fills it in from git"),
        ("kind: nokia_srlinux", "kind: cisco_xrv9k", None),
    ],
)
def test_a_wrong_lab_is_refused_with_the_reason(lab, old, new, reason):
    if reason is None:
        assert path_of(lab(ROUND.replace(old, new).replace("e1-", "eth").replace("ethernet-1/2", "eth3")))
        return
    with pytest.raises(TopologyError, match=reason.replace(".", r"\.")):
        lab(ROUND.replace(old, new))


def test_a_lab_without_a_place_for_a_generator_is_refused(lab):
    machines = ROUND.replace("nokia_srlinux", "juniper_vmx").replace("{kind: linux, ", "{kind: freebsd, ")
    text = machines.replace("e1-", "eth").replace("ethernet-1/2", "eth3")
    with pytest.raises(TopologyError, match=r"no place for a generator.*Add two nodes of kind linux"):
        lab(text)
    with pytest.raises(TopologyError, match="r1 is of kind juniper_vmx, which accepts no other link while it runs"):
        lab(text, join=["r1"])
    with pytest.raises(TopologyError, match="has no node 'r7'; it has tester, r1, r2"):
        lab(text, tg="r7")


def test_a_template_is_refused_and_the_deployed_lab_is_read(lab):
    with pytest.raises(TopologyError, match=r"template.*topology-data\.json"):
        lab(ROUND, name="a.clab.gotmpl")
    with pytest.raises(TopologyError, match=r"template.*topology-data\.json"):
        lab(ROUND.replace("  links:", "{{ if .more }}\n  links:"))
    nodes = {name: {"kind": kind, "longname": f"x-{name}"} for name, kind in (("t", "linux"), ("r", "arista_ceos"))}
    ends = [
        {
            "a": {"node": "t", "interface": f"eth{n}", "mac": f"02:00:00:00:00:0{n}"},
            "z": {"node": "r", "interface": f"eth{n}"},
        }
        for n in (1, 2)
    ]
    links = [{"endpoints": ends[0]}, ends[1]]
    topology = lab(json.dumps({"name": "d", "type": "clab", "nodes": nodes, "links": links}), "topology-data.json")
    assert topology["nodes"]["TG"]["netns"] == "x-t"
    assert topology["nodes"]["TG"]["interfaces"]["eth1"]["mac_address"] == "02:00:00:00:00:01"


NETLAB = {
    "name": "nl",
    "provider": "clab",
    "nodes": {
        "h": {"device": "linux", "hostname": "clab-nl-h", "interfaces": [{"ifindex": 1, "ifname": "eth1"}]},
        "r": {
            "device": "srlinux",
            "hostname": "clab-nl-r",
            "interfaces": [{"ifindex": 1, "ifname": "ethernet-1/1", "clab": {"name": "e1-1"}}],
        },
        "v": {"device": "iosv", "provider": "libvirt", "mgmt": {"ipv4": "192.168.121.103"}},
    },
    "links": [
        {
            "type": "lan",
            "linkindex": 1,
            "interfaces": [
                {"node": "h", "ifindex": 1, "ifname": "eth1", "ipv4": "172.16.0.2/24"},
                {"node": "r", "ifindex": 1, "ifname": "ethernet-1/1", "ipv4": "172.16.0.1/24"},
            ],
        },
        {
            "type": "p2p",
            "linkindex": 2,
            "interfaces": [{"node": "r", "ifname": "e1-2"}, {"node": "v", "ifname": "Gi0/1"}],
        },
        {
            "type": "lan",
            "linkindex": 3,
            "bridge": "nl_3",
            "interfaces": [
                {"node": "r", "ifname": "e1-3"},
                {"node": "v", "ifname": "Gi0/2"},
                {"node": "h", "ifname": "eth2"},
            ],
        },
        {"type": "stub", "linkindex": 4, "interfaces": [{"node": "r", "ifname": "e1-4"}]},
    ],
}


def test_a_lab_of_netlab_is_read(lab):
    topology = lab(json.dumps(NETLAB), "lab.json", read_netlab)
    assert topology["nodes"]["TG"]["netns"] == "clab-nl-h"
    assert path_of(topology) == ["r", "nl_3"]
    assert topology["nodes"]["r"]["interfaces"]["e1-1"]["other"] == {"ipv4": "172.16.0.1/24", "alias": "ethernet-1/1"}
    through = lab(json.dumps(NETLAB), "lab.json", read_netlab, duts=["v"])
    assert path_of(through) == ["r", "v", "nl_3"]
    assert "host" not in through["nodes"]["v"]
    assert through["nodes"]["v"]["interfaces"]["Gi0/1"] == {"link": "link2"}


def test_a_device_whose_ports_have_no_name_in_linux_is_not_asked(lab):
    ends = [{"node": "r", "ifindex": 2, "ifname": "Ethernet0/2"}, {"node": "s", "ifname": "eth1"}]
    router = {"device": "iol", "hostname": "clab-nl-r", "interfaces": []}
    server = {"device": "linux", "hostname": "clab-nl-s", "interfaces": []}
    first = [NETLAB["links"][0]["interfaces"][0], {"node": "r", "ifindex": 1, "ifname": "Ethernet0/1"}]
    links = [{"type": "p2p", "interfaces": first}, {"type": "p2p", "interfaces": ends}]
    nodes = {"h": NETLAB["nodes"]["h"], "r": router, "s": server}
    topology = lab(json.dumps({**NETLAB, "nodes": nodes, "links": links}), "lab.json", read_netlab)
    assert path_of(topology) == ["h", "s", "r"]
    assert topology["nodes"]["h"]["netns"] == "clab-nl-h"
    assert "netns" not in topology["nodes"]["r"]
    assert topology["nodes"]["r"]["interfaces"] == {"Ethernet0/1": {"link": "link1"}, "Ethernet0/2": {"link": "link2"}}


@pytest.mark.whole
def test_the_output_of_netlab_for_a_large_lab_is_read(lab):
    text = json.dumps({**NETLAB, "groups": {"all": ["a name of a node"] * 35_000}})
    assert len(text) > 600_000
    assert path_of(lab(text, "lab.json", read_netlab)) == ["r", "nl_3"]


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        (
            "topology.yml",
            "nodes: [a, b]\nlinks: [a-b]\n",
            "topology.yml:2: links: this is netlab's short form.*netlab create",
        ),
        ("topology.yml", "nodes: {a: , b: }\n", "nodes: this is netlab's short form"),
        ("netlab.snapshot.pickle", "x", "does not read pickled Python objects"),
        ("lab.json", json.dumps({**NETLAB, "nodes": {"h": {"device": "linux"}}}), "there is no node 'r'"),
    ],
)
def test_what_is_no_output_of_netlab_is_refused(lab, name, text, reason):
    with pytest.raises(TopologyError, match=reason):
        lab(text, name, read_netlab)
