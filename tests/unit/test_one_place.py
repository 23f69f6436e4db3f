"""A new counter, parameter, feature of a DUT or kind of measurement is one edit: all else follows.

A copy of the library has them, and the last one, too, in a package of somebody else.
"""

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
from added_packages import put_package

import lossratio

pytestmark = pytest.mark.whole

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
ip link set dev {{ dut.stem }} txqueuelen {{ dut.options.waiting }}
"""

KIND = '''
from typing import Annotated, Literal

from lossratio.measurements import PlannedKind, PlannedTrials, Request
from lossratio.values.records import Rate
from lossratio.results import MaxLoad, Rfc2544Row, Shown, TestResult, View
from lossratio.trials import TrialInput


class NAMERequest(Request):
    """Measures NAME (an example), and returns the result."""

    rounds: int = 2
    """Number of trials (an example)."""


class NAMEResult(TestResult):
    """The result of NAME (an example)."""

    kind: Literal["NAME"] = "NAME"
    max_load: MaxLoad
    worst: Annotated[Rate | None, Shown("NAME rate")]
    """The least forwarding rate; null if the measurement failed."""


class NAME(PlannedKind[NAMERequest, NAMEResult]):
    """The kind: NAME (an example)."""

    keyword = "Measure NAME"
    method = "NAME"
    title = "Measuring NAME"
    algorithm = "NAME of some trials"

    def controller(self, request, loads):
        return PlannedTrials([TrialInput(1.0, loads.max_load)] * request.rounds)

    def build(self, measured, request, inputs, max_load):
        worst = None
        if measured.run.error is None:
            rates = [entry.result.forwarding_rate for entry in measured.entries]
            worst = measured.run.conditions.rate(min(rates))
        return NAMEResult(**measured.stated(max_load), worst=worst)


class NAMEView(View[NAMEResult]):
    """How NAME is shown."""

    def rfc2544_rows(self, result):
        yield Rfc2544Row("NAME trials", float(len(result.trials)), "trials")

    def csit(self, result):
        return {"type": "NAME"}
'''
IN_THE_HOUSE, OF_A_PACKAGE = "housed", "packaged"


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
    insert(library / "trials" / "trial_output.py", "    flows_with_loss: Frames | None = None\n", COUNTER)
    insert(library / "measurements" / "back_to_back.py", "    settle: Annotated[Duration", PARAMETER)
    bridge = library / "dut" / "linux_bridge.py"
    insert(bridge, "    vxlan: bool = False\n", OPTION.rstrip("\n") + "\n")
    insert(bridge, "ip link set dev {{ dut.stem }} up\n", ITS_CHANGE)
    (library / "measurements" / f"{IN_THE_HOUSE}.py").write_text(KIND.replace("NAME", IN_THE_HOUSE))
    entry = f"{OF_A_PACKAGE} = {OF_A_PACKAGE}:{OF_A_PACKAGE}"
    text = KIND.replace("NAME", OF_A_PACKAGE)
    put_package(directory, OF_A_PACKAGE, {"lossratio.measurement": [entry]}, **{OF_A_PACKAGE: text})
    command = [sys.executable, __file__, str(directory / "work")]
    environment = {**os.environ, "PYTHONPATH": str(directory)}
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_counter_goes_from_the_agents_answer_to_journal_and_result(seen):
    assert seen["counter"] == {"output": 3, "journal": 3, "result": 3}


def test_a_counter_is_described_in_the_schema_and_on_the_site(seen):
    assert seen["counter in the schema"] == "Frames that came back to the port that sent them (an example)."
    assert seen["counter on the site"] == seen["counter in the schema"]


def test_a_parameter_goes_from_the_method_to_journal_and_result(seen):
    assert seen["parameter"] == {"journal": 2.0, "result": 2.0}
    assert seen["refused"] == (
        "pause must be above 0 s and at most 10 s, not '11 s'. The documentation of 'pause' says: Seconds of silence "
        "after each search (an example)."
    )


def test_a_parameter_is_an_argument_of_keyword_and_method_with_its_documentation(seen):
    assert seen["keyword"] == "timedelta"
    assert seen["keyword's table"] == ["| ``pause`` | Seconds of silence after each search (an example). |"]
    assert seen["stub"] == ["        pause: float | str = ...,"]
    assert seen["parameter in the schema"] == "Seconds of silence after each search (an example)."


def test_an_option_of_a_dut_is_checked_and_used_where_its_class_says_so(seen):
    assert seen["option refused"] == "DUT linux_bridge cannot be set up: waiting: must be at most 1,000, not 1001"
    assert seen["option used"] == ["ip link set dev lr-dut0 txqueuelen 500"]
    assert seen["option in results"] == 500


def test_an_option_of_a_dut_is_in_the_reference_and_in_editors(seen):
    assert seen["option in the reference"] == [
        "| `waiting` | Frames that may wait in the bridge itself (an example). |"
    ]
    assert seen["option in editors"] == "    waiting: int | str"


@pytest.mark.parametrize("kind", [IN_THE_HOUSE, OF_A_PACKAGE])
def test_a_kind_of_measurement_has_keyword_and_method_readings_rows_of_rfc_2544_and_a_page(seen, kind):
    assert seen[kind] == {
        "keyword": [f"Measure {kind}", "int", ["| ``rounds`` | Number of trials (an example). |"]],
        "method": [kind, 3, f"64B {kind}"],
        "readings": [[f"{kind} rate", True]],
        "rfc2544": [[f"{kind} trials", 3.0, "trials"]],
        "csit": {"type": kind},
        "page": True,
        "trend": [f"{kind} rate"],
        "read": True,
    }


def test_a_kind_in_the_house_is_in_the_schema_in_editors_and_in_the_table_of_kinds(seen):
    assert seen["kinds in the schema"] == [IN_THE_HOUSE]
    assert seen["fields without a description"] == []
    assert seen["kinds in editors"] == [f"    def {IN_THE_HOUSE}("]
    assert seen["kinds in the table"] == [
        f"| `{IN_THE_HOUSE}` | `Measure {IN_THE_HOUSE}` | `{IN_THE_HOUSE}`, `{IN_THE_HOUSE}Request`, "
        f"`lossratio.measurements.{IN_THE_HOUSE}` |"
    ]


def look(work: Path) -> dict[str, object]:
    """Looks for the counter, the parameter, the option and the kinds wherever they should be."""
    from lossratio import open_testbed
    from lossratio.errors import SearchError
    from lossratio.keywords import LossRatio
    from lossratio.results import describe_trials
    from lossratio.traffic.answers import read_counters
    from lossratio.trials import DirectionCounters, Journal, TrialInput, TrialResult, output_from_counters, read_journal
    from lossratio.values.records import docstrings_of_fields

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
    described = schema[f"{IN_THE_HOUSE}Result"]["properties"]
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
        **{kind: look_for_kind(kind, work / kind) for kind in (IN_THE_HOUSE, OF_A_PACKAGE)},
        "kinds in the schema": [name for name in (IN_THE_HOUSE, OF_A_PACKAGE) if f"{name}Result" in schema],
        "fields without a description": [
            field for field, one in described.items() if not one.keys() & {"description", "$ref"}
        ],
        "kinds in editors": [line for line in stub["stub"]().splitlines() if f" {IN_THE_HOUSE}(" in line],
        "kinds in the table": [
            row for row in runpy.run_path(str(ROOT / "docs" / "kinds.py"))["table"]().splitlines() if "housed" in row
        ],
        "counter": counter,
        "counter in the schema": schema["DirectionCounters"]["properties"]["echoed_frames"]["description"],
        "counter on the site": docstrings_of_fields(DirectionCounters)["echoed_frames"],
        "parameter": {"journal": read_journal(file).search["settings"]["pause_s"], "result": result.settings.pause_s},
        "refused": refused,
        "keyword": keyword.robot_types["pause"].__name__,
        "keyword's table": [line for line in keyword.__doc__.splitlines() if "``pause``" in line],
        "stub": [line for line in stub["stub"]().splitlines() if " pause:" in line],
        "parameter in the schema": schema["BackToBackSettings"]["properties"]["pause_s"]["description"],
    }


def look_for_kind(kind: str, work: Path) -> dict[str, object]:
    """Looks for a kind wherever it should be, after a measurement on a simulated testbed."""
    from lossratio import open_testbed
    from lossratio.keywords import LossRatio
    from lossratio.measurements.rfc2544 import Rfc2544Part, Rfc2544Test
    from lossratio.measurements.rfc2544.report import values_of
    from lossratio.report import read_run, render
    from lossratio.report.history import History, TrendRequest, add_runs, analyse
    from lossratio.results import findings_of, read_result, view_of

    with open_testbed("simulated", results=work / "run") as testbed:
        result = getattr(testbed, kind)("64B", rounds=3)
    keyword = getattr(LossRatio, f"measure_{kind}")
    rows = values_of(Rfc2544Part("64B", Rfc2544Test.LATENCY, result))
    history = History(work / "history")
    add_runs(history, [work / "run"])
    (file,) = (work / "run" / "results").iterdir()
    return {
        "keyword": [
            keyword.robot_name,
            keyword.robot_types["rounds"].__name__,
            [line for line in keyword.__doc__.splitlines() if "``rounds``" in line],
        ],
        "method": [result.kind, len(result.trials), result.test.name],
        "readings": [[finding.quantity, finding.value is not None] for finding in findings_of([result])],
        "rfc2544": [[row["quantity"], row["value"], row["unit"]] for row in rows if row["unit"] == "trials"],
        "csit": view_of(result).csit(result),
        "page": f"{kind} rate" in render("html", [read_run(work / "run")]),
        "trend": [trend.series.key.quantity for trend in analyse(history, TrendRequest()).trends],
        "read": read_result(file) == result,
    }


def look_for_option() -> dict[str, object]:
    """Looks for the option of a bridge."""
    from lossratio.dut import create_dut, parse_options
    from lossratio.dut.changes import Changes
    from lossratio.errors import DutError
    from lossratio.topology import Hop, Interface, Port

    commands = []
    ports = (Port("DUT1", name, Interface(name=name, link=name)) for name in ("dut0", "dut1"))

    class Noted(Changes):
        """Notes what would be changed."""

        def __init__(self):
            pass

        def run(self, *command, **undo):
            commands.append(" ".join(command))

        def write(self, *file, **settings):
            pass

    try:
        parse_options("linux_bridge", {"waiting": 1001})
    except DutError as error:
        refused = str(error).partition(". Its options")[0]
    bridge = create_dut("linux_bridge", SimpleNamespace(name="DUT1"), Hop("DUT1", *ports), {"waiting": "500"})
    bridge.configure(Noted(), "02:00:00:00:00:01", "02:00:00:00:00:02")
    options = runpy.run_path(str(ROOT / "docs" / "options.py"))
    return {
        "option refused": refused,
        "option used": [command for command in commands if "txqueuelen" in command],
        "option in results": bridge.options.model_dump(mode="json")["waiting"],
        "option in the reference": [row for row in options["table"]("linux_bridge").splitlines() if "waiting" in row],
        "option in editors": next(line for line in options["types"]().splitlines() if "waiting:" in line),
    }


if __name__ == "__main__":
    print(json.dumps(look(Path(sys.argv[1]))))
