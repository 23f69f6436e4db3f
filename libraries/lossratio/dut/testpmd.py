"""DPDK's testpmd: forwards frames between two ports as simply as a DPDK program can."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

from pydantic import Field

from lossratio.dut.base import DestinationMacs, DutCounters
from lossratio.dut.changes import Changes
from lossratio.dut.daemon import Daemon
from lossratio.dut.linux.cores import CoreChoice
from lossratio.dut.linux.interfaces import existing_links
from lossratio.dut.linux.program_dut import ProgramDut, SocketOptions, Sockets, detach_afterwards
from lossratio.dut.linux.requirements import ETHTOOL, IP, NFT, PYTHON, Tool
from lossratio.errors import DutError

# It has no option for its version. Its telemetry reports it.
TESTPMD = Tool(("sh", "-c", "command -v dpdk-testpmd"), "dpdk-dev")

_SETTLE_TIME = 0.1
"""Seconds in which the ring of a packet socket empties, also if testpmd shares its core."""
_MEMORY_MEGABYTES = 256
_FRAME_BYTES = 2048
_FRAMES = 4096
"""Size and number of the frames in a packet socket's ring."""
_RING_HEADROOM = 256
"""Bytes of a frame's place in the ring, or of its buffer, that the frame cannot use."""
_MBUFS = 16_384
_FOREVER = "86400"

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


class ForwardMode(str, Enum):
    """What testpmd does to a frame. The values are testpmd's own names."""

    IO = "io"
    """Frames are not changed."""
    MAC = "mac"
    """Frames get testpmd's and the neighbour's MAC address."""
    FIVE_TUPLE = "5tswap"
    """Source and destination of MAC addresses, IP addresses and ports are swapped."""
    CSUM = "csum"
    """Checksums are computed again, and MAC addresses change as with ``mac``."""


class TestpmdOptions(SocketOptions):
    """The options of testpmd."""

    __test__ = False

    mode: ForwardMode = ForwardMode.IO
    """What it does to frames: ``io``, ``mac``, ``5tswap`` or ``csum``."""
    burst: int = Field(default=32, ge=1, le=512)
    """Frames that it takes from a queue at once."""
    descriptors: int = Field(default=1024, ge=64, le=32_768)
    """Descriptors of each queue of a card. Interfaces of the kernel have none."""
    largest_frame: int = Field(default=1518, ge=64, le=9216)
    """Bytes of the largest frame that is to pass, with FCS."""


