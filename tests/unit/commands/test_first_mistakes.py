"""Mistakes of a first day, by kind: each is answered with the thing, its place and the way out, in plain English."""

from __future__ import annotations

import builtins
import io
import re
import sys
from pathlib import Path

import pytest
import robot
from robot.api import ExecutionResult
from robot.errors import DataError

import lossratio as api
from lossratio import LossRatioError, open_testbed
from lossratio.__main__ import main as program
from lossratio.runs.robot_run import words_of

TOPOLOGIES = Path(__file__).parents[3] / "topologies"
LOCAL = (TOPOLOGIES / "local.yaml").read_text()
RAW = re.compile(
    r"[Ii]nput should|valid dictionary|should match pattern|instance of|unable to parse|\(\?|\[\^|range\.$"
    r"|Traceback|validator|Value error|object is not|not supported between|has no attribute|NoneType"
)
"""What pydantic, click and Python say, and no user understands."""

DUT = r"type: DUT"
NAME = r"name: local\n"
RATE = r"200 kfps"
PORT = r"name: tg0"
ALL = r"(?s).*"
# Table: a regular expression in the local topology, what a user wrote in its place, and the words of the answer.
IN_FILES = {
    "port as a word": (DUT, "type: DUT\n    port: ssh", "DUT1.port: must be a whole number, not 'ssh'"),
    "port that is yes": (DUT, "type: DUT\n    port: yes", "port: must be a whole number, not 'yes'"),
    "MTU that is on": (NAME, "name: local\nmtu: on\n", "mtu: must be a whole number, not 'on'"),
    "port too large": (DUT, "type: DUT\n    port: 70000", "must be at most 65,535, not 70000"),
    "port with a fraction": (DUT, "type: DUT\n    port: 22.5", "must be a whole number, not 22.5"),
    "host with a port": (DUT, "type: DUT\n    host: 10.0.0.1:22", "write the port into the field 'port'"),
    "host with a user": (DUT, "type: DUT\n    host: root@10.0.0.1", "the user is in the field 'username'"),
    "user, another name": (DUT, "type: DUT\n    user: root", "unknown field. Did you mean 'username'?"),
    "address, another name": (DUT, "type: DUT\n    ip: 10.0.0.1", "unknown field. The fields here are arch, "),
    "yes or no as a word": (DUT, "type: DUT\n    sudo: perhaps", "sudo: must be true or false, not 'perhaps'"),
    "name that is a time": (NAME, "name: 1:30\n", "with a letter or a digit, such as lab-1, not '1:30'"),
    "fields taken over twice": (
        DUT,
        "type: DUT\n    <<: {port: 1}\n    <<: {port: 2}",
        "lab.yaml:18: nodes.DUT1.<<: the name '<<' appears twice (first on line 17)",
    ),
    "name with a blank": (NAME, "name: my lab\n", "must be a name of letters, digits, "),
    "name of 120 letters": (NAME, f"name: {'a' * 120}\n", "must have at most 100 characters, but has 120"),
    "no name": (NAME, "", "name: this field is required. Name of the testbed"),
    "name without a value": (NAME, "name:\n", "name: must be text, not empty"),
    "no format": (r"format: .*\n", "", "format: this field is required"),
    "no type of a node": (r"type: DUT\n", "sudo: false\n", "type: this field is required. TG (traffic"),
    "type in small letters": (r"type: TG", "type: tg", "not 'tg'. Did you mean 'TG'?"),
    "type of another language": (r"type: TG", "type: generator", "must be 'TG', 'DUT' or 'reflector'"),
    "testbed that is yes": (r"testbed: local", "testbed: yes", "must be 'lab', 'local' or 'simulated', not 'yes'"),
    "nodes as a list": (r"(?s)nodes:.*", "nodes:\n  - TG\n", "nodes: must hold fields, as in {name: value}"),
    "no nodes": (r"(?s)nodes:.*", "nodes:\n", "nodes: must hold fields"),
    "empty nodes": (r"(?s)nodes:.*", "nodes: {}\n", "nodes: must not be empty"),
    "node as an address": (r"(?s)nodes:.*", "nodes:\n  TG: tg.example\n", "nodes.TG: must hold fields"),
    "interface as a name": (r"port0: \{name: tg0, link: link0\}", "port0: tg0", "port0: must hold fields, as in {name"),
    "interfaces as a list": (r"(?s)interfaces:.*?DUT1", "interfaces: [a, b]\n  DUT1", "interfaces: must hold fields"),
    "no interfaces": (r"(?s)    interfaces:.*?  DUT1", "  DUT1", "TG.interfaces: this field is required"),
    "generator as a word": (r"generator: \{.*\}", "generator: afpacket", "such as {kind: afpacket}"),
    "generator that is none": (
        r"kind: afpacket",
        "kind: iperf",
        "there is no generator 'iperf'. Choose one of these: afpacket,",
    ),
    "rate in bits": (RATE, "100 Mbit/s", "'100 Mbit/s' is not a frame rate but a bit rate; write it like '10 k"),
    "rate without a unit": (RATE, "20", "20 has no unit; write '20 kfps' or '20 Mfps', or '20 fps'"),
    "rate without a unit, quoted": (RATE, "'20'", "20 has no unit; write '20 kfps'"),
    "rate of nothing": (RATE, "0 kfps", "'0 kfps' is not above 0; write a frame rate like '10 kfps'"),
    "rate below nothing": (RATE, "-5", "'-5' is not a frame rate; write it like '10 kfps'"),
    "rate with a comma": (RATE, "'200,000'", "without commas: 1.5, 100000 or 100_000"),
    "rate with a decimal comma": (RATE, "'1,5 kfps'", "with a point for fractions"),
    "rate as a list": (RATE, "[200 kfps]", "is not a frame rate; write it like '10 kfps'"),
    "time that is none": (r"5 ms", "5 parsecs", "'5 parsecs' is not a duration; write it like '2 min' or '30 s'"),
    "time with a comma": (r"5 ms", "'0,5 s'", "with a point for fractions"),
    "lease for ever": (
        NAME,
        "name: local\nreservation: {lease: forever}\n",
        "reservation.lease: 'forever' is not a dur",
    ),
    "reservation that is yes": (NAME, "name: local\nreservation: yes\n", "reservation: must hold fields"),
    "MAC address with dashes": (
        PORT,
        "mac_address: 02-00-00-00-00-01, name: tg0",
        "a MAC address with colons, such as",
    ),
    "PCI address that is short": (PORT, "pci_address: '3b:00.0', name: tg0", "with its domain, such as 0000:3b:00.0"),
    "speed as a word": (PORT, "speed: fast, name: tg0", "'fast' is not a bit rate; write it like '10 Gbps'"),
    "IP address that is none": (
        PORT,
        "address: 10.0.0.300/24, name: tg0",
        "must be an IP address with its prefix length",
    ),
    "network with a host": (PORT, "network: 10.0.0.1/24, name: tg0", "an IP network without host bits, such as"),
    "MTU as a word": (NAME, "name: local\nmtu: jumbo\n", "mtu: must be a whole number, not 'jumbo'"),
    "MTU with a unit": (NAME, "name: local\nmtu: 9000B\n", "mtu: must be a whole number, not '9000B'"),
    "MTU too small": (NAME, "name: local\nmtu: 60\n", "mtu: must be at least 68, not 60"),
    "tab": (r"    type: DUT", "\ttype: DUT", "not YAML: the indentation has a tab; use spaces"),
    "indentation": (r"\n  DUT1:", "\n DUT1:", "the indentation does not fit the lines above"),
    "field too far left": (
        r"\n    type: DUT",
        "\n   type: DUT",
        ":17: not YAML: the indentation does not fit the lines",
    ),
    "field too far right": (NAME, "  name: local\n", ":5: not YAML: the indentation does not fit the lines above"),
    "field without a colon": (
        r"\n  TG:",
        "\n  TG",
        ":10: not YAML: the line above has no ': ' between the name of a field and",
    ),
    "two colons": (NAME, "name: local: lab\n", "there are two ': ' on one line; quote a text that contains ': '"),
    "colon without a blank": (NAME, "name:local\n", "needs ': ' between its name and its value"),
    "bracket left open": (r"\{name: tg0, link: link0\}", "{name: tg0, link: link0", "is not closed"),
    "quote left open": (NAME, "name: 'local\n", "a quote that is opened on line 5 is not closed"),
    "text that begins with a sign": (NAME, "name: %local\n", "a text cannot begin with %; put the text in quotes"),
    "tag of Python": (
        NAME,
        "name: !!python/name:os.system x\n",
        "a value has a tag (!name), which has no meaning here",
    ),
    "bracket too many": (r"link: link0\}", "link: link0}}", "} closes a bracket that was not opened; leave it out"),
    "quote within a text": (NAME, "name: 'it's'\n", "there is more after the end of a value; quote it as a whole"),
    "list without a line": (NAME, "name: - local\n", "a list begins on a line of its own"),
    "name without quotes": (NAME, "name: local\non: x\n", "on: unknown field. The fields here are addresses, "),
    "another name": (NAME, "name: local\nIPv6: x\n", "IPv6: unknown field"),
    "list for fields": (r"(?s)interfaces:.*?DUT1", "interfaces: [{a: 1}]\n  DUT1", "as in {name: value}, not a list"),
    "date for a time": (r"5 ms", "2026-01-01", "'2026-01-01' is not a duration; write it like '2 min'"),
    "comma in braces": (PORT, "name: tg0, 5 s", "5 s: unknown field without a value (a field is 'name: value'"),
    "empty file": (ALL, "", "must hold fields (name: value), but it is empty. Is it the right file?"),
    "list": (ALL, "- a\n- b\n", "it is a list or a text. Is it the right file?"),
    "suite": (ALL, "*** Settings ***\nLibrary    LossRatio\n", "this is a suite of Robot Framework. Is it the right"),
    "job": (ALL, "format: lossratio-job/1\nname: x\ntests: []\n", "this file has the format 'lossratio-job/1'"),
}


