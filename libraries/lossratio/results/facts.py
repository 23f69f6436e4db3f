"""Facts of the machines of a measurement: of its nodes, and of the controller's side.

A fact that a node does not report (a tool is missing, a file cannot be read) is None, never an error.
"""

from __future__ import annotations

import platform
from importlib.metadata import version

from pydantic import Field

from lossratio import __version__
from lossratio.records import Record


class ToolVersions(Record):
    """Versions of the programs that configure and measure a node, as each program reports its own; None: missing."""

    ip: str | None = None
    """iproute2."""
    nft: str | None = None
    """nftables."""
    ethtool: str | None = None
    """ethtool."""
    python: str | None = None
    """Python."""


class NodeFacts(Record):
    """What a node of the testbed is; None: the node does not report it. `lossratio.nodes.gather_facts` gathers them."""

    os: str | None = None
    """Operating system, e.g. ``Debian GNU/Linux 12 (bookworm)``."""
    kernel: str | None = None
    """Kernel release."""
    boot_parameters: tuple[str, ...] | None = None
    """Parameters on the kernel's command line that change its performance, e.g. ``isolcpus=2-3``."""
    architecture: str | None = None
    """Machine architecture, e.g. ``x86_64``."""
    cpu_model: str | None = None
    """CPU model."""
    cpus: int | None = None
    """Number of logical CPUs that are on line."""
    threads_per_core: int | None = None
    """Logical CPUs per core; 2 where SMT is on."""
    hypervisor: str | None = None
    """Vendor of the hypervisor that the node runs on."""
    numa_nodes: dict[str, str] | None = None
    """Logical CPUs (as a list of ranges) of each NUMA node."""
    governors: tuple[str, ...] | None = None
    """The CPU frequency governors in use."""
    memory_bytes: int | None = None
    """Main memory."""
    tools: ToolVersions = Field(default_factory=ToolVersions)
    """Versions of tools."""


class ControllerFacts(Record):
    """The machine that runs the search and has the sessions with the nodes."""

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
