"""Reports about a Linux node and its interfaces, as JSON data: its facts, and its telemetry while traffic passes."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from lossratio.dut.linux.conntrack import read_conntrack
from lossratio.dut.linux.interfaces import Link, has_link, read_links
from lossratio.nodes import NOT_FOUND, BackgroundProgram, DutNode, reason

_NODE_SETTINGS = (
    "net/bridge/bridge-nf-call-arptables",
    "net/bridge/bridge-nf-call-ip6tables",
    "net/bridge/bridge-nf-call-iptables",
    "net/core/default_qdisc",
    "net/core/dev_weight",
    "net/core/netdev_budget",
    "net/core/netdev_budget_usecs",
    "net/core/netdev_max_backlog",
    "net/core/rps_default_mask",
    "net/core/rps_sock_flow_entries",
    "net/ipv4/conf/all/rp_filter",
    "net/ipv4/conf/all/send_redirects",
    "net/ipv4/ip_early_demux",
    "net/ipv4/ip_forward",
    "net/ipv6/conf/all/forwarding",
)
_UNKNOWN = "unknown"
_INTERFACE_SETTINGS = (
    "net/ipv4/conf/{}/forwarding",
    "net/ipv4/conf/{}/rp_filter",
    "net/ipv4/conf/{}/send_redirects",
    "net/ipv6/conf/{}/disable_ipv6",
    "net/ipv6/conf/{}/force_forwarding",
    "net/ipv6/conf/{}/forwarding",
)


def describe_node(
    node: DutNode, versions: Mapping[str, str], interfaces: Sequence[str]
) -> dict[str, Any]:
    """Kernel, distribution, CPUs and their governors, tool versions, and the kernel settings that change a throughput.

    `lossratio.nodes.gather_facts` gathers them, together with the facts that are in every result.
    """
    gathered = node.facts()
    settings = [
        *_NODE_SETTINGS,
        *(setting.format(name) for name in interfaces for setting in _INTERFACE_SETTINGS),
    ]
    sysctls = node.read_files(*(f"/proc/sys/{setting}" for setting in settings))

    cpu = {
        "model": gathered.facts.cpu_model or _UNKNOWN,
        "online": gathered.online_cpus,
        "numa_nodes": gathered.online_numa_nodes,
        "governors": list(gathered.facts.governors or ()),
    }
    return {
        "kernel": gathered.kernel_version,
        "kernel_parameters": list(gathered.facts.boot_parameters or ()),
        "operating_system": gathered.facts.os or _UNKNOWN,
        "cpu": cpu,
        "tools": dict(versions),
        "sysctls": {path.removeprefix("/proc/sys/"): text for path, text in sysctls.items()},
    }


RINGS_OF = r"""
rings_of() {
    ethtool -g "$1" 2>/dev/null | sed -n "/^Current/,\$ {
        s/^RX:[[:space:]]*\([0-9][0-9]*\)\$/rx \1/p
        s/^TX:[[:space:]]*\([0-9][0-9]*\)\$/tx \1/p
    }" | xargs
}
"""
"""Shell code: ``rings_of NAME`` prints the sizes of an interface's rings, e.g. ``rx 512 tx 1024``, as ``ethtool -G``
takes them. It prints nothing if the driver has none."""

# For all interfaces in one round trip to the node.
_ASK_ETHTOOL = (
    RINGS_OF
    + r"""
interrupt_cpus() {
    device=/sys/class/net/$1/device
    # The interrupts of a virtio device are those of the card that carries it.
    case $(readlink "$device") in */virtio*) device=$device/.. ;; esac
    for file in "$device"/msi_irqs/*; do
        [ ! -f "$file" ] || cat "/proc/irq/${file##*/}/smp_affinity_list"
    done | xargs
}
for name; do
    ethtool -i "$name"
    echo "rings: $(rings_of "$name")"
    echo "interrupt_cpus: $(interrupt_cpus "$name")"
    echo =
