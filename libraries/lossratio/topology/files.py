"""Reads topology files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lossratio.errors import TopologyError
from lossratio.topology.checks import topology_problems
from lossratio.topology.csit import from_csit, is_csit_topology
from lossratio.topology.model import Topology
from lossratio.yaml_file import load_yaml_file


def load_topology(path: str | Path) -> Topology:
    """Reads and checks a topology file, of our own format or of FD.io CSIT's.

    Raises:
        TopologyError: If the file is missing, is not YAML, or does not describe a usable testbed; each problem with
            file, line and field.
    """
    return load_yaml_file(path, Topology, TopologyError, topology_problems, _convert)


def _convert(data: dict[str, Any], path: Path) -> dict[str, Any]:
    return from_csit(data, path) if is_csit_topology(data) else data
