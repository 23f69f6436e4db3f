"""Reads labs of containerlab: ``*.clab.yml``, and ``topology-data.json`` of a deployed lab.

The rules for names, merging, links and interfaces come from containerlab 0.79 and its published schema. Every file that
containerlab itself accepts is read, even if the schema is stricter.
"""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from ipaddress import ip_address, ip_interface
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from lossratio.errors import TopologyError
from lossratio.quantities import RESOLVED
from lossratio.records import ForeignPart
from lossratio.topology.lab_graph import JOINED, Lab, LabEnd, LabNode
from lossratio.topology.quantities import is_interface_name
from lossratio.units import counted
from lossratio.yaml_file import Problem, load_yaml_file

TOOL = "containerlab"

_VARIABLE = re.compile(
    r"\$(?:\$|(?P<bare>[A-Za-z_]\w*)|\{(?P<name>[A-Za-z_]\w*)(?:(?P<how>:?[-=+])(?P<word>[^}]*))?\})"
)
_LINKS_IN_WORDS: Mapping[str, str] = {
    "mgmt-net": "it goes to the management network",
    "macvlan": "it goes to an interface of this machine",
    "host": "it goes to this machine",
    "vxlan": "its other end is on another machine",
    "vxlan-stitch": "its other end is on another machine",
    "dummy": "it goes nowhere",
}
"""Types of links that carry no frames to another node of the lab."""
_JOINED_BY: Mapping[str, str] = {
    **dict.fromkeys(
        ("linux", "ext-container", "rare", "vyosnetworks_vyos", "juniper_crpd", "crpd"), JOINED
    ),
    **dict.fromkeys(("nokia_srlinux", "srl"), "e1-{}"),
    **dict.fromkeys(("arista_ceos", "ceos", "sonic-vs", "fdio_vpp"), "eth{}"),
}
"""Kinds that accept another link while they run, with the names of its interface."""
_IP = r"\bip\s+(?:-\S+\s+)*"
_ADDRESS = re.compile(
    _IP
    + r"a(?:d|dd|ddr|ddress)?\s+(?:add|replace)\s+(?P<address>[\da-fA-F.:]+/\d+)\s+dev\s+(?P<interface>[^\s'\"]+)"
)
_GATEWAY = re.compile(
    _IP + r"r(?:o|oute)?\s+(?:add|replace)\s+\S+\s+via\s+(?P<gateway>[\da-fA-F.:]+)"
)
"""Commands with which labs give addresses and routes to Linux nodes."""
_NO_CONTAINERS = frozenset({"bridge", "ovs-bridge", "host", "k8s-kind"})
_OF_CONTAINER = "container:"
"""The beginning of the network mode of a node that shares the namespace of a container."""

