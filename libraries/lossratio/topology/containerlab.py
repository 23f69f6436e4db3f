"""Reads the file that containerlab writes about a lab that it has deployed: ``topology-data.json``."""

from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from lossratio.errors import TopologyError
from lossratio.files import load_yaml_file
from lossratio.topology.lab_graph import Lab, LabEnd, LabNode
from lossratio.values import ForeignPart

_NO_CONTAINERS = frozenset({"bridge", "ovs-bridge", "host", "k8s-kind"})


class _Node(ForeignPart):
    kind: str = ""
    longname: str


class _End(ForeignPart):
    node: str = Field(min_length=1)
    interface: str = Field(min_length=1)
    mac: str = ""
    ipv4: str = ""
    ipv6: str = ""

    def __str__(self) -> str:
        return f"{self.node}:{self.interface}"


class _Link(ForeignPart):
    a: _End
    z: _End | None = None

    @model_validator(mode="before")
    @classmethod
    def _ends(cls, data: Any) -> Any:
        """The ends, which older versions of containerlab wrote into the link itself."""
        return data.get("endpoints", data) if isinstance(data, dict) else data


class _Deployed(ForeignPart):
    name: str = Field(min_length=1)
    nodes: dict[str, _Node]
    links: list[_Link] | None = None


def read_containerlab(path: str | Path) -> Lab:
    """Reads a lab from the file ``topology-data.json`` in its directory, which is there while the lab runs.

    Raises:
        TopologyError: If the file cannot be read, or is another one.
    """
    path = Path(path)
    if path.suffix != ".json":
        raise TopologyError(
            f"{path}: only a running lab can be imported. Deploy the lab (containerlab deploy, or netlab up), and "
            "import clab-LAB/topology-data.json, which containerlab writes."
        )

    deployed = load_yaml_file(path, _Deployed, TopologyError)
    nodes = {name: _lab_node(name, node) for name, node in deployed.nodes.items()}
    links: list[tuple[LabEnd, LabEnd]] = []
    left_out = []

    for link in deployed.links or ():
        if link.z is None:
            left_out.append(f"link {link.a}: it has one end only")
        elif link.a.node in nodes and link.z.node in nodes:
            links.append((_lab_end(link.a), _lab_end(link.z)))
        else:
            left_out.append(f"link {link.a} -- {link.z}: it leaves the lab")

    return Lab(deployed.name, nodes, links, left_out)


def _lab_node(name: str, node: _Node) -> LabNode:
    netns = None if node.kind in _NO_CONTAINERS else node.longname
    return LabNode(name, node.kind, netns)


def _lab_end(end: _End) -> LabEnd:
    given = {"ipv4": end.ipv4, "ipv6": end.ipv6}
    addresses = {version: address for version, address in given.items() if address}
    return LabEnd(end.node, end.interface, addresses, end.mac or None)
