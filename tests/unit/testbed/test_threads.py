from __future__ import annotations

from types import SimpleNamespace

from lossratio.dut.linux import LinuxOptions
from lossratio.dut.linux.program_dut import ProgramOptions
from lossratio.testbed.set_up import threads_and_cores


def program(cores, workers):
    described = {"kind": "a program", "cores": {"main": 0, "workers": workers}}
    return SimpleNamespace(options=ProgramOptions(cores=cores), describe=lambda: described)


def test_threads_are_counted_with_smt_siblings():
    assert threads_and_cores([program(1, [2, 18])]) == ("2t1c",)
    assert threads_and_cores([program(2, [2, 3])]) == ("2t2c",)


def test_equal_duts_have_one_tag():
    assert threads_and_cores([program(1, [2]), program(1, [3])]) == ("1t1c",)
    assert threads_and_cores([program(1, [2]), program(1, [2, 3])]) == ("1t1c", "2t1c")


def test_a_dut_in_the_kernel_has_none():
    assert threads_and_cores([SimpleNamespace(options=LinuxOptions())]) == ()
    assert threads_and_cores([]) == ()