_JUNOS = r"(?:et|xe|ge)-0/0/(?P<port>\d+)$"
_IOS = r"(?:Gi|GigabitEthernet)\s?(?P<port>\d+)$"
_XR = r"(?:Gi|GigabitEthernet|Te|TenGigE|TenGigabitEthernet)\s?0/0/0/(?P<port>\d+)$"
# Table: the names that kinds give to ports, and the number of the first port: with offset 1, port 3 is eth3.
_NAMES_OF_PORTS = (
    ("cisco_asav cisco_ftdv", r"(?:GigabitEthernet|Gi)\s?0/(?P<port>\d+)$", 0),
    ("cisco_vios", _IOS, 0),
    ("cisco_c8000v cisco_csr1000v vr-csr vr-cisco_csr1000v", _IOS, 2),
    ("cisco_cat9kv", r"(?:Gi|GigabitEthernet)\s?1/0/(?P<port>\d+)$", 1),
    ("cisco_n9kv vr-n9kv vr-cisco_n9kv", r"(?:Ethernet|Et)\s?1/(?P<port>\d+)$", 1),
    ("cisco_xrv vr-xrv vr-cisco_xrv cisco_xrv9k vr-xrv9k vr-cisco_xrv9k cisco_xrd_vrouter", _XR, 0),
    ("cjunosevolved juniper_cjunosevolved", r"et-0/0/(?P<port>\d+)$", -3),
    (
        "juniper_vjunosevolved juniper_vjunosrouter juniper_vjunosswitch juniper_vmx vr-vmx vr-juniper_vmx "
        "juniper_vqfx vr-vqfx vr-juniper_vqfx juniper_vsrx vr-vsrx vr-juniper_vsrx",
        _JUNOS,
        0,
    ),
    ("arista_veos vr-veos vr-arista_veos", r"(?:Et|Ethernet)1/(?P<port>\d+)$", 1),
    ("aruba_aoscx vr-aoscx vr-aruba_aoscx", r"1/1/(?P<port>\d+)$", 1),
    ("ciena_saos vr-ciena_saos", r"(?P<port>[1-9]\d*)$", 1),
    ("f5_bigip-ve", r"1\.(?P<port>\d+)$", 1),
    ("fortinet_fortigate", r"port(?P<port>\d+)$", 2),
    ("freebsd", r"vtnet(?P<port>\d+)$", 1),
    ("openbsd", r"vio(?P<port>\d+)$", 1),
    ("mikrotik_ros vr-ros vr-mikrotik_ros", r"ether(?P<port>\d+)$", 2),
    ("nokia_sros vr-sros vr-nokia_sros", r"1/1/(?:c(?=\d+/1$))?(?P<port>\d+)(?:/1)?$", 1),
    ("nvidia_cumulusvx", r"swp(?P<port>\d+)$", 1),
    ("paloalto_panos vr-pan vr-paloalto_panos", r"Ethernet1/(?P<port>\d+)$", 1),
    ("spirent_stc", r"port(?P<port>[1-9])$", 1),
)
_ALIASES = tuple(
    (frozenset(kinds.split()), re.compile(pattern), offset)
    for kinds, pattern, offset in _NAMES_OF_PORTS
)
_SRLINUX = re.compile(r"ethernet-(?P<card>\d+)/(?P<port>\d+)(?:/(?P<channel>\d+))?$")
_SRSIM = re.compile(
    r"(?P<card>\d+)/(?:x(?P<xiom>\d+)/)?(?P<mda>\d+)(?:/c(?P<connector>\d+))?/(?P<port>\d+)$"
)
_IOL = re.compile(r"(?:e|Ethernet)\s?(?P<slot>\d+)/(?P<port>\d+)$")


class _Settings(ForeignPart):
    """What a node, a group, a kind or the defaults set."""

    kind: str | None = None
    group: str | None = None
    image: str | None = None
    network_mode: str | None = Field(default=None, alias="network-mode")
    exec: list[Any] | None = None


class _Topology(ForeignPart):
    defaults: _Settings | None = None
    kinds: dict[str, _Settings | None] | None = None
    groups: dict[str, _Settings | None] | None = None
    nodes: dict[str, _Settings | None] | None = None
    links: Annotated[list[dict[str, Any]] | None, RESOLVED] = None


class _File(ForeignPart):
    name: str = ""
    prefix: str | None = None
    topology: _Topology


class _Deployed(ForeignPart):
    """The file ``topology-data.json`` of a lab that runs."""

    name: str
    nodes: Annotated[dict[str, dict[str, Any]], RESOLVED]
    links: Annotated[list[dict[str, Any]] | None, RESOLVED] = None


def read_containerlab(path: str | Path, name: str | None = None) -> Lab:
    """Reads a lab of containerlab from a file that containerlab would accept; each problem has its line.

    The file is ``*.clab.yml``, which may contain environment variables, or ``topology-data.json`` of the deployed lab.
    `name` is the lab's name if the file has none, or if the lab was deployed under another name.

    Raises:
        TopologyError: If the file cannot be read, or describes no lab.
    """
    path = Path(path)
    template = TopologyError(
        f"{path}: this is a template that containerlab fills in. Deploy the lab, and import its "
        "clab-LAB/topology-data.json."
    )
    if path.suffix == ".gotmpl":
        raise template
    if path.suffix == ".json":
        return _deployed_lab(load_yaml_file(path, _Deployed, TopologyError, _deployed_problems))
    texts: list[str] = []

    def expanded(text: str) -> str:
        texts.append(text)
        return _VARIABLE.sub(_value, text)

    def problems(file: _File) -> Iterator[Problem]:
        yield from _problems(file.model_copy(update=given))

    given = {} if name is None else {"name": name}
    try:
        loaded = load_yaml_file(path, _File, TopologyError, problems, rewrite=expanded)
    except TopologyError as error:
        # A command of a node may also contain braces; they do no harm there.
        if any("{{" in text for text in texts):
            raise template from error
        raise
    return _Reader(loaded.model_copy(update=given)).lab()