class Testpmd(ProgramDut[TestpmdOptions]):
    """DPDK's testpmd, which polls both interfaces on cores of its own."""

    __test__ = False

    kind = "testpmd"
    options_type = TestpmdOptions
    tools = (IP, NFT, ETHTOOL, PYTHON, TESTPMD)

    @property
    def settle_time(self) -> float:
        """Seconds that frames may wait in a ring."""
        return _SETTLE_TIME

    def launch(self, changes: Changes, directory: str, cores: CoreChoice, west_mac: str, east_mac: str) -> list[Daemon]:
        """Starts testpmd, and waits until it forwards."""
        command = (
            *("env", f"RUNTIME_DIRECTORY={directory}", "dpdk-testpmd"),
            *self._of_the_environment(cores),
            "--",
            *self._of_testpmd(cores, west_mac, east_mac),
        )
        daemon = Daemon(self.node, directory, "testpmd", command)
        if self.options.sockets is Sockets.AF_XDP:
            detach_afterwards(changes, self.node, self.kernel_interfaces)
        daemon.start(changes, lambda: self._forwards(_telemetry_socket(directory)))
        return [daemon]

    def destination_macs(self, west_mac: str, east_mac: str) -> DestinationMacs:
        """Its own addresses if it puts them on frames, otherwise the opposite neighbours' addresses."""
        if self.options.mode in (ForwardMode.MAC, ForwardMode.CSUM):
            return self.own_macs()
        return DestinationMacs(from_west=east_mac, from_east=west_mac)

    def facts(self) -> dict[str, Any]:
        """Version of DPDK, and the parameters as DPDK understood them."""
        answers = self._ask("/eal/params", "/eal/app_params", "/ethdev/info,0", "/ethdev/info,1")
        return {**super().facts(), "version": answers["greeting"]["version"], "dpdk": answers}

    def read_counters(self) -> DutCounters:
        """Reads the counters of both ports; received frames are those of the kernel's interfaces, if there are any.

        testpmd does not count the frames that it received and could not hand to the other port, as that port's queue
        had no room. They are the difference of its other counters.
        """
        _ = self.present
        answers = self._ask("/ethdev/stats,0", "/ethdev/stats,1")
        west, east = answers["/ethdev/stats,0"], answers["/ethdev/stats,1"]
        received = {side: _all_received(stats) for side, stats in (("west", west), ("east", east))}
        if self.kernel_interfaces:
            links = existing_links(self.node, *self.kernel_interfaces)
            for side, name in (("west", self.west), ("east", self.east)):
                received[side] = int(links[name]["stats64"]["rx"]["packets"])
        return DutCounters(
            received=received,
            transmitted={"west": west["opackets"], "east": east["opackets"]},
            dropped={
                **_dropped("west", west),
                **_dropped("east", east),
                "testpmd west>east, no room to transmit": west["ipackets"] - east["opackets"] - east["oerrors"],
                "testpmd east>west, no room to transmit": east["ipackets"] - west["opackets"] - west["oerrors"],
            },
        )

    @contextmanager
    def telemetry(self) -> Iterator[dict[str, Any]]:
        """The extended statistics of both ports, besides the reports of the node."""
        requests = ("/ethdev/xstats,0", "/ethdev/xstats,1")
        before = self._ask(*requests)
        with super().telemetry() as report:
            yield report
        after = self._ask(*requests)
        report["xstats"] = {
            side: {name: value - before[request].get(name, 0) for name, value in after[request].items()}
            for side, request in zip(("west", "east"), requests, strict=True)
        }

    def _of_the_environment(self, cores: CoreChoice) -> tuple[str, ...]:
        """Arguments of DPDK's environment layer (EAL)."""
        threads = ",".join(f"{number}@{cpu}" for number, cpu in enumerate((cores.main, *cores.workers)))
        common = ("--lcores", threads, "--file-prefix", "lossratio")
        if self.uses_cards:
            return (*common, "--allow", self.west, "--allow", self.east)
        frame = max(_FRAME_BYTES, _power_of_two(self.options.largest_frame + _RING_HEADROOM))
        ring = f"blocksz={max(frame, 4096)},framesz={frame},framecnt={_FRAMES},qpairs={self._queues(cores)}"
        kind, settings = "net_af_packet", ring
        if self.options.sockets is Sockets.AF_XDP:
            kind, settings = "net_af_xdp", f"queue_count={self._queues(cores)}"
        names = enumerate((self.west, self.east))
        devices = (f"--vdev={kind}{number},iface={name},{settings}" for number, name in names)
        return (*common, "--no-huge", "-m", str(_MEMORY_MEGABYTES), "--no-pci", *devices)

    def _of_testpmd(self, cores: CoreChoice, west_mac: str, east_mac: str) -> tuple[str, ...]:
        """Arguments of testpmd itself."""
        queues = self._queues(cores)
        descriptors = str(self.options.descriptors)
        room = _power_of_two(self.options.largest_frame + _RING_HEADROOM) + _RING_HEADROOM
        return (
            *(f"--forward-mode={self.options.mode.value}", f"--burst={self.options.burst}"),
            *(f"--nb-cores={len(cores.workers)}", f"--rxq={queues}", f"--txq={queues}"),
            *(f"--mbuf-size={max(room, _FRAME_BYTES + _RING_HEADROOM)}", f"--total-num-mbufs={_MBUFS}"),
            *(f"--eth-peer=0,{west_mac}", f"--eth-peer=1,{east_mac}"),
            *((f"--rxd={descriptors}", f"--txd={descriptors}") if self.uses_cards else ("--no-lsc-interrupt",)),
            # Without this it ends when its standard input ends.
            f"--stats-period={_FOREVER}",
        )

    def _queues(self, cores: CoreChoice) -> int:
        if self.options.queues is not None:
            return self.options.queues
        return len(cores.workers) if self.uses_cards else 1

    def _forwards(self, socket: str) -> bool:
        """Whether its telemetry answers, and both of its links are up."""
        asked = self.node.attempt("python3", "-c", _ASK, socket, "/ethdev/link_status,0", "/ethdev/link_status,1")
        if asked.exit_status != 0:
            return False
        answers = json.loads(asked.stdout)
        return all((answers[f"/ethdev/link_status,{port}"] or {}).get("status") == "UP" for port in (0, 1))

    def _ask(self, *requests: str) -> dict[str, Any]:
        """Answers of DPDK's telemetry by request, and its greeting."""
        self.check_running()
        (daemon,) = self.daemons
        answers = self.node.json("python3", "-c", _ASK, _telemetry_socket(daemon.directory), *requests)
        if not isinstance(answers, dict):
            raise DutError(f"{self.node.name}: testpmd's telemetry gave no answer.")
        return answers


def _telemetry_socket(directory: str) -> str:
    return f"{directory}/dpdk/lossratio/dpdk_telemetry.v2"


def _all_received(stats: dict[str, int]) -> int:
    return sum(stats[name] for name in ("ipackets", "imissed", "ierrors", "rx_nombuf"))


def _dropped(side: str, stats: dict[str, int]) -> dict[str, int]:
    return {
        f"{side} port, ring full": stats["imissed"],
        f"{side} port, receive errors": stats["ierrors"],
        f"{side} port, no buffer": stats["rx_nombuf"],
        f"{side} port, transmit errors": stats["oerrors"],
    }


def _power_of_two(least: int) -> int:
    """The smallest power of two that is at least a number."""
    return 1 << (least - 1).bit_length()