@pytest.mark.whole
@pytest.mark.parametrize(("right", "wrong", "words"), IN_FILES.values(), ids=IN_FILES)
def test_in_a_topology_file(lossratio, tmp_path, right, wrong, words):
    assert re.search(right, LOCAL)
    (tmp_path / "lab.yaml").write_text(re.sub(right, lambda match: wrong, LOCAL, count=1))
    status, out, err = lossratio("check", "lab.yaml")
    assert (status, out) == (2, "")
    assert re.match(r"Error: lab\.yaml:\d+: ", err)
    assert words in err
    assert not RAW.search(err)
    assert err.count("\n") == 1


# Table: the words of a command line, and the words of the answer.
IN_COMMANDS = {
    "bench": (("bench",), "No such command 'bench'. Did you mean 'lossratio run'?"),
    "test": (("test", "a"), "Did you mean 'lossratio run'?"),
    "measure": (("measure",), "Did you mean 'lossratio run'?"),
    "help": (("help",), "Did you mean 'lossratio --help'?"),
    "version": (("version",), "Did you mean 'lossratio --version'?"),
    "ls": (("ls",), "Did you mean 'lossratio list'?"),
    "setup": (("setup",), "Did you mean 'lossratio init'?"),
    "plot": (("plot",), "Did you mean 'lossratio trend'?"),
    "diff": (("diff", "a", "b"), "Did you mean 'lossratio compare'?"),
    "validate": (("validate",), "Did you mean 'lossratio check'?"),
    "results": (("results",), "Did you mean 'lossratio report'?"),
    "docter": (("docter",), "Did you mean 'lossratio lab doctor'?"),
    "compair": (("compair",), "Did you mean 'compare'?"),
    "frobnicate": (("frobnicate",), "No such command 'frobnicate'. The commands are demo, init, check, list, run, "),
    "csit coverage": (("csit", "coverage"), "Did you mean 'lossratio csit-coverage'?"),
    "lab doc": (("lab", "doc"), "Did you mean 'doctor'?"),
    "lab init": (("lab", "init"), "Did you mean 'lossratio init'?"),
    "list suite": (("list", "suite"), "Did you mean 'suites'?"),
    "topology for a suite": (("run", "simulated", "linux_bridge"), "simulated is one of the topologies, not of the"),
    "suite for a topology": (("check", "linux_bridge"), "linux_bridge is one of the suites, not of the topologies"),
    "suite that is none": (
        ("run", "--topology", "simulated", "frobnicate"),
        "'lossratio list suites' lists those that",
    ),
    "goals as an option": (
        ("run", "--goals", "quick", "linux_bridge"),
        "a variable of the suites: --variable GOALS:VALUE",
    ),
    "frame size as an option": (("run", "--frame-size", "64B", "a"), "--variable FRAME_SIZE:VALUE"),
    "directory for a file": (("check", "."), "Cannot read .: Is a directory. Name a file in it."),
    "time to wait": (("run", "--wait", "2 hrs soon", "linux_bridge"), "'2 hrs soon' is not a duration; write it like"),
    "least change as a word": (("compare", "a", "b", "--least-change", "few"), "write it like 3 or 3%"),
    "least change in per cent": (
        ("compare", "a", "b", "--least-change", "3%"),
        "a is not the directory of a run: there is no such",
    ),
    "number out of bounds": (("check", "simulated", "--duts", "-1"), "'--duts': must be at least 0, not -1."),
    "number within bounds": (
        ("otg-serve", "lo", "--tcp-port", "70000"),
        "must be at least 0 and at most 65535, not 70000.",
    ),
    "not a number for a share": (
        ("compare", "a", "b", "--least-change", "nan"),
        "'nan' is not a share in per cent; write it like 3 or 3%.",
    ),
    "share below its bounds": (("compare", "a", "b", "--least-change", "-1"), "must be at least 0 per cent, not -1."),
    "share out of bounds": (
        ("builds", "ab", "--certainty", "100 %"),
        "must be at least 50 and below 100 per cent, not 100 %.",
    ),
    "value without quotes": (
        ("check", "simulated", "10", "kpps"),
        "There are too many arguments: 10 kpps. Put a value with spaces in quotes, as in '10 kfps'.",
    ),
    "word for a command without arguments": (
        ("lab", "doctor", "local"),
        "There are too many arguments: local. This command takes only options.",
    ),
    "name that begins with a minus": (("check", "-1"), "-1 was taken for an option. If it is a file, write ./-1."),
    "word for a tool": (("lab", "import", "clab", "a.yaml"), "or pcap, not 'clab'"),
    "suite that is no text": (
        ("run", "--topology", "simulated", "/bin/true"),
        "/bin/true is not a suite: it is not UTF-8 text. Name a file such as my.robot.",
    ),
    "suite without an extension": (
        ("run", "--topology", "simulated", str(TOPOLOGIES.parent / "LICENSE")),
        "LICENSE is not a suite: its name has no extension. Name a file such as my.robot.",
    ),
    "suite without a section": (
        ("run", "--topology", "simulated", str(TOPOLOGIES.parent / "CITATION.cff")),
        "CITATION.cff is not a suite: it has no section, such as *** Test Cases ***. Name a file such as my.robot.",
    ),
    "suite that is a topology": (
        ("run", "--topology", "simulated", str(TOPOLOGIES / "local.yaml")),
        "local.yaml is not a suite: it is of the format lossratio-topology/1. Name a file such as my.robot. Give a "
        "topology with --topology.",
    ),
    "nothing to list": (("list",), "An argument is missing: suites, topologies, profiles or devices."),
    "suite that is a device": (
        ("run", "--topology", "simulated", "/dev/null"),
        "/dev/null is not a suite: it is a pipe",
    ),
    "topology that is a text": (("check", str(TOPOLOGIES.parent / "LICENSE")), "LICENSE:1: not YAML: it is text with"),
    "profile that is none": (
        ("check", "simulated", "--profile", "maybe"),
        "There is no traffic profile 'maybe'. 'lossratio list profiles' lists all. To use your own file, give its p",
    ),
    "end with a slash": (("between", "/tmp", "b"), "'/tmp' is not an end of a path. Name a namespace (netns:NAME)"),
    "file for a run": (("report", "/etc/hosts"), "/etc/hosts is not the directory of a run: it is a file. Name the"),
    "file for the results": (
        ("run", "linux_bridge", "--topology", "simulated", "--output", "/etc/hosts"),
        "/etc/hosts: Not a directory. Choose another directory: --output DIR.",
    ),
    "address that is none": (
        ("otg-serve", "lo", "--address", "no address"),
        "Cannot listen on no address, TCP port 8080: there is no such address. Name an address of this machine",
    ),
    "clone that is none": (
        ("csit-coverage", str(Path(__file__).parent)),
        "commands has no job of CSIT. Name its directory with jobs.yaml",
    ),
    "characters that move the cursor": (("trend", "a\x1b[2Jb"), "a\\x1b[2Jb is not a history"),
    "release of nothing": (("lab", "release", "simulated"), "this testbed has no reservation: it is simulated, and n"),
    "number as a word": (("check", "simulated", "--duts", "one"), "'one' is not a whole number; write it like '3'"),
}


