"""The command ``lossratio between``: what two hosts can send to each other, from nothing but their names."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import yaml

from lossratio.commands.parameters import (
    DURATION,
    FILE_TO_WRITE,
    FRAME_RATE,
    NEW_IN_RESULTS,
    LocalPath,
    OneOf,
    argument,
    command,
    option,
    say,
)
from lossratio.files import check_directory, shell_word
from lossratio.values import ExitStatus

if TYPE_CHECKING:
    from lossratio.measurements.open_testbed import OpenTestbed
    from lossratio.measurements.throughput import ThroughputResult
    from lossratio.results import TestResult
    from lossratio.testbed import Host

_PROFILES = {4: "ethip4-udp-hosts", 6: "ethip6-udp-hosts"}
_TOPOLOGY = "topology.yaml"
_QUICK = "quick"
_MIN_LOAD = 100.0
"""The smallest load of searches, in frames per second, because a policer may pass little."""
_LATENCY_SHARES = (0.9, 0.5, 0.1)
_LATENCY_SECONDS = 1.0


@command()
def between(
    client: str = argument("CLIENT"),
    server: str = argument("SERVER"),
    *,
    frame_size: tuple[str, ...] = option(
        "A frame size in bytes, with FCS; you can give this option several times.",
        default=("128",),
        metavar="SIZE",
    ),
    goals: str | None = option(
        "The goals: quick (the default) takes seconds per size, csit uses the goals of FD.io CSIT.",
        type=OneOf([_QUICK, "csit"]),
    ),
    soak: float | None = option(
        "Search for the critical load instead, for this long, e.g. 2min.", type=DURATION
    ),
    latency: bool = option("Measure latency, too, at 90, 50 and 10 % of the load found."),
    one_way: bool = option("Send from CLIENT to SERVER only."),
    per_direction: bool = option(
        "Also find the highest load of each direction by itself, while the other direction is "
        "offered the same load."
    ),
    max_load: float = option(
        "The largest load, in frames per second each way.", type=FRAME_RATE, default="100 kfps"
    ),
    hold: float = option(
        "How long to wait for frames after a trial.", type=DURATION, default="100 ms"
    ),
    catch_up: float | None = option(
        "How much overdue traffic an end sends in one burst after a stall, e.g. 50ms. Default: 1ms.",
        type=DURATION,
    ),
    translates: bool = option(
        "The network translates addresses (NAT): count frames without comparing them."
    ),
    to: str | None = option(
        "The address of SERVER to send to, if it has several.", metavar="ADDRESS"
    ),
    key_file: Path | None = option(
        "The private key to log in to hosts.",
        metavar="FILE",
        type=LocalPath(path_type=Path, exists=True, dir_okay=False),
    ),
    known_hosts: Path | None = option(
        "The known_hosts file with the hosts' keys.",
        metavar="FILE",
        type=LocalPath(path_type=Path, exists=True, dir_okay=False),
    ),
    python: str = option(
        "The Python on hosts: 3.8 or later. With numpy, they send more, examine frames, and measure latency.",
        default="python3",
        metavar="PROGRAM",
    ),
    save: Path | None = option(
        "Write the topology file here without measuring.", metavar="FILE", type=FILE_TO_WRITE
    ),
    output: Path | None = option(NEW_IN_RESULTS, metavar="DIR"),
    resume: Path | None = option(
        "Continue the interrupted run in DIR with the trials of its searches.", metavar="DIR"
    ),
) -> None:
    """Measure the network between CLIENT and SERVER, without a topology file.

    Both are namespaces of this machine (NAME or netns:NAME), its containers (container:NAME), pods of Kubernetes
    (pod:NAMESPACE/NAME), or hosts that are reached by SSH ([USER@]HOST[:PORT], or a name of ~/.ssh/config). Both keep
    their own addresses and routes, and each counts the frames that the other sends. Nothing between them is changed.

    Exit status: 0 measured, 1 the network failed, 2 bad input, 69 an end failed or the cause is unknown, 75 an end is
    reserved for somebody else, 130 the user stopped it.
    """
    from lossratio.testbed import Host, find_host_path
    from lossratio.traffic import load_profile

    # Table: what does not go together, and the way out.
    conflicts = (
        (latency and soak, "--latency is measured after a search: leave --soak out."),
        (
            per_direction and (one_way or soak),
            "--per-direction needs a search in both directions: leave --one-way and --soak out.",
        ),
        (goals and soak, "--soak has no goals: leave --goals out."),
        (
            resume and (output or save),
            "--resume names the directory: leave --output and --save out.",
        ),
        (
            max_load <= _MIN_LOAD,
            f"--max-load must be above {_MIN_LOAD:g} fps, the smallest load of the search.",
        ),
    )
    for is_conflict, way_out in conflicts:
        if is_conflict:
            raise click.UsageError(way_out)
    asked: dict[str, Any] = {"min_load": _MIN_LOAD}
    asked |= {"goals": goals or _QUICK} if soak is None else {"timeout": soak}
    # Mistakes are found before anybody logs in.
    _check_files(save, output, resume)
    for size in frame_size:
        _check_request(size, asked)
    given = {"key_file": key_file, "known_hosts": known_hosts}
    # The topology file is in another directory.
    ssh = {name: os.path.realpath(file) for name, file in given.items() if file is not None}
    ends = tuple(Host.named(text, ssh) for text in (client, server))
    # Files refuse small rates without a unit.
    max_rate = f"{max_load:.12g} fps"
    generator = {"kind": "afpacket", "max_rate": max_rate, "python": _python(ends, python)}
    if catch_up is not None:
        generator["catch_up"] = f"{catch_up:.12g} s"
    _check_generator(generator)
    path = find_host_path(*ends, to=to)
    text = yaml.safe_dump(path.topology(generator), sort_keys=False, width=120)
    say(f"From {path.client}")
    say(f"to   {path.server}.")
    if path.others:
        say(
            f"Not measured: {', '.join(path.others)} of {path.server.host.name}. To choose an address: --to ADDRESS"
        )

    if save is not None:
        _save(save, text)
        return
    profile = _PROFILES[path.version]
    for size in frame_size:
        # A wrong size is an error before there is a directory.
        load_profile(profile, frame_size=size)
    if resume is None:
        directory = _begun(output, f"between-{path.client.host.name}-{path.server.host.name}", text)
    else:
        directory = _continued(resume, text)

    traffic: dict[str, Any] = {"profile": profile, "bidirectional": False if one_way else None}
    box: dict[str, Any] = {"hold": hold}
    if translates:
        box["translates"] = True
    status = ExitStatus.PASSED
    with _said_how_to_continue(directory), _opened(directory, box, resume) as testbed:
        for size in frame_size:
            if soak is not None:
                with _live() as on_progress:
                    load = testbed.critical_load(size, on_progress=on_progress, **traffic, **asked)
                _show(load)
                continue
            with _live() as on_progress:
                found = testbed.ndr_pdr(
                    size, per_direction=per_direction, on_progress=on_progress, **traffic, **asked
                )
            _show(found)
            if all(report.bounds[0] is None for report in found.goals):
                status = ExitStatus.FAILED
            if latency:
                _measure_latency(testbed, found, size, traffic)
    _write_page(directory)
    sys.exit(int(status))


@contextmanager
def _said_how_to_continue(directory: Path) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        say(f"To continue, repeat the command with --resume {shell_word(directory)}", err=True)
        raise


def _opened(directory: Path, box: dict[str, Any], resume: Path | None) -> "OpenTestbed":
    from lossratio.measurements.open_testbed import open_testbed

    return open_testbed(
        directory / _TOPOLOGY, dut="black_box", options=box, results=directory, resume=resume
    )


def _measure_latency(
    testbed: "OpenTestbed", found: "ThroughputResult", size: str, traffic: dict[str, Any]
) -> None:
    from lossratio.errors import SearchError
    from lossratio.measurements.latency import points_of

    try:
        *points, _ = points_of(found, shares=_LATENCY_SHARES)
    except SearchError as error:
        say(f"Latency is not measured: {error}")
        return
    with _live() as on_progress:
        measured = testbed.latency(
            size, on_progress=on_progress, **traffic, points=points, duration=_LATENCY_SECONDS
        )
    _show(measured)


def _live() -> "AbstractContextManager[Callable[[Any], None]]":
    """Shows the progress of a measurement on standard error."""
    from lossratio.measurements import live_on

    return live_on(sys.stderr, lambda line: say(line, err=True))


def _show(result: "TestResult") -> None:
    """Shows what was found, each number once."""
    from lossratio.results import SHOWN, as_text, in_columns, in_short, notes_of

    say(in_columns(as_text(in_short(notes_of(result, (), *SHOWN)))))


def _write_page(directory: Path) -> None:
    from lossratio.report import PAGE, write_reports

    for page in write_reports(directory, [PAGE]):
        say(f"The page: {page}")
    say(f"The topology file for further runs: {directory / _TOPOLOGY}")


def _python(ends: "tuple[Host, ...]", given: str) -> str:
    """The Python interpreter of both ends: the running one, if both ends are on this machine."""
    if any("host" in end.fields or "pod" in end.fields for end in ends):
        return given
    return sys.executable


def _check_files(save: Path | None, output: Path | None, resume: Path | None) -> None:
    """Checks the file or the directory that is written.

    Raises:
        click.UsageError: If it has something else, or nothing to continue.
        OSError: If nothing can be written to the directory of a new run.
    """
    if save is not None and save.exists():
        raise click.UsageError(f"{save} already exists. Name another file, or remove it.")
    if resume is not None and not (resume / _TOPOLOGY).is_file():
        raise click.UsageError(f"There is no run to continue in {resume}: it has no {_TOPOLOGY}.")
    if output is None:
        return

    check_directory(output, "--output")
    # A run that measured nothing leaves at most the topology file.
    if output.is_dir() and any(path.name != _TOPOLOGY for path in output.iterdir()):
        raise click.UsageError(
            f"{output} has the results of another run. Name another directory, or continue that run: --resume "
            f"{shell_word(output)}"
        )


def _check_request(size: str, asked: dict[str, Any]) -> None:
    """Checks a frame size and the arguments of a search. A path of IPv6 may need larger frames.

    Raises:
        LossRatioError: If one of them is wrong.
    """
    from lossratio.measurements.soak import SoakRequest
    from lossratio.measurements.throughput import SearchRequest
    from lossratio.traffic import load_profile

    kind = SoakRequest if "timeout" in asked else SearchRequest
    kind(profile=load_profile(_PROFILES[4], frame_size=size), **asked)


def _check_generator(generator: dict[str, Any]) -> None:
    """Checks the settings of the generator that are options here.

    Raises:
        click.UsageError: If one of them is wrong.
    """
    from pydantic import ValidationError

    from lossratio.topology import AfPacketGenerator
    from lossratio.values import in_words

    try:
        AfPacketGenerator.model_validate(generator)
    except ValidationError as error:
        wrong = error.errors()[0]
        name = str(wrong["loc"][0]).replace("_", "-")
        raise click.UsageError(f"--{name}: {in_words(wrong)}.") from error


def _save(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")
    say(f"Written: {file}. Next: lossratio check {shell_word(file)}")


def _begun(output: Path | None, name: str, topology: str) -> Path:
    """The directory of a new run, with its topology file.

    Args:
        output: The directory that the user names; None: a new directory.
        name: The name of a new directory.
        topology: The contents of the topology file.
    """
    from lossratio.runs import new_directory

    directory = output or new_directory(name)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / _TOPOLOGY).write_text(topology, encoding="utf-8")
    return directory


def _continued(directory: Path, topology: str) -> Path:
    """The directory of an interrupted run, which must have measured the same path."""
    file = directory / _TOPOLOGY
    if file.read_text(encoding="utf-8") != topology:
        raise click.UsageError(
            f"The run in {directory} cannot be continued: the path or the options have changed since it began "
            f"({file}). Start a new run without --resume."
        )
    return directory
