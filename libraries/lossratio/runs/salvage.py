"""Reads Robot Framework's output of a run that was cut off: all that was finished, and nothing of what was not."""

from __future__ import annotations

import xml.parsers.expat
from dataclasses import dataclass, field
from pathlib import Path

_WHOLE = frozenset({"test", "suite", "kw"})
"""Elements that, below a suite, are kept if they are there to their end."""


def salvage(path: Path) -> bytes | None:
    """An output that Robot Framework can read, from what there is of one.

    Args:
        path: The output.

    Returns:
        The output, cut off after the last test (or set-up) that was finished, its suites closed as failed; all of it
        if it is whole. None: there is nothing to keep.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    reader = _Reader()
    if reader.read(data):
        return data
    if reader.kept is None:
        return None
    end, suites = reader.kept
    closing = b'<status status="FAIL">The run was cut off.</status>\n</suite>\n' * suites
    return data[:end] + b"\n" + closing + b"</robot>\n"


@dataclass
class _Reader:
    """Reads as far as it can.

    Attributes:
        kept: Where the last whole part ends, in bytes, and in how many suites that is.
    """

    kept: tuple[int, int] | None = None
    _open: list[str] = field(default_factory=list)

    def read(self, data: bytes) -> bool:
        """Reads an output; returns whether it is whole."""
        parser = xml.parsers.expat.ParserCreate()
        parser.StartElementHandler = lambda name, attributes: self._open.append(name)

        def end(name: str) -> None:
            self._open.pop()
            if name in _WHOLE and self._open and self._open[-1] == "suite":
                # The parser is at the start of the end tag, which Robot Framework writes without any space.
                self.kept = (parser.CurrentByteIndex + len(f"</{name}>"), self._open.count("suite"))

        parser.EndElementHandler = end
        try:
            parser.Parse(data, True)
        except xml.parsers.expat.ExpatError:
            return False
        return True
