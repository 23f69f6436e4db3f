"""The times of day of machines, which administrators and NTP set at any time."""

from __future__ import annotations

from contextlib import contextmanager
from threading import Timer

from layouts import topologies
from measuring import FRAMES, PATIENTLY, count_through, received

from lossratio.testbed import open_testbed

HOUR = 3600
DAY = 24 * HOUR


def set_clock(machine, seconds):
    """Sets the time of day of a machine by so many seconds."""
    machine.shell(f"date -s @$(($(date +%s) + {seconds}))")


@contextmanager
def clocks_set_soon(lab, **seconds):
    """The times of day of machines are set while trials run, and set back afterwards."""

    def set_all(sign):
        for name, step in seconds.items():
            set_clock(lab[name], sign * step)

    timer = Timer(2.0, set_all, [1])
    timer.start()
    try:
        yield
    finally:
        timer.join()
        set_all(-1)


def test_clocks_that_are_set_in_trials_change_no_count(lab, tmp_path):
    with (
        open_testbed(topologies(lab)["vmxnet3"], dut="linux_bridge", recovery=PATIENTLY) as opened,
        clocks_set_soon(lab, TG=HOUR, DUT1=-DAY),
    ):
        result = count_through(opened, tmp_path, trials=4)
    assert received(result) == [(FRAMES, FRAMES)] * 4
