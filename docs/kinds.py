"""Writes the table of the kinds of measurement into `how-to/measure-from-python.md`, as the kinds declare themselves.

Usage: kinds.py
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from lossratio.results.kinds import built_in_kinds

PAGE = Path(__file__).parent / "how-to" / "measure-from-python.md"

_TABLE = re.compile(r"(?<=<!-- kinds of measurement, by docs/kinds.py -->\n).*?(?=<!-- end -->)", re.DOTALL)


def page(text: str) -> str:
    """The page with its table as the kinds are now."""
    return _TABLE.sub(table().replace("\\", r"\\"), text)


def table() -> str:
    """A row for each kind: its method, keyword, class and request."""
    head = "| method | keyword | kind and request, in |\n| --- | --- | --- |\n"
    return head + "".join(map(_row, built_in_kinds()))


def _row(kind: Any) -> str:
    names = f"`{type(kind).__name__}`, `{kind.request.__name__}`, `lossratio.measurements.{kind.name}`"
    cells = [*(f"`{name}`" if name else "" for name in (kind.method, kind.keyword)), names]
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
