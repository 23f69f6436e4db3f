"""Reads labs of netlab, as ``netlab create -o json=FILE`` (or ``yaml=FILE``) writes them."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from lossratio.errors import TopologyError
from lossratio.quantities import RESOLVED
from lossratio.records import ForeignPart
from lossratio.topology.lab_graph import JOINED, Lab, LabEnd, LabNode
from lossratio.yaml_file import Problem, load_yaml_file

TOOL = "netlab"

_JOINED_BY: Mapping[str, str] = {
    **dict.fromkeys(("linux", "frr", "bird", "vyos", "crpd"), JOINED),
    "srlinux": "e1-{}",
    "eos": "eth{}",
}
"""Devices whose ports have Linux names. Containers accept another link of this name while they run."""
_RUN = "Run: netlab create -o json=lab.json, and import that file."
_WAY_OUT = "this is netlab's short form, which only netlab can resolve. Run: netlab create -o json=lab.json"


class _Interface(ForeignPart):
    ifindex: int | None = None
    ifname: str | None = None
    clab: dict[str, Any] = Field(default_factory=dict)


class _Node(ForeignPart):
    device: str | None = None
    hostname: str | None = None
    box: str | None = None
    role: str | None = None
    provider: str | None = None
    mgmt: dict[str, Any] = Field(default_factory=dict)
    interfaces: list[_Interface] = Field(default_factory=list)


class _LinkEnd(ForeignPart):
    node: str
    ifindex: int | None = None
    ifname: str | None = None
    ipv4: Annotated[str | bool | int | None, RESOLVED] = None
    ipv6: Annotated[str | bool | int | None, RESOLVED] = None


class _Link(ForeignPart):
    interfaces: list[_LinkEnd] = Field(default_factory=list)
    type: str = ""
    bridge: str | None = None
    linkindex: int = 0


class _File(ForeignPart):
    nodes: Any = None
    links: Any = None


class _Lab(ForeignPart):
    name: str = ""
    provider: str | None = None
    nodes: dict[str, _Node]
    links: list[_Link] = Field(default_factory=list)


def read_netlab(path: str | Path, name: str | None = None) -> Lab:
    """Reads a lab of netlab from the file that ``netlab create -o json=FILE`` wrote; each problem has its line.

    `name` is the lab's name if the file has none or a different one.

    Raises:
        TopologyError: If the file cannot be read, or describes no lab.
    """
    path = Path(path)
    if path.suffix == ".pickle":
        raise TopologyError(
            f"{path}: lossratio does not read pickled Python objects because they can run code. {_RUN}"
        )
    short = load_yaml_file(path, _File, TopologyError, _short_form)
    if short.links is None and not short.nodes:
        raise TopologyError(f"{path}: there are no nodes and no links. {_RUN}")

    given = {} if name is None else {"name": name}

    def problems(lab: _Lab) -> Iterator[Problem]:
        yield from _problems(lab.model_copy(update=given))

    return _graph(load_yaml_file(path, _Lab, TopologyError, problems).model_copy(update=given))


def _short_form(file: _File) -> Iterator[Problem]:
    nodes = file.nodes
    if not isinstance(nodes, dict) or any(
        not isinstance(node, dict) or "device" not in node for node in nodes.values()
    ):
        yield ("nodes",), _WAY_OUT
    links = file.links or []
    if not isinstance(links, list) or any(
        not isinstance(link, dict) or "interfaces" not in link for link in links
    ):
        yield ("links",), _WAY_OUT


def _problems(lab: _Lab) -> Iterator[Problem]:
    if not lab.name:
        yield ("name",), "the lab has no name. Give the name it is created with: --name NAME"
    for number, link in enumerate(lab.links):
        for end in link.interfaces:
            if end.node not in lab.nodes:
                yield ("links", number), f"there is no node {end.node!r}. {_RUN}"
            elif _linux_name(lab.nodes[end.node], end) is None:
                yield ("links", number), f"the interface of {end.node} has no name. {_RUN}"


def _linux_name(node: _Node, end: _LinkEnd) -> str | None:
    for interface in node.interfaces:
        if interface.ifindex == end.ifindex and interface.clab.get("name"):
            return str(interface.clab["name"])
    return end.ifname


def _graph(lab: _Lab) -> Lab:
    nodes = {name: _node(lab, name, node) for name, node in lab.nodes.items()}
    links: list[tuple[LabEnd, LabEnd]] = []
    left_out = []

    for link in lab.links:
        ends = [_end(lab, end) for end in link.interfaces]
        if len(ends) < 2:
            shown = ", ".join(f"{end.node}:{end.interface}" for end in ends) or "none"
            left_out.append(
                f"link {link.linkindex} ({link.type or 'stub'}) with the end {shown}: it has no other end"
            )
        elif len(ends) == 2:
            links.append((ends[0], ends[1]))
        else:
            bridge = link.bridge or f"{lab.name}_{link.linkindex}"
            nodes[bridge] = LabNode(bridge, "bridge")
            links += [(end, LabEnd(bridge, f"{end.node}-{end.interface}"[:15])) for end in ends]

    return Lab(lab.name, TOOL, nodes, links, left_out)


def _node(lab: _Lab, name: str, node: _Node) -> LabNode:
    device = node.device or ""
    reach = _reach(lab, node)
    joined_by = _JOINED_BY.get(device) if "netns" in reach else None
    is_linux = device == "linux" and node.role != "router"
    return LabNode(name, device, reach, is_linux, node.box or "", joined_by)


def _reach(lab: _Lab, node: _Node) -> dict[str, Any]:
    """How commands reach a node: a container by its namespace, a Linux machine over SSH, other devices not at all."""
    provider = node.provider or lab.provider
    if provider == "clab" and node.hostname:
        return {"netns": node.hostname}
    address = node.mgmt.get("ipv4")
    is_usable = node.device in _JOINED_BY and provider != "external" and isinstance(address, str)
    if is_usable:
        return {"host": str(address).partition("/")[0]}
    return {}


def _end(lab: _Lab, end: _LinkEnd) -> LabEnd:
    facts = {
        field: value for field in ("ipv4", "ipv6") if isinstance(value := getattr(end, field), str)
    }
    node = lab.nodes[end.node]
    name = _linux_name(node, end) or ""
    if end.ifname and end.ifname != name:
        facts["alias"] = end.ifname
    return LabEnd(end.node, name, facts)
