"""Two testbeds of one lab: the same two machines, and other cards of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from layouts import lab_file
from measuring import FRAMES, PATIENTLY, count_through, received

from lossratio.errors import ReservationError
from lossratio.testbed import open_testbed


def bed(lab, name, west):
    return lab_file(lab, name, "afpacket", west, west + 1, {"reservation": {"name": name}})


def test_two_testbeds_of_one_lab_measure_at_once_and_nobody_else_gets_them(lab, tmp_path):
    first, second = bed(lab, "first", 0), bed(lab, "second", 4)
    with (
        open_testbed(first, dut="linux_bridge", recovery=PATIENTLY) as one,
        open_testbed(second, dut="linux_bridge", recovery=PATIENTLY) as other,
    ):
        with ThreadPoolExecutor() as threads:
            counting = [
                threads.submit(count_through, one, tmp_path / "first"),
                threads.submit(count_through, other, tmp_path / "second"),
            ]
        assert [received(each.result()) for each in counting] == [[(FRAMES, FRAMES)]] * 2
        with pytest.raises(ReservationError):
            open_testbed(first, dut="linux_bridge")
