"""Mistakes that users make: each ends with one clear error, its exit status, and nothing else."""

from __future__ import annotations

import copy
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import robot
import yaml
from local_testbeds import local_topology, needs_testbed, own_state
from robot.api import ExecutionResult

from lossratio import open_testbed
from lossratio.errors import LossRatioError
from lossratio.nodes import NodeSession
from lossratio.testbed.local import LocalTestbed
from lossratio.topology import load_topology

TOPOLOGIES = Path(__file__).parents[3] / "topologies"
LOCAL, SIMULATED = TOPOLOGIES / "local.yaml", TOPOLOGIES / "simulated.yaml"
ON_SIMULATED = ("run", "--topology", SIMULATED)

IN_FILES = {
    "no YAML": (r"nodes:", "nodes: [", "not YAML"),
    "two fields in one": (r"name: local", "name: local: x", "not YAML"),
    "a tab": (r"\ndescription", "\n\tdescription", "not YAML"),
    "wrong format": (r"topology/1", "topology/7", "but a file of the format 'lossratio-topology/1' is needed here"),
    "misspelt field": (r"nodes:", "nods:", "nods: unknown field. Did you mean 'nodes'?"),
    "misspelt field of a node": (
        r"generator: \{",
        "genrator: {",
        "nodes.TG.genrator: unknown field. Did you mean 'generator'?",
    ),
    "misspelt generator": (r"kind: afpacket", "kind: afpaket", "Did you mean 'afpacket'?"),
    "misspelt setting of a generator": (r"max_rate:", "maxrate:", "unknown field. Did you mean 'max_rate'?"),
    "misspelt kind of testbed": (r"testbed: local", "testbed: locla", "not 'locla'. Did you mean 'local'?"),
    "misspelt type of a node": (r"type: DUT", "type: DTU", "not 'DTU'. Did you mean 'DUT'?"),
    "unit that is none": (r"200 kfps", "200 kilos", "'200 kilos' is not a frame rate; write it like '10 kfps'"),
    "time that is none": (r"5 ms", "5 parsecs", "nodes.TG.generator.catch_up: "),
    "no TG": (r"type: TG", "type: DUT", "one at each end of the path, but it has 0"),
    "two TGs": (r"type: DUT", "type: TG", "two nodes of type TG cannot be used with 'testbed: local'"),
    "no generator": (r"    generator: .*\n", "", "a TG without a generator; add e.g."),
    "link with one end": (r"name: dut1, link: link1", "name: dut1, link: link9", "must have two ends, but has 1"),
    "link with three ends": (r"name: dut1, link: link1", "name: dut1, link: link0", "must have two ends, but has 3"),
    "swapped links": (r"name: tg1, link: link1", "name: tg1, link: link0", "must have two ends"),
    "same interface twice": (r"name: tg0", "name: tg1", "another interface of TG is also named 'tg1'"),
    "name too long for Linux": (r"name: tg0", "name: interface-of-the-tg", "must have 1 to 15 bytes"),
    "no name of an interface": (r"name: tg0, ", "", "an interface of a local testbed needs a 'name'"),
    "MAC address that is none": (
        r"name: tg0",
        "mac_address: 1-2, name: tg0",
        "mac_address: must be a MAC address with colons",
    ),
    "password in the file": (r"type: DUT", "type: DUT\n    password: x", "the password, which does not belong in"),
    "field given twice": (r"type: DUT", "type: DUT\n    type: DUT", "the name 'type' appears twice"),
    "model of a SUT on a real device": (r"type: DUT", "type: DUT\n    sut: {model: knee}", "can only be used with"),
}


@pytest.mark.parametrize(("right", "wrong", "error"), IN_FILES.values(), ids=IN_FILES)
def test_a_mistake_in_a_topology_file_is_one_error_with_its_line(lossratio, tmp_path, right, wrong, error):
    text = LOCAL.read_text()
    assert re.search(right, text)
    (tmp_path / "lab.yaml").write_text(re.sub(right, wrong, text, count=1))
    status, out, err = lossratio("check", "lab.yaml")
    assert (status, out) == (2, "")
    assert re.match(r"Error: lab\.yaml:\d+: ", err)
    assert error in err
    assert err.count("Error: ") == 1


