"""Devices made of XDP: programs in the kernel, in front of its network stack; ours, or a user's own."""

import base64
import hashlib
import json
import math
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from lossratio.dut.base import EASTWARD, WESTWARD, DutCounters, DutOptions
from lossratio.dut.changes import Changes
from lossratio.dut.connection_table import ConnectionTable, TcpState
from lossratio.dut.daemon import Daemon, make_directory, write_file
from lossratio.dut.linux import NodeDut
from lossratio.dut.linux.interfaces import check_interfaces
from lossratio.dut.linux.node_dut import IP, PYTHON
from lossratio.errors import DutError
from lossratio.nodes import CommandRunner, NodeProgram, pack_program
from lossratio.results import Role
from lossratio.topology import Hop, Port

_OWN_PROGRAM = "lossratio-xdp"
_TABLE = "firewall and most_connections go together: set both, or neither"
_FAULTS = "faults and every go together: set both, or neither"
_FEWEST = 4
"""The minimum value of ``every``: each of three faults needs a frame, and one frame passes."""

# If ip finds no file system for BPF objects, it mounts one and leaves it there. It fails if such a file system is
# hidden.
_LOAD = (
    'test "$(stat -f -c %T /sys/fs/bpf)" = bpf_fs && exec "$0" "$@"; exec unshare --mount '
    'sh -c \'mount -t bpf bpf /sys/fs/bpf && exec "$0" "$@"\' "$0" "$@"'
)


def _listed(value: Any) -> Any:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",")]
    return value


def _once(faults: tuple[str, ...]) -> tuple[str, ...]:
    if len(set(faults)) != len(faults):
        raise ValueError("a fault is named twice: name each fault once")
    return faults


class XdpOptions(DutOptions):
    """The options of a device made of XDP."""

    is_kernel = True
    filter_option = "rules"
    requires = (
        ("rules", "forwarding=filter", "rules need forwarding=filter"),
        ("firewall", "most_connections", _TABLE),
        ("most_connections", "firewall", _TABLE),
        ("faults", "every", _FAULTS),
        ("every", "faults", _FAULTS),
        (
            "map",
            "object pinned",
            "map belongs to an object or a pinned program: also set object or pinned",
        ),
    )
    excludes = (
        ("object", "pinned", "object and pinned name two different programs: set only one of them"),
        (
            "forwarding rules firewall faults delay",
            "object pinned",
            "{given}: these options belong to lossratio's own programs, but this program is yours",
        ),
    )
    forwarding: Literal["redirect", "mac", "filter"] = "redirect"
    """``redirect`` (frames leave through the other interface, unchanged; the default), ``mac`` (they also get the MAC
    addresses of the outgoing interface and of the neighbour) or ``filter`` (rules and a table check sources first)."""
    rules: int | None = Field(default=None, ge=0, le=8_000)
    """Number of rules of the filter, up to 8,000 because the kernel accepts no program with more jumps in a row. One
    after the other, the rules compare the source address of every IPv4 frame, and none drops test traffic. The filter
    also looks up the address in a table, which is empty at first."""
    firewall: Literal["hash", "lru_hash"] | None = None
    """A table of connections, without a time-out: frames of UDP and TCP over IPv4 from the west open connections, and
    only answers pass from the east. When the table is full, ``hash`` accepts no more connections, and ``lru_hash``
    forgets those that were used least recently, some of them sooner than necessary."""
    most_connections: int | None = Field(default=None, ge=1, le=10_000_000)
    """Number of entries of that table."""
    faults: Annotated[
        tuple[Literal["drop", "duplicate", "delay"], ...],
        BeforeValidator(_listed),
        AfterValidator(_once),
    ] = ()
    """What happens to a known share of frames: ``drop``, ``duplicate``, ``delay``, e.g. ``drop,duplicate``."""
    every: int | None = Field(default=None, ge=_FEWEST, le=1_000_000_000)
    """The share of frames with faults: each fault affects one of ``every`` frames in a direction, and different faults
    affect different frames. At least 4."""
    delay: float = Field(default=0.002, gt=0.0, le=10.0)
    """Seconds for which delayed frames are held (0.002). Frames that arrive in the meantime overtake them, so delayed
    frames are also reordered."""
    attach: Literal["auto", "native", "generic"] = "auto"
    """Where programs are attached: ``native`` (in the driver), ``generic`` (behind it: slower, with any driver) or
    ``auto`` (native if the drivers of both interfaces can currently send frames for programs and accept your program,
    otherwise generic). The description names the choice (``attached``), and why a driver refused it
    (``not_native_because``)."""
    object: Annotated[Path | None, Role.TESTED] = None
    """Your BPF object file, on the machine that runs the suite. ``ip`` on the node loads it separately for each
    interface, and needs libbpf for that (as in Debian's ``iproute2``)."""
    section: str = "xdp"
    """The section of the file with the program. Default: ``xdp``."""
    pinned: Annotated[str | None, Role.TESTED] = None
    """Path of a pinned program on the node, instead of a file, e.g. after ``bpftool prog load``. Both interfaces share
    its maps."""
    map: str | None = None
    """Name of a map of your program that leads to interfaces (``BPF_MAP_TYPE_DEVMAP``, or an array of numbers). The
    number of the outgoing interface is written into entry 0, and into the entry with the number of the incoming
    interface."""

    @property
    def is_router(self) -> bool | None:  # type: ignore[override]
        """Programs of lossratio do not route; whether a user's program does is not known."""
        if self.is_own:
            return False
        return None

    @property
    def is_own(self) -> bool:
        """Whether the program is one of lossratio's own."""
        return self.object is None and self.pinned is None


