"""Topology files are made from running labs of containerlab as they are."""

from __future__ import annotations

import json

import pytest
import yaml
from lab_examples import ADDRESSED, CIRCLE, ROUND, ROUTERS, deployed

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
    topology = lab(ROUND, tgs=["tester"])
    assert topology["nodes"]["TG"]["netns"] == "clab-round-tester"
    assert path_of(topology) == ["r1", "r2"]
    assert topology["nodes"]["r1"]["netns"] == "clab-round-r1"
    assert interfaces(topology, "r1") == ["e1-1", "e1-2"]
    assert topology["nodes"]["r2"]["interfaces"]["e1-2"]["other"] == {"ipv4": "192.0.2.1/30"}


def test_the_path_goes_through_the_duts_that_are_asked_for(lab):
    direct = deployed("round", ROUTERS, *CIRCLE, "tester:eth3 r1:e1-3")
    assert path_of(lab(direct, tgs=["tester"])) == ["r1"]
    assert path_of(lab(direct, tgs=["tester"], duts=["r2"])) == ["r1", "r2"]
    assert path_of(lab(ROUND, tgs=["r1"])) == ["tester", "r2"]


OFFICE = {"pc1": "linux", "r1": "nokia_srlinux", "r2": "linux", "pc2": "linux", "server3": "linux"}
CABLES = ("pc1:eth1 r1:e1-1", "r1:e1-2 r2:eth1", "server3:eth1 r1:e1-3", "r2:eth2 pc2:eth1", "server3:eth2 r2:eth3")
CLIENTS = deployed("office", OFFICE, *CABLES)


def test_the_generator_is_on_two_nodes_and_the_path_is_the_one_between_them(lab):
    nodes = lab(CLIENTS, tgs=["pc1", "pc2"], duts=["r2"])["nodes"]
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


def test_the_path_is_the_shortest_one_unless_it_goes_through_certain_nodes(lab):
    assert list(lab(CLIENTS, tgs=["pc2", "server3"])["nodes"]) == ["pc2", "server3", "r2"]
    assert list(lab(CLIENTS, tgs=["pc2", "server3"], duts=["r1"])["nodes"]) == ["pc2", "server3", "r2", "r1"]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"tgs": []}, r"on one node .*--tg NODE.* on two nodes, .*--tg A --tg B\)\. The nodes of the lab are pc1"),
        ({"tgs": ["pc1", "pc1"]}, "is on one node with two links"),
        ({"tgs": ["pc1", "pc2", "server3"]}, "is on one node with two links"),
        ({"tgs": ["pc1"]}, "no path from pc1 into the lab and back over another link with a device in between"),
        ({"tgs": ["pc1", "r1"]}, "no path from pc1 to r1 with a device in between. Name other nodes with --tg"),
        ({"tgs": ["pc1", "sever3"]}, r"no node 'sever3'\. Its nodes are pc1, .*\. Did you mean 'server3'\?"),
        ({"tgs": ["br", "pc1"]}, "cannot be on br, because no commands reach nodes of kind bridge"),
    ],
)
def test_a_generator_in_the_wrong_place_is_an_error_with_the_way_out(lab, options, reason):
    with_bridge = deployed("office", {**OFFICE, "br": "bridge"}, *CABLES)
    with pytest.raises(TopologyError, match=reason):
        lab(with_bridge, **options)


def test_it_is_said_what_the_path_crosses(text_of):
    text = text_of(CLIENTS, tgs=["pc1", "pc2"], duts=["r2"])
    assert "# The generator is on both ends of the path, pc1 and pc2.\n" in text
    assert "# The path goes through r1 (nokia_srlinux), r2 (linux).\n" in text


def test_next_hops_of_the_generator_are_those_of_the_lab(lab):
    tg = lab(ADDRESSED, tgs=["tester"])["nodes"]["TG"]["interfaces"]
    assert tg["eth1"]["address"] == ["192.0.2.6/30", "2001:db8::2/64"]
    assert tg["eth1"]["gateway"] == ["192.0.2.5", "2001:db8::1"]
    assert (tg["eth2"]["address"], tg["eth2"]["gateway"]) == (["192.0.2.2/30"], ["192.0.2.1"])
    # One end has no address, or the ends are in different networks: nothing is guessed.
    apart = ADDRESSED.replace("192.0.2.5/30", "192.0.2.9/30").replace("2001:db8::1/", "2001:db9::1/")
    for text in (ROUND, apart):
        assert "gateway" not in lab(text, tgs=["tester"])["nodes"]["TG"]["interfaces"]["eth1"]


def test_a_bridge_is_a_device_and_other_links_are_left_out_with_the_reason(text_of):
    cables = ("t:eth1 br:p1", "br:p2 t:eth2", "t:eth3 host:p3", "t:eth4 mgmt-net:p4", "t:eth7")
    text = text_of(deployed("b", {"t": "linux", "br": "bridge"}, *cables), tgs=["t"])
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
    assert lab(json.dumps({**data, "links": links}), tgs=["tester"]) == lab(ROUND, tgs=["tester"])
    links[0]["a"]["mac"] = "02:00:00:00:00:01"
    port = lab(json.dumps({**data, "links": links}), tgs=["tester"])["nodes"]["TG"]["interfaces"]["eth1"]
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
        text_of(text, name, tgs=["tester"])
