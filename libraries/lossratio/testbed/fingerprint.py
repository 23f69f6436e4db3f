"""Fingerprints of nodes: the state that must not change during a trial, read in one line from each node.

A shell on each node waits for a line, and answers with one line. It does nothing while traffic flows, and starts other
programs only for interfaces of real devices, or to wait for a thread that has no CPU. All nodes are asked at once
between trials, which costs one round trip, and at most a second more while such threads wait.
"""

import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from lossratio.errors import NodeError
from lossratio.nodes import NodeProcess, NodeSession
from lossratio.testbed.counters import PATTERN

ANSWER_SECONDS = 10.0
"""Seconds that a node may take to answer."""
_IFF_UP = 0x1
_MANY = ("port", "thread", "count")
_TICKS = 100.0
"""Clock ticks per second in /proc/stat, which is the same on every Linux."""
NOT_FORWARDING = (
    "vpp_main | handler* | revalidator* | urcu* | ct_clean* | *-intr* | rte_mp_* | dpdk-mp-*"
)
"""Names of threads of VPP, Open vSwitch and DPDK that forward no frames, as patterns of a shell's ``case``."""

# Built-in commands, as far as possible. A minus sign stands for a file that is missing or unreadable, such as the
# carrier of an interface that is down. The kernel adds a wait to a thread's sum when the wait ends. So the script waits
# for a second at most until no thread waits: until none can run, but has been switched out as often as in.
_SCRIPT = r"""
waits() {
    state=; read -r state < "$task/stat"
    case ${state##*) } in R*) ;; *) return 1 ;; esac
    switches=0
    while read -r key value; do
        case $key in *_switches:) switches=$((switches + value)) ;; esac
    done < "$task/status"
    runs=; read -r _ _ runs < "$task/schedstat"
    [ "$switches" = "$runs" ]
}
while read -r programs; do
    {
        answer=
        for name; do
            [ -d "/sys/class/net/$name" ] || continue
            answer="${answer}port $name"
            for file in mtu flags carrier carrier_changes speed statistics/rx_crc_errors statistics/rx_frame_errors \
                statistics/rx_packets statistics/tx_packets statistics/tx_dropped; do
                value=; read -r value < "/sys/class/net/$name/$file"
                answer="$answer ${value:--}"
            done
            answer="$answer;"
            [ -e "/sys/class/net/$name/device" ] || continue
            for file in rx_missed_errors rx_fifo_errors rx_over_errors; do
                value=; read -r value < "/sys/class/net/$name/statistics/$file"
                answer="${answer}count $name/$file ${value:-0};"
            done
            answer="$answer$(
                ethtool -S "$name" | grep -E PATTERN | while read -r counter value; do
                    printf 'count %s %s;' "$name/${counter%:}" "$value"
                done
            )"
            interrupts=" "
            for file in "/sys/class/net/$name/device"/msi_irqs/* "/sys/class/net/$name/device"/../msi_irqs/*; do
                interrupts="$interrupts${file##*/}: "
            done
            answer="$answer$(
                [ "$interrupts" = " *: *: " ] || awk -v name="$name" -v interrupts="$interrupts" '
                    NR == 1 { cpus = NF; next }
                    index(interrupts, " " $1 " ") { for (cpu = 0; cpu < cpus; cpu++) count[cpu] += $(cpu + 2) }
                    END { for (cpu in count) printf "count %s/interrupts_of_cpu_%d %d;", name, cpu, count[cpu] }
                ' /proc/interrupts
            )"
        done
        throttled=0 pressure=
        while IFS=: read -r _ kind group; do
            case ,$kind, in
                *,cpu,*) kind=/cpu ;;
                ,,) for root in "" /unified; do read -r pressure < "/sys/fs/cgroup$root$group/cpu.pressure"; done ;;
                *) continue ;;
            esac
            while :; do
                while read -r counter value; do
                    [ "$counter" = nr_throttled ] && throttled=$((throttled + value))
                done < "/sys/fs/cgroup$kind$group/cpu.stat"
                [ "${group%/}" ] || break
                group=${group%/*}
            done
        done < /proc/self/cgroup
        softnet=0
        while read -r _ value _; do softnet=$((softnet + 0x$value)); done < /proc/net/softnet_stat
        answer="${answer}count nr_throttled $throttled;count softnet_dropped $softnet;"
        looks=0
        for program in $programs; do
            pid=; read -r pid _ < "$program"
            for task in "/proc/${pid:-none}/task"/*; do
                name=; read -r name < "$task/comm"
                case $name in NOT_FORWARDING) continue ;; esac
                while [ "$looks" -lt 50 ] && waits; do looks=$((looks + 1)); sleep 0.02; done
                waited= runs=; read -r _ waited runs < "$task/schedstat"
                answer="${answer}thread ${task##*/} ${waited:--} ${runs:--} $name;"
            done
        done
        boot=; read -r boot < /proc/sys/kernel/random/boot_id
        cpu=; read -r cpu < /proc/stat
        [ "$pressure" ] || read -r pressure < /proc/pressure/cpu
        uptime=; read -r uptime _ < /proc/uptime
        awake=; { read -r _; read -r _; read -r _ _ awake _; } < /proc/timer_list
    } 2> /dev/null
    printf '%s\n' "${answer}boot $boot;$cpu;pressure $pressure;uptime $uptime;awake $awake"
done
""".replace("PATTERN", shlex.quote(PATTERN)).replace("NOT_FORWARDING", NOT_FORWARDING)