@pytest.mark.parametrize(("arguments", "words"), IN_COMMANDS.values(), ids=IN_COMMANDS)
def test_in_a_command(lossratio, arguments, words):
    status, _, err = lossratio(*arguments)
    assert status == 2
    # click folds no errors, but its usage goes before them.
    assert words in err
    assert not RAW.search(err)
    assert err.count("Error: ") == 1


UP = "Set Up Testbed    simulated    "
NDR = "Find NDR And PDR    "
# Table: a line of a test, and the words of its message.
IN_SUITES = {
    "connections for frames": (f"{NDR}64B    max_load=1 cps", "max_load is in connections per second, but this measur"),
    "bits for frames": (f"{NDR}64B    max_load=100 Mbit/s", "is not a frame rate but a bit rate; write it like '10 k"),
    "number without a unit": (f"{NDR}64B    max_load=20", "20 has no unit; write '20 kfps' or '20 Mfps', or '20 fps'"),
    "number with a comma": (f"{NDR}64B    max_load=100,000", "without commas: 1.5, 100000 or 100_000"),
    "per cent for a load": (f"{NDR}64B    max_load=50 %", "'50 %' is not a frame rate; write it like '10 kfps'"),
    "sizes by name": (
        f"{NDR}frame_sizes=64B,512B",
        "several frame sizes, but one is measured at a time. In a suite, write a test",
    ),
    "sizes": (f"{NDR}64B,512B", "or use 'Run RFC 2544', which takes frame_sizes"),
    "size in kB": (f"{NDR}1.5 kB", "is not a size in bytes; write it like '64B'"),
    "goals in capitals": (f"{NDR}64B    goals=Quick", "Did you mean 'quick'?"),
    "both ways": (f"{NDR}64B    bidirectional=both", "'both' is neither yes nor no. Write True or False"),
    "nothing": (f"{NDR}64B    must_find=None", "'None' is neither yes nor no. Write True or False"),
    "neither way": (f"{NDR}64B    bidirectional=${{EMPTY}}", "'' is neither yes nor no. Write True or False"),
    "never": (f"{NDR}64B    must_find=never", "'never' is neither yes nor no"),
    "perhaps": (f"{NDR}64B    early_verdict=perhaps", "'perhaps' is neither yes nor no"),
    "time as a word": ("Measure MRR    64B    trial_duration=ten", "'ten' is not a duration; write it like '2 min'"),
    "time limit": (f"{NDR}64B    timeout=never", "'never' is not a duration; write it like '2 min' or '30 s'"),
    "kind of DUT in short": (f"{UP}dut=bridge", "Did you mean 'linux_bridge'?"),
    "kind of DUT in capitals": (f"{UP}dut=Linux_Bridge", "Did you mean 'linux_bridge'?"),
    "option of another kind": (f"{UP}dut=linux_bridge    cores=1", "has no option 'cores'. Its options are: "),
    "policer in bits": (
        f"{UP}dut=linux_bridge    police=50 Mbit/s",
        "police: '50 Mbit/s' is not a frame rate but a bit",
    ),
    "policer without a unit": (f"{UP}dut=linux_bridge    police=20", "police: 20 has no unit; write '20 kfps'"),
}


