"""Profiles of other generators: TRex's Python files, and captures of frames."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from lossratio.errors import ProfileError
from lossratio.files import read_input_file

if TYPE_CHECKING:
    from lossratio.traffic.foreign.conversion import ConvertedProfile
    from lossratio.traffic.foreign.packets import ForeignProfile

_MOST_BYTES = 1 << 24


# The readers are imported when a profile is imported: they take a while, and a run needs none of them.
def _from_trex(content: bytes, folder: Path) -> ForeignProfile:
    from lossratio.traffic.foreign.packets import ForeignFieldError
    from lossratio.traffic.foreign.trex import read_trex

    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        raise ForeignFieldError("the file", "it is not text in UTF-8") from error
    return read_trex(text, folder)


def _from_pcap(content: bytes, _: Path) -> ForeignProfile:
    from lossratio.traffic.foreign.captures import read_capture

    return read_capture(content)


_HELPS: Mapping[str, str] = {
    "trex": "Change it in a copy of the file, or import a capture of these frames: lossratio lab import pcap",
    "pcap": "Leave such frames out of the capture, or write a traffic profile of your own",
}
"""The remedy for any field that is not available, by the name of the reader."""

PROFILE_READERS: Mapping[str, Callable[[bytes, Path], ForeignProfile]] = {
    "trex": _from_trex,
    "pcap": _from_pcap,
}
"""The readers by the name of the tool or format: from a file's content, and its folder."""


def convert_profile(tool: str, path: Path, name: str | None = None) -> ConvertedProfile:
    """Makes a traffic profile from another generator's.

    Args:
        tool: One of the `PROFILE_READERS`.
        path: The other generator's file. A Python file is run without rights.
        name: The name of the traffic profile; None: the file's.

    Raises:
        ProfileError: If the file cannot be read, or something in it cannot be used here; the message has the file, the
            line (or the frame of a capture), the field and a remedy.
    """
    from lossratio.traffic.foreign.conversion import convert
    from lossratio.traffic.foreign.packets import ForeignFieldError

    content = read_input_file(path, ProfileError, _MOST_BYTES)
    try:
        read = PROFILE_READERS[tool](content, path.parent)
        return convert(
            read, name or path.stem, f"Made from {path.name} by lossratio lab import {tool}."
        )
    except ForeignFieldError as error:
        unit = "frame" if tool == "pcap" else "line"
        place = "" if error.line is None else f", {unit} {error.line}"
        way_out = error.way_out or _HELPS[tool]
        raise ProfileError(f"{path}{place}: {error.what}: {error.problem}. {way_out}.") from error


def profile_text(converted: ConvertedProfile) -> str:
    """The file of a traffic profile, with remarks."""
    remarks = "".join(f"# {remark}\n" for remark in converted.remarks)
    return remarks + yaml.safe_dump(dict(converted.fields), sort_keys=False, width=110)