JOB = "format: lossratio-job/1\nname: x\n{}: [simulated]\ntests: [{{suites: [linux_bridge], {}: [64B]}}]\n"
TREND = ("trend", ".")
IN_OTHER_FILES = {
    "misspelt field of a job": (("run", "--job"), JOB.format("toplogies", "frame_sizes"), "Did you mean 'topologies'?"),
    "misspelt field of its tests": (("run", "--job"), JOB.format("topologies", "framesize"), "mean 'frame_sizes'?"),
    "misspelt field of an alert": ((*TREND, "--alert"), "alerts: [{name: x, comand: tee}]", "Did you mean 'command'?"),
    "misspelt input of an alert": (
        (*TREND, "--alert"),
        "alerts: [{name: x, command: tee, input: jso}]",
        "Did you mean 'json'?",
    ),
    "topology instead of alerts": (
        (*TREND, "--alert"),
        "format: lossratio-topology/1\nname: lab\n",
        "'lossratio-topology/1', but a file of another kind is needed here. Is it the right file?",
    ),
    "misspelt SUT model": (("check",), SIMULATED.read_text().replace("sharp_knee", "sharp_kne"), "mean 'sharp_knee'?"),
    "misspelt field of a SUT": (
        ("check",),
        SIMULATED.read_text().replace("capacity:", "capasity:"),
        "mean 'capacity'?",
    ),
}


@pytest.mark.parametrize(("command", "text", "error"), IN_OTHER_FILES.values(), ids=IN_OTHER_FILES)
def test_a_mistake_in_another_file_is_answered_with_the_right_name(lossratio, tmp_path, command, text, error):
    (tmp_path / "file.yaml").write_text(text)
    status, out, err = lossratio(*command, "file.yaml")
    assert (status, out) == (2, "")
    assert err.startswith("Error: file.yaml:")
    assert error in err


def test_a_misspelt_field_of_goals_is_answered_with_the_right_one(tmp_path):
    goals = tmp_path / "mine.yaml"
    goals.write_text("goals: {mine: {loss_ratoi: 0}}")
    with (
        pytest.raises(LossRatioError, match=r"Did you mean 'loss_ratio'\?"),
        open_testbed("simulated", results=tmp_path) as testbed,
    ):
        testbed.ndr_pdr("64B", goals=str(goals))


IN_COMMANDS = {
    "no such topology": (("check", "nope.yaml"), "Cannot read nope.yaml: No such file or directory."),
    "directory for a file": (("check", "."), "Cannot read .: Is a directory."),
    "no such suite": ((*ON_SIMULATED, "nope/a.robot"), "Cannot read nope/a.robot: No such file or directory. Check"),
    "a history with too long a name": (("trend", "x" * 300), "File name too long. Give a shorter path."),
    "a size that no frame has": (("check", "simulated", "--frame-size", "maybe"), "nor a mix of sizes. Known mixes:"),
    "a size that no frame between hosts has": (("between", "a", "b", "--frame-size", "3"), "3 is not between 64 and"),
    "a tag that no test has": (
        ("run", "linux_bridge", "--topology", "simulated", "--include", "mbr"),
        "contains no tests matching tag 'mbr'. Their tags are: ",
    ),
    "directory for a certificate": (("otg-serve", "lo", "--certificate", "."), "Cannot read .: Is a directory."),
    "a number beyond all limits": (("check", "simulated", "--duts", "9" * 400), "is too large; the largest number is"),
    "longer path than there is": (("check", LOCAL, "--duts", "3"), "but the topology has 1 (DUT1)"),
    "NIC that is not there": (("check", LOCAL, "--nic", "Intel-X710"), "the file gives no port a 'model'"),
    "more links than there are": (("check", LOCAL, "--links", "2"), "2 parallel links were requested, but there are 1"),
    "no testbed": (("run", "linux_bridge"), "Name the testbed, for example --topology local"),
    "no suite": (ON_SIMULATED, "Name the suites to run, or --job FILE."),
    "option of Robot Framework that is none": (
        (*ON_SIMULATED, "linux_bridge", "--", "--nonsense"),
        "--nonsense not recog",
    ),
    "time to wait that is none": ((*ON_SIMULATED, "--wait", "soon", "linux_bridge"), "Invalid value for '--wait'"),
    "no such job": (("run", "--job", "nope.yaml"), "Cannot read nope.yaml"),
    "no such run to resume": (("run", "--resume", "nope"), "Only runs that 'lossratio run' began can be resumed."),
    "suites of a resumed run": (("run", "--resume", ".", "linux_bridge"), "leave them out"),
    "no run to report": (("report", "nope"), "nope is not the directory of a run: there is no such directory."),
    "end with a blank": (("between", "my host", "b"), "'my host' is not an end of a path. Name a namespace"),
    "no run to compare": (("compare", "a", "b"), "a is not the directory of a run: there is no such"),
    "no history": (("trend", "nope"), "nope is not a history"),
    "no journal": (("archive", "replay", "nope.jsonl"), "Cannot read the journal nope.jsonl"),
    "nothing to repair": (("archive", "repair", "nope"), "nope is neither a journal"),
    "no archive": (("archive", "fetch", "out"), "Missing option '--results'"),
    "no archive to fetch from": (
        ("archive", "fetch", "out", "--results", "nope", "--testbed", "a"),
        "no archive at nope yet",
    ),
    "no archive and nothing to begin one": (("archive", "send", "--results", "nope"), "no archive at nope yet"),
    "self-test through a device": (("lab", "self-test", LOCAL), "DUT1 is between the TG's ports"),
    "local testbed of a simulated one": (("lab", "up", SIMULATED), "Topology simulated is not a local testbed"),
    "no such command": (("mesure",), "No such command 'mesure'"),
    "misspelt command": (("repot", "a"), "No such command 'repot'. Did you mean 'report'?"),
    "misspelt option": (("run", "--topolgy", "local"), "Did you mean '--topology'?"),
    "option that is like no other one": (("trend", "a", "--threshold", "3"), "No such option '--threshold'.\n"),
    "misspelt testbed": (("run", "--topology", "simulatd", "linux_bridge"), "Did you mean 'simulated'?"),
    "misspelt suite": ((*ON_SIMULATED, "linux_brige"), "There is no file linux_brige. Did you mean 'linux_bridge'?"),
    "misspelt format": (("report", "a", "--format", "htlm"), "Did you mean 'html'?"),
    "format by its long name": (("report", "a", "--format", "markdown"), "Did you mean 'md'?"),
}


