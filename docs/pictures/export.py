"""Writes pictures from a run's page, lossratio.html, into files: export.py PAGE DIRECTORY [PICTURE...]."""

import re
import sys
from pathlib import Path

PICTURES = {
    "search.svg": "Search of ",
    "loss.svg": "Loss ratio over load per interface, ",
    "soak.svg": "Loss over load and critical load of ",
}
"""How the title of each picture begins."""


def main(page: Path, directory: Path, *names: str) -> None:
    """Writes pictures of a page.

    Args:
        page: The page.
        directory: Where they go.
        names: Names in `PICTURES`; none: all.

    Raises:
        SystemExit: If the page lacks one.
    """
    drawings = re.findall(r"<svg .*?</svg>", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for name in names or PICTURES:
        found = [drawing for drawing in drawings if f"<title>{PICTURES[name]}" in drawing]
        if not found:
            raise SystemExit(f"{page} has no picture {name}")
        (directory / name).write_text(found[0] + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]), *sys.argv[3:])
