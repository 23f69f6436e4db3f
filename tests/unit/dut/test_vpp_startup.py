"""How VPP is started and configured, by its options and the topology file."""

from __future__ import annotations

from ipaddress import IPv6Interface

import pytest
from pydantic import ValidationError

from lossratio.dut import parse_options
from lossratio.dut.linux.cores import CoreChoice
from lossratio.dut.vpp.features.feature import both_ports
from lossratio.dut.vpp.startup import Card, hugepage_megabytes, startup_configuration
from lossratio.errors import DutError
from lossratio.topology import VppStart

CORES = CoreChoice(main=1, workers=(2, 66), numa_node=0, shared=False, has_siblings=True)


def lines_of(section, text):
    return text.split(f"\n{section} {{\n")[1].split("\n}\n")[0].split("\n  ")


def test_free_lines_go_into_sections_that_are_there_or_into_new_ones():
    start = VppStart(startup={"statseg": "per-node-counters on", "ip6": ["hash-buckets 2000000", "heap-size 3G"]})
    text = startup_configuration("/run/one", CORES, (), start)
    assert lines_of("statseg", text)[1:] == ["size 64M", "page-size default", "per-node-counters on"]
    assert lines_of("ip6", text) == ["  hash-buckets 2000000", "heap-size 3G"]


def test_many_routes_are_added_in_pieces_that_vpp_answers_in_time():
    options = parse_options("vpp", {"forwarding": "ip6", "routes": "500000"})
    ports = both_ports(("west", "east"), ("02:00:00:00:00:01", "02:00:00:00:00:02"))
    added = [command.text.split() for command in options.forwarding_commands(*ports) if "count" in command.text]
    assert len(ports) == 2
    for port in ports:
        pieces = [(int(words[4]), IPv6Interface(words[5])) for words in added if words[-1] == port.interface]
        assert [count for count, _ in pieces] == [100_000, 100_000, 50_000]
        first = pieces[0][1].ip
        assert [int(interface.ip) - int(first) for _, interface in pieces] == [0, 100_000, 200_000]


@pytest.mark.parametrize(
    ("routes", "cards", "heap", "statistics"),
    [(200_000, (), None, "64M"), (200_002, (), "3G", "3G"), (0, (Card("0000:3b:00.0", "west", 2, 1024),), "3G", "3G")],
)
def test_cards_and_many_routes_have_large_heaps(routes, cards, heap, statistics):
    text = startup_configuration("/run/one", CORES, cards, entries=routes)
    assert ("main-heap-size 3G" in text) is (heap is not None)
    assert f"size {statistics}" in lines_of("statseg", text)
    assert ("page-size default\n  buffers-per-numa 16384" in text) is not bool(cards)


def test_hugepages_are_for_buffers_and_for_heaps_in_hugepages():
    assert hugepage_megabytes(VppStart(), CORES, 2) == 1024
    assert hugepage_megabytes(VppStart(main_heap_page_size="2M"), CORES, 2) == 1024 + 3 * 1024
    one_thread = CoreChoice(main=1, workers=(2,), numa_node=0, shared=False)
    assert hugepage_megabytes(VppStart(buffers_per_numa=2**20, statseg_page_size="1G"), one_thread, 1) == 2496 + 3072


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"startup": {"cpu": "workers 4"}}, "lossratio sets 'workers' in the section 'cpu' itself"),
        ({"startup": {"dpdk": "dev default { devargs x=1"}}, "each '{' needs a '}'"),
        ({"startup": {"unix": "a\nb"}}, "is not a line of a section"),
        ({"main_heap_size": "lots"}, "main_heap_size"),
    ],
)
def test_a_start_that_cannot_be_is_refused_in_the_topology_file(fields, message):
    with pytest.raises(ValidationError, match=message):
        VppStart(**fields)


def test_where_it_is_installed_may_come_from_the_environment(monkeypatch):
    monkeypatch.setenv("VPP_HOME", "/opt/vpp")
    assert parse_options("vpp", {}).home == "/opt/vpp"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"routes": "10"}, "routes: also set forwarding=ip4 or ip6"),
        ({"vxlan": "true", "forwarding": "ip4"}, "vxlan: also set forwarding=l2bd or l2xc"),
        ({"macs": "10"}, "macs: also set forwarding=l2bd"),
        ({"acl_stateful": "true"}, "also set acl"),
        ({"burst": "10"}, "burst is the size of a policer's bucket"),
        ({"police": "100 bps"}, "write a multiple of 1 kbit/s"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(DutError, match=message):
        parse_options("vpp", options)


def test_a_bucket_takes_so_long_to_fill_again():
    options = parse_options("vpp", {"police": "80 Mbps"})
    assert (options.police_kilobits, options.bucket, options.recovery_time) == (80_000, 200_000, 0.02)
