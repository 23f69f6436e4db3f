"""The configuration file that a TRex server is started with, and what a topology must say for it."""

import pytest
import yaml
from pydantic import ValidationError

from lossratio.errors import TopologyError
from lossratio.topology import Interface, Port, TrexGenerator
from lossratio.traffic import GeneratorNode, open_generator
from lossratio.traffic.generators.trex import ServerPort, largest_frame, server_arguments, server_configuration

CORES = {"master_core": 0, "latency_core": 1, "cores": [{"socket": 1, "threads": [2, 3]}]}
MACS = {"eth0": "02:00:00:00:00:01", "eth1": "02:00:00:00:00:02"}


def generator(**fields):
    return TrexGenerator(kind="trex", directory="/opt/trex", **fields)


def ports(count=2):
    return [
        ServerPort(Port("TG", f"port{number}", Interface(link=f"link{number}", **fields(number))), "02::", "03::")
        for number in range(count)
    ]


def fields(number):
    return {"name": f"eth{number}", "pci_address": f"0000:3b:00.{number}"}


def configuration(trex, cpus=8, count=2):
    (written,) = yaml.safe_load(server_configuration(trex, ports(count), cpus))
    return written


def test_cards_are_taken_by_their_pci_addresses():
    written = configuration(generator())
    assert written["version"] == 2
    assert written["interfaces"] == ["0000:3b:00.0", "0000:3b:00.1"]
    assert written["port_info"] == [{"src_mac": "02::", "dest_mac": "03::"}] * 2
    assert "low_end" not in written
    assert "platform" not in written


def test_in_software_mode_linux_interfaces_get_large_rings():
    trex = generator(software=True)
    first, second = configuration(trex)["interfaces"]
    assert first == "--vdev=net_af_packet0,iface=eth0,blocksz=65536,framesz=2048,framecnt=16384"
    assert second.startswith("--vdev=net_af_packet1,iface=eth1,")
    assert "--software" in server_arguments(trex, "/c.yaml")
    assert "--software" not in server_arguments(generator(), "/c.yaml")


def test_jumbo_frames_need_rings_with_room_for_them():
    ring = configuration(generator(software=True, jumbo=True))["interfaces"][0]
    sizes = dict(part.split("=") for part in ring.split(",")[2:])
    assert int(sizes["framesz"]) >= 9000 + 80
    assert int(sizes["blocksz"]) % 4096 == int(sizes["blocksz"]) % int(sizes["framesz"]) == 0
    assert largest_frame(generator(software=True)) < 2048 < largest_frame(generator(software=True, jumbo=True))


def test_hosts_with_few_cpus_are_low_end():
    assert configuration(generator(), cpus=2)["low_end"] is True
    assert "low_end" not in configuration(generator(), cpus=3)


def test_cores_and_numa_nodes_come_from_the_topology():
    written = configuration(generator(**CORES))
    assert written["c"] == 2
    assert written["platform"] == {
        "master_thread_id": 0,
        "latency_thread_id": 1,
        "dual_if": [{"socket": 1, "threads": [2, 3]}],
    }


def test_each_pair_of_ports_has_its_cores():
    pairs = [{"socket": 0, "threads": [2, 3]}, {"socket": 1, "threads": [4, 5]}]
    trex = generator(master_core=0, latency_core=1, cores=pairs)
    assert configuration(trex, count=4)["platform"]["dual_if"] == pairs
    with pytest.raises(TopologyError, match="those of 2 pairs of ports, and the traffic uses 1"):
        configuration(trex)


def test_too_few_cpus_are_an_error_before_anything_is_started():
    with pytest.raises(TopologyError, match=r"Not enough cores: .*ask for CPU 3, and the TG has 2 \(0 to 1\)"):
        configuration(generator(**CORES), cpus=2)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"cores": CORES["cores"]}, "go together"),
        ({"master_core": 0}, "go together"),
        ({**CORES, "latency_core": 2}, "each CPU can only be used once"),
        ({**CORES, "cores": [{"threads": [2]}, {"threads": [3, 4]}]}, "the same number of 'threads'"),
        ({"directory": "trex"}, "directory"),
        ({"speed": 1}, "speed"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused_in_the_topology(wrong, complaint):
    with pytest.raises(ValidationError, match=complaint):
        TrexGenerator(**{"kind": "trex", "directory": "/opt/trex", **wrong})


def test_servers_side_by_side_have_names_and_ports_of_their_own():
    written = configuration(generator(prefix="left", rpc_port=4601, publisher_port=4600))
    assert (written["prefix"], written["zmq_rpc_port"], written["zmq_pub_port"]) == ("left", 4601, 4600)


def test_extra_arguments_are_given_to_the_program():
    assert server_arguments(generator(arguments=["--mbuf-factor", "2"]), "/c.yaml")[-2:] == ("--mbuf-factor", "2")


class Nobody:
    name = "TG"


def opened(trex, **interface):
    path = [Port("TG", f"port{number}", Interface(link=str(number), **interface)) for number in range(2)]
    return open_generator(trex, GeneratorNode(Nobody(), MACS, 8), path)


def test_a_card_needs_its_addresses_in_the_topology():
    with pytest.raises(TopologyError, match="TRex needs the port's 'mac_address'"):
        opened(generator(), pci_address="0000:3b:00.0")
    with pytest.raises(TopologyError, match=r"TG\.port0: TRex .* needs the port's 'pci_address'"):
        opened(generator(), name="eth0", mac_address="02:00:00:00:00:01")


def test_an_interface_that_the_node_does_not_have_is_named():
    with pytest.raises(TopologyError, match="node TG has no interface 'eth7'; it has eth0, eth1"):
        opened(generator(software=True), name="eth7")


def test_without_a_directory_the_environment_says_where_trex_is(monkeypatch):
    monkeypatch.delenv("TREX_HOME", raising=False)
    with pytest.raises(TopologyError, match=r"nobody says where TRex is there.*TREX_HOME"):
        opened(TrexGenerator(kind="trex", software=True), name="eth0")
    monkeypatch.setenv("TREX_HOME", "/opt/trex")
    assert opened(TrexGenerator(kind="trex", software=True), name="eth0").settings.directory is None
