"""DPDK's testpmd: forwards frames between two ports as simply as a DPDK program can."""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from lossratio.dut.base import Tool
from lossratio.dut.changes import Changes
from lossratio.dut.daemon import Daemon
from lossratio.dut.dpdk import FRAME_BYTES, RING_HEADROOM, DpdkDut, DpdkOptions, power_of_two
from lossratio.dut.linux.cores import CoreChoice
from lossratio.dut.linux.node_dut import PYTHON
from lossratio.dut.texts import words

# Without the last option, it ends when its standard input ends.
_OWN = """
--forward-mode={{ dut.options.mode }} --burst={{ dut.options.burst }}
--nb-cores={{ workers }} --rxq={{ queues }} --txq={{ queues }}
--mbuf-size={{ room }} --total-num-mbufs=16384
--eth-peer=0,{{ macs[0] }} --eth-peer=1,{{ macs[1] }}
% if dut.uses_cards
    --rxd={{ dut.options.descriptors }} --txd={{ dut.options.descriptors }}
% else
    --no-lsc-interrupt
% endif
--stats-period=86400
"""


class TestpmdOptions(DpdkOptions):
    """The options of testpmd."""

    is_router = False
    __test__ = False

    mode: Literal["io", "mac", "5tswap", "csum"] = "io"
    """What the program does to frames: ``io`` (nothing; the default), ``mac`` (puts its own and the neighbour's address
    on them), ``5tswap`` (swaps source and destination on layers 2 to 4) or ``csum`` (``mac``, and new checksums)."""
    burst: int = Field(default=32, ge=1, le=512)
    """Number of frames that the program takes from a queue at once. Default: 32."""


class Testpmd(DpdkDut[TestpmdOptions]):
    """DPDK's testpmd, which polls both interfaces on its own cores."""

    __test__ = False

    kind = "testpmd"
    options_type = TestpmdOptions
    csit_type = "dpdk"
    # It has no option that prints its version, but its telemetry reports it.
    software = Tool("dpdk-testpmd", "dpdk-dev", None, "testpmd of DPDK")
    tools = (PYTHON,)
    places_queues = True

    def check_kind(self) -> None:
        """Checks the cores, and that each of them has a queue if each card has its own workers.

        Raises:
            DutError: If the option ``queues`` does not fit its threads, or another option does not fit the node.
            NotMeasuredHereError: If the node has too few cores.
        """
        super().check_kind()
        cores = self._choose_cores()
        if cores.of_east and self.options.queues not in (None, len(cores.of_east)):
            raise self.node.error(
                "the cards are on two NUMA nodes, so testpmd gives each card a queue for each of the "
                f"{len(cores.of_east)} threads on the card's node. Leave out queues."
            )

    def launch(
        self, changes: Changes, directory: str, cores: CoreChoice, west_mac: str, east_mac: str
    ) -> list[Daemon]:
        """Starts testpmd, and waits until it forwards."""
        # Testpmd gives its threads the queues in this order: the first of the west card, the first of the east card ...
        workers: Sequence[int] = cores.workers
        if cores.of_east:
            workers = [cpu for pair in zip(*cores.by_side, strict=True) for cpu in pair]

        queues = self.options.queues or (len(cores.by_side[0]) if self.uses_cards else 1)
        environment = self.of_the_environment((cores.main, *workers), queues)
        room = power_of_two(self.options.largest_frame + RING_HEADROOM) + RING_HEADROOM
        own = words(
            _OWN,
            dut=self,
            workers=len(workers),
            queues=queues,
            room=max(room, FRAME_BYTES + RING_HEADROOM),
            macs=(west_mac, east_mac),
        )
        program = (self.program, *environment, "--", *own)
        return [self.run_program(changes, program, directory, "testpmd")]

    @property
    def is_addressed(self) -> bool:
        """Whether it puts its own addresses on frames: frames must then be addressed to it."""
        return self.options.mode in ("mac", "csum")
