"""Hooks of black boxes: commands, and every way in which they fail."""

from __future__ import annotations

import json
import sys

import pytest
from waiting import PATIENCE

from lossratio.dut import BlackBox, DutCounters
from lossratio.dut.black_box import BlackBoxOptions
from lossratio.errors import DutError, LossRatioError, NodeError, TopologyError
from lossratio.measurements.telemetry import observed
from lossratio.nodes import CommandResult
from lossratio.topology import Hooks, Hop, Interface, Port, load_topology

COUNTED = {"received": {"west": 10, "east": 7}, "transmitted": {"east": 9, "west": 7}, "dropped": {"queue": 1}}


class Session:
    """Answers commands as a node would."""

    name = "BOX"

    def __init__(self, stdout="", status=0, stderr=""):
        self.commands = []
        self.answer = (status, stdout, stderr)

    def run(self, *command, **options):
        self.commands.append(command)
        if isinstance(self.answer[0], Exception):
            raise self.answer[0]
        return CommandResult(command, *self.answer)


def box(hooks, session=None, **options):
    ports = [Port("BOX", name, Interface(link=name)) for name in ("in", "out")]
    hop = Hop("BOX", *ports, hooks=Hooks.model_validate(hooks))
    return BlackBox(session or Session(), hop, BlackBoxOptions(**options))


def test_counters_are_read_by_a_command_that_prints_json():
    session = Session(json.dumps(COUNTED))
    device = box({"counters": {"command": "show counters 'port 1'"}}, session)
    assert device.read_counters() == DutCounters(**COUNTED)
    assert session.commands == [("show", "counters", "port 1")]
    assert device.read_counters().since(DutCounters({"west": 4}, {}, {})).received == {"west": 6, "east": 7}


def test_counters_are_found_by_json_pointers_and_regular_expressions():
    answer = '[{"if": "a/b", "rx": {"frames": "12"}, "a/b": 3}]\n'
    places = {"received": {"west": "/0/rx/frames"}, "dropped": {"queue": "/0/a~1b"}}
    counters = box({"counters": {"command": "x", **places}}, Session(answer)).read_counters()
    assert (counters.received, counters.dropped) == ({"west": 12}, {"queue": 3})
    text = "eth0\n  frames in: 15\neth1\n  frames in: 20\n"
    places = {"received": {"west": r"^eth0\s+frames in: (\d+)", "east": r"^eth1\s+frames in: (\d+)"}}
    assert box({"counters": {"command": "x", **places}}, Session(text)).read_counters().received == {
        "west": 15,
        "east": 20,
    }


@pytest.mark.parametrize(
    ("hook", "session", "problem"),
    [
        (
            {},
            Session("{oops"),
            "must be a mapping with one or more of received, transmitted, dropped, details, not 'None'",
        ),
        ({}, Session('{"rx": 1}'), "the answer must be a mapping with one or more of"),
        ({}, Session('{"received": 1}'), "'received' is not a mapping: '1'"),
        ({}, Session('{"received": {"west": -1}}'), "received west is not a number of frames: '-1'"),
        ({}, Session('{"received": {"west": true}}'), "received west is not a number of frames: 'True'"),
        (
            {},
            Session('{"received": {"left": 1}}'),
            "received has a value for 'left', which is not a side: give values for west and east",
        ),
        ({}, Session("[" * 100_000 + "]" * 100_000), "must be a mapping with one or more of"),
        ({}, Session(f'{{"received": {{"west": {"9" * 5000}}}}}'), "must be a mapping with one or more of"),
        ({}, Session(f'{{"received": {{"west": "{"9" * 5000}"}}}}'), "received west is not a number of frames: '999"),
        ({}, Session(f'{{"received": {{"west": {2**64}}}}}'), "received west is not a number of frames: '184467"),
        ({"received": {"west": r"(\d+)"}}, Session("9" * 5000), "received west is not a number of frames: '999"),
        ({"received": {"west": "/a"}}, Session('{"a": 1e999}'), "the answer is not JSON"),
        ({"received": {"west": "/a"}}, Session("text"), "the answer is not JSON: 'text'"),
        ({"received": {"west": "/a/b"}}, Session('{"a": {"c": 1}}'), "there is no /a/b in the answer"),
        ({"received": {"west": "in: (.*)$"}}, Session("in: many"), "received west is not a number of frames: 'many'"),
        ({"received": {"west": r"in: (\d+)"}}, Session("out"), r"nothing matches 'in: \(\\\\d\+\)' in the answer"),
        ({}, Session("", 3, "no\nsuch port"), "show it ended with exit status 3: 'no such port'"),
        ({}, Session(NodeError("Node BOX: show it did not end within 10 s")), "did not end within 10 s"),
    ],
)
def test_a_hook_that_fails_hangs_or_prints_rubbish_is_one_clear_error(hook, session, problem):
    device = box({"counters": {"command": "show it", **hook}}, session)
    with pytest.raises(LossRatioError, match=rf"^BOX: the hook 'counters' failed: .*{problem}"):
        device.read_counters()