class XdpConnections(ConnectionTable):
    """The table that both programs of a device share."""

    translates, is_one_way = False, True

    def __init__(self, device: "XdpDevice", most: int) -> None:
        self._device = device
        self.most = most
        self.node_name = device.node.name

    def timeout_of(self, tcp_state: TcpState | None) -> float:
        """Infinite, because nothing times out."""
        return math.inf

    def count(self) -> int:
        """Entries of the table."""
        return int(self._device.ask("count")["connections"])

    def forget(self) -> float:
        """Deletes all entries; the time is what the kernel's commands took."""
        return float(self._device.ask("forget")["seconds"])

    def counters(self) -> Mapping[str, int]:
        """Frames that neither belonged to a connection nor could open one."""
        return {
            name: count
            for name, count in self._device.read_counters().dropped.items()
            if name.startswith("filtered")
        }


class XdpDevice(NodeDut[XdpOptions]):
    """An XDP program on both interfaces.

    A process on the node assembles and attaches lossratio's programs, which end with that process. ``ip`` attaches a
    user's program, and the tear-down detaches it.
    """

    kind = "xdp"
    options_type = XdpOptions
    tools = (PYTHON,)

    _mode: Literal["auto", "native", "generic"] = "generic"
    _not_native: str | None = None

    @property
    def settle_time(self) -> float:
        """Seconds for which frames may stay inside: some milliseconds, and the delay of delayed frames."""
        return 0.005 + (self.options.delay if "delay" in self.options.faults else 0.0)

    @property
    def connections(self) -> XdpConnections | None:
        """The table of a firewall."""
        most = self.options.most_connections
        if most is None:
            return None
        return XdpConnections(self, most)

    def check_ports(self) -> None:
        """Checks the interfaces, the right to load programs, and that nobody else has a program on an interface.

        Raises:
            DutError: If an interface cannot be used, or already has a program.
        """
        check_interfaces(self.node, (self.west, self.east))
        answer = self.ask("check")
        if answer["impossible"] is not None:
            raise self.node.error(f"XDP programs cannot run there. {answer['impossible']}.")
        for name, program in answer["attached"].items():
            raise self.node.error(
                f"interface {name} already has an XDP program: {program}. lossratio leaves it there. If it is not "
                f"needed, stop its owner, or detach it (ip link set dev {name} xdp off, or xdpgeneric off)."
            )

    def check_kind(self) -> None:
        """Checks that the object file is one, and that ``ip`` can load it.

        Raises:
            DutError: If the file is not a BPF object, or the node's ``ip`` was built without libbpf.
        """
        if self.options.object is None:
            return
        _read_object(self.options.object)
        version = self.node.run(*IP.ask_version)
        if "libbpf" not in version:
            raise self.node.error(
                f"the program ip cannot load BPF objects ({version.strip()}). Install one with libbpf there "
                f"(Debian 12's iproute2), or load and pin the program yourself, and give 'pinned'."
            )

    def build(self, changes: Changes, west_mac: str, east_mac: str) -> None:
        """Attaches the programs."""
        self.daemons = []
        self.quieten(changes)
        self._mode = self.options.attach
        self._not_native = None
        if self._mode == "auto":
            if all(self.ask("check")["sends"].values()):
                self._mode = "native"
            else:
                self._mode = "generic"
        self._directory = make_directory(changes, self.kind)
        if self.options.is_own:
            self._start(changes, self._directory, west_mac, east_mac)
        else:
            self._attach(changes, self._directory)

    def restart(self) -> None:
        """Kills the process that has attached the programs, and attaches them again; a user's object is read again."""
        present = self.present
        if not self.options.is_own:
            self._attach(present.changes, self._directory, replaces=True)
        for daemon in self.daemons:
            self.node.run(*daemon.program.stop("KILL"))
        if self.options.is_own:
            self._start(
                present.changes, make_directory(present.changes, self.kind), *present.neighbours
            )
        self.take_state()

    @property
    def is_addressed(self) -> bool:
        """Whether it puts its own addresses on frames: frames must then be addressed to it."""
        return self.options.forwarding == "mac"

    def facts(self) -> dict[str, Any]:
        """How the programs are attached, their names and digests, and the digest of an object file."""
        programs = {
            name: {"id": account["id"], "name": account["name"], "tag": account["tag"]}
            for name, account in self.ask("report").items()
        }
        digest = _digest(self.options.object)
        why = {} if self._not_native is None else {"not_native_because": self._not_native}
        return {"attached": self._mode, "programs": programs, "object_sha256": digest, **why}

    def read_counters(self) -> DutCounters:
        """Reads the counters of the interfaces and of lossratio's own programs."""
        _ = self.present
        self.check_running()
        stats = self.packets_of_kernel()
        accounts = self.ask("report")
        counts = {EASTWARD: accounts[self.west]["counts"], WESTWARD: accounts[self.east]["counts"]}

        def frames(*places: str) -> dict[str, int]:
            return {
                f"{place} {way}": own[place]
                for way, own in counts.items()
                for place in places
                if own
            }

        dropped = frames("dropped", "filtered")
        for side, counters in stats.items():
            dropped[f"{side} interface, going out"] = int(counters["tx"]["dropped"])

        received = {side: int(counters["rx"]["packets"]) for side, counters in stats.items()}
        transmitted = {side: int(counters["tx"]["packets"]) for side, counters in stats.items()}
        details = frames("seen", "duplicated", "delayed")
        return DutCounters(received, transmitted, dropped, details)

    def check_reconfigure(self, entries: int) -> None:
        """Refuses programs without a table of addresses."""
        if self.options.forwarding != "filter":
            super().reconfigure(entries)

    def reconfigure(self, entries: int) -> None:
        """Adds addresses, which no test traffic has, to the table of a filter."""
        _ = self.present
        self.check_reconfigure(entries)
        self.ask("filter", entries=entries)

    @contextmanager
    def telemetry(self) -> Iterator[dict[str, Any]]:
        """The programs' run time and run count, and the contents of their maps, besides the reports of the node.

        Run time and run count are None if the node does not count them (``kernel.bpf_stats_enabled``).
        """
        before = self.ask("report")
        with super().telemetry() as report:
            yield report
        report["xdp"] = {
            name: _since(account, before[name]) for name, account in self.ask("report").items()
        }

    def _start(self, changes: Changes, directory: str, west_mac: str, east_mac: str) -> None:
        """Starts the process that attaches lossratio's own programs."""
        program = pack_device()
        options = self.options
        macs = None
        if options.forwarding == "mac":
            own = self.own_macs()
            ways = ((east_mac, own.from_east), (west_mac, own.from_west))
            macs = ["".join(way).replace(":", "") for way in ways]

        rules = None
        if options.forwarding == "filter":
            rules = options.rules or 0

        request = {
            "macs": macs,
            "rules": rules,
            "connections": options.firewall and (options.firewall, options.most_connections),
            "faults": options.faults,
            "every": options.every or 1,
            "delay": options.delay,
            "mode": self._mode,
            "reflects": self.reflects,
        }
        # A program in the background has no other input, and errors show its command if it dies.
        write_file(
            changes,
            f"{directory}/request",
            _input(program, "serve", (self.west, self.east), request),
        )
        write_file(
            changes,
            f"{directory}/device",
            f"exec {shlex.join(program.command('python3'))} < request",
        )
        daemon = Daemon(self.node, directory, _OWN_PROGRAM, ("sh", f"{directory}/device"))

        try:
            daemon.start(
                changes, lambda: "attached" in self.node.read_files(daemon.program.log).values()
            )
        except DutError as cause:
            raise _refused(self._mode, cause) from cause

        self.daemons = [daemon]

    def _attach(self, changes: Changes, directory: str, *, replaces: bool = False) -> None:
        """Attaches the user's program, or replaces one that is attached."""
        load: tuple[str, ...] = ()
        source = ["pinned", str(self.options.pinned)]
        way = "xdpdrv" if self._mode == "native" else "xdpgeneric"
        if self.options.object is not None:
            path = f"{directory}/object.o"
            content = base64.b64encode(_read_object(self.options.object)).decode()
            self.node.run("sh", "-c", 'base64 -d > "$1"', "object", path, stdin=content)
            load = ("sh", "-c", _LOAD)
            source = ["object", path, "section", self.options.section]

        for name in (self.west, self.east):
            set_link = ("link", "set", "dev", name, way)
            try:
                if replaces:
                    self.node.run(*load, "ip", "-force", *set_link, *source)
                else:
                    changes.run(*load, "ip", *set_link, *source, undo=("ip", *set_link, "off"))
            except DutError as cause:
                if way == "xdpdrv" and name == self.west and self.options.attach == "auto":
                    self._mode = "generic"
                    self._not_native = str(cause)
                    self._attach(changes, directory)
                    return
                raise _refused(self._mode, cause) from cause

        if self.options.map is not None:
            self.ask("fill", map=self.options.map)

    def ask(self, what: str, **request: Any) -> dict[str, Any]:
        """The answer of lossratio's program on the node.

        Raises:
            DutError: If the program failed there; the message has its last line.
        """
        program = pack_device()
        result = self.node.attempt(
            *program.command("python3"),
            stdin=_input(program, what, (self.west, self.east), request),
        )
        if result.exit_status != 0:
            lines = result.stderr.strip().splitlines() or [f"exit status {result.exit_status}"]
            raise self.node.error(f"{lines[-1]}")
        answer: dict[str, Any] = json.loads(result.stdout)
        return answer


