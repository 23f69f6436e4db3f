"""Reads topology files, in our own format or FD.io CSIT's, and checks whether the fields of a file fit together.

Fields of CSIT's files that mean the same keep their names. Fields that lossratio does not use are kept as ``other``.
Secrets are left out.
"""

import logging
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lossratio.errors import TopologyError
from lossratio.files import TOPOLOGIES, Problem, load_yaml_file
from lossratio.topology.generators import GeneratorSettings, RealGenerator
from lossratio.topology.model import Node, Topology
from lossratio.topology.path import Interface
from lossratio.topology.quantities import as_file_name
from lossratio.topology.vpp import VppStart
from lossratio.values import shown_value


def load_topology(path: str | Path) -> Topology:
    """Reads and checks a topology file, or one that comes with lossratio and is given by its name, such as ``local``.

    Raises:
        TopologyError: If it is missing, is not YAML, or does not describe a usable testbed. The message has file, line
            and field of each problem.
    """
    if not isinstance(path, str | Path):
        raise TopologyError(f"A topology is given by its name or path, not by {shown_value(path)}.")
    file = TOPOLOGIES.path(path)
    if not os.path.exists(file) and (hint := TOPOLOGIES.hint(path)):
        raise TopologyError(f"There is no file {path}.{hint}")
    return load_yaml_file(file, Topology, TopologyError, _topology_problems, convert=_from_csit)


def _topology_problems(topology: Topology) -> Iterator[Problem]:
    problems = [*_node_type_problems(topology), *_link_problems(topology)]
    for name, node in topology.nodes.items():
        problems += _node_problems(topology, name, node)
        problems += _interface_problems(topology.testbed, name, node)
    problems += _address_problems(topology)
    if topology.mtu is not None and topology.testbed != "local":
        problems.append((("mtu",), "only a local testbed has an MTU for its links: leave it out"))
    yield from problems
    if not problems:
        try:
            topology.path()
        except TopologyError as error:
            yield ("nodes",), str(error)


def _node_type_problems(topology: Topology) -> Iterator[Problem]:
    generators = topology.tg_names
    if len(generators) not in (1, 2):
        yield (
            ("nodes",),
            f"the file needs one node of type TG, or one at each end of the path, but it has {len(generators)}",
        )
    for name in generators[1:]:
        if topology.nodes[name].generator is not None:
            yield (
                ("nodes", name, "generator"),
                f"the generator of {generators[0]} sends at both ends of the path; leave this one out",
            )
    if generators[1:] and topology.generator is not None:
        yield from _two_ends_problems(topology, generators[0], topology.generator)

    kind = topology.generator.kind if generators and topology.generator is not None else None
    reflectors = [name for name, node in topology.nodes.items() if node.type == "reflector"]
    for name in reflectors:
        if reflectors[1:] or kind != "xdp":
            yield (
                ("nodes", name),
                "use at most one reflector, and a generator of 'kind: xdp', which sends and receives on one port",
            )


def _two_ends_problems(
    topology: Topology, first: str, generator: GeneratorSettings
) -> Iterator[Problem]:
    if not generator.has_two_nodes:
        yield (
            ("nodes", first, "generator"),
            f"{generator.kind!r} sends and receives on one node, but there are two nodes of type TG. Use 'kind: "
            "afpacket' or 'kind: xdp', which count at one end what the other end sends, or give both ports to one TG",
        )
    if topology.testbed != "lab":
        yield (
            ("testbed",),
            f"two nodes of type TG cannot be used with 'testbed: {topology.testbed}': remove one of them",
        )

    names = [name for tg in topology.tg_names for name in topology.nodes[tg].interfaces]
    if len(set(names)) < len(names):
        yield (
            ("nodes", topology.tg_names[1], "interfaces"),
            "an interface of the other TG has the same key, but directions are named after both keys. Choose another "
            "key (the 'name' may be the same)",
        )
    if any(node.type == "reflector" for node in topology.nodes.values()):
        yield (
            ("nodes",),
            "a path ends at a reflector or at a second TG, not at both: remove one of them",
        )


