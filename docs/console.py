"""Fills the pages with what the console shows today: of a search on a simulated SUT, and of the demo with real frames.

Usage: console.py [--demo]

The search is the one of the pictures, and always the same. With ``--demo``, `lossratio demo` runs as well, for the
README. `reading-results.md` explains the PDR of the README's demo.
"""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from lossratio.results import RunDirectory, TestResult

ROOT = Path(__file__).parents[1]
README = ROOT / "README.rst"
PAGE = ROOT / "docs" / "methodology" / "mlrsearch.md"
READING = ROOT / "docs" / "reading-results.md"
SUITE = ROOT / "docs" / "pictures" / "search.robot"

# The page explains the rules that choose trials.
_SHOWN = ("--consolewidth", "140", "--variable", "LOSSRATIO_VERBOSE:yes")
_IN_MARKDOWN = re.compile(r"(<!-- filled in by docs/console.py -->\n).*?(?=<!-- end -->)", re.DOTALL)
_IN_RST = re.compile(r"(\.\. filled in by docs/console.py\n\n::\n\n).*?(?=\n\.\. end\n)", re.DOTALL)


def search_of_the_pictures() -> tuple[TestResult, list[str]]:
    """The result of the search that `search.svg` shows, and the lines of its trials on the console."""
    with TemporaryDirectory() as directory:
        command = [sys.executable, "-m", "robot", "--outputdir", directory, *_SHOWN, str(SUITE)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        (result,) = RunDirectory(Path(directory)).results()
    return result, trial_lines(done.stdout)


def trial_lines(output: str) -> list[str]:
    """The lines about trials."""
    return [line.rstrip() for line in output.splitlines() if re.match(r"trial +\d", line)]


def search_text(result: TestResult, lines: Sequence[str]) -> str:
    """What the page says of the search: how many trials there were, what they were for, and some of them."""
    searching = sum("search" in str(trial.purpose) for trial in result.trials)
    shown = (0, 1, len(lines) // 2, len(lines) - 1)
    return "\n".join(
        [
            f"This search has {len(result.trials)} trials. {searching} of them look for the limits; the other",
            f"{len(result.trials) - searching} prove the bounds. Some of them on the console:",
            "",
            "```",
            *(lines[number] for number in shown),
            "```",
            "",
        ]
    )


def demo_text(output: str) -> str:
    """What the README shows of a demo: its first trials, the sentence on each goal, and the truth.

    Raises:
        ValueError: If the demo was simulated.
    """
    if "Simulated instead of real" in output:
        raise ValueError("The demo was simulated here, and the README shows one with real frames.")
    lines = output.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith("NDR: forwards"))
    page = next(number for number, line in enumerate(lines) if line.startswith("The page: "))
    truth = next(number for number, line in enumerate(lines) if line.startswith("The true limits of the policer"))
    sentences: list[str] = []
    for line in lines[first:page]:
        if not line.startswith(("NDR", "PDR", "  ")):
            break
        sentences.append(line)
    shown = [*trial_lines(output)[:2], "[...]", *sentences, *lines[truth : truth + 3]]
    return "".join(f"    {line.rstrip()}\n" for line in shown)


def page_with(page: str, text: str) -> str:
    """A page of the documentation with its text filled in."""
    return _IN_MARKDOWN.sub(lambda begin: begin[1] + text, page)


def reading_text(readme: str) -> str:
    """What the page about results says of the PDR in the README's demo: its sentence, and what its numbers mean.

    Raises:
        ValueError: If the README has no PDR with both of its bounds.
    """
    demo = " ".join(readme.split())
    shape = r"PDR \(at most .*?forwards ([\d,]+) .*?when offered ([\d,]+) .*?proved to within .*?\.(?= )"
    sentence = re.search(shape, demo)
    bounds = re.search(r"PDR [\d,]+ fps per interface: between the bounds, [\d,]+ and ([\d,]+) fps", demo)
    if sentence is None or bounds is None:
        raise ValueError("README.rst shows no PDR with its bounds. Run: make pictures")

    forwarded, lower = sentence.groups()
    meaning = (
        f"The bounds of a goal are **offered loads**. This search proved that {lower} frames per second meet the goal "
        f"(the relevant lower bound), and that {bounds[1]} do not (the relevant upper bound). Of the {lower} that were "
        f"offered, {forwarded} came back: that is the **conditional throughput**, the typical forwarding rate at the "
        "lower bound. Because some loss is allowed, it is less than the lower bound. Quote this number; the bounds "
        "show how precisely it is known."
    )
    return f"```\n{sentence[0]}\n```\n\n{textwrap.fill(meaning, 120)}\n"


def readme_with_demo(readme: str, text: str) -> str:
    """The README with the lines of a demo filled in."""
    return _IN_RST.sub(lambda begin: begin[1] + text, readme)


def main(*arguments: str) -> None:
    """Fills the pages."""
    PAGE.write_text(page_with(PAGE.read_text(), search_text(*search_of_the_pictures())))
    if "--demo" in arguments:
        with TemporaryDirectory() as directory:
            command = [sys.executable, "-m", "lossratio", "demo", "--output", directory]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
        README.write_text(readme_with_demo(README.read_text(), demo_text(done.stdout)))
    READING.write_text(page_with(READING.read_text(), reading_text(README.read_text())))


if __name__ == "__main__":
    main(*sys.argv[1:])
