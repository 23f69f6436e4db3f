"""Packages that add something to the library, put where Python finds them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path


def put_package(site: Path, name: str, entry_points: Mapping[str, Sequence[str]], **modules: str) -> None:
    """Writes version 1.0 of a package into a directory as pip would.

    Args:
        site: The directory.
        name: The name of the package.
        entry_points: Its entry points by group.
        modules: The text of its modules.
    """
    metadata = site / f"{name}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [line for group, entries in entry_points.items() for line in (f"[{group}]", *entries)]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    for module, source in modules.items():
        (site / f"{module}.py").write_text(source)