def _value(match: re.Match[str]) -> str:
    name = match["bare"] or match["name"]
    if name is None:
        return "$"
    known = os.environ.get(name)
    how = match["how"] or ""
    word = match["word"] or ""
    is_set = bool(known) if how.startswith(":") else known is not None
    if how.endswith("+"):
        if is_set:
            return word.strip('"')
        return ""
    if is_set:
        return known or ""
    # Most variables are parts of images and licences, where an unset variable does no harm as text.
    if how:
        return word.strip('"')
    return match[0]


def _problems(file: _File) -> Iterator[Problem]:
    if "__git" in file.name:
        yield (
            ("name",),
            "containerlab fills it in from git; import clab-LAB/topology-data.json of the deployed lab",
        )
        return

    if not file.name:
        yield ("name",), "the lab has no name. Give the name it is deployed with: --name NAME"

    for field, text in (("name", file.name), ("prefix", file.prefix or "")):
        if "$" in text:
            yield (
                (field,),
                f"{text!r} has a variable that is not set in the environment. Set it as when the lab was deployed",
            )

    reader = _Reader(file)
    for name in file.topology.nodes or {}:
        if reader.kind(name) is None:
            yield (
                ("topology", "nodes", name),
                "this node has no kind: add 'kind' to the node, to its group or to the defaults",
            )
        if reader.owner(name) is None:
            yield (
                ("topology", "nodes", name),
                "network-mode: the containers share each other's namespace in a circle. Give one of them its own",
            )

    for number, link in enumerate(file.topology.links or ()):
        try:
            reader.ends(link)
        except ValueError as error:
            yield ("topology", "links", number), str(error)


