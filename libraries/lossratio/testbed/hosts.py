"""The path between two existing hosts: their own addresses, routes and next hops, as their kernels have them."""

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_interface
from types import MappingProxyType
from typing import Any

from pydantic import ValidationError

from lossratio.errors import NodeError, TopologyError
from lossratio.nodes import NETNS_DIRECTORY, NO_CREDENTIALS, Credentials, NodeSession, own_name
from lossratio.topology import WAYS_IN, Interface, Node, as_file_name
from lossratio.values import in_words, nearest

_SSH = re.compile(r"(?:(?P<user>[^@:/]+)@)?(?P<host>[^@:/]+)(?::(?P<port>\d+))?$")
_SSH_PORT = 22
_ENDS = (
    "Name a namespace (netns:NAME), a container (container:NAME), a pod (pod:NAMESPACE/NAME), or a host "
    "([USER@]HOST[:PORT])."
)
_DEFAULT = "default"
_NOTHING: Mapping[str, Any] = MappingProxyType({})
_SUDO: Mapping[str, Any] = MappingProxyType({"sudo": True})


@dataclass(frozen=True)
class Host:
    """An end of a path: a namespace or a container of this machine, or a host that is reached by SSH."""

    name: str
    """Its name as a node."""
    fields: Mapping[str, Any]
    """How it is reached: fields of a node in a topology file."""

    @classmethod
    def named(cls, text: str, ssh: Mapping[str, Any] = _NOTHING) -> "Host":
        """The end that a name stands for: ``netns:``, ``container:`` or ``pod:``, ``[USER@]HOST[:PORT]``, a bare name.

        A bare name stands for the namespace of that name if it exists, and otherwise for a host. At every end, users
        other than root need ``sudo``.

        Args:
            text: The name.
            ssh: Further fields of the node, such as ``key_file``, for hosts.

        Raises:
            TopologyError: If the name stands for no end.
        """
        way, colon, rest = text.partition(":")
        if not colon or way not in WAYS_IN:
            way = "netns" if (NETNS_DIRECTORY / text).exists() else "host"
            rest = text
        if not rest:
            raise TopologyError(f"{text!r} does not say which {way}; write it like {way}:NAME.")
        if way != "host":
            # The names in the environment may be those of somebody else.
            needs_sudo = {} if os.geteuid() == 0 or way == "pod" else _SUDO
            return cls(as_file_name(rest, "host"), {way: rest, **needs_sudo})

        match = _SSH.match(rest)
        if match is None:
            raise TopologyError(f"{text!r} is not an end of a path. {_ENDS}")
        user = match["user"] or own_name()
        needs_sudo = {} if user == "root" else _SUDO
        fields: dict[str, Any] = {"host": match["host"], **ssh, **needs_sudo}
        if match["port"] is not None:
            fields["port"] = int(match["port"])
        if match["user"] is not None:
            fields["username"] = match["user"]
        return cls(as_file_name(match["host"], "host"), fields)

    @property
    def distinction(self) -> str:
        """What distinguishes it from other ends of its name: the port of its sshd, or how it is entered."""
        if "host" in self.fields:
            return str(self.fields.get("port", _SSH_PORT))
        return next(way for way in WAYS_IN if way in self.fields)

    @property
    def node(self) -> Node:
        """The node to log in at.

        Raises:
            TopologyError: If the name, the user or the port of a host cannot be used.
        """
        fields = {"type": "TG", **self.fields, "interfaces": {"any": Interface(name="any")}}
        try:
            return Node.model_validate(fields)
        except ValidationError as error:
            wrong = error.errors()[0]
            field = wrong["loc"][0]
            if field in WAYS_IN:
                raise TopologyError(
                    f"{wrong['input']!r} is not an end of a path. {_ENDS}"
                ) from error
            raise TopologyError(f"{self.name}: {field}: {in_words(wrong)}.") from error

    def connect(self, credentials: Credentials) -> NodeSession:
        """Logs in at this end.

        Raises:
            NodeError: As `NodeSession.connect`.
            TopologyError: If the name, the user or the port of a host cannot be used, or a network namespace is
                misspelt; the message names the one that was meant.
        """
        try:
            return NodeSession.connect(self.name, self.node, credentials)
        except NodeError as error:
            namespaces = sorted(entry.name for entry in NETNS_DIRECTORY.glob("*"))
            name = self.fields.get("netns", self.fields.get("host"))
            meant = nearest(name, namespaces) if name is not None else None
            if meant is None or meant == name:
                raise
            also = " either" if "host" in self.fields else ""
            raise TopologyError(
                f"{error} There is no network namespace {name!r}{also}. Did you mean {meant!r}?"
            ) from error


