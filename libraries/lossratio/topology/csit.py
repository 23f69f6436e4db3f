"""Topology files of FD.io CSIT: translates them into the fields of our own format.

Fields that mean the same keep their names. Fields that lossratio does not use are kept as ``other``. Secrets are left
out.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lossratio.topology.model import Node
from lossratio.topology.path import Interface

_SECRETS = frozenset({"password", "passphrase", "priv_key"})
_GENERATORS = {"TREX": {"kind": "trex"}}
_EMBEDDED = {"kind": "afpacket"}


def is_csit_topology(data: Mapping[str, Any]) -> bool:
    """Whether these are the contents of a topology file of CSIT."""
    return "format" not in data and "metadata" in data and "nodes" in data


def from_csit(data: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """The same testbed as data of our own format. Parts that are not well-formed stay as they are, for the checks.

    Args:
        data: What the file holds.
        path: The file; the testbed is named after it.
    """
    nodes = data["nodes"]
    secrets = sorted(_secrets_in(data))
    if secrets:
        logging.getLogger(__name__).warning(
            "%s: %s ignored; secrets do not belong in a file. Use a key, or the environment variable "
            "LOSSRATIO_PASSWORD.",
            path,
            f"{', '.join(secrets)} {'is' if len(secrets) == 1 else 'are'}",
        )
    return {
        "format": "lossratio-topology/1",
        "name": re.sub(r"[^A-Za-z0-9_.-]", "_", path.stem).lstrip("_.-") or "csit",
        "description": f"FD.io CSIT's topology {path.name}.",
        "nodes": _without_dangling_links(
            {name: _node(node) for name, node in nodes.items()} if isinstance(nodes, dict) else nodes
        ),
    }


def _node(data: Any) -> Any:
    if not isinstance(data, dict):
        return data
    node = _known_fields(data, Node)
    if data.get("type") == "TG" and "generator" not in data:
        node["generator"] = _GENERATORS.get(str(data.get("subtype", "")).upper(), _EMBEDDED)
    interfaces = data.get("interfaces")
    if isinstance(interfaces, dict):
        node["interfaces"] = {
            name: _known_fields(interface, Interface) if isinstance(interface, dict) else interface
            for name, interface in interfaces.items()
        }
    return node


def _known_fields(data: Mapping[str, Any], model: type[Node] | type[Interface]) -> dict[str, Any]:
    """The fields that our own model has; the others, without secrets, in ``other``."""
    known = {name: value for name, value in data.items() if name in model.model_fields}
    other = {name: _without_secrets(value) for name, value in data.items() if name not in {*known, *_SECRETS}}
    return {**known, "other": other} if other else known


def _without_dangling_links(nodes: Any) -> Any:
    """Takes the link off ports that are wired to nothing: CSIT's files have such, and no path goes there."""
    ports = [port for node in _mappings(nodes) for port in _mappings(node.get("interfaces")) if "link" in port]
    ends = Counter(str(port["link"]) for port in ports)
    for port in ports:
        if ends[str(port["link"])] == 1:
            other = port.get("other", {})
            # Anything but a mapping stays as it is: the checks find it.
            port["other"] = {**other, "link": port.pop("link")} if isinstance(other, dict) else other
    return nodes


def _mappings(data: Any) -> list[dict[str, Any]]:
    return [value for value in data.values() if isinstance(value, dict)] if isinstance(data, dict) else []


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _without_secrets(item) for name, item in value.items() if name not in _SECRETS}
    if isinstance(value, list):
        return [_without_secrets(item) for item in value]
    return value


def _secrets_in(value: Any) -> set[str]:
    if isinstance(value, dict):
        own = {str(name) for name in value if name in _SECRETS}
        return own.union(*(_secrets_in(item) for item in value.values()))
    if isinstance(value, list):
        return set().union(*(_secrets_in(item) for item in value))
    return set()
