"""Draws the house of docs/architecture.md into a file: house.py PICTURE. The rooms are those of the page's table."""

import sys
from itertools import accumulate
from pathlib import Path

from lossratio.drawing import INK, Drawing

PAGE = Path(__file__).parents[1] / "architecture.md"
STOREYS = (
    ("what users start", "commands", "#D6E4F0"),
    ("what runs show", "report", "#DDEBDC"),
    ("measuring", "measurements", "#FBE8D3"),
    ("devices and traffic", "dut", "#F6DEDE"),
    ("data and searches", "results", "#E7E0F0"),
    ("ground", "trials", "#EAEAEA"),
)
"""The storeys from the top: name, the room that each begins with, and colour."""

WIDTH, LEFT, STOREY, BOX, GAP = 780.0, 150.0, 58.0, 34.0, 10.0
CHARACTER = 6.4
"""Width of a character, in pixels."""


def rows() -> list[str]:
    """The lines of the page's table: the rooms of each."""
    table = PAGE.read_text(encoding="utf-8").partition("<!-- rooms -->")[2].partition("<!-- end of rooms -->")[0]
    return [line.split("|")[1].strip().replace("`", "") for line in table.strip().splitlines()[2:]]


def draw_storey(picture: Drawing, number: int, name: str, colour: str, boxes: list[str]) -> None:
    """Draws one storey: its name at the left, and a box for each line of the table."""
    top = 10 + number * STOREY
    widths = [len(box) * CHARACTER + 16 for box in boxes]
    starts = accumulate((width + GAP for width in widths), initial=LEFT + 10)
    picture.add("rect", x=LEFT, y=top, width=WIDTH - LEFT - 10, height=STOREY - 8, fill=colour, stroke="#999999")
    picture.text(10.0, top + 29, name, font_weight="bold")
    for box, width, start in zip(boxes, widths, starts, strict=False):
        picture.add("rect", x=start, y=top + 8, width=width, height=BOX, rx=4, fill="#fff", stroke=INK)
        picture.text(start + width / 2, top + 29, box, text_anchor="middle")


def main(file: Path) -> None:
    """Draws the house."""
    rooms = rows()
    starts = [next(n for n, row in enumerate(rooms) if room in row.split(", ")) for _, room, _ in STOREYS]
    ends = [*starts[1:], len(rooms)]
    picture = Drawing(WIDTH)
    for number, ((name, _, colour), start, end) in enumerate(zip(STOREYS, starts, ends, strict=True)):
        draw_storey(picture, number, name, colour, rooms[start:end])
    bottom = 10 + len(STOREYS) * STOREY
    caption = "Imports point down, and within a storey to the right. Rooms in one box do not import each other."
    picture.text(LEFT, bottom + 12, caption)
    description = "The rooms of lossratio, by storey: " + "; ".join(rooms)
    file.write_text(picture.svg(bottom + 24, description) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
