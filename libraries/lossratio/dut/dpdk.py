"""DPDK programs between two ports: their environment, their telemetry and their counters."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, TypeVar

from pydantic import Field

from lossratio.dut.base import SIDES, DutCounters
from lossratio.dut.changes import Changes
from lossratio.dut.daemon import Daemon
from lossratio.dut.linux.interfaces import read_links
from lossratio.dut.linux.program_dut import ProgramDut, SocketOptions
from lossratio.dut.linux.reports import difference
from lossratio.dut.texts import words
from lossratio.nodes import DutNode

FRAME_BYTES = 2048
"""Size of the frames in a packet socket's ring."""
RING_HEADROOM = 256
"""Bytes of a frame's slot in the ring, or of its buffer, that the frame cannot use."""
_LARGEST_XDP_MTU = 3400
"""Bytes of a page that are left for a frame, beside what the kernel puts around it."""

# DPDK's telemetry: a sequenced packet socket that greets, and answers each request with one JSON message.
_ASK = """
import json, socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as telemetry:
    telemetry.settimeout(5)
    telemetry.connect(sys.argv[1])
    answers = {"greeting": json.loads(telemetry.recv(65536))}
    for request in sys.argv[2:]:
        telemetry.send(request.encode())
        answers[request] = next(iter(json.loads(telemetry.recv(65536)).values()))
print(json.dumps(answers))
"""

_ENVIRONMENT = """
--lcores {{ threads }} --file-prefix lossratio
% if dut.uses_cards
    --allow {{ dut.west }} --allow {{ dut.east }}
% else
    --no-huge -m {{ dut.memory_megabytes }} --no-pci
    % for name in (dut.west, dut.east)
        % if dut.options.uses_af_xdp
            --vdev=net_af_xdp{{ loop.index0 }},iface={{ name }},queue_count={{ queues }}
        % else
            --vdev=net_af_packet{{ loop.index0 }},iface={{ name }},blocksz={{ [frame, 4096] | max }}
            {{- ",framesz=%d,framecnt=4096,qpairs=%d" % (frame, queues) }}
        % endif
    % endfor
% endif
"""


class DpdkOptions(SocketOptions):
    """The options of every DPDK program."""

    descriptors: int = Field(default=1024, ge=64, le=32_768)
    """Descriptors of each queue of a card. Interfaces of the kernel have none."""
    largest_frame: int = Field(default=1518, ge=64, le=9216)
    """Bytes of the largest frame that must pass, with FCS. Default: 1518."""


OptionsT_co = TypeVar("OptionsT_co", bound=DpdkOptions, covariant=True)


