"""The documentation site: `make docs` builds it from the Markdown pages here, with tables of keywords and commands."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from robot.libdoc import libdoc
from robot.libdocpkg import LibraryDocumentation
from sphinx.application import Sphinx

import lossratio
from lossratio.commands.main import first_line, sections

LIBRARY = "lossratio.keywords.LossRatio"
KEYWORD_PAGE = "reference/keywords"
COMMAND_PAGE = "reference/commands"
LIBDOC = "libdoc.html"

project = "lossratio"
author = "the lossratio developers"
version = release = lossratio.__version__
extensions = ["myst_parser"]
exclude_patterns = ["**/*.robot"]
nitpicky = True
suppress_warnings = ["misc.highlighting_failure"]  # Pygments knows "Force Tags" only, and not "Test Tags".
# Headings are targets of links, as on the pages of a repository's web site.
myst_heading_anchors = 4
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["wide.css"]
html_title = f"lossratio {release}"
html_copy_source = False
html_show_copyright = False
# Code blocks that are console output or a topic of their own are shown as they are.
highlight_language = "none"


def list_keywords(_app: Sphinx, page: str, source: list[str]) -> None:
    """Appends all keywords, with the first sentence of each, to the page about keywords."""
    if page != KEYWORD_PAGE:
        return
    rows = ["| keyword | what it does |", "| --- | --- |"]
    for keyword in LibraryDocumentation(LIBRARY).keywords:
        target = f"{LIBDOC}#{quote(keyword.name)}"
        rows.append(f'| <a href="{target}">{keyword.name}</a> | {" ".join(keyword.short_doc.split())} |')
    source[0] += "\n" + "\n".join(rows) + "\n"


def list_commands(_app: Sphinx, page: str, source: list[str]) -> None:
    """Appends all commands, with the first line of each one's help, to the page about commands."""
    if page != COMMAND_PAGE:
        return
    for title, entries in sections().items():
        rows = [f"## {title}", "", "| command | what it does |", "| --- | --- |"]
        rows += [f"| `lossratio {entry.name}` | {first_line(entry)} |" for entry in entries]
        source[0] += "\n" + "\n".join(rows) + "\n"


def write_libdoc(app: Sphinx, error: Exception | None) -> None:
    """Writes Robot Framework's own page of the keywords beside the page that lists them."""
    if error is None and app.builder.format == "html":
        with TemporaryDirectory() as directory:
            page = Path(directory) / LIBDOC
            libdoc(LIBRARY, str(page), quiet=True)
            (Path(app.outdir) / KEYWORD_PAGE).with_name(LIBDOC).write_bytes(page.read_bytes())


def setup(app: Sphinx) -> None:
    """Connects the functions above to the build."""
    app.connect("source-read", list_keywords)
    app.connect("source-read", list_commands)
    app.connect("build-finished", write_libdoc)
