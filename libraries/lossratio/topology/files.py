"""Reads topology files."""

from __future__ import annotations

from pathlib import Path

from lossratio.errors import TopologyError
from lossratio.topology.checks import topology_problems
from lossratio.topology.model import Topology
from lossratio.yaml_file import load_yaml_file


def load_topology(path: str | Path) -> Topology:
    """Reads and checks a topology file.

    Raises:
        TopologyError: If the file is missing, is not YAML, or does not describe a usable testbed; each problem with
            file, line and field.
    """
    return load_yaml_file(path, Topology, TopologyError, topology_problems)