@pytest.fixture(scope="module")
def messages(tmp_path_factory):
    """The messages of tests with a mistake each, by name."""
    directory = tmp_path_factory.mktemp("first")
    lines = ["*** Settings ***", "Library    LossRatio", "Test Teardown    Tear Down Testbed", "*** Test Cases ***"]
    for name, (line, _) in IN_SUITES.items():
        lines.append(name)
        if not line.startswith(UP):
            lines.append(f"    {UP}")
        lines.append(f"    {line}")
    (directory / "first.robot").write_text("\n".join(lines))
    robot.run(
        str(directory / "first.robot"),
        outputdir=str(directory / "out"),
        pythonpath=[str(TOPOLOGIES.parent / "libraries")],
        stdout=io.StringIO(),
        stderr=io.StringIO(),
    )
    tests = ExecutionResult(str(directory / "out" / "output.xml")).suite.all_tests
    assert not list(directory.rglob("trials/*.jsonl"))
    return {test.name: test.message for test in tests}


@pytest.mark.parametrize("name", IN_SUITES)
def test_in_a_suite(messages, name):
    assert IN_SUITES[name][1] in messages[name]
    assert not RAW.search(messages[name])
    assert "\n" not in messages[name]


def measured(**arguments):
    """A measurement of a simulated bridge."""
    with open_testbed("simulated", dut="linux_bridge", options={"police": "50 kfps"}) as testbed:
        testbed.mrr(**{"frame_size": "64B", **arguments})


