"""The documentation site: `make docs` builds it from the pages here, with tables of keywords, commands and classes."""

from __future__ import annotations

import ast
import inspect
import re
from importlib.metadata import EntryPoint
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

import click
from robot.libdoc import libdoc
from robot.libdocpkg import LibraryDocumentation
from robot.running import TestSuite
from sphinx.application import Sphinx

import lossratio
from lossratio.commands.listing import suites
from lossratio.commands.main import first_line, sections
from lossratio.files.shipped import SUITES
from lossratio.results import installed_kinds
from lossratio.trials import DirectionCounters, StreamCounters
from lossratio.values.records import docstrings_of_fields

LIBRARY = "LossRatio"
KEYWORD_PAGE = "reference/keywords"
COMMAND_PAGE = "reference/commands"
PYTHON_PAGE = "reference/python"
SUITE_PAGE = "reference/suites"
VARIABLE = re.compile(r"\$\{\w+\}")
OF_ALL_TESTS = "${FRAME_SIZE}-${CORES}c-"
"""How the names of tests begin."""
LIBDOC = "libdoc.html"

project = "lossratio"
author = "the lossratio developers"
version = release = lossratio.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["**/*.robot"]
nitpicky = True
# Types of other packages, and those that only type checkers see, have no page here.
nitpick_ignore_regex = [("py:.*", ".*")]
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "inherited-members": "BaseModel,Generic,object,dict,Exception"}
python_use_unqualified_type_names = True
suppress_warnings = ["misc.highlighting_failure"]  # Pygments knows "Force Tags" only, and not "Test Tags".
# Headings are targets of links, as on the pages of a repository's web site.
myst_heading_anchors = 4
html_theme = "furo"
html_static_path = ["_static"]
html_css_files = ["wide.css"]
# Pages come before entries of the changelog in the results of a search.
html_search_scorer = str(Path(__file__).parent / "_static" / "scorer.js")
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
    """Appends all commands, with the help and the options of each, to the page about commands."""
    if page != COMMAND_PAGE:
        return
    source[0] += "\n| command | what it does |\n| --- | --- |\n"
    for entry in chain(*sections().values()):
        target = f"lossratio-{entry.name.replace(' ', '-')}"
        source[0] += f"| [`lossratio {entry.name}`](#{target}) | {first_line(entry)} |\n"
    for entry in chain(*sections().values()):
        source[0] += described_command(entry)


def described_command(entry: EntryPoint) -> str:
    """The part of a page about a command: its usage, its help, its options."""
    command = entry.load()
    name = f"lossratio {entry.name}"
    usage = " ".join(command.collect_usage_pieces(click.Context(command)))
    lines = ["", f"## {name}", "", f"```\n{name} {usage}\n```", "", inspect.cleandoc(command.help or ""), ""]
    options = [parameter for parameter in command.params if isinstance(parameter, click.Option)]
    if options:
        lines += ["| option | what it does |", "| --- | --- |"]
    for option in options:
        shown, text = option.get_help_record(click.Context(command))
        lines.append(f"| `{shown.replace('|', chr(92) + '|')}` | {text.replace('|', chr(92) + '|')} |")
    return "\n".join(lines) + "\n"


def list_suites(_app: Sphinx, page: str, source: list[str]) -> None:
    """Appends all shipped suites, with the device, the tests and the keywords of each, to the page about suites."""
    if page != SUITE_PAGE:
        return
    measuring = {keyword.name for keyword in LibraryDocumentation(LIBRARY).keywords}
    rows = ["| suite | device and set-up | tests | they call |", "| --- | --- | --- | --- |"]
    for name, text in suites():
        tests = TestSuite.from_file_system(SUITES.path(name)).tests
        steps = (str(getattr(step, "name", "")) for test in tests for step in test.body)
        called = dict.fromkeys(step for step in steps if step in measuring)
        listed = ", ".join(called)
        named = ", ".join(f"`{VARIABLE.sub('*', test.name.removeprefix(OF_ALL_TESTS))}`" for test in tests)
        rows.append(f"| `{name}` | {text.replace('|', chr(92) + '|')} | {named} | {listed} |")
    source[0] += "\n## All suites\n\n" + "\n".join(rows) + "\n"


def list_python(_app: Sphinx, page: str, source: list[str]) -> None:
    """Appends the names of the Python API, by room, the fields of all results, and the counters of a trial."""
    if page != PYTHON_PAGE:
        return
    by_room: dict[str, list[str]] = {}
    stub = Path(lossratio.__file__).with_suffix(".pyi")
    for line in ast.parse(stub.read_text()).body:
        if isinstance(line, ast.ImportFrom):
            by_room.setdefault(str(line.module).partition(".")[0], []).extend(alias.name for alias in line.names)

    for room, names in sorted(by_room.items()):
        source[0] += f"\n## From `lossratio.{room}`\n"
        for name in names:
            source[0] += described(name)
    source[0] += "\n## Results\n"
    for kind in installed_kinds():
        source[0] += f"\n### {kind.result.__name__}\n\n{fields_table(kind.result)}\n"
    source[0] += "\n## The counters of a trial\n"
    for counters in (DirectionCounters, StreamCounters):
        source[0] += f"\n### {counters.__name__}\n\n{fields_table(counters)}\n"


def described(name: str) -> str:
    """The part of a page that autodoc makes of a name of `lossratio`."""
    described = getattr(lossratio, name)
    if inspect.isclass(described):
        directive = "autoclass"
    elif callable(described):
        directive = "autofunction"
    else:
        directive = "autodata"
    return f"\n### {name}\n\n```{{eval-rst}}\n.. {directive}:: lossratio.{name}\n   :no-index:\n```\n"


def fields_table(record: type) -> str:
    """The fields of a class of results or counters, with what each of them is."""
    rows = ["| field | what it is |", "| --- | --- |"]
    for field, text in docstrings_of_fields(record).items():
        rows.append(f"| `{field}` | {' '.join(text.split())} |")
    return "\n".join(rows)


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
    app.connect("source-read", list_python)
    app.connect("source-read", list_suites)
    app.connect("build-finished", write_libdoc)