class Reflector(XdpDevice):
    """The far end of a path: IP packets go back where they came from, with their addresses swapped.

    So the TG takes both times of a frame from one clock, although the other end of the path is on another machine.
    """

    reflects = True

    def __init__(self, session: CommandRunner, port: Port) -> None:
        super().__init__(session, Hop(port.node_name, port, port), XdpOptions())


def pack_device() -> NodeProgram:
    """Packs the program that loads an XDP program and reads its counters."""
    return pack_program("dut/xdp/device", _OWN_PROGRAM, "device", rooms=("bpf",))


def _since(account: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """A program's account, with the times and counts since an earlier account."""
    # If a program has not run, the node does not count its runs.
    times = {name: account[name] - before[name] or None for name in ("runs", "run_nanoseconds")}
    counts = {name: count - before["counts"][name] for name, count in account["counts"].items()}
    return {
        **{name: account[name] for name in ("id", "name", "tag", "maps")},
        **times,
        "counts": counts,
    }


def _refused(mode: str, cause: DutError) -> DutError:
    if mode == "generic":
        return cause
    return DutError(
        f"{cause} A driver refuses programs if it does not support XDP, if the MTU is larger than a page, if "
        "offloads join frames (ethtool -K ... lro off), or if there are too few queues. Correct that, or set "
        "attach=generic."
    )


def _read_object(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as cause:
        raise DutError(f"The BPF object {path} cannot be read: {cause.strerror}.") from cause
    if not content.startswith(b"\x7fELF"):
        raise DutError(
            f"{path} is not a BPF object. Compile it with clang -O2 -g -target bpf -c, and name the .o file."
        )
    return content


def _digest(path: Path | None) -> str | None:
    if path is None:
        return None
    return hashlib.sha256(_read_object(path)).hexdigest()


def _input(
    program: NodeProgram, what: str, interfaces: tuple[str, str], request: dict[str, Any]
) -> str:
    asked = {"do": what, "interfaces": list(dict.fromkeys(interfaces)), **request}
    return f"{program.line}\n{json.dumps(asked)}\n"
