"""Builds are compared on one device: another one is refused by its name, and an alarm is bisected on its own device."""

from __future__ import annotations

import json

import pytest
from history_examples import entry
from patches_examples import SUITE, make_repository, set_up_revision, write_lab

from lossratio.builds import BuildRecord
from lossratio.builds.measuring import Measured
from lossratio.errors import BuildError
from lossratio.history import History
from lossratio.history.annotations import load_known_changes
from lossratio.results import Ends, may_have_result
from lossratio.runs.run import OnlySome

BRIDGE = "linux_bridge, police={}"
NAME = "Mrr.64B-mrr MRR"


@pytest.fixture
def lab(tmp_path):
    return write_lab(tmp_path)


def policed(rate):
    """A set-up command that gives the device another option."""
    return f"sed -i 's/police=[0-9]* kfps/police={rate} kfps/' mrr.robot"


def on_a_bridge(lab, rate=50):
    settings = f"dut=linux_bridge    police={rate} kfps"
    (lab.parent / "mrr.robot").write_text(SUITE.replace("${TOPOLOGY}\n", f"${{TOPOLOGY}}    {settings}\n", 1))


def ab(lossratio, lab, a, b):
    options = ["--set-up-a", a, "--set-up-b", b, "--topology", lab, "--output", lab.parent / "ab"]
    return lossratio("builds", "ab", *options, "--test", "64B-mrr", lab.parent / "mrr.robot")


@pytest.mark.whole
def test_two_devices_are_no_two_builds(lossratio, lab):
    on_a_bridge(lab)
    done = ab(lossratio, lab, policed(50), policed(47))
    assert done.status == 2
    assert f"{NAME} was measured on two devices: A on {BRIDGE.format(50_000)}, and B on {BRIDGE.format(47_000)}" in (
        done.err
    )
    assert "Keep the options of the device" in done.err


@pytest.mark.whole
def test_a_comparison_goes_on_when_the_device_is_the_same_again(lossratio, lab):
    on_a_bridge(lab)
    script = lab.parent / "set_up_b.sh"
    script.write_text(policed(47))
    assert ab(lossratio, lab, policed(50), f"sh {script}").status == 2
    script.write_text(policed(50))
    done = ab(lossratio, lab, policed(50), f"sh {script}")
    assert done.status == 0, done.err
    assert "B is the same as A" in done.out
    lines = (lab.parent / "ab" / "measurements.jsonl").read_text().splitlines()[1:]
    assert {json.loads(line)["measured"]["devices"][NAME] for line in lines} == {BRIDGE.format(50_000)}


def record(directory, device=None):
    return BuildRecord(directory, {}, device)


def measured(device):
    return lambda build, directory: Measured({NAME: Ends(1e6, 1e6, 0.0)}, {NAME: device} if device else {})


def test_a_record_that_is_continued_knows_the_device_of_earlier_builds(tmp_path):
    record(tmp_path).measurement(0, "A", measured("vpp"))
    with pytest.raises(BuildError, match="A on vpp, and B on vpp, mtu=9000"):
        record(tmp_path).measurement(1, "B", measured("vpp, mtu=9000"))
    assert len(record(tmp_path).measurements) == 1
    record(tmp_path).measurement(1, "B", measured("vpp"))
    assert len(record(tmp_path).measurements) == 2


def test_a_measurement_without_a_device_has_none_to_differ_from(tmp_path):
    record(tmp_path).measurement(0, "A", measured(None))
    assert record(tmp_path).measurement(1, "B", measured("vpp")).measured.values


def test_a_bisection_measures_the_device_of_its_alarm(tmp_path):
    with pytest.raises(BuildError, match=r"the runs of the alarm on vpp, mtu=9000, and 0123456789ab on vpp\."):
        record(tmp_path, "vpp, mtu=9000").measurement(0, "0123456789abcdef", measured("vpp"))


def add_alarms(history, revisions, devices):
    """A history with an alarm on each device: the worst is on the last one."""
    for number, device in enumerate(devices, start=1):
        for night in range(10):
            is_before = night < 8
            value = 150e3 if is_before else 150e3 - number * 10e3
            made = entry(
                night + number / 24, value + night % 3, test="Mrr.64B-mrr", quantity="MRR", testbed="simulated"
            )
            revision = revisions[0 if is_before else -1][:9]
            History(history).add([{**made, "build": f"linux_bridge 1.0~{night}-g{revision}", "device": device}])


