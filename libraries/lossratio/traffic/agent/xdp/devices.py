"""Programs of the generator on interfaces: whether they can be attached there, and how."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from lossratio.bpf import SENDS, BpfError, XdpLink, XdpMode, XdpProgram, attached_program, program_info, xdp_features

from ..core.links import Link
from ..core.protocol import AgentError

_POSSIBLE_CPUS = "/sys/devices/system/cpu/possible"
_PROCESSOR_TIMES = "/proc/stat"
_STOLEN_COLUMN = 7
_NATIVE_REFUSED = (errno.EOPNOTSUPP, errno.EINVAL, errno.ERANGE, errno.ENOMEM, errno.ENOSPC, errno.EBUSY)


def check_may_attach(port: Link) -> None:
    """Makes sure that an interface has no XDP program yet: somebody else's is never replaced.

    Raises:
        AgentError: Of kind ``xdp_attached``; names the program.
    """
    number = attached_program(port.index)
    if number is None:
        return
    try:
        name = f"{number} ({program_info(number).name})"
    except BpfError:
        name = str(number)
    raise AgentError(
        "xdp_attached",
        f"Interface {port.name} has an XDP program already: {name}. It is not ours, or another agent's, and is left "
        f"alone. End its owner, or detach it (ip link set dev {port.name} xdp off), or use 'kind: afpacket'.",
    )


def check_can_send(port: Link) -> None:
    """Makes sure that an interface's driver sends redirected frames, as far as the kernel says so.

    Raises:
        AgentError: Of kind ``no_xdp``; names the way out.
    """
    features = xdp_features(port.index)
    if features is None or features & SENDS:
        return
    if port.kind == "veth":
        way_out = "the other end of this veth link needs GRO (ethtool -K OTHER_END gro on) or an XDP program"
    else:
        way_out = "take a card whose driver has ndo_xdp_xmit; some have it only while the card has an XDP program"
    raise AgentError(
        "no_xdp",
        f"The driver of {port.name} does not send frames of XDP programs: {way_out}. Or use 'kind: afpacket'.",
    )


def attach(program: XdpProgram, port: Link) -> tuple[XdpLink, XdpMode]:
    """Attaches a program to an interface: in its driver, or else behind it.

    Returns:
        The attachment, and how it was done.

    Raises:
        AgentError: If neither is possible.
    """
    check_may_attach(port)
    try:
        return XdpLink(program, port.index, XdpMode.NATIVE), XdpMode.NATIVE
    except BpfError as error:
        if error.error_number not in _NATIVE_REFUSED:
            raise
        native = error
    try:
        return XdpLink(program, port.index, XdpMode.GENERIC), XdpMode.GENERIC
    except BpfError as error:
        check_may_attach(port)
        raise AgentError(
            "no_xdp",
            f"No XDP program can be attached to {port.name}, neither in its driver ({native.message}) nor behind it "
            f"({error.message}). Offloads that join frames (ethtool -K {port.name} lro off), an MTU beyond a page, and "
            f"too few queues are in the way of XDP. Or use 'kind: afpacket'.",
        ) from error


class DeviceProcessors:
    """Processors that threads of the kernel are bound to which receive for an interface (threaded NAPI).

    A local testbed has one for each DUT, and keeps the processor for that thread.

    Attributes:
        numbers: The processors.
    """

    def __init__(self) -> None:
        self.numbers = _pinned_napi_cpus()
        self._before = 0

    def begin(self) -> None:
        """Begins to watch what is taken from them."""
        self._before = self._stolen_ticks()

    def kept_out(self, refused: int, rate: float) -> int:
        """Of the frames that a device had no room for, those that the host of a virtual machine kept out.

        Args:
            refused: Frames that the device refused since `begin`.
            rate: Frames per second that were sent to it.

        Returns:
            All of them, if the host had these processors for the time of so many frames; else none: the device was
            overloaded.
        """
        ticks = self._stolen_ticks() - self._before
        # How much of the first tick was stolen before is not known.
        seconds = (ticks + 1) / os.sysconf("SC_CLK_TCK") if ticks > 0 else 0.0
        return refused if refused <= seconds * rate else 0

    def check(self, home: int, place: int | None) -> None:
        """Makes sure that no sender kept a device from receiving.

        Args:
            home: The sender's processor.
            place: Another processor that it was on; None: there is none.

        Raises:
            AgentError: Of kind ``displaced``.
        """
        if place in self.numbers:
            raise AgentError(
                "displaced",
                f"The kernel moved the sender from processor {home} to {place}, which belongs to a device under test, "
                "so that the device could not receive all frames. Other programs take too much time of this machine.",
            )

    def _stolen_ticks(self) -> int:
        ticks = 0
        if self.numbers:
            with open(_PROCESSOR_TIMES, encoding="ascii") as file:
                for line in file:
                    name, *columns = line.split()
                    if name[:3] == "cpu" and name[3:].isdigit() and int(name[3:]) in self.numbers:
                        ticks += int(columns[_STOLEN_COLUMN])
        return ticks


def _pinned_napi_cpus() -> frozenset[int]:
    cpus: set[int] = set()
    every = len(os.sched_getaffinity(0))
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                if (entry / "comm").read_text(encoding="ascii", errors="replace").startswith("napi/"):
                    # Not by its id, which may be another one in this PID namespace.
                    bound = _allowed((entry / "status").read_text(encoding="ascii", errors="replace"))
                    cpus |= bound if len(bound) < every else set()
    return frozenset(cpus)


def _allowed(status: str) -> set[int]:
    """The processors that a thread may use, by its ``/proc/.../status``."""
    line = next(line for line in status.splitlines() if line.startswith("Cpus_allowed_list:"))
    cpus: set[int] = set()
    for part in line.split()[1].split(","):
        first, _, last = part.partition("-")
        cpus |= set(range(int(first), int(last or first) + 1))
    return cpus


def possible_cpus() -> int:
    """How many processors the machine may have."""
    try:
        with open(_POSSIBLE_CPUS, encoding="ascii") as file:
            return int(file.read().strip().split(",")[-1].split("-")[-1]) + 1
    except OSError:
        return os.cpu_count() or 1
