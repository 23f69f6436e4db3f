"""The command ``lossratio lab doctor``: what this machine can do, and what it lacks for the rest."""

import os
import platform
import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import click

from lossratio.commands.parameters import command
from lossratio.errors import DutError
from lossratio.plugins import how_to_install

_EXTRAS = {
    "alerts": ("apprise",),
    "bench": ("joblib", "pyarrow", "duckdb", "jumpavg"),
    "history": ("pyarrow", "duckdb", "fsspec"),
    "otg": ("snappi",),
    "s3": ("s3fs",),
    "snmp": ("pysnmp",),
    "trex": ("trex_stl_lib",),
}
_TOOLS = {
    "nft": "rules and policers of Linux devices",
    "ethtool": "facts about interfaces and their offloads",
    "perf": "processor counters in telemetry",
    "git": "bisection between revisions",
}

_Line = tuple[str, str | None]
"""A thing that the machine can do, and what is missing for it, with the remedy; None: the machine can do it."""


@command()
def doctor() -> None:
    """Show what this machine can do, and what to install for the rest.

    Nothing is installed or changed. For a simulated or a local testbed, only the first two lines matter. What a node of
    a lab needs depends on its part: `lossratio check FILE --connect` looks at the nodes themselves.

    Exit status: always 0.
    """
    click.echo(
        f"Python {platform.python_version()}, {platform.system()} {platform.release()}, {os.cpu_count()} CPUs"
    )
    for about, lacks in _lines():
        click.echo(
            f"{'yes' if lacks is None else 'no':>4}  {about}" + (f": {lacks}" if lacks else "")
        )


def _lines() -> Iterator[_Line]:
    from lossratio.bpf import why_impossible
    from lossratio.testbed.local import is_privileged, why_unavailable

    yield ("simulated testbeds", None)
    yield ("local testbeds of network namespaces", why_unavailable())
    yield (
        "namespaces without a user namespace (root)",
        None if is_privileged() else "run it as root",
    )
    yield ("generator and receiver inside the kernel (xdp)", why_impossible())
    yield from _devices()
    for program, about in _TOOLS.items():
        yield (f"{program}: {about}", None if _has(program) else "not installed")
    yield ("TREX_HOME: the traffic generator TRex", _home_lacks("TREX_HOME", "_t-rex-64"))

    for extra, modules in _EXTRAS.items():
        missing = [module for module in modules if find_spec(module) is None]
        way_out = f"{', '.join(missing)} not installed: {how_to_install(extra)}"
        yield (f"extra {extra}", way_out if missing else None)

    there = find_spec("lossratio_study") is not None
    pip = f"{Path(sys.executable).name} -m pip install"
    way_out = f"not installed: {pip} lossratio-study (in a clone: {pip} ./study)"
    yield ("lossratio-study: search algorithms side by side", None if there else way_out)


def _devices() -> Iterator[_Line]:
    """What each kind of DUT says about its software; nothing for kinds that need none."""
    from lossratio.dut import dut_kinds, load_kind

    for kind in dut_kinds():
        try:
            software = load_kind(kind).software
        except DutError as error:
            yield (f"the kind of DUT {kind}", str(error))
            continue

        if software is not None and software.home:
            yield (
                f"{software.home}: {software.title} as a device",
                _home_lacks(software.home, software.program),
            )
        elif software is not None:
            if software.package:
                way_out = f": apt install {software.package}"
            else:
                way_out = f". {software.how}"

            if _has(software.program):
                lacks = None
            else:
                lacks = f"{software.program} is not installed{way_out}"

            yield (f"{software.title} as a device", lacks)


def _has(program: str) -> bool:
    return (
        shutil.which(
            program, path=os.pathsep.join((os.environ.get("PATH", ""), "/usr/sbin", "/sbin"))
        )
        is not None
    )


def _home_lacks(variable: str, program: str) -> str | None:
    home = os.environ.get(variable)
    if not home:
        return "the variable is not set on this machine"
    if os.access(Path(home, program), os.X_OK):
        return None
    return f"{home} has no program {program}"
