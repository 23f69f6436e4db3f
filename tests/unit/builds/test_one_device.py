"""Builds are compared on one device: another one is refused by its name."""

from __future__ import annotations

import json

import pytest
from history_examples import entry
from patches_examples import SUITE, write_lab

from lossratio.errors import BuildError
from lossratio.report.history import History
from lossratio.results import Ends
from lossratio.runs.builds import BuildRecord
from lossratio.runs.builds.measuring import Measured

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
    assert f"{NAME} was measured on two devices: B on {BRIDGE.format(47_000)}, and A on {BRIDGE.format(50_000)}" in (
        done.err
    )
    assert "Keep the options of the device" in done.err


@pytest.mark.whole
def test_a_comparison_goes_on_when_the_device_is_the_same_again(lossratio, lab):
    on_a_bridge(lab)
    script = lab.parent / "set_up_a.sh"
    script.write_text(policed(47))
    assert ab(lossratio, lab, f"sh {script}", policed(50)).status == 2
    script.write_text(policed(50))
    done = ab(lossratio, lab, f"sh {script}", policed(50))
    assert done.status == 0, done.err
    assert "B is the same as A" in done.out
    lines = (lab.parent / "ab" / "measurements.jsonl").read_text().splitlines()[1:]
    assert {json.loads(line)["measured"]["devices"][NAME] for line in lines} == {BRIDGE.format(50_000)}


def record(directory):
    return BuildRecord(directory, {})


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


@pytest.mark.whole
def test_a_device_that_the_history_does_not_have_is_an_error_with_its_names(lossratio, tmp_path):
    history = tmp_path / "history"
    for number, device in enumerate(["vpp", "vpp, mtu=9000"]):
        History(history).add([{**entry(number, 150e3), "device": device}])
    done = lossratio("trend", history, "--device", "vpp, mtu=900")
    assert done.status == 2
    assert "The history has no device 'vpp, mtu=900'. Did you mean" in done.err
