"""FD.io CSIT's tags on the tests that CSIT has, too: facts about its suites of August 2026, by name of the test."""

from __future__ import annotations

import re

import pytest
from robot.api import TestSuite as Suite
from robot_runs import ROOT

from lossratio.keywords import Catalogue

pytestmark = pytest.mark.whole

ROUTED = {"eth", "ip4fwd"}
CONNECTIONS = {*ROUTED, "ip4base", "scale", "hosts_65536"}
AES_256_GCM = {"aes", "aes_256_gcm"}
SOFTWARE = {"ipsec", "ipsecsw", "ip4fwd"}

FACTS = {
    "eth-l2patch": {"eth", "l2patch", "base"},
    "eth-l2bdbasemaclrn": {"eth", "l2bdmaclrn", "l2bdbase", "base"},
    "eth-l2xcbase": {"eth", "l2xcfwd", "l2xcbase", "base"},
    # The container is not one of Docker here, as docs/reference/csit-coverage.md says.
    "eth-l2xcbase-eth-2memif-1dcr": {"eth", "l2xcfwd", "base", "memif", "docker"},
    "eth-l2bdscale1mmaclrn": {"eth", "l2bdmaclrn", "scale", "l2bdscale", "fib_1m"},
    "dot1q-l2bdbasemaclrn": {"dot1q", "l2bdmaclrn", "base"},
    "eth-l2xcbase-1lbvpplacp": {
        *("eth", "base", "l2xcbase", "lbond", "lbond_vpp", "lbond_1l", "lbond_mode_lacp", "lbond_lb_l34")
    },
    "ethip4-ip4base": {*ROUTED, "base", "ip4base"},
    "ethip6-ip6base": {"eth", "ip6fwd", "base", "ip6base"},
    "ethip4-ip4scale20k-rnd": {*ROUTED, "scale", "fib_20k", "ip4_rnd"},
    "ethip6-ip6scale2m-rnd": {"eth", "ip6fwd", "scale", "fib_2m", "ip6_rnd"},
    "ethip4-ip4base-iacldstbase": {*ROUTED, "feature", "iacldst"},
    "ethip4-ip4base-adlalwlistbase": {*ROUTED, "feature", "adlalwlist"},
    "ethip4udp-ip4base-oacl50sf-10kflows": {*ROUTED, *("feature", "acl", "acl50", "acl_stateful", "oacl", "10k_flows")},
    "ethip4--ethip4udpgeneve-1tun-ip4base": {
        *ROUTED,
        *("udp", "ip4base", "base", "encap", "geneve_l3mode", "geneve4_1tun"),
    },
    "ethip4--ethip4udpgeneve-16tun-ip4base": {
        *ROUTED,
        *("udp", "ip4base", "scale", "encap", "geneve_l3mode", "geneve4_16tun"),
    },
    "ethip4gtpusw-ip4base": {"ip4fwd", "ip4base", "encap", "gtpu"},
    "ethip4udp-nat44det-h65536-p63-s4128758": {
        *ROUTED,
        *("feature", "nat44", "nat44_deterministic", "udp", "udp_bidir", "scale", "hosts_65536"),
    },
    "ethip4udp-nat44ed-h65536-p63-s4128768-udir": {
        *ROUTED,
        *("feature", "nat44", "nat44_endpoint_dependent", "udp", "udp_udir", "scale", "hosts_65536"),
    },
    "ethip4tcp-ip4base-h65536-p63-s4128768-cps": {*CONNECTIONS, "tcp", "tcp_cps"},
    "ethip4udp-sfdp-l4ip4-h65536-p63-s4128768-tput": {*CONNECTIONS, "udp", "udp_tput"},
    "ethip4ipsec4tnlsw-ip4base-int-aes256gcm": {*SOFTWARE, *AES_256_GCM, "ipsecint", "scale", "tnl_4"},
    "ethip4ipsec40tnlsw-ip4base-int-aes128cbc-hmac512sha": {
        *SOFTWARE,
        *("aes", "aes_128_cbc", "hmac", "hmac_sha_512", "ipsecint", "scale", "tnl_40"),
    },
    "ethip4ipsec1tnlswasync-scheduler-ip4base-int-aes256gcm": {
        *SOFTWARE,
        *AES_256_GCM,
        *("ipsecint", "base", "tnl_1", "async", "scheduler"),
    },
    "ethip4ipsec10000tnlsw-ip4base-policy-flow-cache-aes256gcm": {
        *SOFTWARE,
        *AES_256_GCM,
        *("ipsectun", "scale", "tnl_10000", "spd_flow_cache"),
    },
    "ethip4ipsec1000tnlsw-ip4base-int-aes256gcm-reassembly": {
        *SOFTWARE,
        *AES_256_GCM,
        *("ipsecint", "scale", "tnl_1000", "reassembly"),
    },
    "ethip4ipsec10000tnlsw-udp-ar-ip4base-int-aes256nullgmac": {
        *SOFTWARE,
        *("aes", "aes_256_null_gmac", "ipsecint", "scale", "tnl_10000", "udp_encap", "anti_replay"),
    },
    "eth-l2bdbasemaclrn-eth-2vhostvr1024-1vm": {
        *("eth", "l2bdmaclrn", "base", "vhost", "1vm", "vhost_1024", "nf_testpmd")
    },
    "eth-l2xcbase-eth-2vhostvr1024-1vm-vppl2xc": {
        *("eth", "l2xcfwd", "base", "vhost", "1vm", "vhost_1024", "nf_vppl2xc")
    },
    "ethip4udpwireguard8tnlsw-ip4base": {"wireguard", "ip4fwd", "tnl_8"},
    "ethip6ip6-ip6base-srv6enc1sid": {"eth", "ip6fwd", "feature", "srv6", "srv6_1sid"},
}
"""All tags of a test in CSIT but those of testbed, NIC, driver, frame size, cores and kind of test."""