def _link_problems(topology: Topology) -> Iterator[Problem]:
    for link, ports in topology.links().items():
        if len(ports) != 2:
            ends = ", ".join(str(port) for port in ports)
            last = ports[-1]
            where = ("nodes", last.node_name, "interfaces", last.name, "link")
            yield where, f"link {link!r} must have two ends, but has {len(ports)}: {ends}"


def _node_problems(topology: Topology, name: str, node: Node) -> Iterator[Problem]:
    testbed = topology.testbed
    is_first_tg = name in topology.tg_names[:1]
    where = ("nodes", name)
    simulated = testbed == "simulated"
    if node.type == "TG" and node.generator is None and is_first_tg:
        yield where, "a TG without a generator; add e.g. 'generator: {kind: afpacket}'"
    if node.type != "TG" and node.generator is not None:
        yield (*where, "generator"), "only a TG has a generator: leave this one out"
    if node.type != "DUT" and node.vpp != VppStart():
        yield (*where, "vpp"), "only a DUT has VPP: leave this out"
    if node.generator is not None and simulated == isinstance(node.generator, RealGenerator):
        yield (
            (*where, "generator"),
            f"kind {node.generator.kind!r} cannot be used with 'testbed: {testbed}': choose another kind",
        )
    if node.sut is not None and not simulated:
        yield (
            (*where, "sut"),
            "a model of the SUT can only be used with 'testbed: simulated': leave it out",
        )
    ways = node.ways_in
    if not node.place and testbed == "lab" and node.type != "DUT":
        yield (
            where,
            "the file does not say how to reach the node: add 'host', 'netns', 'container' or 'pod'",
        )
    if len(ways) > 1:
        yield ((*where, ways[1]), f"{' and '.join(ways)} contradict each other: keep one of them")

    for hook, text in _hook_problems(testbed, node):
        yield (*where, "hooks", *hook), text
    for way in ways:
        if testbed != "lab" and way != "host":
            yield (*where, way), f"cannot be used with 'testbed: {testbed}': leave it out"


def _hook_problems(testbed: str, node: Node) -> Iterator[Problem]:
    """Finds the hooks that cannot be called; their places are within ``hooks``."""
    is_reached = bool(node.ways_in) or testbed != "lab"
    for name in type(node.hooks).model_fields:
        hook = getattr(node.hooks, name)
        if hook is None:
            continue

        if node.type != "DUT":
            yield (name,), "only a DUT has hooks: leave this one out"
        if hook.runs_on == "node" and not is_reached:
            yield (
                (name, "command"),
                "the file does not say how to reach the node: add 'host', 'netns' or 'container', or set 'runs_on: "
                "controller'",
            )


def _interface_problems(testbed: str, name: str, node: Node) -> Iterator[Problem]:
    names: set[str] = set()
    for port, interface in node.interfaces.items():
        where = ("nodes", name, "interfaces", port)
        if interface.name in names:
            yield (
                (*where, "name"),
                f"another interface of {name} is also named {interface.name!r}: correct one of them",
            )

        if interface.name is not None:
            names.add(interface.name)
        elif testbed == "local":
            yield where, "an interface of a local testbed needs a 'name'"
        elif (
            testbed == "lab"
            and interface.pci_address is None
            and node.place
            and not node.has_tester
        ):
            yield where, "the interface has neither a 'name' nor a 'pci_address': add one of them"

        for field in ("address", "gateway", "network") if node.type != "TG" else ():
            if getattr(interface, field):
                yield ((*where, field), "only the TG's interfaces have this field: leave it out")


def _address_problems(topology: Topology) -> Iterator[Problem]:
    is_lab = topology.addresses == "lab"
    for name, node in topology.nodes.items():
        for port, interface in node.interfaces.items():
            where = ("nodes", name, "interfaces", port)
            if interface.network and not is_lab:
                yield (
                    (*where, "network"),
                    "test traffic stays in 198.18.0.0/15 and 2001:2::/48: leave this out, or set 'addresses: lab' "
                    "in the file",
                )

            if (
                is_lab
                and node.type == "TG"
                and interface.link
                and not (interface.address or interface.network)
            ):
                yield (
                    where,
                    "the file has 'addresses: lab', but this port has neither 'address' nor 'network': add one of them",
                )