class DpdkDut(ProgramDut[OptionsT_co]):
    """A DPDK program, which polls both interfaces on its own cores."""

    memory_megabytes: ClassVar[int] = 256
    """Megabytes of memory that it needs without hugepages."""
    # Seconds in which the ring of a packet socket empties, even if the program shares its core.
    settle_time = 0.1

    def check_kind(self) -> None:
        """Checks that there are enough cores, and that AF_XDP can use the interfaces.

        Raises:
            DutError: If an MTU is too large for AF_XDP, or the DUT cannot be set up for another
                reason.
            NotMeasuredHereError: If the node has too few cores.
        """
        super().check_kind()
        if not self.options.uses_af_xdp or not self.kernel_interfaces:
            return
        links = read_links(self.node, *self.kernel_interfaces)
        for name in self.kernel_interfaces:
            mtu = int(links[name]["mtu"])
            if mtu > _LARGEST_XDP_MTU:
                raise self.node.error(
                    f"interface {name} has an MTU of {mtu}, but DPDK's AF_XDP accepts only frames of one page. Set "
                    f"the MTU to at most {_LARGEST_XDP_MTU} at both ends of the link (on a local testbed, with the "
                    "field mtu in the topology file)."
                )

    def facts(self) -> dict[str, Any]:
        """Version of DPDK, and the parameters as DPDK understood them."""
        answers = self._ask("/eal/params", "/eal/app_params", "/ethdev/info,0", "/ethdev/info,1")
        return {**super().facts(), "version": answers["greeting"]["version"], "dpdk": answers}

    def read_counters(self) -> DutCounters:
        """Reads the counters of both ports; received frames are counted by the kernel's interfaces, if there are any.

        The program does not count frames that it received but could not pass to the other port because that port's
        queue was full. Their number is the difference between its other counters.
        """
        answers = self._ask("/ethdev/stats,0", "/ethdev/stats,1")
        west, east = answers["/ethdev/stats,0"], answers["/ethdev/stats,1"]
        counts = ("ipackets", "imissed", "ierrors", "rx_nombuf")
        ports = (("west", west), ("east", east))
        received = {side: sum(map(stats.__getitem__, counts)) for side, stats in ports}
        if self.kernel_interfaces:
            received = {
                side: int(stats["rx"]["packets"])
                for side, stats in self.packets_of_kernel().items()
            }

        transmitted = {side: stats["opackets"] for side, stats in ports}
        dropped = {
            f"{side} port, {what}": stats[name]
            for side, stats in ports
            for name, what in _DROPS.items()
        }
        for way, source, sink in (("west>east", west, east), ("east>west", east, west)):
            no_room = source["ipackets"] - sink["opackets"] - sink["oerrors"]
            dropped[f"{self.kind} {way}, no room to transmit"] = no_room

        return DutCounters(received, transmitted, dropped)

    @contextmanager
    def telemetry(self) -> Iterator[dict[str, Any]]:
        """The extended statistics of both ports, besides the reports of the node."""
        requests = ("/ethdev/xstats,0", "/ethdev/xstats,1")
        before = self._ask(*requests)
        with super().telemetry() as report:
            yield report

        after = self._ask(*requests)
        report["xstats"] = {
            side: difference(after[request], before[request])
            for side, request in zip(SIDES, requests, strict=True)
        }
        counted = [
            {"interface": side, "queue": int(queue[1]), "frames": count}
            for side, counts in report["xstats"].items()
            for name, count in counts.items()
            if (queue := _RECEIVE_QUEUE.fullmatch(name))
        ]
        # The kernel counts what the sockets of AF_XDP drop, and DPDK does not.
        report["queues"] = report.get("queues") or counted

    def run_program(
        self, changes: Changes, program: Sequence[str], directory: str, name: str
    ) -> Daemon:
        """Starts it, and waits until its telemetry reports that both links are up."""
        daemon = with_telemetry(self.node, directory, name, program)
        daemon.start(changes, lambda: self.is_ready(daemon))
        return daemon

    def is_ready(self, daemon: Daemon) -> bool:
        """Whether its telemetry answers, and both of its links are up."""
        return are_linked(self.node, daemon.directory)

    def of_the_environment(self, cpus: Sequence[int], queues: int) -> tuple[str, ...]:
        """Arguments of DPDK's environment layer (EAL)."""
        return words(
            _ENVIRONMENT,
            dut=self,
            threads=",".join(f"{number}@{cpu}" for number, cpu in enumerate(cpus)),
            frame=max(FRAME_BYTES, power_of_two(self.options.largest_frame + RING_HEADROOM)),
            queues=queues,
        )

    def _ask(self, *requests: str) -> dict[str, Any]:
        """The answers of DPDK's telemetry by request, and its greeting."""
        answers = self.node.json(
            "python3", "-c", _ASK, _telemetry_socket(self.running.directory), *requests
        )
        if not isinstance(answers, dict):
            raise self.node.error(
                f"{self.kind} did not answer through its telemetry. Tear it down and set it up "
                "again."
            )
        return answers


_DROPS = {
    "imissed": "ring full",
    "ierrors": "receive errors",
    "rx_nombuf": "no buffer",
    "oerrors": "transmit errors",
}
_RECEIVE_QUEUE = re.compile(r"rx_q(\d+)_packets")


def iommu_width(node: DutNode) -> int | None:
    """Bits of the addresses that the narrowest of a node's Intel IOMMUs translates; None: it has none."""
    registers = node.attempt("sh", "-c", "cat /sys/class/iommu/*/intel-iommu/cap").stdout
    widths = []
    for register in registers.split():
        # The field MGAW of the capability register is the number of bits, less one.
        field = (int(register, 16) >> 16) & 0x3F
        widths.append(field + 1)
    return min(widths, default=None)


def with_telemetry(node: DutNode, directory: str, name: str, program: Sequence[str]) -> Daemon:
    """A program of DPDK that has its telemetry, of which `are_linked` asks, in its own directory."""
    return Daemon(node, directory, name, ("env", f"RUNTIME_DIRECTORY={directory}", *program))


def are_linked(node: DutNode, directory: str) -> bool:
    """Whether the telemetry of a program answers, and both of its links are up."""
    socket = _telemetry_socket(directory)
    asked = node.attempt(
        "python3", "-c", _ASK, socket, "/ethdev/link_status,0", "/ethdev/link_status,1"
    )
    if asked.exit_status != 0:
        return False
    answers = json.loads(asked.stdout)
    return all(
        (answers[f"/ethdev/link_status,{port}"] or {}).get("status") == "UP" for port in (0, 1)
    )


def _telemetry_socket(directory: str) -> str:
    return f"{directory}/dpdk/lossratio/dpdk_telemetry.v2"


def power_of_two(least: int) -> int:
    """The smallest power of two that is not less than a number."""
    return 1 << (least - 1).bit_length()
