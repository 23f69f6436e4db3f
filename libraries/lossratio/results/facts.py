"""Facts of the machines: of a node over its SSH session in one command, and of the controller's own side.

What a node does not tell (a tool that is missing, a file that cannot be read) is None in the facts, never an error.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Iterator
from importlib.metadata import version
from typing import Any, Protocol

from pydantic import Field

from lossratio import __version__
from lossratio.records import Record

_SEPARATOR = "\x1e"

_BOOT_PARAMETERS = frozenset(
    {
        "default_hugepagesz",
        "hugepages",
        "hugepagesz",
        "idle",
        "intel_idle.max_cstate",
        "intel_iommu",
        "intel_pstate",
        "amd_iommu",
        "amd_pstate",
        "iommu",
        "isolcpus",
        "mitigations",
        "nohz",
        "nohz_full",
        "noht",
        "nosmt",
        "preempt",
        "processor.max_cstate",
        "rcu_nocbs",
        "skew_tick",
        "transparent_hugepage",
        "tsc",
    }
)
"""The others are nobody's business: a kernel's command line may hold secrets."""

_SCRIPT = r"""
PATH=$PATH:/usr/sbin:/sbin; LC_ALL=C; export PATH LC_ALL
tell() { name=$1; shift; answer=$("$@" 2>/dev/null) && printf '\036%s\n%s\n' "$name" "$answer"; }
tell os_release cat /etc/os-release
tell kernel uname -r
tell architecture uname -m
tell lscpu lscpu -J
tell cpus getconf _NPROCESSORS_ONLN
tell governors sort -u /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor
tell meminfo cat /proc/meminfo
tell command_line cat /proc/cmdline
tell tool.ip ip -V
tell tool.nft nft --version
tell tool.ethtool ethtool --version
tell tool.python python3 --version
exit 0
"""


class CommandResult(Protocol):
    """What a command on a node left behind."""

    @property
    def exit_status(self) -> int:
        """The command's exit status."""

    @property
    def stdout(self) -> str:
        """What it wrote to its standard output."""

    @property
    def stderr(self) -> str:
        """What it wrote to its standard error."""


class Session(Protocol):
    """A session with a node; `lossratio.nodes.NodeSession` is one."""

    def run(self, *argv: str, check: bool = ...) -> CommandResult:
        """Runs one command; with ``check=False`` whatever its exit status is."""


class ToolVersions(Record):
    """Versions of what configures and measures a node, in the tools' own words; None: not there."""

    ip: str | None = None
    """iproute2."""
    nft: str | None = None
    """nftables."""
    ethtool: str | None = None
    """ethtool."""
    python: str | None = None
    """Python."""


class NodeFacts(Record):
    """What a node of the testbed is; None: it does not tell."""

    os: str | None = None
    """Operating system, e.g. ``Debian GNU/Linux 12 (bookworm)``."""
    kernel: str | None = None
    """Kernel release."""
    boot_parameters: tuple[str, ...] | None = None
    """Those parameters that the kernel was booted with which change its performance, e.g. ``isolcpus=2-3``."""
    architecture: str | None = None
    """Machine architecture, e.g. ``x86_64``."""
    cpu_model: str | None = None
    """CPU model."""
    cpus: int | None = None
    """How many logical CPUs are on line."""
    threads_per_core: int | None = None
    """Logical CPUs per core; 2 where SMT is on."""
    hypervisor: str | None = None
    """Who virtualises the node."""
    numa_nodes: dict[str, str] | None = None
    """Logical CPUs (as a list of ranges) of each NUMA node."""
    governors: tuple[str, ...] | None = None
    """The CPU frequency governors in use."""
    memory_bytes: int | None = None
    """Main memory."""
    tools: ToolVersions = Field(default_factory=ToolVersions)
    """Versions of tools."""


class ControllerFacts(Record):
    """What the machine is that runs the search and talks to the nodes."""

    lossratio_version: str
    """Version of lossratio."""
    python_version: str
    """Version of Python."""
    robot_version: str
    """Version of Robot Framework."""
    os: str
    """Operating system."""
    kernel: str
    """Kernel release."""


def node_facts(session: Session) -> NodeFacts:
    """Asks a node for its facts, in one command.

    Raises:
        NodeError: If the session is broken.
    """
    return _from_answers(dict(_answers(session.run("sh", "-c", _SCRIPT, check=False).stdout)))


def controller_facts() -> ControllerFacts:
    """The facts of this machine and this Python."""
    return ControllerFacts(
        lossratio_version=__version__,
        python_version=platform.python_version(),
        robot_version=version("robotframework"),
        os=_own_os(),
        kernel=platform.release(),
    )


def _own_os() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return platform.platform(terse=True)


def _answers(output: str) -> Iterator[tuple[str, str]]:
    for part in output.split(_SEPARATOR)[1:]:
        name, _, answer = part.partition("\n")
        if answer.strip():
            yield name, answer.strip()


def _from_answers(answers: dict[str, str]) -> NodeFacts:
    cpu = _cpu_fields(answers.get("lscpu", ""))
    numa = {name.split(" ")[1]: value for name, value in cpu.items() if name.startswith("NUMA node") and "CPU" in name}
    memory = _assignments(answers.get("meminfo", ""), ":").get("MemTotal", "").split()
    governors = answers.get("governors", "").split()
    return NodeFacts(
        os=_assignments(answers.get("os_release", ""), "=").get("PRETTY_NAME"),
        kernel=answers.get("kernel"),
        boot_parameters=_boot_parameters(answers.get("command_line")),
        architecture=answers.get("architecture"),
        cpu_model=cpu.get("Model name"),
        cpus=_number(answers.get("cpus")),
        threads_per_core=_number(cpu.get("Thread(s) per core")),
        hypervisor=cpu.get("Hypervisor vendor"),
        numa_nodes=numa or None,
        governors=tuple(governors) or None,
        memory_bytes=int(memory[0]) * 1024 if memory and memory[0].isdecimal() else None,
        tools=ToolVersions(**{tool: _first_line(answers.get(f"tool.{tool}")) for tool in ToolVersions.model_fields}),
    )


def _cpu_fields(text: str) -> dict[str, str]:
    try:
        return dict(_flattened(json.loads(text)["lscpu"]))
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}


def _flattened(fields: Any) -> Iterator[tuple[str, str]]:
    """Newer versions of lscpu put groups of fields below each other."""
    for field in fields:
        if field.get("data"):
            yield str(field["field"]).rstrip(":"), str(field["data"])
        yield from _flattened(field.get("children", ()))


def _assignments(text: str, sign: str) -> dict[str, str]:
    pairs = (line.partition(sign) for line in text.splitlines())
    return {name.strip(): value.strip().strip('"') for name, _, value in pairs}


def _boot_parameters(command_line: str | None) -> tuple[str, ...] | None:
    if command_line is None:
        return None
    return tuple(each for each in command_line.split() if each.partition("=")[0] in _BOOT_PARAMETERS)


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None


def _first_line(text: str | None) -> str | None:
    return None if text is None else text.splitlines()[0]
