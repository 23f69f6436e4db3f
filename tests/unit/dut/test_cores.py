"""Cores are chosen as CSIT counts them: physical ones, on the interfaces' NUMA node."""

from __future__ import annotations

import pytest

from lossratio.dut.linux.cores import choose_cores, choose_cores_of_both, cpu_list, describe_cores, read_cores
from lossratio.errors import NotMeasuredHereError
from lossratio.nodes import CommandResult, Core
from lossratio.nodes.node import DutNode

# Two sockets of four cores with two threads each, numbered as Linux does.
CORES = tuple(Core((number, number + 8), numa_node=number // 4) for number in range(8))


class Answering:
    """A node that answers everything with the same text."""

    name = "DUT1"

    def __init__(self, text):
        self._text = text

    def run(self, *command, **options):
        return CommandResult(command, 0, self._text, "")


@pytest.mark.parametrize("unknown", ["null", '"-"'])
def test_cpus_whose_cores_are_not_reported_are_cores_of_their_own(unknown):
    rows = [f'{{"cpu": {number}, "core": {unknown}, "socket": {unknown}, "node": null}}' for number in range(2)]
    cores = read_cores(DutNode(Answering(f'{{"cpus": [{", ".join(rows)}]}}')))
    assert cores == (Core((0,), 0), Core((1,), 0))


def test_the_first_core_is_left_to_the_system_and_the_second_controls():
    choice = choose_cores(CORES, 2, 0, where="DUT1")
    assert (choice.main, choice.workers, choice.shared) == (1, (2, 10, 3, 11), False)


def test_cores_are_on_the_node_of_the_interfaces():
    choice = choose_cores(CORES, 1, 1, where="DUT1")
    assert (choice.main, choice.workers, choice.numa_node) == (4, (5, 13), 1)


def test_where_there_are_just_enough_the_main_thread_shares_the_systems_core():
    choice = choose_cores(CORES, 3, 0, where="DUT1")
    assert (choice.main, choice.workers, choice.shared) == (0, (1, 9, 2, 10, 3, 11), True)


def test_more_cores_than_there_are_on_that_node_are_refused():
    with pytest.raises(
        NotMeasuredHereError, match=r"DUT1: 4 physical cores were requested on NUMA node 0.* only 3 remain"
    ):
        choose_cores(CORES, 4, 0, where="DUT1")


def test_workers_of_cards_on_two_numa_nodes_are_on_the_node_of_each():
    choice = choose_cores_of_both(CORES, 4, (0, 1), where="DUT1")
    assert (choice.main, choice.shared, choice.far) == (1, False, ())
    assert choice.by_side == ((2, 10, 3, 11), (4, 12, 5, 13))
    assert choice.workers == (2, 10, 3, 11, 4, 12, 5, 13)
    assert "workers 2,10,3,11 for the west card on NUMA node 0 and 4,12,5,13 for the east" in describe_cores(choice)
    turned = choose_cores_of_both(CORES, 2, (1, 0), where="DUT1")
    assert (turned.main, turned.by_side) == (4, ((5, 13), (1, 9)))


def test_a_single_core_polls_both_cards():
    choice = choose_cores_of_both(CORES, 1, (1, 0), where="DUT1")
    assert (choice.numa_node, choice.by_side) == (1, ((5, 13), (5, 13)))


@pytest.mark.parametrize(
    ("count", "message"),
    [
        (3, r"DUT1: 3 physical cores .* west card is on NUMA node 1 and the east one on 0, .* 1 or an even number"),
        (8, r"west card is on NUMA node 1 .* 4 physical cores were requested on NUMA node 0, .* only 3 remain"),
    ],
)
def test_cores_that_cannot_be_halved_are_refused_with_the_node(count, message):
    with pytest.raises(NotMeasuredHereError, match=message):
        choose_cores_of_both(CORES, count, (1, 0), where="DUT1")


def test_nodes_whose_cores_have_different_threads_online_are_refused():
    some_offline = (*CORES[:4], *(Core(core.cpus[:1], 1) for core in CORES[4:]))
    with pytest.raises(NotMeasuredHereError, match="different numbers of threads online"):
        choose_cores_of_both(some_offline, 2, (0, 1), where="DUT1")


def test_cores_are_read_as_lscpu_lists_them():
    rows = '{"cpu": 0, "core": 0, "socket": 0, "node": 0}, {"cpu": 2, "core": 0, "socket": 0, "node": 0},'
    rows += '{"cpu": 1, "core": 1, "socket": 0, "node": "-"}'
    cores = read_cores(DutNode(Answering(f'{{"cpus": [{rows}]}}')))
    assert cores == (Core((0, 2), 0), Core((1,), 0))


def test_cpus_are_listed_as_programs_read_them():
    assert cpu_list((2, 18)) == "2,18"
