"""The command ``lossratio lab doctor``: what this machine can do, and what it lacks for the rest."""

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import click

from lossratio.commands.parameters import command
from lossratio.dut import Tool, dut_kinds, load_kind
from lossratio.errors import DutError
from lossratio.files import how_to_install, how_to_install_package

_EXTRAS = {
    "history": ("trends and an archive of many runs", ("pyarrow", "duckdb", "fsspec")),
    "s3": ("an archive in an S3 object store", ("s3fs",)),
    "trex": ("the client of TRex", ("trex_stl_lib",)),
    "bench": ("benchmarks of searches", ("joblib", "pyarrow", "duckdb", "jumpavg")),
}


class _Line(NamedTuple):
    name: str
    lacks: str | None
    """What to do so that the machine can do it; None: it already can."""
    about: str = ""
    """What it is for."""


@command()
def doctor() -> None:
    """Show what this machine can do, and what to install for the rest.

    Nothing is installed or changed. Only the first group is needed for a first measurement. What a node of a lab needs
    depends on its role: `lossratio check FILE --connect` looks at the nodes themselves.

    Exit status: always 0.
    """
    click.echo(
        f"Python {platform.python_version()}, {platform.system()} {platform.release()}, {os.cpu_count()} CPUs"
    )
    for heading, lines in _groups():
        click.echo(f"\n{heading}:")
        ready = [line.name for line in lines if line.lacks is None]
        if ready:
            click.echo(f"{'yes':>5}  {', '.join(ready)}")

        for line in lines:
            if line.lacks is not None:
                about = f" ({line.about})" if line.about else ""
                click.echo(f"{'no':>5}  {line.name}{about}: {line.lacks}")


def _groups() -> Iterator[tuple[str, list[_Line]]]:
    yield ("For a first measurement", list(_needed()))
    yield ("Optional: more load and more figures on this machine", list(_more_on_this_machine()))
    yield ("Optional: more devices to measure on this machine", list(_devices()))
    trex = _Line("TRex", _home_lacks("TREX_HOME", "_t-rex-64"), "a traffic generator")
    otg = _package(
        "otg", "testers with the Open Traffic Generator API, and a tester for snappi scripts"
    )
    testers = [trex, *_extras("trex"), otg]
    yield ("Optional: testers and devices of a lab", testers)
    git = _program("git", "bisection between revisions", "git")
    yield ("Optional: results of many runs", [*_extras("history", "s3"), git])
    study = _package("study", "search algorithms side by side")
    yield ("Optional: research on search algorithms", [study, *_extras("bench")])


def _needed() -> Iterator[_Line]:
    from lossratio.testbed.local import why_unavailable

    yield _Line("simulated testbeds", None)
    yield _Line("local testbeds of network namespaces", why_unavailable())
    yield _program("nft", "limits of the demo and of Linux devices", "nftables")
    yield _program("ethtool", "settings of the interfaces of Linux devices", "ethtool")


def _more_on_this_machine() -> Iterator[_Line]:
    from lossratio.bpf import why_impossible
    from lossratio.testbed.local import is_privileged

    yield _Line("xdp", why_impossible(), "frames sent and received inside the kernel")
    as_root = None if is_privileged() else "run lossratio as root"
    yield _Line("testbeds without a user namespace", as_root)
    yield _program("perf", "processor counters in telemetry", "linux-perf")


def _devices() -> Iterator[_Line]:
    """What each kind of DUT says about the software that it needs, if it needs any."""
    for kind in dut_kinds():
        try:
            software = load_kind(kind).software
        except DutError as error:
            yield _Line(f"the kind of DUT {kind}", str(error))
            continue

        if software is not None:
            yield _Line(software.title, _device_lacks(software))


def _device_lacks(software: Tool) -> str | None:
    if software.home:
        return _home_lacks(software.home, software.program)
    if _has(software.program):
        return None
    if software.package:
        return f"apt install {software.package}"
    return f"{software.program} is not installed. {software.how}"


def _program(program: str, about: str, package: str) -> _Line:
    return _Line(program, None if _has(program) else f"apt install {package}", about)


def _extras(*names: str) -> Iterator[_Line]:
    for name in names:
        about, modules = _EXTRAS[name]
        missing = any(find_spec(module) is None for module in modules)
        yield _Line(f"extra {name}", how_to_install(name) if missing else None, about)


def _package(name: str, about: str) -> _Line:
    there = find_spec(f"lossratio_{name}") is not None
    way_out = how_to_install_package(name, f"{Path(sys.executable).name} -m pip")
    return _Line(f"lossratio-{name}", None if there else way_out, about)


def _has(program: str) -> bool:
    places = (os.environ.get("PATH", ""), "/usr/sbin", "/sbin")
    return shutil.which(program, path=os.pathsep.join(places)) is not None


def _home_lacks(variable: str, program: str) -> str | None:
    home = os.environ.get(variable)
    if not home:
        return f"if it is installed, set {variable} to the directory that contains {program}"
    if os.access(Path(home, program), os.X_OK):
        return None
    return f"{home} has no program {program}"
