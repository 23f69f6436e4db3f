"""Our generator `otg` against our server: searches with a TG that has no host, and a tester that dies."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from examples import examples_in
from otg_lab import AFPACKET, OtgLab
from traffic_lab import drop, two_nodes
from waiting import wait_until

from lossratio.errors import TopologyError
from lossratio.measurements.throughput.limits import STALL_LIMIT
from lossratio.topology import load_topology
from lossratio.traffic import load_generator

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "open-traffic-generator.md"
POLICED = 2000
TOPOLOGY = f"""
format: lossratio-topology/1
name: otg-lab
reservation: {{directory: DIRECTORY}}
nodes:
  TG:
    type: TG
    generator:
      kind: otg
      api: http://127.0.0.1:8080
      ports: {{port0: west, port1: east}}
      python: {sys.executable}
      metrics_delay: 1.5 s
    interfaces:
      port0: {{link: west, mac_address: 02:00:00:00:00:01}}
      port1: {{link: east, mac_address: 02:00:00:00:00:02}}
  DUT1:
    type: DUT
    interfaces:
      port0: {{link: west}}
      port1: {{link: east}}
"""
SEARCH = """
import json, sys
from lossratio import open_testbed
try:
    with open_testbed("otg.yaml", dut="black_box") as testbed:
        print(json.dumps(EXPRESSION))
except Exception as error:
    print(json.dumps({"error": f"{type(error).__name__}: {error}"}))
"""

MRR = "mrr('64B', max_load='1 kfps', trials=2)"

pytestmark = pytest.mark.netns


@pytest.fixture
def topology(tmp_path):
    """The file of a topology whose TG is the machine (here: the namespace) that the controller runs on."""
    file = tmp_path / "otg.yaml"
    file.write_text(TOPOLOGY.replace("DIRECTORY", str(tmp_path / "reservations")))
    return file


@pytest.fixture
def otg(netns_lab):
    return OtgLab(two_nodes(netns_lab, bridge="br0"), *AFPACKET)


def controller(otg, topology, expression):
    """A process in the TG's namespace that measures."""
    script = SEARCH.replace("EXPRESSION", expression)
    command = ("env", "-u", "SSH_CONNECTION", "-C", str(topology.parent), sys.executable, "-c", script)
    return otg.lab.popen("tg", *command, stdout=subprocess.PIPE, text=True)


def test_the_generator_is_found_by_its_entry_point_and_needs_no_host(topology):
    assert load_generator("otg").settings_type.has_tester
    assert load_topology(topology).nodes["TG"].place == "this machine"


def test_a_search_encloses_the_policer(otg, topology):
    drop(otg.lab, "dut0", f"limit rate over {POLICED}/second burst 10 packets")
    search = "ndr_pdr('64B', goals='quick', min_load='1500 fps', max_load='3 kfps').goals[0].result.model_dump()"
    ndr = json.loads(controller(otg, topology, f"testbed.{search}").communicate(timeout=500)[0])
    # A machine that stalls sends bursts, and the result does not know that the policer has room for them.
    assert ndr["reason"] in {None, STALL_LIMIT}, ndr
    lower, upper = (ndr[f"relevant_{name}_bound"]["per_interface_fps"] for name in ("lower", "upper"))
    assert lower.is_integer()
    assert upper.is_integer()
    # In a trial of half a second, it passes its burst besides.
    assert 0.98 * POLICED < lower < upper < 1.03 * (POLICED + 20)


def test_a_tester_that_dies_and_comes_back_loses_nothing(otg, topology):
    expression = f"[trial.loss_ratio for trial in testbed.{MRR}.to_frame().itertuples()]"
    measuring = controller(otg, topology, expression)
    wait_until(lambda: "sent 1000" in otg.server.stderr.readline())
    otg.server.kill()
    otg.server.wait()
    otg.start(*AFPACKET)
    assert json.loads(measuring.communicate(timeout=500)[0]) == [0.0] * 2


def test_a_tester_that_stays_away_is_an_error_that_names_it(otg, topology):
    measuring = controller(otg, topology, f"str(testbed.{MRR})")
    wait_until(lambda: "sent 1000" in otg.server.stderr.readline())
    otg.server.kill()
    error = json.loads(measuring.communicate(timeout=500)[0])["error"]
    assert "The tester http://127.0.0.1:8080 does not answer" in error


def test_a_check_shows_the_tester_and_what_is_wrong_with_it(otg, topology):
    check = ("-c", "from lossratio.commands.main import main; main()", "check", str(topology), "--connect")
    text = otg.lab.run("tg", sys.executable, *check).stdout
    assert "tester: lossratio" in text
    assert "the reservation is a file of this machine" in text
    otg.end()
    done = subprocess.run(otg.lab.command("tg", sys.executable, *check), capture_output=True, text=True, check=False)
    assert "PROBLEM: no OTG tester answers at http://127.0.0.1:8080" in done.stdout
    assert done.returncode != 0


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("port1: east}", "port2: east}", "the tester's location of port 'port1' is missing"),
        ("port1: east}", "port1: west}", "two ports have the same location"),
        (", mac_address: 02:00:00:00:00:02", "", "the port's 'mac_address' is needed"),
        ("link: west, mac", "link: west, address: 198.18.0.1/24, mac", "a tester's flows do not answer"),
        ("http://127.0.0.1:8080", "127.0.0.1:8080", "it must be an address such as https://10.0.0.5:8443"),
        ("http://127", "http://me:secret@127", "it must not contain a user or a password"),
    ],
)
def test_mistakes_of_the_file_are_named_before_anything_is_touched(topology, old, new, problem):
    from lossratio import open_testbed

    text = topology.read_text()
    assert text.count(old) == 1
    topology.write_text(text.replace(old, new))
    with pytest.raises(TopologyError, match=re.escape(problem)):
        open_testbed(topology, dut="black_box")


def test_the_example_of_the_page_is_usable(tmp_path):
    (example,) = examples_in(PAGE.read_text(), "yaml")
    (tmp_path / "keysight.yaml").write_text(example)
    topology = load_topology(tmp_path / "keysight.yaml")
    assert topology.path().hops
    assert not list(topology.generator.problems(topology.nodes["TG"].interfaces, 1))
