"""Features of VPP that other packages add, installed as the reader of the how-to would install them."""

from __future__ import annotations

import runpy
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from examples import examples_in
from local_testbeds import local_topology, needs_testbed

from lossratio.dut import parse_options
from lossratio.dut.vpp.features.feature import both_ports
from lossratio.errors import DutError

ROOT = Path(__file__).parents[3]
TEXT, _, _ = (ROOT / "docs" / "how-to" / "port-your-csit-suite.md").read_text().partition("## From MLRsearch")
STAND_IN = Path(__file__).with_name("vpp_stand_in")
GROUP = "lossratio.vpp_feature"
PORTS = both_ports(("host-a", "host-b"), ("02:00:00:00:00:01", "02:00:00:00:00:02"))


def example(language):
    (block,) = examples_in(TEXT, language)
    return block


@pytest.fixture
def _load_balancer(install_package):
    header, entry = example("toml").strip().splitlines()
    assert header == f'[project.entry-points."{GROUP}"]'
    install_package("our_vpp", {GROUP: [entry.replace('"', "")]}, our_vpp=example("python"))
    # The options of VPP are made once in a process, and a package is not installed anew in one but by tests.
    import_module("our_vpp")


def test_the_example_is_short():
    assert len(example("python").splitlines()) <= 25


@pytest.mark.usefixtures("_load_balancer")
def test_its_options_are_options_of_vpp_and_its_commands_follow_those_of_forwarding():
    options = parse_options("vpp", {"forwarding": "ip4", "acl": "2", "lb_servers": "2"})
    commands = [command.text for command in options.forwarding_commands(*PORTS)]
    assert commands[-3:] == [
        "lb vip 198.19.0.2/32 encap l3dsr dscp 7",
        "lb as 198.19.0.2/32 198.19.0.3",
        "lb as 198.19.0.2/32 198.19.0.4",
    ]
    assert commands[:-3] == [
        command.text for command in parse_options("vpp", {"forwarding": "ip4", "acl": "2"}).forwarding_commands(*PORTS)
    ]
    lines = [line for feature in options.features for line in feature.plugin_lines()]
    assert lines[-1] == "plugins plugin lb_plugin.so { enable }"


@pytest.mark.usefixtures("_load_balancer")
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"forwarding": "ip4", "lb_servers": "many"}, r"lb_servers: must be a whole number"),
        ({"forwarding": "ip4", "lb_servers": 0}, r"lb_servers: must be at least 1"),
        ({"forwarding": "l2bd", "lb_servers": 2}, r"lb_servers: also set forwarding=ip4"),
        ({"lb_server": 2}, r"it has no option 'lb_server'.*Did you mean 'lb_servers'\?"),
    ],
)
def test_a_wrong_option_is_refused_before_any_machine_is_touched(given, message):
    with pytest.raises(DutError, match=message):
        parse_options("vpp", given)


def test_what_is_installed_and_off_leaves_no_trace_in_results(install_package, request):
    plain = parse_options("vpp", {"acl": 2})
    request.getfixturevalue("_load_balancer")
    with_more = parse_options("vpp", {"acl": 2})
    assert "lb_servers" in type(with_more).model_fields
    assert with_more.model_dump_json() == plain.model_dump_json()
    on = parse_options("vpp", {"forwarding": "ip4", "lb_servers": 2})
    assert on.model_dump(mode="json").items() >= {"lb_servers": 2, "acl": None}.items()
    assert parse_options("vpp", on.model_dump()) == on


@pytest.mark.whole
@pytest.mark.usefixtures("_load_balancer")
def test_its_options_are_in_the_reference_and_in_the_stub_for_editors():
    pages = runpy.run_path(str(ROOT / "docs" / "options.py"))
    meaning = "Servers behind a load balancer (L3DSR) at the second host in the east; with `ip4`."
    assert f"| `lb_servers` | {meaning} |\n" in pages["table"]("vpp")
    assert "    lb_servers: int | str\n" in pages["types"]()


