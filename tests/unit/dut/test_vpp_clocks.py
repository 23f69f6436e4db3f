"""The clock of VPP's policers, which must be that of the CPU."""

from __future__ import annotations

import pytest
from vpp_lab import STAND_IN, assert_passes

from lossratio.dut.vpp.clock import ClockReading, parse_clock, policers_stamps_per_second, stamps_per_second
from lossratio.errors import DutError


@pytest.fixture
def home_with_clocks(tmp_path):
    """Makes a directory of the stand-in, whose policers' clocks are these shares of the right one, start by start."""

    def home(*clocks):
        (tmp_path / "bin").mkdir()
        for name in ("vpp", "vppctl"):
            (tmp_path / "bin" / name).symlink_to(STAND_IN / "bin" / name)
        (tmp_path / "lib").symlink_to(STAND_IN / "lib")
        (tmp_path / "bin" / "clocks").write_text(" ".join(map(str, clocks)))
        return str(tmp_path)

    return home


@pytest.mark.netns
def test_a_vpp_whose_policers_have_a_wrong_clock_is_started_again(dut_lab, home_with_clocks):
    with dut_lab.setting_up("vpp", home=home_with_clocks(0.94, 1.26, 1.0), police="50 Mbps") as set_up:
        dut = set_up()
        assert dut.describe()["clock"]["starts"] == 3
        assert_passes(dut_lab, dut)


@pytest.mark.netns
def test_policers_whose_clock_stays_wrong_are_not_measured(dut_lab, home_with_clocks):
    before = dut_lab.snapshot()
    dut = dut_lab.create("vpp", home=home_with_clocks(0.94), police="50 Mbps")
    message = r"DUT1: VPP's policers would pass 6\.38 % more .* End other programs on CPU \d+ there, and set up VPP"
    with pytest.raises(DutError, match=message):
        dut.set_up(*dut_lab.macs)
    assert dut_lab.snapshot() == before


@pytest.mark.netns
def test_after_a_restart_the_clock_is_checked_before_the_next_measurement(dut_lab, home_with_clocks):
    with dut_lab.setting_up("vpp", home=home_with_clocks(1.0, 1.002), police="50 Mbps") as set_up:
        dut = set_up()
        dut.restart()
        with pytest.raises(DutError, match=r"would pass 0\.2 % less"):
            dut.verify()


def test_the_cpus_clock_is_that_of_the_readings_that_came_least_late():
    def reading(seconds, late=0.0):
        return ClockReading(round(2.5e9 * (seconds + late)), seconds)

    before = [reading(10.0, 0.004), reading(10.00001)]
    after = [reading(10.3, 0.00001), reading(10.30002, 0.01)]
    assert stamps_per_second(before, after) == pytest.approx(2.5e9, rel=1e-4)
    assert stamps_per_second(before[:1], after[1:]) != pytest.approx(2.5e9, rel=1e-2)


def test_the_clocks_are_read_as_vpp_prints_them():
    text = """\
Time now .999811
cpu time .999811 now 124686331949113 last 124686331946877 since start 2595408400
reftime .999720 now 1795307404.848505 last 1795307403.848786 init 1795307403.848786
error .000092, clocks/sec 2595898148.745828, Sun, 22 Nov 2026 00:30:04 GMT
Time last barrier release 0.000000000
0: Time now .999828
   cpu time .999828 now 124686331990427 last 124686331989725 since start 2595451248
   reftime .999736 now 1795307404.848522 last 1795307403.848786 init 1795307403.848786
   error .000092, clocks/sec 2595898148.745828
"""
    assert parse_clock(text) == [
        ClockReading(124686331949113, 1795307404.848505),
        ClockReading(124686331990427, 1795307404.848522),
    ]
    shown = "Policer at index 0: single rate\ncir 2482305 tok/period, pir 1 tok/period, scale 14\n"
    assert policers_stamps_per_second(shown, 24_000) == pytest.approx(2_595_350_267, rel=1e-9)
    assert policers_stamps_per_second("Name: p", 24_000) is None
