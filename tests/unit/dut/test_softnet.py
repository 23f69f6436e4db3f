"""Counters of the kernel by CPU."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from lossratio.dut.linux.reports import read_softnet


@dataclass
class Node:
    """A node with this text in the kernel's file."""

    text: str

    def read_files(self, path):
        return {path: self.text}


def line(*counts, rest):
    return " ".join(f"{count:08x}" for count in (*counts, *[0] * 6, *rest))


def test_a_cpu_has_its_own_number_also_where_others_are_offline():
    lines = [line(300, 20, 1, rest=(7, 5, 0, cpu, 0, 0)) for cpu in (0, 2)]
    by_cpu = read_softnet(Node("\n".join(lines)))
    counts = {"processed": 300, "dropped": 20, "time_squeeze": 1, "received_rps": 7, "flow_limited": 5}
    assert by_cpu == {0: counts, 2: counts}


@pytest.mark.parametrize(("rest", "columns"), [((7, 5), 5), ((), 3)])
def test_an_older_kernel_tells_less_and_its_lines_are_counted(rest, columns):
    by_cpu = read_softnet(Node("\n".join(line(300, 20, 1, rest=rest) for _ in range(2))))
    assert list(by_cpu) == [0, 1]
    assert len(by_cpu[1]) == columns


def test_a_node_without_the_file_tells_nothing():
    assert read_softnet(Node("")) == {}
