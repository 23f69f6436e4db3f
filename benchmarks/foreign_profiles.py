"""Reads the profiles of other generators below directories: how many become traffic profiles, and what the others need.

Usage: foreign_profiles.py DIRECTORY...
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from lossratio.errors import ProfileError
from lossratio.traffic import convert_profile

TOOLS = {".py": "trex", ".json": "trafficgen", ".pcap": "pcap"}


def main() -> None:
    """Prints a line for each file that is refused, and a table."""
    answers: Counter[tuple[str, str]] = Counter()
    for tool, path in files(sys.argv[1:]):
        try:
            convert_profile(tool, path)
        except ProfileError as error:
            answers[tool, "refused"] += 1
            print(error)
        else:
            answers[tool, "read"] += 1

    print(f"{'':12}{'read':>9}{'refused':>9}")
    for tool in sorted(set(TOOLS.values())):
        print(f"{tool:12}{answers[tool, 'read']:9}{answers[tool, 'refused']:9}")


def files(directories: list[str]) -> Iterator[tuple[str, Path]]:
    """The files that may be profiles, each with its tool."""
    for directory in directories:
        for path in sorted(Path(directory).rglob("*")):
            if path.suffix in TOOLS and path.is_file():
                yield TOOLS[path.suffix], path


if __name__ == "__main__":
    main()
