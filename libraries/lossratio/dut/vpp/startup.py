"""VPP's startup.conf, from what a DUT has been given: CPUs, cards, queues and a directory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lossratio.dut.linux.cores import CoreChoice, cpu_list

_BUFFERS = 16_384


@dataclass(frozen=True)
class Card:
    """A card that VPP polls by DPDK.

    Attributes:
        address: Its PCI address.
        name: Name of its interface in VPP.
        queues: Its receive queues.
        descriptors: Descriptors of each queue.
    """

    address: str
    name: str
    queues: int
    descriptors: int


def startup_configuration(directory: str, cores: CoreChoice, cards: Sequence[Card]) -> str:
    """The file's text.

    Without cards it does without hugepages: left to itself, VPP would raise the machine's number of them.

    Args:
        directory: Directory for everything that this VPP leaves on the node.
        cores: The CPUs that it may use.
        cards: The cards that it polls; none: it has interfaces of the kernel only.
    """
    return "\n".join(
        (
            "unix {",
            "  nodaemon nosyslog nocolor nobanner cli-no-pager",
            f"  runtime-dir {directory}",
            f"  cli-listen {directory}/cli.sock",
            "}",
            f"socksvr {{ socket-name {directory}/api.sock }}",
            f"statseg {{ socket-name {directory}/stats.sock size 64M page-size default }}",
            f"api-segment {{ prefix {directory.rpartition('/')[2]} }}",
            f"cpu {{ main-core {cores.main} corelist-workers {cpu_list(cores.workers)} }}",
            *(_with_cards(cards) if cards else _without_cards()),
            "",
        )
    )


def _without_cards() -> tuple[str, ...]:
    return (
        f"buffers {{ page-size default buffers-per-numa {_BUFFERS} }}",
        "plugins { plugin dpdk_plugin.so { disable } }",
    )


def _with_cards(cards: Sequence[Card]) -> tuple[str, ...]:
    devices = (
        f"  dev {card.address} {{ name {card.name} num-rx-queues {card.queues} "
        f"num-rx-desc {card.descriptors} num-tx-desc {card.descriptors} }}"
        for card in cards
    )
    return ("plugins { plugin dpdk_plugin.so { enable } }", "dpdk {", "  no-multi-seg", *devices, "}")
