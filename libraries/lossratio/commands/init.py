"""The command ``lossratio init``: topology, suite and job of a new lab, from answers."""

import re
from collections.abc import Callable, Iterable
from importlib.resources import files
from pathlib import Path
from typing import Any

import click
import yaml

from lossratio.commands.parameters import FRAME_RATE, LocalPath, OneOf, argument, command
from lossratio.dut import BLACK_BOX, CABLE, dut_kinds
from lossratio.errors import TopologyError
from lossratio.files import check_directory, shell_word
from lossratio.topology import is_interface_name, load_topology

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*$")
_SIDES = ("west", "east")
_POLICED = "linux_bridge"
_POLICER = "    police=10 kfps"


@command()
def init(
    directory: Path = argument(type=LocalPath(path_type=Path, file_okay=False), default=Path()),
) -> None:
    """Write the topology, a suite and a job for a new lab to DIRECTORY.

    It asks a few questions. Press Enter to accept the answer in brackets.
    """
    check_directory(directory, "lossratio init")
    name = _ask("Name of the testbed", "lab1", _NAME.match, "letters, digits, '_', '.' and '-'")
    files_of_lab = tuple(directory / f"{name}{end}" for end in (".yaml", ".robot", "-job.yaml"))
    _check_new(files_of_lab)
    is_local = click.confirm(
        "Build it from network namespaces on this machine, to try it out?", default=True
    )
    tg = {} if is_local else _reach("the traffic generator", needs_one=True)
    tg |= _asked_generator(is_local)
    dut, kind, ends = _asked_device(is_local)
    options = ""
    if is_local and kind == _POLICED:
        # Without the policer, the generator reaches its limit before the bridge does, and the search has no upper
        # bound.
        options = _POLICER

    nodes = {
        "TG": {"type": "TG", **tg},
        "DUT1": {"type": "DUT", **dut, "interfaces": _linked(ends)},
    }
    kept = {"testbed": "local"} if is_local else {}
    topology = {"format": "lossratio-topology/1", "name": name, **kept, "nodes": nodes}
    texts = (
        yaml.safe_dump(topology, sort_keys=False, width=120),
        _suite(name, kind, options),
        yaml.safe_dump(_job(name), sort_keys=False, width=120),
    )
    directory.mkdir(parents=True, exist_ok=True)
    for file, text in zip(files_of_lab, texts, strict=True):
        file.write_text(text, encoding="utf-8")

    lab_file, _, job_file = files_of_lab
    load_topology(lab_file)
    click.echo(f"Written: {', '.join(map(str, files_of_lab))}. Next:")
    click.echo(f"  lossratio check {shell_word(lab_file)}{'' if is_local else ' --connect'}")
    click.echo(f"  lossratio run --job {shell_word(job_file)}")


def _asked_device(is_local: bool) -> tuple[dict[str, Any], str, tuple[dict[str, str], ...]]:
    """How to reach the device, its kind, and its interfaces in the west and in the east."""
    dut = {}
    if not is_local:
        dut = _reach(
            "the device (press Enter for a black box, to which lossratio does not log in)",
            needs_one=False,
        )
        if not dut:
            return {}, BLACK_BOX, ({}, {})

    kinds = [kind for kind in dut_kinds() if kind != CABLE]
    usual = _POLICED if is_local else BLACK_BOX
    kind = click.prompt("Kind of the device", default=usual, type=OneOf(kinds))
    names = ("dut0", "dut1") if is_local else ("eth1", "eth2")
    return dut, kind, _interfaces("Its interface", names)


def _linked(ends: Iterable[dict[str, str]]) -> dict[str, dict[str, str]]:
    """The interfaces of a node, one on each side."""
    return {side: {**end, "link": side} for side, end in zip(_SIDES, ends, strict=True)}


def _suite(name: str, kind: str, options: str) -> str:
    """The suite of a lab."""
    template = files("lossratio.commands").joinpath("new_lab.robot").read_text(encoding="utf-8")
    tag = re.sub(r"[^a-z0-9]+", "", name.lower()) or "lab"
    # In a sentence, a comma separates what four blanks separate in a suite.
    device = f"{kind}{options}".replace("    ", ", ")
    words = {"NAME": name, "DEVICE": device, "KIND": kind, "OPTIONS": options, "TAG": tag}
    return re.sub("|".join(words), lambda found: words[found[0]], template)


def _asked_generator(is_local: bool) -> dict[str, Any]:
    """The generator and its two ports, as fields of their node."""
    rate = click.prompt(
        "The most frames per second that the generator can send per port",
        default="100 kfps",
        type=FRAME_RATE,
    )
    ports = _interfaces(
        "Interface of the traffic generator", ("tg0", "tg1") if is_local else ("eth1", "eth2")
    )
    catch_up = {"catch_up": "5 ms"} if is_local else {}
    generator = {"kind": "afpacket", "max_rate": float(rate), **catch_up}
    return {"generator": generator, "interfaces": _linked(ports)}


def _reach(what: str, *, needs_one: bool) -> dict[str, Any]:
    """How to reach a node; empty: there is no way."""
    answer = click.prompt(
        f"Where is {what}? A host name, netns:NAME or container:NAME",
        default=None if needs_one else "",
        show_default=False,
    ).strip()
    if not answer:
        return {}
    way, colon, name = answer.partition(":")
    if colon and way in ("netns", "container"):
        return {way: name}
    user = click.prompt("User to log in as", default="root")
    return {"host": answer, "username": user, **({} if user == "root" else {"sudo": True})}


def _interfaces(what: str, usual: tuple[str, str]) -> tuple[dict[str, str], ...]:
    return tuple(
        {
            "name": _ask(
                f"{what} in the {side}", name, is_interface_name, "a name in Linux such as eth1"
            )
        }
        for side, name in zip(_SIDES, usual, strict=True)
    )


def _ask(question: str, usual: str | None, accepts: Callable[[str], Any], form: str) -> str:
    while True:
        answer = str(click.prompt(question, default=usual)).strip()
        if accepts(answer):
            return answer
        click.echo(f"{answer!r} cannot be used. Enter {form}.", err=True)


def _job(name: str) -> dict[str, Any]:
    return {
        "format": "lossratio-job/1",
        "name": name,
        "description": "Goals like those of FD.io CSIT. For a first try, GOALS: quick takes a tenth of the time.",
        "topologies": [f"{name}.yaml"],
        "tests": [
            {"suites": [f"{name}.robot"], "include": ["ndrpdr"], "frame_sizes": ["64B", "IMIX"]}
        ],
        "variables": {"GOALS": "csit"},
    }


def _check_new(paths: Iterable[Path]) -> None:
    """Refuses to overwrite files: they are written all or not at all."""
    existing = [str(path) for path in paths if path.exists()]
    if existing:
        raise TopologyError(
            f"These files already exist: {', '.join(existing)}. Remove them, or choose another name or directory."
        )
