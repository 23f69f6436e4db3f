"""Kinds of DUTs by name, those of other packages among them."""

from __future__ import annotations

import pytest
from dut_lab import hop

from lossratio.dut import create_dut, dut_kinds, load_kind
from lossratio.dut.linux_bridge import LinuxBridge
from lossratio.errors import DutError

MODULE = """
from lossratio.dut import Dut
from lossratio.dut.linux_bridge import LinuxBridge

class LabBridge(LinuxBridge):
    kind = "lab_bridge"

class Unfinished(Dut):
    kind = "unfinished"

something_else = object()
"""


@pytest.fixture
def install(install_package):
    """Installs a package with the entry point that is given, and a module that is no Python."""

    def install(name, entry_point):
        install_package(name, {"lossratio.dut": [entry_point]}, **{name: MODULE, "unreadable": "class"})

    return install


def test_the_kinds_that_come_along_are_there():
    assert {"linux_bridge", "linux_router"} <= set(dut_kinds())
    assert load_kind("linux_bridge") is LinuxBridge


def test_another_package_adds_a_kind_by_an_entry_point(install):
    install("lab_duts", "lab_bridge = lab_duts:LabBridge")
    assert "lab_bridge" in dut_kinds()
    dut = create_dut("lab_bridge", None, hop(), {"police": "1 kfps"})
    assert isinstance(dut, LinuxBridge)
    assert (dut.kind, dut.options.police) == ("lab_bridge", 1000)


def test_an_unknown_kind_is_reported_with_the_known_kinds():
    known = r"no kind of DUT 'linux_brige'. Choose one of these: .*linux_bridge.*mean 'linux_bridge'"
    with pytest.raises(DutError, match=known):
        load_kind("linux_brige")


def test_two_packages_with_the_same_kind_are_refused(install):
    install("other_duts", "linux_bridge = other_duts:LabBridge")
    with pytest.raises(
        DutError,
        match=r"Several packages have .*'linux_bridge': lossratio\.dut.*, other_duts:LabBridge \(other_duts 1\.0\)",
    ):
        load_kind("linux_bridge")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("broken_duts:Missing", "cannot be loaded"),
        ("no_such_module:LabBridge", "cannot be loaded: ModuleNotFoundError: No module named 'no_such_module'"),
        ("unreadable:LabBridge", "cannot be loaded: SyntaxError"),
        ("broken_duts:Unfinished", "lacks what every kind of DUT has: check, .*tear_down"),
        ("broken_duts:something_else", "is not a subclass of lossratio.dut.Dut"),
    ],
)
def test_a_broken_package_is_named(install, target, message):
    install("broken_duts", f"lab_bridge = {target}")
    with pytest.raises(DutError, match=rf"'lab_bridge' of broken_duts 1\.0 \({target}\) {message}"):
        load_kind("lab_bridge")
    assert load_kind("linux_bridge") is LinuxBridge
