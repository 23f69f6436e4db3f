"""A tester whose ends are two machines."""

from __future__ import annotations

from layouts import set_up, two_ended_lab_file
from measuring import FRAMES, count_frames, received


def test_a_tester_with_an_end_on_each_machine_counts_every_frame(lab, tmp_path):
    set_up(lab["DUT1"])
    result = count_frames(two_ended_lab_file(lab), tmp_path, "none")
    assert received(result) == [(FRAMES, FRAMES)]