@dataclass(frozen=True)
class PortPrint:
    """The state of an interface, as the kernel of its node reports it. None: the kernel does not report the value."""

    mtu: int | None = None
    """MTU, bytes."""
    is_up: bool = True
    """Whether the interface is set up; its link may still be lost."""
    has_carrier: bool = True
    """Whether its link has a carrier."""
    carrier_changes: int | None = None
    """How often the carrier appeared or disappeared."""
    speed: int | None = None
    """Speed of the link, Mbit/s."""
    damaged: int | None = None
    """Frames that arrived with a wrong checksum, or were cut off on the wire."""
    received: int | None = None
    """Frames that arrived."""
    transmitted: int | None = None
    """Frames that left."""
    refused: int | None = None
    """Frames to send for which it, or the other end of a virtual link, had no room."""


@dataclass(frozen=True)
class ThreadPrint:
    """A thread of a DUT's program."""

    name: str
    """Its name."""
    waited: float
    """Seconds since its start in which it could have run but had no CPU."""
    runs: int = 0
    """How often it has got a CPU since its start."""


@dataclass(frozen=True)
class NodePrint:
    """The state of a node at one moment. None: the node does not report the value."""

    ports: Mapping[str, PortPrint] = field(default_factory=dict)
    """Its interfaces on the path that the kernel has, by name."""
    boot_id: str | None = None
    """An identifier that changes with every boot."""
    stolen: float | None = None
    """CPU seconds since the boot that the host of a virtual machine gave to other programs."""
    pressure: float | None = None
    """Seconds since the boot in which some process of its cgroup (of the node, if the cgroup has no counter) waited for
    a CPU."""
    uptime: float | None = None
    """Seconds since the boot, including the time in which the node was suspended."""
    awake: float | None = None
    """Seconds since the boot, without the time in which the node was suspended."""
    asked: float = 0.0
    """When the controller asked for the fingerprint, on the clock that also runs while the controller is suspended."""
    answered: float = 0.0
    """When the controller had the answer, on the same clock."""
    threads: Mapping[str, ThreadPrint] = field(default_factory=dict)
    """The threads of the DUT's programs, by their ids."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Counters of causes outside of the DUT, by name; those of an interface have its name and a slash in front."""


@dataclass(frozen=True)
class ControllerPrint:
    """The controller's clocks at one moment, in seconds."""

    awake: float
    """A clock that stops while the controller is suspended."""
    running: float
    """A clock that also runs while the controller is suspended."""
    time: float
    """The time of day, which can be set."""


@dataclass(frozen=True)
class Fingerprint:
    """The state of the whole testbed between two trials."""

    nodes: Mapping[str, NodePrint]
    """The nodes, by name."""
    controller: ControllerPrint
    """The controller."""


def read_controller() -> ControllerPrint:
    """Reads the controller's clocks."""
    return ControllerPrint(time.monotonic(), time.clock_gettime(time.CLOCK_BOOTTIME), time.time())


class FingerprintReader:
    """Reads fingerprints of interfaces and DUTs' programs, by node, over existing sessions. Close it at the end."""

    def __init__(
        self,
        sessions: Mapping[str, NodeSession],
        interfaces: Mapping[str, Sequence[str]],
        programs: Callable[[], Mapping[str, Sequence[str]]] = dict,
    ) -> None:
        self._shells = {
            name: _Shell(session, interfaces.get(name, ())) for name, session in sessions.items()
        }
        self._programs = programs

    def read(self, *, may_be_silent: bool = False) -> Fingerprint:
        """Reads all nodes at once. Nodes that do not answer are missing in the fingerprint, if they may be silent."""
        programs = self._programs()
        for name, shell in self._shells.items():
            shell.ask(programs.get(name, ()))
        answers: dict[str, NodePrint] = {}
        for name, shell in self._shells.items():
            try:
                answers[name] = shell.answer()
            except NodeError:
                if not may_be_silent:
                    raise
        return Fingerprint(answers, read_controller())

    def close(self) -> None:
        """Ends the shells on the nodes; a second call changes nothing."""
        for shell in self._shells.values():
            shell.close()


