"""The Linux interfaces that are used as ports: whether they may be, and whether they stayed there, and up."""

from __future__ import annotations

from typing import Iterable, Mapping

from .configuration import Configuration
from .guard import check_may_transmit
from .links import Link, read_links
from .protocol import AgentError


def usable_links(configuration: Configuration) -> dict[str, Link]:
    """The links of a configuration's ports, by name, with all others of the node.

    Raises:
        AgentError: If a port does not exist, is down, must not be used, or is too small for the frames.
    """
    links = existing_links(configuration.ports)
    check_may_transmit(configuration.ports, links)
    for name in configuration.ports:
        if not links[name].is_up:
            raise AgentError(
                "interface_down",
                f"Interface {name} is down, or its link is. Set both ends of the link up (ip link set {name} up).",
            )
    for direction in configuration.directions:
        for port in (direction.transmit, direction.receive):
            if direction.frames.mtu > links[port].mtu:
                raise AgentError(
                    "unsupported",
                    f"Frames of {direction.frames.max_size} bytes do not go through {port}, whose MTU is "
                    f"{links[port].mtu}. Raise it to {direction.frames.mtu}, or use smaller frames.",
                )
    return links


def existing_links(names: Iterable[str]) -> dict[str, Link]:
    """All links of the node, by name, with these among them.

    Raises:
        AgentError: If one does not exist.
    """
    links = read_links()
    for name in names:
        if name not in links:
            raise AgentError(
                "no_such_interface",
                f"There is no network interface {name} on this node; there are {', '.join(sorted(links))}.",
            )
    return links


def same_links(names: Iterable[str], before: Mapping[str, Link]) -> dict[str, Link]:
    """All links of the node, by name, where these are those that they were: their counters are on them alone.

    Args:
        names: The ports.
        before: Links as they were before.

    Raises:
        AgentError: If a port does not exist any more, is another one of the same name, or has another MTU.
    """
    links = existing_links(names)
    for name in names:
        if links[name].index != before[name].index:
            raise AgentError(
                "interface_replaced",
                f"Interface {name} was taken away, and another one of that name is in its place; configure anew.",
            )
        if links[name].mtu != before[name].mtu:
            raise AgentError(
                "mtu_changed",
                f"The MTU of interface {name} was {before[name].mtu}, and is {links[name].mtu}, so that frames may be "
                f"lost there. Set it back (ip link set dev {name} mtu {before[name].mtu}).",
            )
    return links


def links_after(names: Iterable[str], before: Mapping[str, Link]) -> dict[str, Link]:
    """All links of the node, by name, after these stayed up, and went on counting.

    Args:
        names: The ports.
        before: Links as they were before.

    Raises:
        AgentError: If a port does not exist any more, is another one, has another MTU, is down, or was in the meantime;
            or if its counters were set back.
    """
    links = same_links(names, before)
    for name in names:
        now, then = links[name], before[name]
        if now.receive_drops < then.receive_drops or now.transmit_drops < then.transmit_drops:
            raise AgentError(
                "counters_reset",
                f"The counters of interface {name} were set back while traffic was on it: its driver was reset, or "
                "somebody cleared them. What was dropped is not known.",
            )
        if now.carrier_changes != then.carrier_changes or not now.is_up:
            raise AgentError(
                "interface_down",
                f"Interface {name} went down (or its link did) while traffic was on it. "
                "The counters mean nothing; look at this interface and at the other end of its link.",
            )
    return links
