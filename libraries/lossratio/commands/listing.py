"""The command ``lossratio list``: what comes with lossratio and has a name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import click

from lossratio.commands.parameters import OneOf, argument, command
from lossratio.files import SUITES, TOPOLOGIES


def suites() -> Iterator[tuple[str, str]]:
    """The suites that come with lossratio: their names, and what each of them measures."""
    for name in SUITES.names():
        yield name, _configuration(SUITES.own_path(name))


def _families() -> str:
    """How many suites there are for each family of devices, the largest first: names begin with the family."""
    counts = Counter(name.partition("_")[0] for name in SUITES.names())
    listed = ", ".join(f"{count} for {family}" for family, count in counts.most_common())
    return f"{counts.total()} suites: {listed}."


def _configuration(suite: Path) -> str:
    """What a suite's documentation says after ``[Cfg]``, or all of it: the device, and how it is set up."""
    from robot.api.parsing import Documentation, get_model

    model = get_model(suite, curdir=str(suite.parent))
    (settings,) = (part for part in model.sections if type(part).__name__ == "SettingSection")
    for statement in settings.body:
        if isinstance(statement, Documentation):
            text = " ".join(statement.value.split())
            found = re.search(r"\[Cfg\] ([^[]*)", text)
            return found[1].strip() if found else text
    return ""


def _topologies() -> Iterator[tuple[str, str]]:
    for name in TOPOLOGIES.names():
        text = TOPOLOGIES.own_path(name).read_text(encoding="utf-8")
        comment = [line[2:] for line in text.splitlines() if line.startswith("# ")]
        yield name, _first_sentence(" ".join(comment))


def _profiles() -> Iterator[tuple[str, str]]:
    from lossratio.traffic import profile_descriptions

    yield from profile_descriptions().items()


def _devices() -> Iterator[tuple[str, str]]:
    from lossratio.dut import dut_kinds, load_kind

    for name in dut_kinds():
        yield name, _first_sentence(load_kind(name).__doc__ or "")


def _first_sentence(text: str) -> str:
    sentence, dot, _ = " ".join(text.split()).partition(". ")
    return sentence + dot.strip()


_LISTS: dict[str, Callable[[], Iterator[tuple[str, str]]]] = {
    "suites": suites,
    "topologies": _topologies,
    "profiles": _profiles,
    "devices": _devices,
}


@command("list")
def list_command(
    what: str = argument("suites|topologies|profiles|devices", type=OneOf(list(_LISTS))),
) -> None:
    """List the suites, topologies, traffic profiles or kinds of device that you can use by name.

    Use the names in `lossratio run SUITE`, `--topology`, `profile=` and `dut=`.
    """
    if what == "suites":
        click.echo(f"{_families()}\n")
    for name, text in _LISTS[what]():
        click.echo(f"{click.style(name, bold=True)}\n    {text}")
