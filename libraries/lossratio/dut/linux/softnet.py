"""The kernel's counters of arriving frames by CPU: for every interface of the machine, whatever namespace it is in."""

from __future__ import annotations

from lossratio.nodes import DutNode

_FILE = "/proc/net/softnet_stat"
_COLUMNS = {"processed": 0, "dropped": 1, "time_squeeze": 2, "received_rps": 9, "flow_limited": 10}
_CPU_COLUMN = 12


def read_softnet(node: DutNode) -> dict[int, dict[str, int]]:
    """Counts by name, by the number of the CPU.

    CPUs that are offline have no line. Where the kernel does not write the number (before 5.10), lines are counted.
    """
    found: dict[int, dict[str, int]] = {}
    for index, line in enumerate(node.read_files(_FILE).get(_FILE, "").splitlines()):
        row = [int(column, 16) for column in line.split()]
        cpu = row[_CPU_COLUMN] if len(row) > _CPU_COLUMN else index
        found[cpu] = {name: row[column] for name, column in _COLUMNS.items() if column < len(row)}
    return found