done
echo "["; for name; do ethtool --json -k "$name" || exit; echo ,; done; echo "[]]"
"""
)


def interface_facts(node: DutNode, links: Sequence[Link]) -> dict[str, dict[str, Any]]:
    """Addresses, MTU, driver, queues, rings, offloads, steering and location of interfaces, by their names."""
    names = [link["ifname"] for link in links]
    *drivers, features = node.run("sh", "-c", _ASK_ETHTOOL, "ethtool", *names).split("=\n")
    queues = range(max((link.get("num_rx_queues", 1) for link in links), default=0))
    files = (
        "device/numa_node",
        "speed",
        "threaded",
        *(f"queues/rx-{queue}/rps_cpus" for queue in queues),
    )
    texts = node.read_files(*(f"/sys/class/net/{name}/{file}" for name in names for file in files))
    facts = {}

    for name, link, driver, active in zip(
        names, links, drivers, json.loads(features), strict=False
    ):
        read = [texts.get(f"/sys/class/net/{name}/{file}") for file in files]
        facts[name] = _facts(link, driver, active[0], read)

    return facts


def _facts(
    link: Link, driver: str, features: Mapping[str, Any], texts: Sequence[str | None]
) -> dict[str, Any]:
    numa, speed, threaded, *rps = texts
    lines = (line.partition(": ") for line in driver.splitlines())
    known = {key: value for key, _, value in lines if value not in ("", "N/A")}
    steering = {f"rx-{queue}": mask for queue, mask in enumerate(rps) if mask is not None}
    switches = {name: state for name, state in features.items() if isinstance(state, dict)}
    rings = re.findall(r"(rx|tx) (\d+)", known.get("rings", ""))

    # Record: an interface as it stands in a result.
    return {
        "name": link["ifname"],
        "mac_address": link["address"],
        "mtu": link["mtu"],
        "state": "UP" if has_link(link) else link["operstate"],
        "qdisc": link.get("qdisc"),
        "kind": link.get("linkinfo", {}).get("info_kind"),
        "driver": known.get("driver"),
        "driver_version": known.get("version"),
        "firmware_version": known.get("firmware-version"),
        "pci_address": known.get("bus-info"),
        "numa_node": numa,
        "speed_mbps": speed,
        "threaded_napi": threaded,
        "receive_queues": link.get("num_rx_queues"),
        "transmit_queues": link.get("num_tx_queues"),
        "rings": {way: int(size) for way, size in rings},
        "interrupt_cpus": known.get("interrupt_cpus", "").split(),
        "rps_cpus": steering,
        "offloads": sorted(name for name, state in switches.items() if state["active"]),
    }


_FILE = "/proc/net/softnet_stat"
_COLUMNS = {"processed": 0, "dropped": 1, "time_squeeze": 2, "received_rps": 9, "flow_limited": 10}
_CPU_COLUMN = 12


def read_softnet(node: DutNode) -> dict[str, dict[str, int]]:
    """The kernel's counters of arriving frames: counts by name, by the name of the CPU, such as ``cpu0``.

    They are for all interfaces of the machine, in all namespaces. CPUs that are offline have no line. Kernels before
    5.10 do not write the number of the CPU; the number of the line is used instead.
    """
    counts: dict[str, dict[str, int]] = {}
    for index, line in enumerate(node.read_files(_FILE).get(_FILE, "").splitlines()):
        row = [int(column, 16) for column in line.split()]
        cpu = row[_CPU_COLUMN] if len(row) > _CPU_COLUMN else index
        counts[f"cpu{cpu}"] = {
            name: row[column] for name, column in _COLUMNS.items() if column < len(row)
        }
    return counts


_STAT = "/proc/stat"
_SOFTIRQ = 6
_TIMES = 8
"""Columns of a CPU's times: user, nice, system, idle, iowait, irq, softirq, steal. Later columns are already included
in user."""


def read_cpu_times(node: DutNode) -> dict[str, dict[str, int]]:
    """The time of each CPU so far, by its name, in the kernel's ticks: total, and in soft interrupts."""
    times = {}
    for line in node.read_files(_STAT).get(_STAT, "").splitlines():
        name, *columns = line.split()
        if name.startswith("cpu") and name != "cpu":
            ticks = [int(column) for column in columns[:_TIMES]]
            times[name] = {"all": sum(ticks), "softirq": ticks[_SOFTIRQ]}
    return times


_DRIVER_QUEUE = re.compile(r"rx(?:_queue_|-|_)?(\d+)[._](packets|xdp_packets|drops)")
"""How drivers name the counters of frames by receive queue: veth, virtio and ice, i40e, and mlx5.

Only veth and virtio count drops by queue. Those of veth include the frames for which the ring of an AF_XDP socket has
no room.
"""


def read_queues(node: DutNode, interfaces: Sequence[str]) -> list[dict[str, Any]]:
    """The counters of receive queues so far, for interfaces whose drivers count the frames that each queue drops."""
    # In one round trip to the node, because it is read between trials.
    every = 'for name; do ethtool -S "$name"; echo =; done'
    answers = node.attempt("sh", "-c", every, "ethtool", *interfaces).stdout.split("=\n")
    counts = {
        name: _parsed_counts(answer) for name, answer in zip(interfaces, answers, strict=False)
    }
    return [queue for queue in _queues(counts) if "dropped_frames" in queue]


def _queues(interfaces: Mapping[str, Mapping[str, int]]) -> Iterator[dict[str, Any]]:
    """The frames of each receive queue, for interfaces whose drivers count them; the drops only if it counts them."""
    for interface, counts in interfaces.items():
        frames: dict[int, int] = {}
        drops: dict[int, int] = {}
        for name, count in counts.items():
            if queue := _DRIVER_QUEUE.fullmatch(name):
                number = int(queue[1])
                counted = drops if queue[2] == "drops" else frames
                counted[number] = max(counted.get(number, 0), count)
        # A veth only counts the frames of XDP programs; without such a program, it counts zeros.
        if any(frames.values()):
            for number, count in frames.items():
                dropped = {"dropped_frames": drops[number]} if number in drops else {}
                # Record: a receive queue as it stands in a result.
                yield {"interface": interface, "queue": number, "frames": count, **dropped}