@pytest.mark.netns
@pytest.mark.usefixtures("_load_balancer")
def test_vpp_gets_its_commands_and_must_show_what_they_made(dut_lab):
    with dut_lab.setting_up("vpp", home=str(STAND_IN)) as set_up:
        dut = set_up(forwarding="ip4", lb_servers=3)
        described = dut.describe()
        given = [line for line in described["commands"] if line.startswith("vppctl lb ")]
        assert given == [
            "vppctl lb vip 198.19.0.2/32 encap l3dsr dscp 7",
            *(f"vppctl lb as 198.19.0.2/32 198.19.0.{host}" for host in (3, 4, 5)),
        ]
        assert described["verified"] == {"show lb vips": "3 servers"}
        assert any("lb_plugin.so { enable }" in line for line in described["startup"])
        dut.tear_down()
        with pytest.raises(DutError, match=r"'show lb vips' does not show 4 servers: ip4-l3dsr"):
            set_up(forwarding="ip4", lb_servers=4)


BROKEN = """
from lossratio.dut.vpp import Feature

class Required(Feature):
    tunnels: int

class Clash(Feature):
    acl: int = 0

class Nothing(Feature):
    pass

class Older(Feature):
    tunnels: int | None = None

    def commands(self, ports):
        return ()

class OlderBelow(Feature):
    tunnels: int | None = None

    def below(self, port):
        return port, ()

other = 1
"""


@pytest.mark.parametrize(
    ("target", "problem"),
    [
        ("no_such_module:Any", "cannot be loaded: ModuleNotFoundError"),
        ("broken_vpp:Required", "has no default for 'tunnels': add one that leaves the feature off"),
        ("broken_vpp:Clash", "has an option 'acl' that the feature AccessLists also has: rename one of them"),
        ("broken_vpp:Nothing", "has no option, so it could never be switched on"),
        ("broken_vpp:Older", "has a method 'commands': give its commands as a text in steps instead"),
        ("broken_vpp:OlderBelow", "has a method 'below': give its commands as a text in steps instead"),
        ("broken_vpp:other", "is not a subclass of lossratio.dut.vpp.Feature"),
    ],
)
def test_a_broken_feature_is_named_to_those_who_ask_for_it_and_to_nobody_else(install_package, target, problem):
    install_package("broken_vpp", {GROUP: [f"tunnels = {target}"]}, broken_vpp=BROKEN)
    assert parse_options("vpp", {"acl": 2}).acl == 2
    with pytest.raises(DutError) as raised:
        parse_options("vpp", {"tunnels": 2})
    assert "there is no option 'tunnels', and features are missing: " in str(raised.value)
    assert f"The feature of VPP 'tunnels' of broken_vpp 1.0 ({target}) {problem}" in str(raised.value)


def test_two_packages_with_one_option_are_told_apart(install_package):
    source = example("python")
    install_package("one_vpp", {GROUP: ["first = one_vpp:LoadBalancer"]}, one_vpp=source)
    install_package("two_vpp", {GROUP: ["second = two_vpp:LoadBalancer"]}, two_vpp=source)
    assert parse_options("vpp", {"forwarding": "ip4", "lb_servers": 2}).lb_servers == 2
    with pytest.raises(DutError, match=r"'second' of two_vpp .* has an option 'lb_servers' that the feature LoadBal"):
        parse_options("vpp", {"lb_clients": 2})


@pytest.mark.whole
@needs_testbed
def test_the_suite_of_the_page_measures(tmp_path, monkeypatch):
    monkeypatch.setenv("VPP_HOME", str(STAND_IN))
    suite = tmp_path / "eth_l2bdbasemaclrn_acl50_10kflows.robot"
    suite.write_text(example("robotframework"))
    topology = local_topology(tmp_path, "port")
    # The stand-in forwards in Python; at the rate of the file, each of ten trials would keep both processors busy.
    topology.write_text(topology.read_text().replace("max_rate: 200 kfps", "max_rate: 10 kfps"))
    catalogue = f"lossratio.keywords.Catalogue:{topology}:64B:1"
    robot = [sys.executable, "-m", "robot", "--prerunmodifier", catalogue, "--outputdir", str(tmp_path / "out")]
    dry = subprocess.run([*robot, "--dryrun", str(suite)], check=False, capture_output=True, text=True)
    assert dry.returncode == 0, dry.stdout
    assert "8 tests, 8 passed" in dry.stdout
    wanted = ["--include", "eth-l2bdbasemaclrn-iacl50sl-10kflowsANDmrr", "--variable", "GOALS:quick"]
    run = subprocess.run([*robot, *wanted, str(suite)], check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout
    assert "64B-1c-eth-l2bdbasemaclrn-iacl50sl-10kflows-mrr" in run.stdout