class _Reader:
    """A lab's file, with the rules that combine its parts."""

    def __init__(self, file: _File) -> None:
        self._file = file
        topology = file.topology
        self._nodes = topology.nodes or {}
        self._kinds, self._groups = topology.kinds or {}, topology.groups or {}
        self._defaults = topology.defaults or _Settings()

    def kind(self, name: str) -> str | None:
        """The kind of a node; None: nothing says it."""
        node = self._nodes.get(name) or _Settings()
        own_group = self._groups.get(node.group or "") or _Settings()
        common_group = self._groups.get(self._defaults.group or "") or _Settings()
        return node.kind or own_group.kind or common_group.kind or self._defaults.kind

    def lab(self) -> Lab:
        nodes = {
            name: _lab_node(
                name, self.kind(name) or "", self._reach(name), self._setting(name, "image")
            )
            for name in self._nodes
        }
        links, left_out = [], []
        for link in self._file.topology.links or ():
            type_, ends = self.ends(link)
            if type_ in _LINKS_IN_WORDS or len(ends) < 2:
                shown = " -- ".join(f"{end.node}:{end.interface}" for end in ends)
                left_out.append(
                    f"link {shown} ({type_}): {_LINKS_IN_WORDS.get(type_, 'it has one end only')}"
                )
                continue
            links.append((self._in_its_namespace(ends[0]), self._in_its_namespace(ends[1])))

        return Lab(self._file.name, TOOL, nodes, links, left_out)

    def ends(self, link: Mapping[str, Any]) -> tuple[str, tuple[LabEnd, ...]]:
        """Type and ends of a link that is written in any form of the schema."""
        type_ = link.get("type", "veth")
        endpoints = link.get(
            "endpoints", [] if link.get("endpoint") is None else [link["endpoint"]]
        )
        types = {"veth", "veth-stitch", *_LINKS_IN_WORDS}
        if not isinstance(type_, str) or type_ not in types:
            raise ValueError(
                f"there is no link of type {type_!r}: choose one of {', '.join(sorted(types))}"
            )

        wanted = 1 if type_ in _LINKS_IN_WORDS else 2
        if not isinstance(endpoints, list) or len(endpoints) != wanted:
            raise ValueError(
                f"a link of type {type_} needs {counted(wanted, 'end')}: correct its endpoints"
            )

        ends = []
        for number, endpoint in enumerate(endpoints):
            lists = {
                field: link[field]
                for field in ("ipv4", "ipv6")
                if isinstance(link.get(field), list)
            }
            facts = {
                field: items[number]
                for field, items in lists.items()
                if number < len(items) and items[number]
            }
            special, end = self._end(endpoint, facts, is_brief="type" not in link)
            type_ = special or type_
            ends.append(end)

        return type_, tuple(ends)

    def _end(
        self, endpoint: Any, facts: dict[str, Any], *, is_brief: bool
    ) -> tuple[str | None, LabEnd]:
        if isinstance(endpoint, str):
            node, colon, interface = endpoint.partition(":")
            if not colon or not interface:
                raise ValueError(
                    f"{endpoint!r} is not an end of a link; it must be like 'node:eth1'"
                )
            if is_brief and node.lower() in ("host", "mgmt-net", "macvlan"):
                return node.lower(), LabEnd(node, interface)
            mac_address = None
        elif isinstance(endpoint, dict):
            node, interface = str(endpoint.get("node", "")), str(endpoint.get("interface", ""))
            mac_address = endpoint.get("mac")
            facts = {
                **facts,
                **{field: endpoint[field] for field in ("ipv4", "ipv6") if endpoint.get(field)},
            }
        else:
            raise ValueError(
                "write an end of a link like 'node:eth1', or {node: ..., interface: ...}"
            )

        if node not in self._nodes:
            raise ValueError(f"there is no node {node!r}: add it to 'nodes', or correct the link")

        name = linux_name(self.kind(node) or "", interface)
        facts = {**self._facts_of_commands(node, name), **facts}
        if name != interface:
            facts = {**facts, "alias": interface}
        return None, LabEnd(node, name, facts, None if mac_address is None else str(mac_address))

    def _setting(self, name: str, field: str) -> str:
        node = self._nodes.get(name) or _Settings()
        kind = self._kinds.get(self.kind(name) or "") or _Settings()
        group = (
            self._groups.get(node.group or kind.group or self._defaults.group or "") or _Settings()
        )
        values = (getattr(settings, field) for settings in (node, group, kind, self._defaults))
        return next((str(value) for value in values if value is not None), "")

    def _facts_of_commands(self, node: str, interface: str) -> dict[str, Any]:
        """Addresses and next hops that a node's own commands give to an interface."""
        commands = "\n".join(map(str, (self._nodes.get(node) or _Settings()).exec or ()))
        facts: dict[str, Any] = {}
        for match in _ADDRESS.finditer(commands):
            try:
                own = ip_interface(match["address"])
            except ValueError:
                continue
            if match["interface"] == interface:
                facts.setdefault(f"ipv{own.version}", match["address"])

        networks = [ip_interface(address).network for address in facts.values()]
        for match in _GATEWAY.finditer(commands):
            try:
                gateway = ip_address(match["gateway"])
            except ValueError:
                continue
            if any(gateway in network for network in networks):
                facts.setdefault(f"gateway{gateway.version}", match["gateway"])
        return facts

    def owner(self, name: str) -> str | None:
        """The node that has the network namespace of a node, which may be shared; None: no node has it.

        A node can share the namespace of a node that itself shares a namespace, but not in a circle.
        """
        seen = []
        while name not in seen:
            seen.append(name)
            other = self._shared_with(name)
            if other not in self._nodes:
                return name
            name = other
        return None

    def _shared_with(self, name: str) -> str:
        """The container whose namespace a node shares; empty: it has its own namespace, or this machine's."""
        mode = self._setting(name, "network_mode")
        if mode.startswith(_OF_CONTAINER):
            return mode.removeprefix(_OF_CONTAINER)
        return ""

    def _reach(self, name: str) -> dict[str, Any]:
        owner = self.owner(name) or name
        kind = self.kind(owner)
        # A container that does not belong to the lab.
        other = self._shared_with(owner)
        if other:
            return {"netns": other}
        if self._setting(owner, "network_mode") == "host" or kind in _NO_CONTAINERS:
            return {}
        prefix = self._file.prefix
        lab = self._file.name
        if kind == "ext-container" or prefix == "":
            return {"netns": owner}

        if prefix == "__lab-name":
            before = ""
        else:
            before = f"{'clab' if prefix is None else prefix}-"

        return {"netns": f"{before}{lab}-{owner}"}

    def _in_its_namespace(self, end: LabEnd) -> LabEnd:
        """The end at the node that owns the namespace, if several nodes share it."""
        if self.kind(end.node) in _NO_CONTAINERS:
            return end
        return replace(end, node=self.owner(end.node) or end.node)