class _Shell:
    """The shell on one node. It is started on first use, and again after its connection was lost."""

    def __init__(self, session: NodeSession, interfaces: Sequence[str]) -> None:
        self._session = session
        self._interfaces = interfaces
        self._process: NodeProcess | None = None
        self._asked = 0.0
        self._is_awaited = False
        self._programs: Sequence[str] = ()

    def ask(self, programs: Sequence[str]) -> None:
        """Asks for the node's fingerprint, with the threads of programs whose ids are in these files."""
        self._programs = programs
        if self._is_awaited:
            # The earlier answer may still come, and would be mistaken for the next one.
            self.close()
        # If it cannot be asked now, `answer` asks again.
        with suppress(NodeError):
            self._write()

    def answer(self) -> NodePrint:
        try:
            line = self._read()
        except NodeError:
            self.close()
            self._write()
            line = self._read()

        try:
            answer = _node_print(line, self._asked, read_controller().running)
        except (IndexError, ValueError) as error:
            raise NodeError(
                f"Node {self._session.name}: it wrote {line[:200]!r} instead of its fingerprint. If a "
                "log-in script wrote this, make it write only in interactive shells."
            ) from error

        self._is_awaited = False
        return answer

    def close(self) -> None:
        process = self._process
        self._process = None
        if process is not None:
            process.close()

    def _write(self) -> None:
        if self._process is None:
            self._process = self._session.start("sh", "-c", _SCRIPT, "sh", *self._interfaces)
        self._asked = read_controller().running
        self._is_awaited = True
        self._process.write_line(" ".join(self._programs))

    def _read(self) -> str:
        if self._process is None:
            raise NodeError(f"Node {self._session.name}: its fingerprint was not requested.")
        return self._process.read_line(ANSWER_SECONDS)


def _node_print(line: str, asked: float, answered: float) -> NodePrint:
    records = [record.split() for record in line.split(";")]
    values = {kind: fields for kind, *fields in records if kind not in _MANY}
    ports = [row[1:] for row in records if row[0] == "port"]
    waits = [row[1:] for row in records if row[0] == "thread"]
    counts = {row[1]: int(row[2]) for row in records if row[0] == "count" and row[2].isdecimal()}

    totals = (word for word in values.get("pressure", ()) if word.startswith("total="))
    pressure = _seconds([total.removeprefix("total=") for total in totals], 1e-6)
    threads = {}
    for pid, waited, runs, *words in waits:
        if waited != "-":
            threads[pid] = ThreadPrint(" ".join(words), int(waited) / 1e9, int(runs))

    # Record: what a node reports about itself.
    return NodePrint(
        ports={name: _port_print(fields) for name, *fields in ports},
        boot_id=next(iter(values.get("boot", ())), None),
        stolen=_seconds(values.get("cpu", ())[7:8], 1.0 / _TICKS),
        pressure=pressure,
        uptime=_seconds(values.get("uptime", ()), 1.0),
        awake=_seconds(values.get("awake", ()), 1e-9),
        asked=asked,
        answered=answered,
        threads=threads,
        counts=counts,
    )


def _port_print(fields: Sequence[str]) -> PortPrint:
    mtu, flags, carrier, changes, speed, *counts = fields
    wrong, cut_off, received, transmitted, refused = map(_number, counts)
    damaged = None
    if wrong is not None and cut_off is not None:
        damaged = wrong + cut_off

    # Record: a port as the kernel shows it.
    return PortPrint(
        mtu=_number(mtu),
        is_up=bool(int(flags, 16) & _IFF_UP),
        has_carrier=carrier == "1",
        carrier_changes=_number(changes),
        # A link that is down has the speed -1.
        speed=_number(speed) or None,
        damaged=damaged,
        received=received,
        transmitted=transmitted,
        refused=refused,
    )


def _number(text: str) -> int | None:
    if text.isdecimal():
        return int(text)
    return None


def _seconds(fields: Sequence[str], unit: float) -> float | None:
    try:
        return float(fields[0]) * unit
    except (IndexError, ValueError):
        return None