def searched_after_the_end(tmp_path):
    """A search of a simulated testbed that was closed, by way of the function that the method calls, too."""
    with open_testbed("simulated", results=tmp_path) as testbed:
        pass
    place = api.TestPlace(api.TestIdentity(name="a", suite="b"), api.RunDirectory(tmp_path))
    request = api.SearchRequest(goals=(api.NDR,), profile=api.load_profile("ethip4-udp", frame_size="64B"))
    api.find_conditional_throughput(testbed, request, place)


def searched_plainly_after_the_end(tmp_path):
    """The same on a testbed without methods."""
    with api.testbed.open_testbed("simulated") as testbed:
        pass
    with testbed.ready_for(api.load_profile("ethip4-udp", frame_size="64B")):
        pass


# Table: what a script asks for, and the words of the error.
IN_PYTHON = {
    "topology that is a number": (lambda _: open_testbed(7), "topology must be the name or the path of a topology"),
    "topology without a name": (lambda _: open_testbed(""), "must be the name or the path of a topology, but is empty"),
    "topology as data": (lambda _: open_testbed({"name": "x"}), "topology must be the name or the path of a topology"),
    "options as a list": (
        lambda _: open_testbed("simulated", dut="linux_bridge", options=["police"]),
        "options must be a dictionary, such as {'police': '50 kfps'}",
    ),
    "options as a text": (
        lambda _: open_testbed("simulated", dut="linux_bridge", options="police=1"),
        "options must be a dictionary",
    ),
    "kind of DUT as a number": (lambda _: open_testbed("simulated", dut=7), "dut must be the name of a kind of DUT"),
    "links as a text": (lambda _: open_testbed("simulated", links="2"), "links must be a whole number, not '2'"),
    "DUTs with a fraction": (lambda _: open_testbed("simulated", duts=1.5), "duts must be a whole number, not 1.5"),
    "results as a number": (lambda _: open_testbed("simulated", results=3), "results must be the path of a directory"),
    "recovery as a text": (lambda _: open_testbed("simulated", recovery="none"), "must be of the class Recovery"),
    "password as data": (lambda _: open_testbed("simulated", credentials={"a": "b"}), "of the class Credentials"),
    "size with a fraction": (lambda _: measured(frame_size=64.5), "frame_size: 64.5 is not a frame size"),
    "sizes as a list": (lambda _: measured(frame_size=[64, 512]), "are several frame sizes"),
    "profile as a number": (lambda _: measured(profile=7), "profile must be the name or the path of a traffic profile"),
    "ways as a word": (lambda _: measured(bidirectional="both"), "bidirectional: must be true or false, not 'both'"),
    "trials as a word": (lambda _: measured(trials="ten"), "trials must be a whole number, not 'ten'"),
    "time as a word": (lambda _: measured(trial_duration="soon"), "trial_duration: 'soon' is not a duration"),
    "load as a list": (lambda _: measured(max_load=[1]), "max_load must be a number, not [1]"),
    "connections for frames": (lambda _: measured(max_load="1 cps"), "max_load is in connections per second"),
    "progress as a text": (lambda _: measured(on_progress="print"), "on_progress must be a function, not 'print'"),
    "profile that is only named": (
        lambda _: api.SearchRequest(goals=(api.NDR,), profile="ethip4-udp"),
        "profile=load_profile('ethip4-udp', frame_size='64B')",
    ),
    "trial in words": (lambda _: api.TrialInput("1 s", "10 kpps"), "TrialInput: duration must be a number, not '1 s'"),
    "use after the end": (searched_after_the_end, "is closed. Measure inside its with block"),
    "plain use after the end": (searched_plainly_after_the_end, "is closed. Measure inside its with block"),
}