def _lab_node(name: str, kind: str, reach: Mapping[str, Any], image: str) -> LabNode:
    joined_by = _JOINED_BY.get(kind) if reach else None
    return LabNode(name, kind, reach, kind in ("linux", "ext-container"), image, joined_by)


def linux_name(kind: str, interface: str) -> str:
    """The Linux name of an interface that the kind of node gives another name."""
    for kinds, pattern, offset in _ALIASES:
        match = pattern.match(interface) if kind in kinds else None
        if match:
            number = int(match["port"]) - offset + 1
            if number < 1:
                raise ValueError(
                    f"{interface!r} is not an interface for traffic on a node of kind {kind}: the first "
                    f"one has the number {offset}"
                )
            return f"eth{number}"

    if kind in ("srl", "nokia_srlinux") and (match := _SRLINUX.match(interface)):
        return _joined_name(match, {"card": "e", "port": "", "channel": ""})
    if kind == "nokia_srsim" and (match := _SRSIM.match(interface)):
        return _joined_name(
            match, {"card": "e", "xiom": "x", "mda": "", "connector": "c", "port": ""}
        )
    if kind == "cisco_iol" and (match := _IOL.match(interface)):
        return f"eth{4 * int(match['slot']) + int(match['port'])}"
    if not is_interface_name(interface):
        raise ValueError(
            f"a node of kind {kind or 'unknown'} has no interface {interface!r}, and Linux allows no such name: "
            "correct it"
        )

    return interface


def _joined_name(match: re.Match[str], letters: Mapping[str, str]) -> str:
    """The numbers in a name that are there, each after its letter: ``e1-x2-3``."""
    numbers = {part: match[part] for part in letters}
    return "-".join(
        f"{letters[part]}{number}" for part, number in numbers.items() if number is not None
    )


def _deployed_problems(deployed: _Deployed) -> Iterator[Problem]:
    for number, link in enumerate(deployed.links or ()):
        for side, end in _deployed_ends(link).items():
            if not isinstance(end, dict) or not end.get("node") or not end.get("interface"):
                yield ("links", number), f"its end {side} has no 'node' and 'interface'"


def _deployed_ends(link: Mapping[str, Any]) -> dict[str, Any]:
    endpoints = link.get("endpoints", link)
    if isinstance(endpoints, dict):
        return {side: endpoints.get(side) for side in ("a", "z")}
    return {"a": None}


def _deployed_lab(deployed: _Deployed) -> Lab:
    nodes = {}
    for name, data in deployed.nodes.items():
        kind = str(data.get("kind", ""))
        if kind in _NO_CONTAINERS:
            reach = {}
        else:
            reach = {"netns": str(data.get("longname", name))}

        nodes[name] = _lab_node(name, kind, reach, str(data.get("image", "")))

    links, left_out = [], []
    for link in deployed.links or ():
        one, other = (
            LabEnd(
                end["node"],
                end["interface"],
                {field: end[field] for field in ("ipv4", "ipv6") if end.get(field)},
                end.get("mac") or None,
            )
            for end in _deployed_ends(link).values()
        )
        if one.node in nodes and other.node in nodes:
            links.append((one, other))
        else:
            left_out.append(
                f"link {one.node}:{one.interface} -- {other.node}:{other.interface}: it leaves the lab"
            )

    return Lab(deployed.name, TOOL, nodes, links, left_out)
