"""A misspelt command, field, option, argument or name is answered with the one that is meant."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from lossratio import open_testbed
from lossratio.commands.main import commands
from lossratio.errors import LossRatioError, ProfileError, SearchError
from lossratio.keywords.measurements import request_of
from lossratio.keywords.session import Session
from lossratio.measurements.confirmation import ConfirmationRequest
from lossratio.measurements.mrr import MrrRequest
from lossratio.measurements.soak import SoakRequest
from lossratio.topology import load_topology

TOPOLOGY = """\
format: lossratio-topology/1
name: x
testbed: local
nodes:
  TG:
    type: TG
    generater: {kind: afpacket}
    generator: {kind: afpacket, max_rat: 1 kfps}
    interfaces: {p0: {nam: tg0, link: a}}
  DUT1: {type: DUT, interfaces: {p0: {name: d, link: a}}}
zzz: 1
"""


@pytest.mark.parametrize(
    ("words", "instead"),
    [
        (["run", "--any-of", "x"], "There is no --any-of any more. Instead, give --topology several times."),
        (["lab", "matrix"], "Earlier versions had 'matrix'. Instead, write your testbeds into the matrix"),
    ],
)
def test_what_was_removed_is_answered_with_what_takes_its_place(words, instead, lossratio):
    status, _, err = lossratio(*words)
    assert status == 2
    assert instead in err


@pytest.mark.parametrize("profile", ["", "None"])
def test_an_empty_profile_is_named_as_empty(profile):
    with pytest.raises(ProfileError, match=r"^The profile is empty\. Name one, or leave the argument out\.$"):
        request_of(Session(None, None), MrrRequest, "64B", profile, {})


@pytest.mark.parametrize(
    ("words", "meant"), [(["rn"], "'run'"), (["lab", "upp"], "'up'"), (["run", "--topolgy", "x"], "'--topology'")]
)
def test_a_misspelt_command_or_option_of_one(words, meant):
    done = CliRunner().invoke(commands, words)
    assert done.exit_code == 2
    # Versions of click differ in their words.
    assert meant in done.output.replace("--topology?", "'--topology'?")
    assert "id you mean" in done.output


@pytest.mark.whole
def test_a_misspelt_field_of_a_file_wherever_it_is(tmp_path):
    (tmp_path / "lab.yaml").write_text(TOPOLOGY)
    with pytest.raises(LossRatioError) as refused:
        load_topology(tmp_path / "lab.yaml")
    lines = {line.partition(": ")[2] for line in str(refused.value).splitlines()}
    assert lines == {
        "nodes.TG.generater: unknown field. Did you mean 'generator'?",
        "nodes.TG.generator.max_rat: unknown field. Did you mean 'max_rate'?",
        "nodes.TG.interfaces.p0.nam: unknown field. Did you mean 'name'?",
        "zzz: unknown field. The fields here are addresses, description, format, mtu, name, nics, nodes, reservation, "
        "testbed.",
    }


@pytest.mark.parametrize(
    ("ask", "meant"),
    [
        (lambda: open_testbed("simulated", dut="linux_bridge", options={"polise": "1 kfps"}), "police"),
        (lambda: open_testbed("simulated", dut="linux_brige"), "linux_bridge"),
        (lambda: open_testbed("simulated").ndr_pdr("64B", goal="quick"), "goals"),
    ],
)
def test_a_misspelt_name_in_python(ask, meant):
    with pytest.raises(LossRatioError, match=rf"Did you mean '{meant}'\?$"):
        ask()


@pytest.mark.parametrize(
    ("given", "said"), [("loss_ratio=1e-3", "target_loss_ratio, timeout"), ("timout=30 s", "Did you mean 'timeout'?")]
)
def test_an_argument_that_a_keyword_does_not_have(given, said):
    with pytest.raises(SearchError, match=re.escape(said)):
        request_of(Session(None, None), SoakRequest, "64B", given, {})


def test_a_named_argument_in_a_variable_is_not_said_to_be_misspelt():
    with pytest.raises(SearchError) as refused:
        request_of(Session(None, None), MrrRequest, "64B", "trials=3", {})
    assert "Write the name outside of the variable (trials=${VALUE})" in str(refused.value)
    assert "Did you mean" not in str(refused.value)


def test_an_argument_that_a_keyword_refuses_is_not_listed():
    with pytest.raises(SearchError, match="There is no argument 'min_load'") as refused:
        request_of(Session(None, None), ConfirmationRequest, "64B", "min_load=1 kfps", {})
    assert str(refused.value).count("min_load") == 1


def test_a_printed_result_is_what_the_console_shows():
    text = str(open_testbed("simulated").ndr_pdr("64B", goals="quick"))
    assert text.startswith("QUICK_NDR: forwards ")
    assert "\nQUICK_NDR (loss ratio at most 0 %): regular\n  offered load, lower " in text
    assert max(map(len, text.splitlines())) <= 100
    assert len(text) < 2000
