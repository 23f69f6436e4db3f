"""Mistakes that users make: each ends with one clear error, its exit status, and nothing else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

TOPOLOGIES = Path(__file__).parents[3] / "topologies"
LOCAL, SIMULATED = TOPOLOGIES / "local.yaml", TOPOLOGIES / "simulated.yaml"
ON_SIMULATED = ("run", "--topology", SIMULATED)

IN_FILES = {
    "no YAML": (r"nodes:", "nodes: [", "not YAML"),
    "two fields in one": (r"name: local", "name: local: x", "not YAML"),
    "a tab": (r"\ndescription", "\n\tdescription", "not YAML"),
    "wrong format": (r"topology/1", "topology/7", "format: input should be 'lossratio-topology/1'"),
    "misspelt field": (r"nodes:", "nods:", "nods: unknown field"),
    "misspelt field of a node": (r"generator: \{", "genrator: {", "nodes.TG.genrator: unknown field"),
    "misspelt generator": (r"kind: afpacket", "kind: afpaket", "Did you mean 'afpacket'?"),
    "misspelt setting of a generator": (r"max_rate:", "maxrate:", "nodes.TG.generator.maxrate: unknown field"),
    "unknown kind of testbed": (r"testbed: local", "testbed: locla", "testbed: input should be 'lab', 'local' or"),
    "unit that is none": (r"200 kfps", "200 kilos", "'200 kilos' is not a frame rate; write it like '10 kpps'"),
    "time that is none": (r"5 ms", "5 parsecs", "nodes.TG.generator.catch_up: "),
    "no TG": (r"type: TG", "type: DUT", "exactly one node of type TG, and there are 0"),
    "two TGs": (r"type: DUT", "type: TG", "exactly one node of type TG, and there are 2"),
    "no generator": (r"    generator: .*\n", "", "a TG without a generator; add e.g."),
    "link with one end": (r"name: dut1, link: link1", "name: dut1, link: link9", "must have two ends, and has 1"),
    "link with three ends": (r"name: dut1, link: link1", "name: dut1, link: link0", "must have two ends, and has 3"),
    "swapped links": (r"name: tg1, link: link1", "name: tg1, link: link0", "must have two ends"),
    "same interface twice": (r"name: tg0", "name: tg1", "another interface of TG has the name 'tg1' as well"),
    "name too long for Linux": (r"name: tg0", "name: interface-of-the-tg", "Linux takes 1 to 15 bytes"),
    "no name of an interface": (r"name: tg0, ", "", "an interface of a local testbed needs a 'name'"),
    "MAC address that is none": (r"name: tg0", "mac_address: 1-2, name: tg0", "mac_address: string should match"),
    "password in the file": (r"type: DUT", "type: DUT\n    password: x", "a password, which does not belong in a file"),
    "field given twice": (r"type: DUT", "type: DUT\n    type: DUT", "the name 'type' is given twice"),
    "model of a SUT on a real device": (r"type: DUT", "type: DUT\n    sut: {model: knee}", "only goes with"),
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


IN_COMMANDS = {
    "no such topology": (("check", "nope.yaml"), "Cannot read nope.yaml: No such file or directory."),
    "directory for a file": (("check", "."), "Cannot read .: Is a directory."),
    "longer path than there is": (("check", LOCAL, "--duts", "3"), "there are 1 (DUT1)"),
    "NIC that is not there": (("check", LOCAL, "--nic", "Intel-X710"), "models on them: none"),
    "more links than there are": (("check", LOCAL, "--links", "2"), "2 parallel links are asked for, and there are 1"),
    "no testbed": (("run", "a.robot"), "Name the testbed: --topology FILE"),
    "no suite": (ON_SIMULATED, "Name the suites to run, or --job FILE."),
    "option of Robot Framework that is none": ((*ON_SIMULATED, "a.robot", "--", "--nonsense"), "--nonsense not recog"),
    "time to wait that is none": ((*ON_SIMULATED, "--wait", "soon", "a.robot"), "Invalid value for '--wait'"),
    "no such job": (("run", "--job", "nope.yaml"), "Cannot read nope.yaml"),
    "no such run to resume": (("run", "--resume", "nope"), "Only runs that 'lossratio run' began can be resumed."),
    "suites of a resumed run": (("run", "--resume", ".", "a.robot"), "give no others"),
    "no run to report": (("report", "nope"), "nope is not the directory of a run"),
    "no run to compare": (("compare", "a", "b"), "a is not the directory of a run"),
    "no history": (("trend", "nope"), "nope is no history"),
    "no journal": (("replay", "nope.jsonl"), "Cannot read the journal nope.jsonl"),
    "nothing to repair": (("repair", "nope"), "nope is no journal"),
    "no archive": (("fetch", "out"), "Missing option '--results'"),
    "self-test through a device": (("self-test", LOCAL), "between the TG's ports there is DUT1"),
    "local testbed of a simulated one": (("testbed", "up", SIMULATED), "Topology simulated is no local testbed"),
    "no such command": (("mesure",), "No such command 'mesure'"),
}


@pytest.mark.parametrize(("arguments", "error"), IN_COMMANDS.values(), ids=IN_COMMANDS)
def test_a_mistake_in_a_command_is_one_error(lossratio, arguments, error):
    status, out, err = lossratio(*arguments)
    assert (status, out) == (2, "")
    assert error in err
    assert err.count("Error: ") == 1


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

    assert completed("lossratio te") == ["plain,testbed"]
    assert "plain,--resume" in completed("lossratio run --re")
