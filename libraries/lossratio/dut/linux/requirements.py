"""Requirements of a DUT on its node: programs, and the right to change the network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lossratio.errors import DutError
from lossratio.nodes import DutNode, reason


@dataclass(frozen=True)
class Tool:
    """A program that must be on the node.

    Attributes:
        ask_version: The command that prints its version; the first word is the program.
        package: The Debian package that contains it.
    """

    ask_version: tuple[str, ...]
    package: str

    @property
    def name(self) -> str:
        """Name of the program."""
        return self.ask_version[0]


IP = Tool(("ip", "-V"), "iproute2")
BRIDGE = Tool(("bridge", "-V"), "iproute2")
NFT = Tool(("nft", "--version"), "nftables")
ETHTOOL = Tool(("ethtool", "--version"), "ethtool")
PYTHON = Tool(("python3", "--version"), "python3")


def check_tools(node: DutNode, tools: Sequence[Tool]) -> None:
    """Checks that the programs are installed.

    Raises:
        DutError: If some are missing; names all of them, and the packages to install.
    """
    missing = [tool for tool in tools if not node.has_command(*tool.ask_version)]
    if missing:
        packages = " ".join(sorted({tool.package for tool in missing}))
        raise DutError(
            f"{node.name} lacks {', '.join(tool.name for tool in missing)}. "
            f"Install it there: apt-get install {packages}."
        )


def tool_versions(node: DutNode, tools: Sequence[Tool]) -> dict[str, str]:
    """The version of each program, as the program prints it."""
    return {tool.name: node.run(*tool.ask_version).strip() for tool in tools}


def check_privileges(node: DutNode) -> None:
    """Checks that the session may change the node's network (CAP_NET_ADMIN), and that the kernel has nftables.

    Raises:
        DutError: If it may not, or the kernel has no nftables.
    """
    result = node.attempt("nft", "-j", "list", "tables")
    if result.exit_status != 0:
        raise DutError(
            f"{node.name}: the network cannot be configured there (nft: {reason(result)}). It needs root or "
            f"CAP_NET_ADMIN: log in as root, or write 'sudo: true' for this node in the topology file. It also needs a "
            f"kernel with nf_tables."
        )