@dataclass(frozen=True)
class HostPort:
    """An end's interface on the way to the other end."""

    host: Host
    """The end."""
    interface: str
    """Its interface."""
    address: str
    """Its address there, with the length of its network's prefix."""
    gateway: str | None
    """The next hop towards the other end; None: the other end is on the same network."""
    route: str
    """The network of the route that leads there; ``default``: the default route."""

    def __str__(self) -> str:
        if self.gateway is None:
            return f"{self.host.name} ({self.interface}, {self.address})"
        return f"{self.host.name} ({self.interface}, {self.address}, next hop {self.gateway})"

    @property
    def fields(self) -> dict[str, Any]:
        """Fields of the interface in a topology file."""
        fields: dict[str, Any] = {"name": self.interface, "address": self.address}
        if self.gateway is not None:
            fields["gateway"] = self.gateway
        return fields


@dataclass(frozen=True)
class HostPath:
    """The path between two hosts."""

    client: HostPort
    """Its first end, in the west."""
    server: HostPort
    """Its second end, in the east."""
    others: tuple[str, ...]
    """Further addresses of the server that the client has a way to."""

    @property
    def version(self) -> int:
        """The version of IP on it."""
        return ip_interface(self.client.address).version

    def topology(self, generator: Mapping[str, Any]) -> dict[str, Any]:
        """A topology file's data, with a generator at both ends, and a black box between them."""
        west, east = self.client, self.server
        # Record: the nodes, as a topology file has them.
        nodes = {
            west.host.name: {
                "type": "TG",
                **west.host.fields,
                "generator": dict(generator),
                "interfaces": {"client": {"link": "west", **west.fields}},
            },
            "between": {
                "type": "DUT",
                "interfaces": {"west": {"link": "west"}, "east": {"link": "east"}},
            },
            east.host.name: {
                "type": "TG",
                **east.host.fields,
                "interfaces": {"server": {"link": "east", **east.fields}},
            },
        }

        return {
            "format": "lossratio-topology/1",
            "name": as_file_name(f"{west.host.name}-{east.host.name}", "between"),
            "description": f"What is between {west} and {east}.",
            "addresses": "lab",
            "nodes": nodes,
        }


def find_host_path(
    client: Host, server: Host, *, to: str | None = None, credentials: Credentials = NO_CREDENTIALS
) -> HostPath:
    """Asks two hosts for their addresses and routes, and finds the path between them. Nothing is changed or sent.

    Args:
        client: One end.
        server: The other end.
        to: The server's address; None: the first address that both ends have a way for. IPv4 addresses come first, and
            default routes are used only if there is no other way.
        credentials: What to log in with.

    Raises:
        NodeError: If an end cannot be reached, or has no ``ip`` (iproute2).
        TopologyError: If there is no path, or both names stand for the same end.
    """
    if client.name == server.name:
        client, server = _told_apart(client, server)
    # Mistakes are found before anybody logs in.
    for end in (client, server):
        _ = end.node
    wanted_address = None if to is None else _address(to)

    with ExitStack() as opened:
        near = opened.enter_context(client.connect(credentials))
        far = opened.enter_context(server.connect(credentials))
        addresses = list(_addresses(far))
        targets = [each.split("/")[0] for each in addresses]
        if wanted_address is not None:
            targets = [each for each in targets if ip_address(each) == wanted_address]
        if not targets:
            if not addresses:
                raise TopologyError(
                    f"{server.name} has no IP address that others could reach. Give one to its interface."
                )
            known = ", ".join(addresses)
            raise TopologyError(f"{server.name} has no address {to}. Its addresses: {known}.")
        reasons: list[str] = []
        paths = list(_paths((client, near), (server, far), targets, reasons))

    if not paths:
        raise TopologyError(
            f"There is no path between {client.name} and {server.name}: {'; '.join(reasons)}. Give both ends addresses "
            "and routes to each other."
        )
    paths.sort(key=lambda ends: _DEFAULT in (ends[0].route, ends[1].route))
    (west, east), *rest = paths
    return HostPath(west, east, tuple(other.address for _, other in rest))