def test_commands_on_this_machine_fail_with_one_clear_error_too():
    def here(command, **fields):
        hook = {"command": [sys.executable, "-c", command], "runs_on": "controller", "timeout": PATIENCE, **fields}
        return box({"counters": hook})

    assert here(f"print({json.dumps(json.dumps(COUNTED))})").read_counters().received == {"west": 10, "east": 7}
    for command, fields, problem in (
        ("import time; time.sleep(3600)", {"timeout": "100 ms"}, "took longer than 0.1 s"),
        ("raise SystemExit('away')", {}, "ended with exit status 1: 'away'"),
        ("print('x' * 2_000_000)", {}, "printed more than 1,000,000 bytes"),
    ):
        with pytest.raises(DutError, match=f"BOX: the hook 'counters' failed: .*{problem}"):
            here(command, **fields).read_counters()
    with pytest.raises(DutError, match="cannot be run on this machine: No such file"):
        box({"reset": {"command": "/no/such/program", "runs_on": "controller"}}).reset()


def test_a_counter_that_goes_back_is_an_error_unless_the_device_was_reset():
    session = Session(json.dumps(COUNTED))
    device = box({"counters": {"command": "x"}, "reset": {"command": "y"}}, session)
    device.read_counters()
    session.answer = (0, json.dumps({**COUNTED, "received": {"west": 3, "east": 7}}), "")
    with pytest.raises(DutError, match=r"received west of the hook 'counters' went back from 10 to 3\. .*64 bits"):
        device.read_counters()
    device.reset()
    assert device.read_counters().received["west"] == 3


def test_hooks_reset_describe_and_reconfigure():
    session = Session('{"version": "1.2", "uptime": 5}')
    device = box(
        {
            "reset": {"command": "clear all"},
            "describe": {"command": "show version"},
            "reconfigure": {"command": ["add", "routes={entries}"]},
        },
        session,
        reset=True,
    )
    device.check()
    described = device.describe()
    assert (described["version"], described["described"]["uptime"]) == ("1.2", 5)
    device.check_reconfigure(7)
    device.reconfigure(7)
    assert session.commands == [("show", "version"), ("add", "routes=7")]
    assert device.resets
    device.reset()
    assert session.commands[-1] == ("clear", "all")


def test_an_impossible_reconfiguration_is_refused_before_the_search():
    with pytest.raises(DutError, match=r"a black_box without a hook 'reconfigure' .* Nothing was measured"):
        box({}).check_reconfigure(1000)


def test_a_reset_before_each_trial_needs_a_hook():
    with pytest.raises(DutError, match=r"cannot be reset before each trial unless it has a hook 'reset'"):
        box({}, reset=True).check()
    box({"reset": {"command": "clear"}}, reset=True).check()


def test_keywords_go_before_hooks_of_the_file():
    device = box({"counters": {"command": "x"}}, Session("rubbish"))
    device.hooks.use("counters", lambda: COUNTED)
    assert device.read_counters() == DutCounters(**COUNTED)
    resets = []
    device.hooks.use("reset", lambda: resets.append(1))
    assert device.resets
    with observed([device]) as (observation,):
        pass
    assert resets == [1]
    assert observation.counted.unaccounted == 0
    with pytest.raises(
        DutError, match=r"There is no hook 'restart'\. The hooks are reset, counters, reconfigure, describe"
    ):
        device.hooks.use("restart", print)


FILE = """\
format: lossratio-topology/1
name: lab
nodes:
  TG:
    type: TG
    netns: tg
    generator: {{kind: afpacket}}
    interfaces: {{a: {{name: tg0, link: in}}, b: {{name: tg1, link: out}}}}
  BOX:
    type: DUT
    hooks: {hooks}
    interfaces: {{in: {{link: in}}, out: {{link: out}}}}
"""


@pytest.mark.parametrize(
    ("hooks", "problem"),
    [
        ("{reset: {}}", "reset.command: this field is required. The command with its arguments"),
        (
            "{reset: {command: x, url: 'http://a'}}",
            "url: unknown field. Earlier versions had 'url'. Instead, use curl as a 'command'",
        ),
        (
            "{reset: {command: x}}",
            "does not say how to reach the node: add 'host', 'netns' or 'container', or set 'runs_on: contr",
        ),
        ("{reset: {command: 'echo it''s'}}", "has a quote that is not closed, or ends with a backslash"),
        ("{reset: {command: ' '}}", "the command is empty"),
        ("{reset: {command: []}}", "the command is empty"),
        ("{restart: {command: x}}", "restart"),
        ("{counters: {command: x, received: {left: /a}}}", "left"),
        ("{counters: {command: x, received: {west: 'frames'}}}", "regular expression with one group"),
        ("{counters: {command: x, received: {west: '(frames'}}}", "is not a regular expression"),
    ],
)
def test_a_wrong_hook_is_found_before_anything_is_touched(tmp_path, hooks, problem):
    (tmp_path / "lab.yaml").write_text(FILE.format(hooks=hooks))
    with pytest.raises(TopologyError) as caught:
        load_topology(tmp_path / "lab.yaml")
    assert problem in str(caught.value)


def test_hooks_are_on_the_path(tmp_path):
    (tmp_path / "lab.yaml").write_text(FILE.format(hooks="{reset: {command: x, runs_on: controller}}"))
    (hop,) = load_topology(tmp_path / "lab.yaml").path().hops
    assert hop.hooks.reset.command == "x"
