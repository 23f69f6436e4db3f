"""A new counter, parameter or feature of a DUT is one edit: all else follows, in a copy of the library with them."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import lossratio

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
COUNTER = '''
    echoed_frames: Frames = 0
    """Frames that came back to the port that sent them (an example)."""
'''
PARAMETER = '''
    pause: Annotated[Duration, Field(gt=0.0, le=10.0)] = 0.5
    """Seconds of silence after each search (an example)."""
'''

OPTION = '''
    waiting: int = Field(default=0, ge=0, le=1000)
    """Frames that may wait in the bridge itself (an example)."""

'''
ITS_CHANGE = """
        changes.run("ip", "link", "set", "dev", bridge, "txqueuelen", str(self.options.waiting))
"""


def insert(file: Path, before: str, text: str) -> None:
    """Inserts a field before a line that the file has once."""
    source = file.read_text()
    assert source.count(before) == 1
    file.write_text(source.replace(before, text.lstrip("\n") + before))


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    """What a program sees that imports the copy: this file, as a program."""
    directory = tmp_path_factory.mktemp("copy")
    library = directory / "lossratio"
    shutil.copytree(Path(lossratio.__file__).parent, library, ignore=shutil.ignore_patterns("__pycache__"))
    insert(library / "trials" / "trial.py", "    flows_with_loss: Frames | None = None\n", COUNTER)
    insert(library / "measurements" / "back_to_back.py", "    settle: Annotated[Duration", PARAMETER)
    bridge = library / "dut" / "linux_bridge.py"
    insert(bridge, "    vxlan: bool = False\n", OPTION.rstrip("\n") + "\n")
    insert(bridge, '        changes.set_link(bridge, "up")\n', ITS_CHANGE)
    command = [sys.executable, __file__, str(directory / "work")]
    environment = {**os.environ, "PYTHONPATH": str(directory)}
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_counter_goes_from_the_agents_answer_to_journal_and_result(seen):
    assert seen["counter"] == {"output": 3, "journal": 3, "result": 3}


def test_a_counter_is_described_in_the_schema_and_in_the_glossary(seen):
    assert seen["counter in the schema"] == "Frames that came back to the port that sent them (an example)."
    assert seen["counter in the glossary"] == [
        "| `echoed_frames` | Frames that came back to the port that sent them (an example). |"
    ]


def test_a_parameter_goes_from_the_method_to_journal_and_result(seen):
    assert seen["parameter"] == {"journal": 2.0, "result": 2.0}
    assert seen["refused"] == (
        "pause must be above 0 s and at most 10 s, not '11 s'. Seconds of silence after each search (an example)."
    )


def test_a_parameter_is_an_argument_of_keyword_and_method_with_its_documentation(seen):
    assert seen["keyword"] == "timedelta"
    assert seen["keyword's table"] == ["| ``pause`` | Seconds of silence after each search (an example). |"]
    assert seen["stub"] == ["        pause: float | str = ...,"]
    assert seen["parameter in the schema"] == "Seconds of silence after each search (an example)."


def test_an_option_of_a_dut_is_checked_and_used_where_its_class_says_so(seen):
    assert (
        seen["option refused"]
        == "DUT linux_bridge cannot be set up so: waiting: Input should be less than or equal to 1000"
    )
    assert seen["option used"] == ["ip link set dev lr-dut0 txqueuelen 500"]
    assert seen["option in results"] == 500


def test_an_option_of_a_dut_is_in_the_reference_and_in_editors(seen):
    assert seen["option in the reference"] == [
        "| `waiting` | Frames that may wait in the bridge itself (an example). |"
    ]
    assert seen["option in editors"] == "    waiting: int | str"
    assert "waiting" in seen["option's keyword"]


def look(work: Path) -> dict[str, object]:
    """Looks for the counter, the parameter and the option wherever they should be."""
    from lossratio import open_testbed
    from lossratio.errors import SearchError
    from lossratio.keywords import LossRatio
    from lossratio.results import describe_trials
    from lossratio.traffic.answers import read_counters
    from lossratio.trials import DirectionCounters, Journal, TrialInput, TrialResult, output_from_counters, read_journal

    work.mkdir()
    export, stub = (runpy.run_path(str(ROOT / "docs" / name)) for name in ("schema/export.py", "stub.py"))
    counted = {"intended_frames": 9, "sent_frames": 9, "received_frames": 8, "unsent_frames": 0, "echoed_frames": 3}
    others = {"generator_drop_frames": 0, "late_frames": 0, "load_ratio": 1.0, "elapsed_s": 1.0, "examination": None}
    counters = read_counters({"directions": [{"name": "a>b", **counted, **others}]}, ["a>b"])
    trial = TrialResult(TrialInput(1.0, 9.0), output_from_counters(TrialInput(1.0, 9.0), counters))
    with Journal.open(work / "journal.jsonl", {}) as journal:
        journal.append(trial)
    entries = read_journal(work / "journal.jsonl").entries
    counter = {
        "output": trial.output.directions[0].echoed_frames,
        "journal": entries[0].result.output.directions[0].echoed_frames,
        "result": describe_trials(entries)[0].directions[0].echoed_frames,
    }
    schema = json.loads(export["result_schema"]())["$defs"]
    asked = {"throughput": "50 kfps", "repeats": 1, "longest_burst": "10 ms", "settle": "0.1 s"}
    with open_testbed("simulated", results=work / "results") as testbed:
        result = testbed.back_to_back("64B", **asked, pause="2 s")
        try:
            testbed.back_to_back("64B", **asked, pause="11 s")
        except SearchError as error:
            refused = str(error)
    (file,) = (work / "results" / "trials").iterdir()
    keyword = LossRatio.measure_back_to_back_frames
    return {
        **look_for_option(),
        "counter": counter,
        "counter in the schema": schema["DirectionCounters"]["properties"]["echoed_frames"]["description"],
        "counter in the glossary": [row for row in export["counters_table"](DirectionCounters) if "echoed" in row],
        "parameter": {"journal": read_journal(file).search["settings"]["pause_s"], "result": result.settings.pause_s},
        "refused": refused,
        "keyword": keyword.robot_types["pause"].__name__,
        "keyword's table": [line for line in keyword.__doc__.splitlines() if "``pause``" in line],
        "stub": [line for line in stub["stub"]().splitlines() if " pause:" in line],
        "parameter in the schema": schema["BackToBackSettings"]["properties"]["pause_s"]["description"],
    }


def look_for_option() -> dict[str, object]:
    """Looks for the option of a bridge."""
    from lossratio.dut import create_dut, parse_options
    from lossratio.errors import DutError
    from lossratio.keywords.testbed import TestbedKeywords
    from lossratio.topology import Hop, Interface, Port

    commands = []
    ports = (Port("DUT1", name, Interface(name=name, link=name)) for name in ("dut0", "dut1"))

    class Changes:
        """Notes what would be changed."""

        def run(self, *command, **undo):
            commands.append(" ".join(command))

        def write(self, *file, **settings):
            pass

        add_link = set_link = run

    try:
        parse_options("linux_bridge", {"waiting": 1001})
    except DutError as error:
        refused = str(error).partition(". Its options")[0]
    bridge = create_dut("linux_bridge", SimpleNamespace(name="DUT1"), Hop("DUT1", *ports), {"waiting": "500"})
    bridge.configure(Changes(), "02:00:00:00:00:01", "02:00:00:00:00:02")
    options = runpy.run_path(str(ROOT / "docs" / "options.py"))
    return {
        "option refused": refused,
        "option used": [command for command in commands if "txqueuelen" in command],
        "option in results": bridge.options.model_dump(mode="json")["waiting"],
        "option in the reference": [row for row in options["table"]("linux_bridge").splitlines() if "waiting" in row],
        "option's keyword": sorted(TestbedKeywords.set_up_testbed.robot_types),
        "option in editors": next(line for line in options["types"]().splitlines() if "waiting:" in line),
    }


if __name__ == "__main__":
    print(json.dumps(look(Path(sys.argv[1]))))