def _told_apart(*ends: Host) -> Iterator[Host]:
    """Two ends of the same name, with names that also have what distinguishes them."""
    name = ends[0].name
    if len({end.distinction for end in ends}) == 1:
        raise TopologyError(f"Both ends are {name}. Name two different ends.")
    for end in ends:
        yield replace(end, name=f"{name}-{end.distinction}")


class _NoWayError(Exception):
    """An end does not reach an address."""


def _paths(
    client: tuple[Host, NodeSession],
    server: tuple[Host, NodeSession],
    targets: Sequence[str],
    reasons: list[str],
) -> Iterator[tuple[HostPort, HostPort]]:
    """The paths to addresses of the server, in their order. For all other addresses, a reason is added to `reasons`."""
    for target in targets:
        try:
            west = _port(*client, target, None)
            yield west, _port(*server, west.address.split("/")[0], target)
        except _NoWayError as error:
            reasons.append(str(error))


def _port(host: Host, session: NodeSession, target: str, own: str | None) -> HostPort:
    """Finds the port through which the end reaches an address.

    Raises:
        _NoWayError: If there is none.
    """
    version = ip_address(target).version
    source = () if own is None else ("from", own)
    ask = ("ip", f"-{version}", "-j", "route", "get")
    done = session.run(*ask, target, *source, check=False)
    if done.exit_status != 0:
        raise _NoWayError(f"{host.name} has no route to {target}")
    route = _only(host.name, done.stdout)
    interface = str(route.get("dev", ""))
    if route.get("type") == "local" or interface == "lo":
        raise _NoWayError(f"{target} is an address of {host.name} itself")
    if "via" in route:
        raise _NoWayError(f"the next hop of {host.name} to {target} has another version of IP")

    source_address = own or str(route.get("prefsrc", ""))
    at = dict(_addresses_by_interface(session, version))
    address = next(
        (each for each in at.get(interface, ()) if each.split("/")[0] == source_address), None
    )
    if address is None:
        missing = source_address or "an address"
        raise _NoWayError(
            f"{host.name} sends to {target} through {interface}, which does not have {missing}"
        )
    matched = session.run(*ask, "fibmatch", target, check=False).stdout
    network = str(_only(host.name, matched).get("dst", "")) if matched.strip() else ""
    return HostPort(host, interface, address, route.get("gateway"), network)


def _address(text: str) -> IPv4Address | IPv6Address:
    try:
        return ip_address(text)
    except ValueError:
        raise TopologyError(
            f"{text!r} is not an IP address. Give an address of the server, such as 198.18.0.1 or 2001:2::1."
        ) from None


def _addresses(session: NodeSession) -> Iterator[str]:
    """A node's addresses that others reach, IPv4 first."""
    for version in (4, 6):
        for _, addresses in _addresses_by_interface(session, version):
            yield from addresses


def _addresses_by_interface(
    session: NodeSession, version: int
) -> Iterator[tuple[str, tuple[str, ...]]]:
    said = session.run("ip", f"-{version}", "-j", "address", "show", "scope", "global").stdout
    for link in _read(session.name, said):
        addresses = tuple(
            f"{each['local']}/{each['prefixlen']}"
            for each in link.get("addr_info", ())
            if "local" in each
        )
        if addresses:
            yield str(link["ifname"]), addresses


def _only(name: str, text: str) -> dict[str, Any]:
    """The only part of an answer of ``ip``."""
    parts = _read(name, text)
    if not parts:
        raise _unreadable(name, text)
    return parts[0]


def _read(name: str, text: str) -> list[dict[str, Any]]:
    """The parts of an answer of ``ip`` that say something."""
    try:
        parts: list[dict[str, Any]] = [part for part in json.loads(text) if part]
    except ValueError as error:
        raise _unreadable(name, text) from error
    return parts


def _unreadable(name: str, text: str) -> NodeError:
    return NodeError(f"Node {name}: the answer of 'ip' cannot be read: {text[:200]!r}.")
