"""Options as people write them, checked and with what follows from them."""

from __future__ import annotations

import pytest

from lossratio.dut import parse_options
from lossratio.dut.linux.kernel_dut import cpu_mask, parse_cpus
from lossratio.errors import DutError
from lossratio.simulation import Policer, sut_from


def test_a_policer_has_a_known_truth_and_needs_time_to_recover():
    options = parse_options("linux_bridge", {"police": "50 kfps"})
    assert options.police == 50_000
    assert options.modelled_as() == {"model": "policer", "rate": 50_000.0, "burst": 1000}
    assert sut_from(options.modelled_as()) == Policer(rate=50_000.0, burst=1000)
    assert options.recovery_time == 1000 / 50_000


def test_the_policed_rate_is_the_one_that_the_kernel_can_keep_count_of():
    # 14285 ns a frame, not 14285.7.
    options = parse_options("linux_router", {"police": "70 kfps", "burst": "2000"})
    assert options.policed_rate == 1e9 / 14285
    assert options.modelled_as() == {"model": "policer", "rate": 1e9 / 14285, "burst": 2000}


def test_what_is_not_asked_for_stays_off():
    options = parse_options("linux_router", {})
    assert options.police is None
    assert options.modelled_as() is None
    assert options.recovery_time == 0.0
    assert (options.rps_cpus, options.rules, options.ip_version) == ((), 0, 4)


def test_values_may_be_text_as_robot_framework_passes_them():
    options = parse_options("linux_router", {"ip_version": "6", "rules": "300", "rps_cpus": "1"})
    assert (options.ip_version, options.rules, options.rps_cpus) == (6, 300, (1,))


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("linux_router", {"police": "50 kfps", "rps_cpus": "0,2-3", "ip_version": "6"}),
        ("linux_bridge", {"police": "50 kfps", "vxlan": "true", "rules": "7"}),
        ("testpmd", {"mode": "5tswap", "cores": "2"}),
        ("ovs", {"police": "10 kfps", "rules": "100"}),
        ("vpp", {"police": "80 Mbps", "forwarding": "ip6", "routes": "20000", "acl": "5"}),
        ("xdp", {"forwarding": "filter", "rules": "9", "faults": "drop, delay", "every": "100", "delay": "0.01"}),
        ("xdp", {"object": "mine.o", "section": "xdp/mine", "map": "way_out", "attach": "native"}),
        ("none", {}),
    ],
)
def test_options_survive_being_written_down(kind, options):
    parsed = parse_options(kind, options)
    assert parse_options(kind, parsed.model_dump()) == parsed


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        (
            "linux_bridge",
            {"polic": "1 kfps"},
            "it has no option 'polic'.* Its options are: reset, police, burst, rps_cpus",
        ),
        ("linux_bridge", {"police": "fast"}, "police: 'fast' is not a frame rate; write it like '10 kfps'"),
        ("linux_bridge", {"police": "0.5 fps"}, "police: '0.5 fps' is not a rate that the kernel can police"),
        ("linux_bridge", {"police": "2 Gfps"}, "police: '2 Gfps' is not a rate that the kernel can police"),
        ("linux_bridge", {"burst": 100}, "burst is the size of a policer's bucket; also set police"),
        ("linux_bridge", {"police": 1000, "burst": 0}, "burst: .*at least 1"),
        ("linux_bridge", {"rps_cpus": "2-1"}, "rps_cpus: '2-1' are not CPU numbers"),
        ("linux_bridge", {"rps_cpus": "all", "police": -1}, "police: .*; rps_cpus: "),
        ("linux_router", {"ip_version": 5}, "ip_version: "),
        ("black_box", {"west_mac": "ff:ff:ff:ff:ff:ff"}, "west_mac: no interface can have the address ff:ff"),
        ("black_box", {"east_mac": "02-00-00-00-00-01"}, "east_mac: .* a MAC address with colons"),
        ("xdp", {"object": "a.o", "pinned": "/sys/fs/bpf/a"}, "object and pinned name two different programs"),
        ("xdp", {"rules": 5}, "rules need forwarding=filter"),
        ("xdp", {"faults": "drop"}, "faults and every go together"),
        ("xdp", {"faults": "drop,drop", "every": 9}, "faults: a fault is named twice: name each fault once"),
        ("xdp", {"faults": "explode", "every": 9}, "faults.0: "),
        ("xdp", {"faults": "drop", "every": 3}, "every: "),
        (
            "xdp",
            {"object": "a.o", "faults": "drop", "every": 9},
            "faults: these options belong to lossratio's own programs",
        ),
        ("xdp", {"map": "way_out"}, "map belongs to an object or a pinned program"),
        ("linux_router", {"rules": -1}, "rules: "),
        ("linux_router", {"rules": 10, "police": 1000}, "police and rules cannot be combined"),
    ],
)
def test_options_that_cannot_be_are_refused_by_name(kind, options, message):
    with pytest.raises(DutError, match=f"DUT {kind} cannot be set up: .*{message}"):
        parse_options(kind, options)


@pytest.mark.parametrize(("text", "cpus"), [("1", (1,)), (3, (3,)), ("0,2-3", (0, 2, 3)), (" 5 , 4 ", (4, 5))])
def test_cpu_numbers_are_read_as_linux_writes_them(text, cpus):
    assert parse_cpus(text) == cpus


@pytest.mark.parametrize(
    ("cpus", "mask"),
    [((0,), "1"), ((1, 3), "a"), ((31,), "80000000"), ((32,), "1,00000000"), ((0, 33, 64), "1,00000002,00000001")],
)
def test_cpu_masks_are_in_groups_of_32_bits(cpus, mask):
    assert cpu_mask(cpus) == mask
