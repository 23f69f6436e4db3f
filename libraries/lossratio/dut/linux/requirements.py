"""Requirements of a DUT on its node: programs, and the right to change the network."""

from collections.abc import Sequence

from lossratio.dut.base import Tool
from lossratio.errors import DutError
from lossratio.nodes import NOT_FOUND, DutNode, reason

IP = Tool("ip", "iproute2", "-V")
BRIDGE = Tool("bridge", "iproute2", "-V")
NFT = Tool("nft", "nftables")
ETHTOOL = Tool("ethtool", "ethtool")
PYTHON = Tool("python3", "python3")


def check_tools(node: DutNode, tools: Sequence[Tool]) -> dict[str, str]:
    """Checks that the programs are installed; what each says about its version."""
    answers = {tool: node.attempt(*tool.ask_version) for tool in tools}
    missing = [tool for tool, answer in answers.items() if answer.exit_status == NOT_FOUND]
    if missing:
        packages = " ".join(sorted({tool.package for tool in missing if tool.package}))
        install = f"Install it there: apt-get install {packages}." if packages else ""
        sentences = (f"lacks {', '.join(tool.program for tool in missing)}.", install, *(tool.how for tool in missing))
        raise DutError(" ".join((node.name, *filter(None, sentences))))
    return {tool.program: answer.stdout.strip() for tool, answer in answers.items()}


def check_privileges(node: DutNode) -> None:
    """Checks that the session may change the node's network (CAP_NET_ADMIN), and that the kernel has nftables."""
    result = node.attempt("nft", "-j", "list", "tables")
    if result.exit_status != 0:
        raise node.error(
            f"the network cannot be configured there (nft: {reason(result)}). It needs root or CAP_NET_ADMIN: log in "
            "as root, or write 'sudo: true' for this node in the topology file. It also needs a kernel with nf_tables."
        )
