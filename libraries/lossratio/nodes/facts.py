"""Facts of a node, gathered in one command over its session. No other module asks for them.

A fact that the node does not report (a tool is missing, a file cannot be read) is None, never an error.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from lossratio.nodes.session import CommandRunner
from lossratio.results import NodeFacts, ToolVersions

REPORT = r"""
PATH=$PATH:/usr/sbin:/sbin; LC_ALL=C; export PATH LC_ALL
report() { name=$1; shift; answer=$("$@" 2>/dev/null) && printf '\036%s\n%s\n' "$name" "$answer"; }
"""
"""Shell code: ``report NAME COMMAND...`` gives a command's answer a name, for `answers_of`."""

_BOOT_PARAMETERS = frozenset(
    {
        "amd_iommu",
        "amd_pstate",
        "default_hugepagesz",
        "hugepages",
        "hugepagesz",
        "idle",
        "intel_idle.max_cstate",
        "intel_iommu",
        "intel_pstate",
        "iommu",
        "irqaffinity",
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
"""Parameters of the kernel's command line that change a throughput. Others are left out: some hold secrets."""

_SCRIPT = r"""
report os_release cat /etc/os-release
report kernel uname -r
report kernel_version uname -srvm
report architecture uname -m
report lscpu lscpu -J
report cpu_model grep -m 1 "^model name" /proc/cpuinfo
report cpus getconf _NPROCESSORS_ONLN
report online_cpus cat /sys/devices/system/cpu/online
report online_numa_nodes cat /sys/devices/system/node/online
report governors sort -u /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor
report meminfo cat /proc/meminfo
report command_line cat /proc/cmdline
report tool.ip ip -V
report tool.nft nft --version
report tool.ethtool ethtool --version
report tool.python python3 --version
exit 0
"""


@dataclass(frozen=True)
class GatheredFacts:
    """Facts of a node, and details that only the description of a DUT shows; None: not reported."""

    facts: NodeFacts
    """The facts that each result has."""
    kernel_version: str | None = None
    """Name, release and version of the kernel, and the machine architecture."""
    online_cpus: str | None = None
    """The logical CPUs that are on line, as a list of ranges."""
    online_numa_nodes: str | None = None
    """The NUMA nodes that are on line, as a list of ranges."""


def gather_facts(session: CommandRunner) -> GatheredFacts:
    """Asks a node for its facts, in one command."""
    answers = answers_of(session, _SCRIPT)
    return GatheredFacts(
        _from_answers(answers),
        answers.get("kernel_version"),
        answers.get("online_cpus"),
        answers.get("online_numa_nodes"),
    )


def answers_of(session: CommandRunner, script: str, *arguments: str) -> dict[str, str]:
    """The answers of a script that begins with `REPORT`, by name; what the node does not report is missing."""
    output = session.run("sh", "-c", REPORT + script, "report", *arguments, check=False).stdout
    parts = (part.partition("\n") for part in output.split("\x1e")[1:])
    return {name: answer.strip() for name, _, answer in parts if answer.strip()}


def _from_answers(answers: dict[str, str]) -> NodeFacts:
    cpu = _cpu_fields(answers.get("lscpu", ""))
    numa = {name.split(" ")[1]: value for name, value in cpu.items() if name.startswith("NUMA node") and "CPU" in name}
    memory = _assignments(answers.get("meminfo", ""), ":").get("MemTotal", "").split()
    governors = answers.get("governors", "").split()
    return NodeFacts(
        os=_assignments(answers.get("os_release", ""), "=").get("PRETTY_NAME"),
        kernel=answers.get("kernel"),
        boot_parameters=(
            tuple(word for word in answers["command_line"].split() if word.partition("=")[0] in _BOOT_PARAMETERS)
            if "command_line" in answers
            else None
        ),
        architecture=answers.get("architecture"),
        cpu_model=cpu.get("Model name") or answers.get("cpu_model", "").partition(":")[2].strip() or None,
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
    """The fields of lscpu's JSON data; newer versions nest groups of fields."""
    for field in fields:
        if field.get("data"):
            yield str(field["field"]).rstrip(":"), str(field["data"])
        yield from _flattened(field.get("children", ()))


def _assignments(text: str, sign: str) -> dict[str, str]:
    pairs = (line.partition(sign) for line in text.splitlines())
    return {name.strip(): value.strip().strip('"') for name, _, value in pairs}


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None


def _first_line(text: str | None) -> str | None:
    return None if text is None else text.splitlines()[0]