@pytest.mark.parametrize(("ask", "words"), IN_PYTHON.values(), ids=IN_PYTHON)
def test_in_a_script(tmp_path, monkeypatch, ask, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LossRatioError) as refused:
        ask(tmp_path)
    assert words in str(refused.value)
    assert not RAW.search(str(refused.value))
    assert not list(tmp_path.rglob("*.jsonl"))


def test_a_method_that_a_testbed_lacks_is_answered_with_the_nearest_one():
    testbed = open_testbed("simulated")
    with pytest.raises(AttributeError, match=r"no method or value 'nrd_pdr'\. Did you mean 'ndr_pdr'\?"):
        testbed.nrd_pdr("64B")
    with pytest.raises(TypeError, match=r"^OpenTestbed\.mrr\(\) missing 1 required positional argument: 'frame_size'"):
        testbed.mrr()


def test_the_directory_of_a_run_may_be_a_text(tmp_path):
    assert api.RunDirectory(str(tmp_path)) == api.RunDirectory(tmp_path)


def test_a_directory_with_the_name_of_a_suite_does_not_disturb_the_list(lossratio, tmp_path):
    (tmp_path / "linux_bridge").mkdir()
    status, out, _ = lossratio("list", "suites")
    assert status == 0
    assert "linux_bridge\n" in out