@pytest.mark.parametrize(("arguments", "error"), IN_COMMANDS.values(), ids=IN_COMMANDS)
def test_a_mistake_in_a_command_is_one_error(lossratio, arguments, error):
    status, out, err = lossratio(*arguments)
    assert (status, out) == (2, "")
    assert error in err
    assert err.count("Error: ") == 1


@pytest.mark.whole
def test_a_shell_completes_commands_and_options():
    def completed(words):
        place = str(len(words.split()) - 1)
        words_of_shell = {"_LOSSRATIO_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": place}
        code = "import sys; sys.argv[0] = 'lossratio'; from lossratio.commands.main import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, **words_of_shell},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout.splitlines()

    assert completed("lossratio tr") == ["plain,trend"]
    assert completed("lossratio lab do") == ["plain,doctor", "plain,down"]
    assert "plain,--resume" in completed("lossratio run --re")


IN_SUITES = {
    "no set-up": ("Find NDR And PDR    64B", "No testbed is set up. First call the keyword 'Set Up Testbed'"),
    "misspelt kind of DUT": ("Set Up Testbed    {}    dut=linux_brige", "Did you mean 'linux_bridge'?"),
    "misspelt option": ("Set Up Testbed    {}    dut=linux_bridge    polise=1 kfps", "Did you mean 'police'?"),
    "option without a kind": ("Set Up Testbed    {}    police=1 kfps", "The options police belong to a kind of DUT"),
    "rate of an option that is none": (
        "Set Up Testbed    {}    dut=linux_bridge    police=fast",
        "police: 'fast' is not a frame rate; write it like '10 kfps'. Its options",
    ),
    "more DUTs than there are": (
        "Set Up Testbed    {}    duts=5",
        "a path through 5 DUTs was requested, but the topology has 1 (DUT1)",
    ),
    "no link": ("Set Up Testbed    {}    links=0", "0 parallel links were requested. Use 1 or more"),
    "no such file": ("Set Up Testbed    simulated.yml", "Cannot read simulated.yml: No such file or directory."),
    "no trial": (
        "Measure MRR    64B    trials=0",
        "trials must be at least 1, not 0. The documentation of 'trials' says: Number of trials.",
    ),
    "number of trials that is none": (
        "Measure MRR    64B    trials=many",
        "'many' that cannot be converted to integer",
    ),
    "negative duration": (
        "Measure MRR    64B    trial_duration=-1 s",
        "must be above 0 s and at most 7 days, not -1 s",
    ),
    "rest that is no time": ("Find NDR And PDR    64B    rest=soon", "'soon' is not a duration"),
    "integrity that is none": (
        "Find NDR And PDR    64B    integrity=maybe",
        "must be doubt or fail or off, not 'maybe'.",
    ),
    "neither yes nor no": ("Find NDR And PDR    64B    bidirectional=perhaps", "'perhaps' is neither yes nor no"),
    "no run to continue": ("Find NDR And PDR    64B    resume=nowhere", "There is no run to continue in nowhere"),
    "misspelt frame size": ("Find NDR And PDR    framesize=64B", "Did you mean 'frame_size'?"),
    "misspelt profile": (
        "Find NDR And PDR    64B    profil=ethip4-udp",
        "no argument 'profil'. Did you mean 'profile'?",
    ),
    "misspelt number of trials": ("Measure MRR    64B    trails=3", "no argument 'trails'. Did you mean 'trials'?"),
    "name of a profile, misspelt": ("Find NDR And PDR    64B    profile=ethip4-upd", "Similar names are ethip4-udp"),
    "misspelt goals": ("Find NDR And PDR    64B    goals=quik", "Did you mean 'quick'?"),
    "misspelt preset": ("Find NDR And PDR    64B    goals=NDR, PRD", "Did you mean 'PDR'?"),
    "load of nothing": ("Find NDR And PDR    64B    max_load=0", "'0' is not above 0; write a frame rate like"),
    "bits for frames": ("Find NDR And PDR    64B    max_load=100 Mbps", "'100 Mbps' is not a frame rate"),
    "least load above the limit": (
        "Find NDR And PDR    64B    min_load=20 Mpps",
        "is above the maximum load (400.00 kfps)",
    ),
    "no such profile": ("Find NDR And PDR    64B    profile=nope.yaml", "Cannot read nope.yaml: No such file"),
    "frame that is too large": ("Find NDR And PDR    9001B", "9001 is not between 64 and 9000 bytes"),
    "step that the RFC forbids": (
        "Measure Frame Loss Rate    64B    step=50 %",
        "step must be above 0 and at most 0.1, not 0.5.",
    ),
    "loss ratio above 1": (
        "Find Critical Load    64B    target_loss_ratio=2",
        "must be between 0 and 1, exclusive, not 2.0",
    ),
    "size for a load": ("Measure Latency    64B", "'64B' is not a frame rate"),
    "demand of nothing": ("Throughput Should Be At Least    fast", "'fast' is not a frame rate"),
    "telemetry of no search": ("Collect Telemetry", "No search has been made since this testbed was set up."),
    "keyword that is not there": (
        "Measure Reconfiguration Loss    64B    keyword=No Such Keyword",
        "No keyword with name 'No Such Keyword' found.",
    ),
    "nothing to reconfigure": ("Reconfigure DUTs", "There is no DUT that lossratio can reconfigure"),
}