@pytest.mark.whole
def test_one_alarm_of_two_devices_is_chosen_bisected_and_noted_and_the_other_one_stays(lossratio, lab):
    repository, history = lab.parent / "repository", lab.parent / "history"
    revisions = make_repository(repository, [50, 50, 50, 40, 40])
    slow, fast = BRIDGE.format(90_000), BRIDGE.format(80_000)
    add_alarms(history, revisions, [slow, fast])
    on_a_bridge(lab, rate=90)
    # The device forwards what its option allows, so that no revision differs: that is an answer, too.
    options = ["--repository", repository, "--set-up", set_up_revision(repository, lab), "--topology", lab]
    options += ["--output", lab.parent / "bisect", "--history", history]
    chosen = lossratio("builds", "bisect", *options, "--device", "*police=90000", lab.parent / "mrr.robot")
    assert chosen.out.startswith(f"Alarm of Mrr.64B-mrr, MRR ({slow}), on simulated:\n"), chosen.err
    (folder,) = (lab.parent / "bisect").iterdir()
    assert "police_90000" in folder.name
    (note,) = load_known_changes(history / "annotations.yaml").changes
    assert (note.device, note.by) == (slow, "lossratio builds bisect")
    # The worst alarm is of the other device, which these suites do not measure.
    refused = lossratio("builds", "bisect", *options, lab.parent / "mrr.robot")
    assert refused.status == 2
    assert f"the runs of the alarm on {fast}, and {revisions[0][:12]} on {slow}" in refused.err
    assert len(list((lab.parent / "bisect").iterdir())) == 2
    assert lossratio("archive", "ack", history, "why", "--device", "*police=80000").out.count("explained") == 1
    done = lossratio("trend", history, "--device", "*police=80000")
    assert (done.status, "1 series" in done.out) == (0, True)
    assert lossratio("trend", history).status == 3


@pytest.mark.whole
def test_a_device_that_the_history_does_not_have_is_an_error_with_its_names(lossratio, lab):
    add_alarms(lab.parent / "history", ["0" * 40] * 5, ["vpp", "vpp, mtu=9000"])
    done = lossratio("trend", lab.parent / "history", "--device", "vpp, mtu=900")
    assert done.status == 2
    assert "The history has no device 'vpp, mtu=900'. Did you mean" in done.err


@pytest.mark.whole
def test_the_test_of_an_alarm_is_found_in_a_project_whatever_robot_framework_calls_it(lossratio, lab):
    repository, history = lab.parent / "repository", lab.parent / "history"
    revisions = make_repository(repository, [150, 150, 140])
    suite = lab.parent / "tests" / "core" / "mrr.robot"
    suite.parent.mkdir(parents=True)
    names = SUITE.replace("\n64B-mrr\n", "\n${SIZE}-mrr\n")
    suite.write_text(names.replace("*** Test Cases", "*** Variables ***\n${SIZE}    64B\n\n*** Test Cases"))
    for night in range(10):
        value = 150e3 if night < 8 else 140e3
        made = entry(night, value + night % 3, test="Tests.Core.Mrr.64B-mrr", quantity="MRR", testbed="simulated")
        revision = revisions[0 if night < 8 else -1][:9]
        History(history).add([{**made, "build": f"device 1.0~{night}-g{revision}", "device": "set up by others"}])
    options = ["--repository", repository, "--set-up", set_up_revision(repository, lab), "--topology", lab]
    found = lossratio("builds", "bisect", *options, "--output", lab.parent / "bisect", "--history", history, suite)
    assert found.status == 0, found.err
    assert found.out.endswith("change 2\n")


class _Test:
    def __init__(self, name, suite="Suite"):
        self.name = name
        self.full_name = f"Robot.{suite}.{name}"
        self.parent = type("Suite", (), {"source": None, "metadata": {}, "full_name": suite})


@pytest.mark.parametrize(
    ("name", "result", "is_so"),
    [
        ("64B", "Suite.64B", True),
        ("64B", "Suite.64B (2)", True),
        ("64B", "Suite.64B search", True),
        ("64B", "Suite.64B (2) search", True),
        ("64B", "Suite.64B-soak", False),
        ("64B", "Other.64B", False),
        ("${SIZE}B [a]", "Suite.1518B [a]", True),
        ("${SIZE}B", "Suite.1518", False),
        ("a.b", "Suite.a-b", False),
    ],
)
def test_which_test_has_a_result_of_a_name(name, result, is_so):
    assert may_have_result(_Test(name), result) is is_so


def test_only_some_tests_are_left():
    suite = type("Suite", (), {"tests": [_Test("64B"), _Test("128B")]})
    OnlySome(lambda test: may_have_result(test, "Suite.128B")).start_suite(suite)
    assert [test.name for test in suite.tests] == ["128B"]