def test_a_link_to_nothing_is_no_directory_for_results(lossratio, tmp_path):
    (tmp_path / "link").symlink_to("nowhere")
    status, _, err = lossratio("demo", "--output", "link")
    assert (status, err) == (2, "Error: link: No such file or directory. Choose another directory: --output DIR.\n")


def test_a_folder_of_suites_that_cannot_be_read_is_named_without_pythons_words():
    wrong = DataError("Reading directory '/a/b' failed: PermissionError: [Errno 13] Permission denied: '/a/b'")
    assert words_of(wrong) == "Reading directory '/a/b' failed: Permission denied."
    wrong = DataError("Parsing 'a.json' failed: Creating 'robot.running.TestSuite' object from dictionary failed: x")
    assert words_of(wrong) == "Parsing 'a.json' failed: it is not a suite of Robot Framework in JSON."


def test_a_closed_input_is_an_input_that_has_ended(lossratio, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    status, _, err = lossratio("init", "lab")
    assert (status, err.strip()) == (
        2,
        "Error: The input ended before this question was answered. Answer each question on a line of its own.",
    )


def test_a_run_below_a_file_is_refused_before_its_suites_are_read(lossratio, tmp_path):
    (tmp_path / "file").touch()
    status, out, err = lossratio("run", "--topology", "simulated", "--output", "file/x", "linux_bridge")
    assert (status, out) == (2, "")
    assert err == "Error: file/x: Not a directory. Choose another directory: --output DIR.\n"


def test_ctrl_c_while_modules_are_imported_is_one_word_and_a_status(monkeypatch, capsys):
    def interrupted(name, *arguments, **named):
        if name == "lossratio.commands":
            raise KeyboardInterrupt
        return imported(name, *arguments, **named)

    imported = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", interrupted)
    with pytest.raises(SystemExit) as ended:
        program()
    assert (ended.value.code, capsys.readouterr().err) == (130, "Stopped.\n")