@pytest.fixture(scope="module")
def suite_of_mistakes(tmp_path_factory):
    """The messages of tests with a mistake each, by name, and whether anything was measured."""
    directory = tmp_path_factory.mktemp("mistakes")
    lines = [
        "*** Settings ***",
        "Resource    lossratio/resources/performance.resource",
        "Test Teardown    Tear Down Testbed",
    ]
    lines.append("*** Test Cases ***")
    for name, (line, _) in IN_SUITES.items():
        lines.append(name)
        if "Testbed" not in line and name != "no set-up":
            lines.append(f"    Set Up Testbed    {SIMULATED}")
        lines.append(f"    {line.format(SIMULATED)}")
    (directory / "mistakes.robot").write_text("\n".join(lines))
    robot.run(
        str(directory / "mistakes.robot"),
        outputdir=str(directory / "out"),
        pythonpath=[str(TOPOLOGIES.parent / "libraries")],
        stdout=io.StringIO(),
        stderr=io.StringIO(),
    )
    tests = ExecutionResult(str(directory / "out" / "output.xml")).suite.all_tests
    return {test.name: test.message for test in tests}, list(directory.rglob("trials/*.jsonl"))


@pytest.mark.parametrize("name", IN_SUITES)
def test_a_mistake_in_a_suite_is_one_error_in_one_line_and_nothing_is_measured(suite_of_mistakes, name):
    messages, journals = suite_of_mistakes
    assert IN_SUITES[name][1] in messages[name]
    assert "\n" not in messages[name]
    assert journals == []


def test_a_tag_that_no_test_has_is_named(lossratio, tmp_path):
    (tmp_path / "a.robot").write_text("*** Test Cases ***\nOne\n    Log    1\n")
    status, out, err = lossratio(*ON_SIMULATED, "a.robot", "--include", "ndrpdrr")
    assert (status, "contains no tests matching tag 'ndrpdrr'" in out + err) == (2, True)


