"""The configuration file that a TRex server is started with, and what a topology must say for it."""

import pytest
import yaml
from pydantic import ValidationError

from lossratio.errors import TopologyError
from lossratio.nodes import Card, Core, Hardware
from lossratio.topology import Interface, Port, TrexGenerator
from lossratio.traffic import GeneratorNode, open_generator
from lossratio.traffic.generators.trex import server_arguments, server_configuration
from lossratio.traffic.generators.trex_choice import choose_server

CORES = {"master_core": 0, "latency_core": 1, "cores": [{"socket": 1, "threads": [2, 3]}]}
MACS = {"eth0": "02:00:00:00:00:01", "eth1": "02:00:00:00:00:02"}


def generator(**fields):
    return TrexGenerator(kind="trex", directory="/opt/trex", **fields)


def ports(count=2):
    return [Port("TG", f"port{number}", Interface(link=f"link{number}", **fields(number))) for number in range(count)]


def fields(number):
    return {"name": f"eth{number}", "pci_address": f"0000:3b:00.{number}"}


def chosen(trex, cpus=8, count=2, hardware=None):
    return choose_server(trex, ports(count), cpus, hardware)


def configuration(trex, cpus=8, count=2, hardware=None):
    macs = ["02::", "03::"] * (count // 2)
    (written,) = yaml.safe_load(server_configuration(trex, ports(count), macs, chosen(trex, cpus, count, hardware)))
    return written


def arguments(trex, hardware=None):
    return server_arguments(trex, "/c.yaml", chosen(trex, hardware=hardware), "--stl")


def machine(sockets=2, cores=28, threads=2, hugepages=32_768, numa_nodes=(0, 0, 0, 0)):
    """A server with its cards on these NUMA nodes, its CPUs numbered as Linux does."""
    all_cores = sockets * cores
    return Hardware(
        cores=tuple(
            Core(tuple(number + all_cores * thread for thread in range(threads)), number // cores)
            for number in range(all_cores)
        ),
        hugepages=dict.fromkeys(range(sockets), hugepages),
        cards={
            f"0000:3b:00.{number}": Card(
                f"0000:3b:00.{number}", node, "ice", "0x8086:0x1592", "16.0 GT/s PCIe x16", "31", 100e9, True, "4.40"
            )
            for number, node in enumerate(numa_nodes)
        },
    )


def test_one_pair_of_cards_gets_the_cores_of_csit_on_its_numa_node():
    written = configuration(generator(), hardware=machine(numa_nodes=(1, 1)))
    assert written["platform"] == {
        "master_thread_id": 28,
        "latency_thread_id": 29,
        "dual_if": [{"socket": 1, "threads": list(range(30, 46))}],
    }
    assert (written["c"], written["limit_memory"]) == (16, 8192)
    assert arguments(generator(), machine())[-2:] == ("--mbuf-factor", "32")


def test_several_pairs_share_no_core():
    written = configuration(generator(), count=4, hardware=machine())
    assert written["platform"]["dual_if"] == [
        {"socket": 0, "threads": list(range(2, 10))},
        {"socket": 0, "threads": list(range(10, 18))},
    ]
    assert (written["c"], written["limit_memory"]) == (8, 16_384)


def test_pairs_on_two_numa_nodes_have_as_many_cores_each():
    """TRex refuses pairs with different numbers of threads."""
    written = configuration(generator(), count=4, hardware=machine(cores=9, threads=1, numa_nodes=(0, 0, 1, 1)))
    assert written["platform"]["dual_if"] == [
        {"socket": 0, "threads": [2, 3, 4, 5, 6, 7, 8]},
        {"socket": 1, "threads": [9, 10, 11, 12, 13, 14, 15]},
    ]


def test_siblings_send_by_choice_only():
    few = machine(sockets=1, cores=5)
    assert configuration(generator(), hardware=few)["platform"]["dual_if"][0]["threads"] == [2, 3, 4]
    both = configuration(generator(hyper_threads=True, cores_per_pair=2), hardware=few)
    assert both["platform"]["dual_if"][0]["threads"] == [2, 3, 7, 8]
    assert both["c"] == 4


def test_a_virtual_machine_of_two_cores_uses_their_threads():
    written = configuration(generator(), hardware=machine(sockets=1, cores=2))
    assert written["platform"] == {
        "master_thread_id": 0,
        "latency_thread_id": 2,
        "dual_if": [{"socket": 0, "threads": [1, 3]}],
    }


def test_with_too_few_cpus_near_the_cards_trex_chooses_and_the_reason_is_given():
    tiny = machine(sockets=2, cores=2, threads=1)
    assert "platform" not in configuration(generator(), hardware=tiny)
    assert "too few CPUs" in chosen(generator(), hardware=tiny).because[0]


def test_less_memory_makes_fewer_buffers():
    choice = chosen(generator(), hardware=machine(hugepages=2048))
    assert (choice.limit_memory, choice.mbuf_factor) == (2048, 8.0)
    assert "CSIT uses 8192 MB" in " ".join(choice.because)
    assert chosen(generator(hugepages=8192), hardware=machine(hugepages=0)).limit_memory == 8192
    assert chosen(generator(), hardware=machine(hugepages=0)).limit_memory is None


def test_the_server_has_memory_for_as_many_connections_as_the_topology_says():
    assert "memory" not in configuration(generator())
    assert configuration(generator(most_connections=5_000_000))["memory"] == {"dp_flows": 5_000_000}


def test_what_the_topology_says_is_not_chosen():
    trex = generator(limit_memory=4096, mbuf_factor=3, rx_desc=2048, tx_desc=1024, port_mtu=9000)
    written = configuration(trex, hardware=machine())
    names = ("limit_memory", "rx_desc", "tx_desc", "port_mtu")
    assert [written[name] for name in names] == [4096, 2048, 1024, 9000]
    assert arguments(trex, machine())[-2:] == ("--mbuf-factor", "3")
    own = generator(arguments=["--mbuf-factor", "2"])
    assert arguments(own, machine()).count("--mbuf-factor") == 1


def test_a_pair_across_numa_nodes_is_served_from_the_first_one_and_said_so():
    choice = chosen(generator(), hardware=machine(numa_nodes=(1, 0)))
    assert choice.pairs[0][0] == 1
    assert "TG.port0 is on NUMA node 1, and TG.port1 on 0" in choice.because[0]


def test_low_end_is_a_setting():
    assert configuration(generator(low_end=True), hardware=machine()).keys() >= {"low_end"}
    assert "low_end" not in configuration(generator(low_end=False), cpus=2)


def test_cores_are_pinned_to_ports_where_there_are_several():
    assert chosen(generator(), hardware=machine()).pin_cores
    assert not chosen(generator(pin_cores=False), hardware=machine()).pin_cores
    assert not chosen(generator(cores_per_pair=1), hardware=machine()).pin_cores
    assert not chosen(generator(software=True)).pin_cores
    with pytest.raises(TopologyError, match="needs two or more cores"):
        chosen(generator(pin_cores=True), hardware=machine(cores=3))


def test_cards_are_taken_by_their_pci_addresses():
    written = configuration(generator())
    assert written["version"] == 2
    assert written["interfaces"] == ["0000:3b:00.0", "0000:3b:00.1"]
    assert written["port_info"] == [{"src_mac": "02::", "dest_mac": "03::"}, {"src_mac": "03::", "dest_mac": "02::"}]
    assert "low_end" not in written
    assert "platform" not in written


def test_in_software_mode_linux_interfaces_get_large_rings():
    trex = generator(software=True)
    first, second = configuration(trex)["interfaces"]
    assert first == "--vdev=net_af_packet0,iface=eth0,blocksz=65536,framesz=2048,framecnt=16384"
    assert second.startswith("--vdev=net_af_packet1,iface=eth1,")
    assert "--software" in arguments(trex)
    assert "--software" not in arguments(generator())


def test_hosts_with_few_cpus_are_low_end():
    assert configuration(generator(), cpus=2)["low_end"] is True
    assert "low_end" not in configuration(generator(), cpus=3)


def test_hugepages_are_free_when_the_server_has_ended():
    assert configuration(generator())["ext_dpdk_opt"] == ["--huge-unlink"]
    # Packet sockets need none, and DPDK refuses the option.
    assert "ext_dpdk_opt" not in configuration(generator(software=True))


def test_limited_memory_is_dpdks_limit_where_all_threads_share_a_cpu():
    assert configuration(generator(limit_memory=512), cpus=2)["ext_dpdk_opt"] == ["--huge-unlink", "-m", "512"]
    assert "-m" not in configuration(generator(limit_memory=512), cpus=8)["ext_dpdk_opt"]


def test_a_wish_for_cores_that_few_cpus_cannot_meet_is_in_the_reasons():
    wishes = {"cores_per_pair": 9, "hyper_threads": True}
    choice = chosen(generator(**wishes), cpus=2, hardware=machine())
    (reason,) = choice.because
    assert reason == (
        "2 CPUs: all threads of TRex share one; 'cores_per_pair: 9' and 'hyper_threads: true': without effect"
    )
    in_software = chosen(generator(software=True, arguments=["-c", "9"]), cpus=2)
    assert in_software.because[0].endswith("-c in 'arguments': without effect")
    assert chosen(generator(), cpus=2).because == ("2 CPUs: all threads of TRex share one",)


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
    with pytest.raises(TopologyError, match="are for 2 pairs of ports, but the traffic uses 1"):
        configuration(trex)


def test_too_few_cpus_are_an_error_before_anything_is_started():
    with pytest.raises(TopologyError, match=r"name CPU 3, but the TG has only CPUs 0 to 1\."):
        configuration(generator(**CORES), cpus=2)


@pytest.mark.parametrize(
    ("wrong", "complaint"),
    [
        ({"cores": CORES["cores"]}, "go together"),
        ({"master_core": 0}, "go together"),
        ({**CORES, "latency_core": 2}, "each CPU can only be used once"),
        ({**CORES, "cores": [{"threads": [2]}, {"threads": [3, 4]}]}, "the same number of 'threads'"),
        ({**CORES, "cores_per_pair": 4}, "set one or the other"),
        ({**CORES, "low_end": True}, "uses one CPU"),
        ({"low_end": True, "cores_per_pair": 9}, "uses one CPU and ignores 'cores_per_pair: 9'"),
        ({"low_end": True, "hyper_threads": True}, "uses one CPU and ignores 'hyper_threads: true'"),
        ({"low_end": True, "software": True, "arguments": ["-c", "9"]}, "uses one CPU and ignores -c in 'arguments'"),
        ({"arguments": ["-c", "9"]}, "set the number of cores with 'cores_per_pair'"),
        ({"software": True, "cores_per_pair": 2}, "in software mode TRex uses one core that it chooses itself"),
        ({"software": True, "hugepages": 1024}, "needs no 'hugepages'"),
        ({"mbuf_factor": 2, "arguments": ["--mbuf-factor", "2"]}, "set it once"),
        ({"cores_per_pair": 1, "pin_cores": True}, "'pin_cores' needs two or more cores"),
        ({"low_end": True, "pin_cores": True}, "'pin_cores' needs two or more cores"),
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
    assert arguments(generator(arguments=["-v", "7"]))[-2:] == ("-v", "7")


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
    with pytest.raises(TopologyError, match=r"the directory of TRex is not known.*TREX_HOME"):
        opened(TrexGenerator(kind="trex", software=True), name="eth0")
    monkeypatch.setenv("TREX_HOME", "/opt/trex")
    assert opened(TrexGenerator(kind="trex", software=True), name="eth0").settings.directory is None


def test_a_relative_path_in_the_environment_is_refused_as_it_depends_on_the_node(monkeypatch):
    monkeypatch.setenv("TREX_HOME", "trex/v3.08")
    with pytest.raises(TopologyError, match=r"Node TG: TREX_HOME is 'trex/v3.08', which is not an absolute path"):
        opened(TrexGenerator(kind="trex", software=True), name="eth0")
