"""DPDK's l3fwd: the example program that routes by the longest prefix, which most reports of DPDK's throughput use."""

from ipaddress import IPv4Network, IPv6Network
from typing import Annotated, Literal

from pydantic import Field

from lossratio.dut.base import Tool, from_environment
from lossratio.dut.changes import Changes
from lossratio.dut.daemon import Daemon, write_file
from lossratio.dut.dpdk import DpdkDut, DpdkOptions
from lossratio.dut.linux.cores import CoreChoice
from lossratio.dut.linux.node_dut import PYTHON
from lossratio.dut.texts import words
from lossratio.results import Role
from lossratio.topology import EAST, WEST

_HAS_RELAXED = 'grep -q relax-rx-offload "$(command -v "$1")"'
"""Whether the program can do without checksums from the card. DPDK 22.11's l3fwd cannot."""
# Sockets do not say what a frame contains.
_OWN = """
-p 0x3 -P --config={{ config }} --lookup={{ dut.options.lookup }}
--eth-dest=0,{{ macs[0] }} --eth-dest=1,{{ macs[1] }}
--rule_ipv4={{ directory }}/ipv4 --rule_ipv6={{ directory }}/ipv6
% if dut.options.largest_frame > 1518
    --max-pkt-len={{ dut.options.largest_frame }}
% endif
% if dut.uses_cards
    --rx-queue-size={{ dut.options.descriptors }} --tx-queue-size={{ dut.options.descriptors }}
% else
    --parse-ptype {{ "--relax-rx-offload" if is_relaxed }}
% endif
"""


class L3fwdOptions(DpdkOptions):
    """The options of l3fwd."""

    is_router = True
    program: Annotated[str, Role.TESTED] = Field(
        default_factory=from_environment("L3FWD", "dpdk-l3fwd")
    )
    """The program on the node. Default: the value of the environment variable ``L3FWD`` on the machine that runs the
    suite, or ``dpdk-l3fwd``, the name that DPDK's own build gives it."""
    lookup: Literal["lpm", "fib"] = "lpm"
    """How the program finds the route of a frame: ``lpm`` (longest prefix match; the default) or ``fib`` (DPDK's
    FIB)."""


class L3fwd(DpdkDut[L3fwdOptions]):
    """DPDK's l3fwd, with an IPv4 and an IPv6 route to each side's network."""

    kind = "l3fwd"
    options_type = L3fwdOptions
    csit_type = "dpdk"
    software = Tool(
        *("dpdk-l3fwd", "", None, "l3fwd of DPDK"),
        how="It is an example of DPDK (Debian: dpdk-doc and libdpdk-dev), which is built with make. Set its path "
        "with program=PATH, or put it into PATH as dpdk-l3fwd. See docs/reference/duts.md.",
    )
    tools = (PYTHON,)
    memory_megabytes = 512

    @property
    def program(self) -> str:
        """The option ``program``."""
        return self.options.program

    def check_kind(self) -> None:
        """Checks the number of its queues.

        Raises:
            DutError: If the option ``queues`` does not fit its threads, or another option does not fit the node.
            NotMeasuredHereError: If the node has too few cores.
        """
        super().check_kind()
        queues = self.options.queues
        workers = len(self._choose_cores().workers)
        if queues not in (None, workers) and not self.uses_cards:
            raise self.node.error(
                f"on kernel interfaces, l3fwd has one queue for each of its {workers} threads. Leave out "
                "queues."
            )

    def launch(
        self, changes: Changes, directory: str, cores: CoreChoice, west_mac: str, east_mac: str
    ) -> list[Daemon]:
        """Starts l3fwd with its routes, and waits until it forwards."""
        write_file(changes, f"{directory}/ipv4", _routes(WEST.ipv4, EAST.ipv4))
        write_file(changes, f"{directory}/ipv6", _routes(WEST.ipv6, EAST.ipv6))
        # Each of its threads has a transmit queue, so the main thread also forwards.
        threads = len(cores.workers)
        environment = self.of_the_environment(cores.workers, threads)
        queues = self.options.queues or threads
        config = ",".join(
            f"({port},{queue},{queue % threads})" for port in (0, 1) for queue in range(queues)
        )
        has_relaxed = self.node.attempt("sh", "-c", _HAS_RELAXED, "relaxed", self.program)
        own = words(
            _OWN,
            dut=self,
            directory=directory,
            config=config,
            is_relaxed=has_relaxed.exit_status == 0,
            macs=(west_mac, east_mac),
        )

        program = (self.program, *environment, "--", *own)
        return [self.run_program(changes, program, directory, "l3fwd")]

    def is_ready(self, daemon: Daemon) -> bool:
        """Whether its links are up, and it is in its main loop."""
        return (
            super().is_ready(daemon)
            and self.node.attempt(
                "grep", "-q", "entering main loop", daemon.program.log
            ).exit_status
            == 0
        )


def _routes(*networks: IPv4Network | IPv6Network) -> str:
    """A file with a route to the network behind each port; l3fwd only reads IPv6 addresses in full."""
    return "".join(
        f"R{network[0].exploded}/{network.prefixlen} {port}\n"
        for port, network in enumerate(networks)
    )
