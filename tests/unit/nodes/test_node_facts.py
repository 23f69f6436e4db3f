import os
import platform
import subprocess
from dataclasses import dataclass

import pytest
from hypothesis import given, strategies as st

import lossratio
from lossratio.dut.linux.reports import describe_node
from lossratio.nodes import COMMAND_SECONDS, DutNode, gather_facts
from lossratio.results.machines import NodeFacts, controller_facts


@dataclass(frozen=True)
class Result:
    exit_status: int
    stdout: str
    stderr: str = ""


class ThisMachine:
    """A session with this very machine; its environment can be taken away."""

    def __init__(self, **environment):
        self.limits = []
        self._environment = {**os.environ, **environment}

    def run(self, *argv, check=True, timeout=COMMAND_SECONDS):
        self.limits.append(timeout)
        done = subprocess.run(argv, capture_output=True, text=True, env=self._environment, check=check)
        return Result(done.returncode, done.stdout, done.stderr)


class Answers:
    """A session that gives one answer to every command."""

    def __init__(self, stdout):
        self._stdout = stdout

    def run(self, *argv, check=True, stdin=None, timeout=None):
        return Result(1, self._stdout)


def answers(**parts):
    return Answers("".join(f"\x1e{name}\n{text}\n" for name, text in parts.items()))


@pytest.mark.skipif(platform.system() != "Linux", reason="nodes run Linux")
def test_a_node_reports_its_facts_in_one_command_that_may_take_longer_than_others():
    session = ThisMachine()
    facts = gather_facts(session).facts
    (limit,) = session.limits
    assert limit > COMMAND_SECONDS
    assert facts.kernel == platform.release()
    assert facts.architecture == platform.machine()
    assert facts.cpus == os.sysconf("SC_NPROCESSORS_ONLN")
    assert facts.memory_bytes == pytest.approx(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), rel=0.05)
    assert facts.tools.python is None or facts.tools.python.startswith("Python 3.")


def test_a_node_that_reports_nothing_has_no_facts():
    assert gather_facts(Answers("sh: 1: Syntax error")).facts == NodeFacts()


def test_a_full_answer():
    lscpu = (
        '{"lscpu": [{"field": "Vendor ID:", "data": "AMD", "children": ['
        '{"field": "Model name:", "data": "EPYC 7543", "children": [{"field": "Thread(s) per core:", "data": "2"}]}]},'
        '{"field": "NUMA:", "data": null, "children": [{"field": "NUMA node(s):", "data": "2"},'
        '{"field": "NUMA node0 CPU(s):", "data": "0-31"}, {"field": "NUMA node1 CPU(s):", "data": "32-63"}]}]}'
    )
    gathered = gather_facts(
        answers(
            os_release='NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"',
            lscpu=lscpu,
            governors="performance\npowersave",
            meminfo="MemTotal:       1024 kB\nMemFree: 5 kB",
            command_line="BOOT_IMAGE=/vmlinuz isolcpus=2-3 token=secret mitigations=off",
            **{"tool.nft": "nftables v1.0.6 (Lester Gooch #5)", "tool.ip": "ip utility, iproute2-6.1.0\nmore"},
        )
    )
    facts = gathered.facts
    assert facts.os == "Debian GNU/Linux 12 (bookworm)"
    assert (facts.cpu_model, facts.threads_per_core) == ("EPYC 7543", 2)
    assert facts.numa_nodes == {"node0": "0-31", "node1": "32-63"}
    assert facts.governors == ("performance", "powersave")
    assert facts.memory_bytes == 1024 * 1024
    assert facts.boot_parameters == ("isolcpus=2-3", "mitigations=off")
    assert (facts.tools.nft, facts.tools.ip) == ("nftables v1.0.6 (Lester Gooch #5)", "ip utility, iproute2-6.1.0")
    assert (facts.tools.ethtool, facts.kernel, facts.cpus) == (None, None, None)


PARTS = ("os_release", "lscpu", "cpu_model", "cpus", "governors", "meminfo", "command_line", "tool.ip")
GARBAGE = st.text() | st.sampled_from(
    ["[]", "{}", '{"lscpu": 5}', '{"lscpu": [5]}', '{"lscpu": [{"data": "x"}]}', "MemTotal:", "MemTotal: ², kB", "-1"]
)


@pytest.mark.whole
@given(st.dictionaries(st.sampled_from(PARTS), GARBAGE))
def test_garbage_is_no_error(parts):
    facts = gather_facts(answers(**parts)).facts
    assert NodeFacts.model_validate_json(facts.model_dump_json()) == facts


def test_a_cpu_that_lscpu_does_not_name_has_the_name_in_proc():
    facts = gather_facts(answers(lscpu='{"lscpu": []}', cpu_model="model name\t: EPYC 7543")).facts
    assert facts.cpu_model == "EPYC 7543"


def test_the_description_of_a_dut_has_the_same_facts_as_the_result():
    # "irqaffinity" was known to the one only, and "tsc" to the other one.
    parameters = ["irqaffinity=0", "isolcpus=2-3", "tsc=reliable"]
    node = DutNode(
        answers(
            os_release='PRETTY_NAME="Debian GNU/Linux 12 (bookworm)"',
            kernel="6.1.0",
            kernel_version="Linux 6.1.0 #1 SMP x86_64",
            cpu_model="model name : EPYC 7543",
            online_cpus="0-3",
            online_numa_nodes="0",
            governors="performance",
            command_line=f"root=/dev/sda {' '.join(parameters)} luks.key=secret",
        )
    )
    facts = node.facts().facts
    description = describe_node(node, {}, ())
    assert description["kernel"] == "Linux 6.1.0 #1 SMP x86_64"
    assert description["kernel_parameters"] == list(facts.boot_parameters or ()) == parameters
    assert description["operating_system"] == facts.os
    cpu = {"model": facts.cpu_model, "online": "0-3", "numa_nodes": "0", "governors": ["performance"]}
    assert description["cpu"] == cpu


def test_the_description_of_a_dut_on_a_node_that_reports_nothing():
    description = describe_node(DutNode(Answers("")), {}, ())
    assert description["operating_system"] == description["cpu"]["model"] == "unknown"
    assert (description["kernel_parameters"], description["sysctls"]) == ([], {})


def test_facts_of_the_controllers_side():
    facts = controller_facts()
    assert facts.lossratio_version == lossratio.__version__
    assert facts.python_version == platform.python_version()
    assert facts.robot_version.split(".")[0].isdecimal()
    assert facts.kernel == platform.release()
