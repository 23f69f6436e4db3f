"""A kind of DUT is one class: what editors, the doctor, CSIT's export and the reference say follows from it."""

from __future__ import annotations

import inspect
import runpy
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import get_type_hints

import click.testing
import pytest
from dut_lab import hop

from lossratio import OptionValues
from lossratio.commands.doctor import doctor
from lossratio.dut import Dut, create_dut, dut_kinds, plugins
from lossratio.dut.base import DutOptions, Tool
from lossratio.dut.cable import Cable
from lossratio.dut.plugins import built_in_kinds
from lossratio.keywords.arguments import typed_keyword, with_option_values
from lossratio.testbed.testbed import DutRequest

ROOT = Path(__file__).parents[3]


class TunnelOptions(DutOptions):
    is_router = True
    keys: int | None = None
    """Keys that it changes, one after the other, e.g. ``5``."""

    @property
    def filters(self) -> int:
        return 7


class Tunnel(Cable):
    kind = "tunnel"
    options_type = TunnelOptions
    csit_type = "ipsec"
    software = Tool("tunneld", "tunnel-daemon", title="The tunnel daemon")


@pytest.fixture
def tunnel(monkeypatch):
    """The kinds with a further one: its class, and a line in the list of kinds."""
    entry = EntryPoint("tunnel", f"{__name__}:Tunnel", "lossratio.dut")
    monkeypatch.setattr(plugins, "_KINDS", replace(plugins._KINDS, own=(*plugins._KINDS.own, entry)))


@pytest.fixture(scope="module")
def written():
    return runpy.run_path(str(ROOT / "docs" / "options.py"))


@pytest.mark.usefixtures("tunnel")
def test_options_are_arguments_of_the_keyword_and_a_new_kind_takes_its_own():
    @with_option_values
    @typed_keyword()
    def set_up(self, **options: object) -> None:
        """The kinds have OPTIONS."""

    assert "police" in inspect.signature(set_up).parameters
    assert set_up.robot_types["police"] == float | str
    assert "``police``" in set_up.__doc__
    assert create_dut("tunnel", None, hop(), {"keys": "5"}).options.keys == 5


@pytest.mark.usefixtures("tunnel")
def test_the_doctor_csit_and_rfc_2544_know_a_new_kind(monkeypatch):
    monkeypatch.setattr("lossratio.testbed.local.why_unavailable", lambda: None)
    assert "   no  The tunnel daemon: apt install tunnel-daemon\n" in (click.testing.CliRunner().invoke(doctor).output)
    request = DutRequest("tunnel", TunnelOptions(keys=5))
    assert request.to_json() == {
        "kind": "tunnel",
        "csit_type": "ipsec",
        "is_router": True,
        "options": {"reset": False, "keys": 5},
    }


@pytest.mark.whole
@pytest.mark.usefixtures("tunnel")
def test_the_reference_has_the_options_of_a_new_kind(written):
    page = "## tunnel\n\n<!-- options of tunnel -->\n<!-- end -->\n"
    assert "| `keys` | Keys that it changes, one after the other, e.g. `5`. |\n<!-- end" in written["reference"](page)
    assert '    keys: int | str\n    """tunnel: Keys that it' in written["types"]()


def test_the_reference_and_the_types_for_editors_are_those_of_the_classes(written):
    page = written["REFERENCE"].read_text()
    assert page == written["reference"](page), "run docs/options.py"
    assert written["TYPES"].read_text() == written["types"](), "run docs/options.py"
    assert all(f"## {kind}\n" in page for kind in dut_kinds())
    tables = page.split("<!-- options of ")[1:]
    named = {table.split(" -->")[0] for table in tables}
    assert named >= {kind.kind for kind in built_in_kinds() if kind.kind != "none"}


def test_scripts_get_the_types_of_options_at_run_time_too():
    assert get_type_hints(OptionValues)["police"] == float | str


def test_packages_that_make_installs_are_those_of_the_kinds():
    recipe = (ROOT / "Makefile").read_text().partition("\npackages:\n")[2].partition("\n\n")[0]
    pairs = [word.split("=") for word in recipe.split() if "=" in word]
    packages = {kind.software.program: kind.software.package for kind in built_in_kinds() if kind.software}
    installed = {program: package for program, package in pairs if program in packages}
    assert set(installed) == {"dpdk-testpmd", "ovs-vswitchd"}
    assert installed.items() <= packages.items()


def test_a_kind_of_another_package_is_known_by_its_name():
    class Appliance(Cable):
        kind = "Our-Appliance"

    assert issubclass(Appliance, Dut)
    assert Appliance.identity(DutOptions()) == {
        "kind": "Our-Appliance",
        "csit_type": "our_appliance",
        "is_router": None,
    }
