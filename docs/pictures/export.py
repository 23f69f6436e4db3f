"""Writes the picture of a search from a run's page, lossratio.html, into a file of its own: export.py PAGE PICTURE."""

import re
import sys
from pathlib import Path


def main(page: Path, picture: Path) -> None:
    """Writes the first picture of a page.

    Raises:
        SystemExit: If the page has no picture.
    """
    drawing = re.search(r"<svg .*?</svg>", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    if drawing is None:
        raise SystemExit(f"{page} has no picture of a search")
    picture.write_text(drawing.group() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
