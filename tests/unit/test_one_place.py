"""A new counter and a new parameter are one edit each: everything else follows, in a copy of the library with both."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import lossratio

ROOT = Path(__file__).parents[2]
COUNTER = '''
    echoed_frames: Frames = 0
    """Frames that came back to the port that sent them (an example)."""
'''
PARAMETER = '''
    pause: Annotated[Duration, Field(gt=0.0, le=10.0)] = 0.5
    """Seconds of silence after each search (an example)."""
'''


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


def look(work: Path) -> dict[str, object]:
    """Looks for the counter and the parameter wherever they should be."""
    from lossratio import open_testbed
    from lossratio.errors import SearchError
    from lossratio.keywords.measurements import MeasurementKeywords
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
    keyword = MeasurementKeywords.measure_back_to_back_frames
    return {
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


if __name__ == "__main__":
    print(json.dumps(look(Path(sys.argv[1]))))
