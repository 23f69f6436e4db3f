"""Pictures of a result as data, independent of what draws them."""

from dataclasses import dataclass


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