TWINS = {
    "eth-l2bdscale1mmaclrn": {"eth", "l2bdmaclrn", "scale", "l2bdscale", "fib_1m"},
    "ethip4-ip4base": {"eth", "base", "ip4base"},
    "ethip4-ip4scale20k": {"eth", "scale", "ip4scale20k"},
    "ethip6-ip6base": {"eth", "base", "ip6base"},
    "ethip6-ip6scale20k": {"eth", "scale", "ip6scale20k"},
    "ethip4tcp-ip4base-h1024-p63-s64512-tput": {"eth", "ip4base", "scale", "hosts_1024", "tcp", "tcp_tput"},
    "ethip4udp-ip4base-h1024-p63-s64512-cps": {"eth", "ip4base", "scale", "hosts_1024", "udp", "udp_cps"},
}
"""All tags of a test of the TG alone in CSIT but those of testbed, NIC, driver, frame size, cores and kind of test."""

ALWAYS = {"perftest", "vpp", "ndrpdr"}
MORE_HERE = {"sfdp"}
"""Tags that CSIT's tests have not: its expressions cannot ask for them."""


def expanded(*arguments):
    suites = Suite.from_file_system(ROOT / "tests" / "performance")
    suites.visit(Catalogue(*arguments))
    found = {test.name: test for test in suites.all_tests}
    assert len(found) > 9000
    return found


@pytest.fixture(scope="module")
def tests():
    return expanded()


@pytest.fixture(scope="module")
def twins():
    return expanded(str(ROOT / "topologies" / "local-cable.yaml"))


def tags_of(tests, name):
    (size,) = {one.split("-")[0] for one in tests if re.fullmatch(rf"(64|78|100)B-4c-{re.escape(name)}-ndrpdr", one)}
    tags = set(map(str, tests[f"{size}-4c-{name}-ndrpdr"].tags))
    assert {size, "4c", name, *ALWAYS} <= tags
    return tags - {size, "4c", name, *ALWAYS}


@pytest.mark.parametrize("name", FACTS)
def test_a_test_has_csits_tags_and_no_others(name, tests):
    assert {tag.lower() for tag in tags_of(tests, name)} - MORE_HERE == FACTS[name]


@pytest.mark.parametrize("name", TWINS)
def test_a_twin_has_csits_tags(name, twins):
    (test,) = [one for one in twins if re.fullmatch(rf"(64|78|100)B-1c-{re.escape(name)}-tg-ndrpdr", one)]
    tags = set(map(str, twins[test].tags))
    assert {*TWINS[name], "trex", f"{name}-tg"} <= tags
    assert not {"vpp", name} & tags


def test_exactly_the_suites_that_start_a_virtual_machine_have_its_tag(tests):
    with_tag = {test.parent.source for test in tests.values() if "1vm" in map(str, test.tags)}
    with_machine = {
        test.parent.source
        for test in tests.values()
        if test.parent.has_setup and any(str(one).startswith("vm=") for one in test.parent.setup.args)
    }
    assert with_tag == with_machine
    assert {source.name for source in with_tag} == {"vpp_vhost.robot"}
