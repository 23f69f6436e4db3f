"""Topology files are made from running labs of containerlab as they are."""

from __future__ import annotations

import json

import pytest
import yaml
from lab_examples import ADDRESSED, CIRCLE, OF_THIRD_LINK, ROUND, ROUTERS, deployed

from lossratio.errors import TopologyError
from lossratio.topology import import_lab, read_containerlab


@pytest.fixture
def text_of(tmp_path):
    def read(text, name="topology-data.json", **options):
        path = tmp_path / name
        path.write_text(text)
        return import_lab(read_containerlab(path), path, **options)

    return read


@pytest.fixture
def lab(text_of):
    def read(text, **options):
        return yaml.safe_load(text_of(text, **options))

    return read


def path_of(topology):
    return [name for name in topology["nodes"] if name != "TG"]


def interfaces(topology, node):
    return list(topology["nodes"][node]["interfaces"])


def test_the_generator_is_on_a_host_with_two_links_and_the_path_goes_round(lab):
    topology = lab(ROUND)
    assert topology["nodes"]["TG"]["netns"] == "clab-round-tester"
    assert path_of(topology) == ["r1", "r2"]
    assert topology["nodes"]["r1"]["netns"] == "clab-round-r1"
    assert interfaces(topology, "r1") == ["e1-1", "e1-2"]
    assert topology["nodes"]["r2"]["interfaces"]["e1-2"]["other"] == {"ipv4": "192.0.2.1/30"}


def test_the_path_goes_through_the_duts_that_are_asked_for(lab):
    direct = deployed("round", ROUTERS, *CIRCLE, "tester:eth3 r1:e1-3")
    assert path_of(lab(direct)) == ["r1"]
    assert path_of(lab(direct, duts=["r2"])) == ["r1", "r2"]
    assert path_of(lab(ROUND, tg="r1")) == ["tester", "r2"]


OFFICE = {"pc1": "linux", "r1": "nokia_srlinux", "r2": "linux", "pc2": "linux", "server3": "linux"}
CABLES = ("pc1:eth1 r1:e1-1", "r1:e1-2 r2:eth1", "server3:eth1 r1:e1-3", "r2:eth2 pc2:eth1", "server3:eth2 r2:eth3")
CLIENTS = deployed("office", OFFICE, *CABLES)


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


def test_other_ends_can_be_chosen_and_no_path_goes_through_an_end_system(lab):
    # Over the server it would be as short.
    closed = deployed("office", OFFICE, *(cable.replace("r2:eth1", "pc1:eth2") for cable in CABLES))
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


def test_it_is_said_what_each_path_crosses(text_of):
    text = text_of(CLIENTS)
    assert "# The generator is on both ends of the path, pc1 and pc2.\n" in text
    assert "# The path goes through r1 (nokia_srlinux), r2 (linux).\n" in text
    assert "# From pc1 to server3 it would go through r1 (nokia_srlinux): --end pc1 --end server3.\n" in text
    assert "# From pc2 to server3 it would go through r2 (linux): --end pc2 --end server3.\n" in text


@pytest.mark.parametrize("name", ["r7", "rt2", "sw1", "r-as100", "core-r1", "gw"])
def test_a_node_with_the_name_of_a_router_has_no_end_of_the_traffic(tmp_path, name):
    path = tmp_path / "topology-data.json"
    path.write_text(CLIENTS.replace("pc1", name))
    assert not read_containerlab(path).nodes[name].may_be_host
    assert read_containerlab(path).nodes["pc2"].may_be_host


def test_next_hops_of_the_generator_are_those_of_the_lab(lab):
    tg = lab(ADDRESSED)["nodes"]["TG"]["interfaces"]
    assert tg["eth1"]["address"] == ["192.0.2.6/30", "2001:db8::2/64"]
    assert tg["eth1"]["gateway"] == ["192.0.2.5", "2001:db8::1"]
    assert (tg["eth2"]["address"], tg["eth2"]["gateway"]) == (["192.0.2.2/30"], ["192.0.2.1"])
    # One end has no address, or the ends are in different networks: nothing is guessed.
    apart = ADDRESSED.replace("192.0.2.5/30", "192.0.2.9/30").replace("2001:db8::1/", "2001:db9::1/")
    for text in (ROUND, apart):
        assert "gateway" not in lab(text)["nodes"]["TG"]["interfaces"]["eth1"]


def test_a_bridge_is_a_device_and_other_links_are_left_out_with_the_reason(text_of):
    cables = ("t:eth1 br:p1", "br:p2 t:eth2", "t:eth3 host:p3", "t:eth4 mgmt-net:p4", "t:eth7")
    text = text_of(deployed("b", {"t": "linux", "br": "bridge"}, *cables))
    assert yaml.safe_load(text)["nodes"]["br"] == {
        "type": "DUT",
        "model": "bridge",
        "interfaces": {"p1": {"name": "p1", "link": "link1"}, "p2": {"name": "p2", "link": "link2"}},
    }
    assert text.count("# Left out: link ") == 3
    assert "# Left out: link t:eth3 -- host:p3: it leaves the lab.\n" in text
    assert "# Left out: link t:eth7: it has one end only.\n" in text


def test_the_file_of_an_older_containerlab_is_read(lab):
    data = json.loads(ROUND)
    links = [link["endpoints"] for link in data["links"]]
    assert lab(json.dumps({**data, "links": links})) == lab(ROUND)
    links[0]["a"]["mac"] = "02:00:00:00:00:01"
    port = lab(json.dumps({**data, "links": links}))["nodes"]["TG"]["interfaces"]["eth1"]
    assert port["mac_address"] == "02:00:00:00:00:01"


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.clab.yml", "name: a\n", r"a\.clab\.yml: only a running lab can be imported\. Deploy the lab"),
        ("data.json", '{"nodes": {}}', r"data\.json:1: name: this field is required"),
        (
            "data.json",
            ROUND.replace('"interface": "e1-1", ', "", 1),
            r"data\.json:1: links\.0\.z\.interface: this field is required",
        ),
        ("data.json", ROUND.replace('"e1-1"', '""', 1), r"links\.0\.z\.interface: must not be empty"),
        ("data.json", "[]", r"this file must hold fields"),
    ],
)
def test_a_file_of_another_kind_is_refused_with_the_reason(text_of, name, text, reason):
    with pytest.raises(TopologyError, match=reason):
        text_of(text, name)


def test_a_lab_without_a_place_for_a_generator_is_refused(lab):
    machines = {"tester": "freebsd", "r1": "juniper_vmx", "r2": "juniper_vmx"}
    text = deployed("round", machines, *CIRCLE, **OF_THIRD_LINK)
    with pytest.raises(TopologyError, match=r"no place for a generator.*Add two nodes of kind linux"):
        lab(text)
    with pytest.raises(TopologyError, match="has no node 'r7'; it has tester, r1, r2"):
        lab(text, tg="r7")
