"""Facts of the machines of a measurement.

A fact that a node does not report (because a tool is missing, or a file is unreadable) is None, never an error.
"""

import platform
from importlib.metadata import version

from pydantic import Field

from lossratio.values import Record
from lossratio.version import __version__


class ToolVersions(Record):
    """Versions of the programs that configure and measure a node, as the programs report them; None: missing."""

    ip: str | None = None
    """Version of iproute2."""
    nft: str | None = None
    """Version of nftables."""
    ethtool: str | None = None
    """Version of ethtool."""
    python: str | None = None
    """Version of Python."""


class NodeFacts(Record):
    """Facts of a node of the testbed, from `lossratio.nodes.gather_facts`; None: the node does not report the fact."""

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
    """Number of logical CPUs that are online."""
    threads_per_core: int | None = None
    """Logical CPUs per core; 2 if SMT is on."""
    hypervisor: str | None = None
    """Vendor of the hypervisor under the node."""
    numa_nodes: dict[str, str] | None = None
    """Logical CPUs of each NUMA node, as a list of ranges."""
    governors: tuple[str, ...] | None = None
    """The CPU frequency governors in use."""
    memory_bytes: int | None = None
    """Size of the main memory."""
    tools: ToolVersions = Field(default_factory=ToolVersions)
    """Versions of the node's tools."""


class ControllerFacts(Record):
    """The machine that runs the search and holds the sessions with the nodes."""

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
    """Gathers the facts of this machine and this Python."""
    try:
        system = platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        system = platform.platform(terse=True)
    return ControllerFacts(
        lossratio_version=__version__,
        python_version=platform.python_version(),
        robot_version=version("robotframework"),
        os=system,
        kernel=platform.release(),
    )