_SECRETS = frozenset({"password", "passphrase", "priv_key"})
_GENERATORS = {"TREX": {"kind": "trex"}}
_EMBEDDED = {"kind": "afpacket"}
_CSIT_DRIVER = "vfio-pci"
"""The driver that CSIT binds TRex's cards to. CSIT's files do not name it."""


def _from_csit(data: dict[str, Any], path: Path) -> dict[str, Any]:
    """A CSIT testbed as data in our own format. Malformed parts are left for the checks to report.

    Raises:
        TopologyError: If the file is a lab of containerlab, which is imported.
    """
    lab = data.get("topology")
    if "format" not in data and isinstance(lab, dict) and "nodes" in lab:
        raise TopologyError(
            f"{path}: this is a lab of containerlab. Deploy it, and turn it into a topology file: lossratio lab import "
            "containerlab clab-LAB/topology-data.json --output FILE"
        )
    if "format" in data or "metadata" not in data or "nodes" not in data:
        return data

    nodes = data["nodes"]
    secrets = sorted(set(_secrets_in(data)))
    if secrets:
        logging.getLogger(__name__).warning(
            "%s: %s ignored: secrets do not belong in a file. Use a key, or the environment variable "
            "LOSSRATIO_PASSWORD.",
            path,
            f"{', '.join(secrets)} {'is' if len(secrets) == 1 else 'are'}",
        )

    if isinstance(nodes, dict):
        nodes = {name: _node(node) for name, node in nodes.items()}

    return {
        "format": "lossratio-topology/1",
        "name": as_file_name(path.stem, "csit"),
        "description": f"FD.io CSIT's topology {path.name}.",
        "nodes": _without_dangling_links(nodes),
    }


def _node(data: Any) -> Any:
    if not isinstance(data, dict):
        return data
    node = _known_fields(data, Node)
    if data.get("type") == "TG" and "generator" not in data:
        node["generator"] = _GENERATORS.get(str(data.get("subtype", "")).upper(), _EMBEDDED)
        if node["generator"] is not _EMBEDDED:
            node.setdefault("uio_driver", _CSIT_DRIVER)
    interfaces = data.get("interfaces")
    if isinstance(interfaces, dict):
        node["interfaces"] = {
            name: _known_fields(interface, Interface) if isinstance(interface, dict) else interface
            for name, interface in interfaces.items()
        }
    return node


def _known_fields(data: Mapping[str, Any], model: type[Node] | type[Interface]) -> dict[str, Any]:
    """The fields of our own model, with all other fields, without secrets, in ``other``."""
    known = {name: value for name, value in data.items() if name in model.model_fields}
    other = {
        name: _without_secrets(value)
        for name, value in data.items()
        if name not in {*known, *_SECRETS}
    }
    if other:
        return {**known, "other": other}
    return known


def _without_dangling_links(nodes: Any) -> Any:
    """Removes the link from ports whose link has no other end, as in CSIT's files: no path goes there."""
    ports = [
        port
        for node in _mappings(nodes)
        for port in _mappings(node.get("interfaces"))
        if "link" in port
    ]
    ends = Counter(str(port["link"]) for port in ports)
    for port in ports:
        other = port.get("other", {})
        # Anything but a mapping is left for the checks to find.
        if ends[str(port["link"])] == 1 and isinstance(other, dict):
            port["other"] = {**other, "link": port.pop("link")}

    return nodes


def _mappings(data: Any) -> list[dict[str, Any]]:
    if isinstance(data, dict):
        return [value for value in data.values() if isinstance(value, dict)]
    return []


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            str(name): _without_secrets(item)
            for name, item in value.items()
            if name not in _SECRETS
        }
    if isinstance(value, list):
        return [_without_secrets(item) for item in value]
    return value


def _secrets_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from _SECRETS.intersection(value)
        value = list(value.values())
    for item in value if isinstance(value, list) else ():
        yield from _secrets_in(item)