_PERF_EVENTS = (
    "task-clock,context-switches,cpu-migrations,cycles,instructions,cache-misses,branch-misses"
)
_LONGEST = 600
"""Seconds after which a perf that was not stopped ends by itself."""

_READ_PERF = """
cd "$1" || exit 1
grep '^{' perf.json || cat perf.log
cd / && rm -rf -- "$1"
"""


@contextmanager
def linux_telemetry(node: DutNode, interfaces: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Counts on a node inside the ``with`` block; after the block, the yielded report has the counts.

    These are ``interfaces`` (by name, the counters of ``ip -statistics`` and ``ethtool -S``), ``softnet`` (by CPU, for
    the whole machine), ``cpu_times`` (likewise, ticks), ``conntrack`` (connections that failed), ``perf`` (all CPUs; or
    why perf is missing or not allowed), ``statistics`` (the numbers of ``softnet`` with their units), ``cpus`` and
    ``queues`` (see `lossratio.dut.Dut.telemetry`).
    """
    report: dict[str, Any] = {}
    perf = _start_perf(node)

    try:
        before = _counts(node, interfaces)
        yield report
    finally:
        report["perf"] = _stop_perf(node, perf)

    report.update(difference(_counts(node, interfaces), before))
    report["statistics"] = [
        statistic(cpu, f"softnet_{name}", count, "times" if name == "time_squeeze" else "frames")
        for cpu, counts in report["softnet"].items()
        for name, count in counts.items()
    ]
    report["statistics"] += [
        statistic("conntrack", f"conntrack_{name}", count, "connections")
        for name, count in report["conntrack"].items()
    ]
    by_driver = {name: of_link["driver"] for name, of_link in report["interfaces"].items()}
    report["queues"] = list(_queues(by_driver))
    report["cpus"] = [
        {
            "cpu": int(cpu[3:]),
            "frames": counts["processed"],
            "softirq": _share(report["cpu_times"].get(cpu, {})),
        }
        for cpu, counts in report["softnet"].items()
    ]


def statistic(place: str, name: str, value: str | float, unit: str) -> dict[str, Any]:
    """A number of the topic ``statistics`` of telemetry."""
    return {"place": place, "name": name, "value": float(value), "unit": unit}


def _share(ticks: Mapping[str, int]) -> float | None:
    if ticks.get("all", 0) > 0:
        return min(1.0, ticks["softirq"] / ticks["all"])
    return None


def _counts(node: DutNode, interfaces: Sequence[str]) -> dict[str, Any]:
    links = read_links(node)
    return {
        "interfaces": {
            name: {**links[name]["stats64"], "driver": _driver_counts(node, name)}
            for name in interfaces
            if name in links
        },
        "softnet": read_softnet(node),
        "cpu_times": read_cpu_times(node),
        "conntrack": read_conntrack(node),
    }


def _driver_counts(node: DutNode, interface: str) -> dict[str, int]:
    return _parsed_counts(node.attempt("ethtool", "-S", interface).stdout)


def _parsed_counts(answer: str) -> dict[str, int]:
    """The counters in an answer of ``ethtool -S``."""
    lines = (line.strip().partition(": ") for line in answer.splitlines())
    return {name: int(value) for name, _, value in lines if value.isdecimal()}


def difference(now: Any, before: Any) -> Any:
    """The difference of numbers, by name if there are several.

    A number that has appeared meanwhile began at zero. If a CPU or an interface has appeared, nobody knows when its
    numbers began, so they are left out.
    """
    if isinstance(now, dict):
        return {
            name: difference(value, before.get(name, 0))
            for name, value in now.items()
            if name in before or not isinstance(value, dict)
        }
    return now - before


def _start_perf(node: DutNode) -> BackgroundProgram | None:
    if node.attempt("perf", "--version").exit_status == NOT_FOUND:
        return None
    made = node.attempt("mktemp", "-d")
    if made.exit_status != 0:
        return None
    directory = made.stdout.strip()
    # Without a program to watch, it counts until a signal or its timeout (milliseconds) ends it.
    options = ("--all-cpus", "--json", "--output", "perf.json", "--event", _PERF_EVENTS)
    command = ("perf", "stat", *options, "--timeout", str(1000 * _LONGEST))
    perf = BackgroundProgram(f"{directory}/perf.", directory, command)
    node.attempt(*perf.start)
    return perf


def _stop_perf(node: DutNode, perf: BackgroundProgram | None) -> Any:
    if perf is None:
        return {"unavailable": "perf cannot be run there: install it (Debian: linux-perf)"}
    # perf writes its counts only after this signal; others end it at once.
    node.attempt(*perf.stop("INT", 5.0))
    written = node.attempt("sh", "-c", _READ_PERF, "perf", perf.directory)
    if written.exit_status != 0 or not written.stdout.startswith("{"):
        return {"unavailable": written.stdout.strip() or reason(written)}
    return node.parse_json_lines(written.stdout)
