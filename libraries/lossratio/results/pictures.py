"""Pictures of a result as data, independent of what draws them."""

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue


@dataclass(frozen=True)
class Picture:
    """A picture of a result, with its texts on the page."""

    title: str
    """Heading of the picture."""
    svg: str
    """The picture as one ``<svg>`` element; empty: nothing to draw."""
    about: str = ""
    """How to read the picture, in plain text."""
    table: str = ""
    """The numbers of the picture as HTML, which only the page shows."""

    def _repr_svg_(self) -> str:
        return self.svg


@dataclass(frozen=True)
class Charts:
    """The pictures of a result that the script of a large page draws."""

    data: Mapping[str, JsonValue]
    """The data of the pictures, with all trials in columns."""
    drawn: Mapping[str, Picture]
    """The pictures without their drawings, by the script's name for the drawing."""
    others: tuple[Picture, ...] = ()
    """The further pictures of the result."""