MEASURE = "from lossratio import open_testbed; open_testbed(__import__('sys').argv[1], results='out').mrr('64B')"
WITHOUT = "import sys; sys.modules[{!r}] = None; from lossratio.commands.main import main; sys.argv = {!r}; main()"


@pytest.mark.smoke
@pytest.mark.netns
@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes a file system that cannot be written")
def test_a_directory_that_cannot_be_written_is_named_before_anything_is_measured(tmp_path):
    (tmp_path / "out").mkdir()
    lines = 'mount -t tmpfs -o ro tmpfs out && exec "$0" -c "$1" "$2"'
    command = ["unshare", "--mount", "sh", "-c", lines, sys.executable, MEASURE, str(SIMULATED)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    message = "Cannot write to out: Read-only file system. Make the file system writable, or give another directory"
    assert f"StorageError: {message} as results." in done.stderr


@pytest.mark.whole
def test_a_package_that_is_missing_is_named(tmp_path):
    code = WITHOUT.format("s3fs", ["lossratio", "trend", "s3://bucket/path"])
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stderr.startswith(
        "Error: s3://bucket/path: this kind of store needs the Python package 's3fs'. Install"
    )
    assert "pip install 'robotframework-lossratio[s3]'" in done.stderr


def with_field(path, value):
    """Changes a field of the topology's data."""

    def change(data):
        *parents, last = path
        for name in parents:
            data = data[name]
        data[last] = value

    return change


def swap_links(data):
    west, east = data["nodes"]["TG"]["interfaces"].values()
    west["link"], east["link"] = east["link"], west["link"]


LIVE = {
    "swapped links": (
        swap_links,
        "",
        "",
        r"DUT1 receives [\d,]+ frames and forwards none.* Check the ends of the links in the topology file",
    ),
    "interface down": (
        None,
        "ip link set tg0 down",
        "ip link set tg0 up",
        r"interface tg0 of TG is down. Set it up \(ip",
    ),
    "MTU of the TG": (
        None,
        "ip link set tg1 mtu 600",
        "ip link set tg1 mtu 1500",
        "Frames of 1518 bytes do not go .*Raise it to",
    ),
    "MTU of the DUT": (
        None,
        "ip link set dut0 mtu 600",
        "ip link set dut0 mtu 1500",
        r"DUT1.port0 \(dut0\), whose MTU is 600",
    ),
    "no such interface": (
        with_field(("nodes", "DUT1", "interfaces", "port0", "name"), "eth7"),
        "",
        "",
        r"lab.yaml:\d+: nodes.DUT1.interfaces.port0.name: node DUT1 has no interface 'eth7'",
    ),
    "wrong port": (
        with_field(("nodes", "DUT1", "port"), 1),
        "",
        "",
        "connection refused. Is sshd running there, and is this its port?",
    ),
    "wrong user": (with_field(("nodes", "DUT1", "username"), "nobody7"), "", "", "log-in refused .*Check the user"),
    "no key": (with_field(("nodes", "DUT1", "key_file"), "/nowhere"), "", "", "cannot read its key file /nowhere"),
    "no Python": (with_field(("nodes", "TG", "generator", "python"), "/python9"), "", "", "/python9: not found"),
}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A local testbed, as if it were a lab."""
    with own_state():
        file = local_topology(tmp_path_factory.mktemp("built"), "mistakes")
        with LocalTestbed.up(load_topology(file)) as testbed:
            yield testbed.topology


@pytest.mark.netns
@needs_testbed
@pytest.mark.parametrize(("change", "command", "undo", "error"), LIVE.values(), ids=LIVE)
def test_a_mistake_in_a_lab_is_one_error_that_names_the_place(built, tmp_path, change, command, undo, error):
    data = copy.deepcopy(built.model_dump(mode="json", exclude_none=True, exclude_defaults=True))
    data |= {"testbed": "lab", "format": "lossratio-topology/1"}
    if change is not None:
        change(data)
    (tmp_path / "lab.yaml").write_text(yaml.safe_dump(data))
    node = "TG" if "tg" in command else "DUT1"
    with NodeSession.connect(node, built.nodes[node]) as session:
        session.run("sh", "-c", command)
        try:
            with (
                pytest.raises(LossRatioError, match=error),
                open_testbed(tmp_path / "lab.yaml", dut="linux_router", results=tmp_path) as testbed,
            ):
                testbed.mrr("1518B", max_load="5 kfps")
        finally:
            session.run("sh", "-c", undo)
