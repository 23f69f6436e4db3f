"""The commands that measure: ``lossratio run``, ``lossratio demo`` and ``lossratio lab self-test``."""

from __future__ import annotations

import re
import shlex
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from lossratio.commands.parameters import (
    DURATION,
    FRAME_RATE,
    NEW_IN_RESULTS,
    ONLY_NAME,
    ONLY_TAG,
    SUITE,
    TESTBED,
    VERBOSE_HELP,
    OneOf,
    OneValueEach,
    argument,
    command,
    option,
)
from lossratio.exit_status import ExitStatus, with_trouble

if TYPE_CHECKING:
    from lossratio.runs import RunOutcome, RunRequest, TestVerdict


_VERBOSE_HELP = f"{VERBOSE_HELP.removesuffix('.')}, and which rule chose each trial."


class _RunCommand(OneValueEach):
    """A command whose options end at ``--``: the rest goes to Robot Framework."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            end = args.index("--")
            args, ctx.obj = args[:end], tuple(args[end + 1 :])
        try:
            return super().parse_args(ctx, _any_of_expanded(args))
        except click.NoSuchOption as error:
            instead = _instead_of(error.option_name, ctx.command_path)
            if instead is None:
                raise
            raise click.UsageError(instead, ctx) from error


_VARIABLES = ("GOALS", "LATENCY", "TELEMETRY", "FRAME_SIZE", "CORES", "NIC")
"""Variables that most suites have."""


def _instead_of(option_name: str, command_path: str) -> str | None:
    """What to write instead of an option that the command does not have; None: not known."""
    variable = option_name.lstrip("-").replace("-", "_").upper()
    if variable in _VARIABLES:
        return f"{option_name} is not an option but a variable of the suites: --variable {variable}:VALUE"

    meant = _option_of_robot(option_name)
    if meant is None:
        return None
    named = f"{option_name} is an option of Robot Framework."
    if meant == "--outputdir":
        return f"{named} Here it is --output DIR."
    return f"{named} Put Robot's options after --: {command_path} SUITE... -- {option_name} ..."


def _option_of_robot(name: str) -> str | None:
    """The long name of a Robot Framework option, which may have capitals and hyphens; None: there is no such option."""
    from robot.run import USAGE

    options = re.findall(r"^ (?:(-[A-Za-z])| {2}) (--[a-z]+)", USAGE, re.MULTILINE)
    known = {short: long for short, long in options if short}
    known |= {long: long for _, long in options}
    plain = name if not name.startswith("--") else f"--{name.replace('-', '').lower()}"
    return known.get(plain)


def _any_of_expanded(args: Sequence[str]) -> list[str]:
    """Puts the option before each of several files after ``--any-of``."""
    expanded: list[str] = []
    is_listing = False
    words = iter(args)
    for word in words:
        if word == "--any-of":
            is_listing = True
            # The first testbed may have any name. If there is none, the parser says so.
            expanded += [word, *islice(words, 1)]
            continue
        is_listing = is_listing and word.endswith((".yaml", ".yml"))
        expanded += ["--any-of", word] if is_listing else [word]
    return expanded


@command(cls=_RunCommand)
def run(
    suites: tuple[Path, ...] = argument("SUITE... [-- ROBOT OPTIONS]", type=SUITE),
    *,
    topology: Path | None = option(TESTBED, metavar="FILE|NAME"),
    any_of: tuple[Path, ...] = option(
        "Several identical testbeds; the run takes the first free one.", metavar="FILE..."
    ),
    job: Path | None = option("A job file, instead of suites.", metavar="FILE"),
    include: tuple[str, ...] = option(ONLY_TAG, "-i", "--include", metavar="TAG"),
    exclude: tuple[str, ...] = option(
        "No tests with this tag, or pattern of tags.", "-e", "--exclude", metavar="TAG"
    ),
    test: tuple[str, ...] = option(ONLY_NAME, "-t", "--test", metavar="NAME"),
    variable: tuple[str, ...] = option(
        "A variable of the suites, e.g. FRAME_SIZE:64B.", "-v", "--variable", metavar="NAME:VALUE"
    ),
    output: Path | None = option(NEW_IN_RESULTS, metavar="DIR"),
    doubts: str | None = option(
        "Whether a doubt about a result is a warning or fails the test.",
        type=OneOf(["warn", "fail"]),
    ),
    wait: float | None = option("Wait at most this long for the testbed, e.g. 2h.", type=DURATION),
    purpose: str = option("The reason, shown to other users of the testbed.", default=""),
    resume: Path | None = option("Continue the run in this directory.", metavar="DIR"),
    force: bool = option("Continue even if conditions have changed."),
    test_timeout: float | None = option(
        "Time limit of each test without its teardown, e.g. 1h.", type=DURATION
    ),
    suite_timeout: float | None = option(
        "Time limit of each suite; the rest of its tests fail.", type=DURATION
    ),
    run_timeout: float | None = option(
        "Time limit of the run; then it stops cleanly.", type=DURATION
    ),
    results: str | None = option(
        "The archive to send the run to, e.g. s3://bucket/path or a folder.", metavar="URL"
    ),
    verbose: bool = option(_VERBOSE_HELP),
) -> None:
    """Run suites on a testbed, and reserve the testbed until the run ends.

    Options after -- are passed to Robot Framework unchanged.

    Exit status: 0 all tests passed, 1 a test failed, 2 bad input, 3 a value has regressed, 69 the infrastructure
    failed, 75 the testbed is not available, 130 the user stopped the run. After 69 and 75, try again.
    """
    from lossratio.runs import Limits, RunRequest, resume as go_on, run as begin

    _check_variables(variable)
    for_robot = click.get_current_context().obj or ()
    named = (_option_of_robot(word.partition("=")[0]) for word in for_robot)
    if output is not None and "--outputdir" in named:
        raise click.UsageError("--outputdir is --output here. Leave one of them out.")
    variables = list(variable)
    if doubts is not None:
        variables.append(f"DOUBTS:{doubts}")
    robot_options = (
        *_repeated("--test", test),
        *_repeated("--exclude", exclude),
        *_repeated("--variable", variables),
        *(("--outputdir", str(output)) if output else ()),
        *(_VERBOSE if verbose else ()),
        *for_robot,
    )
    if results is not None:
        from lossratio.history import Outbox

        # A mistake in the address must be an error before the run, not after it.
        Outbox.of(results)
    limits = Limits(test_timeout, suite_timeout, run_timeout)
    topologies = (*((topology,) if topology else ()), *any_of)
    if resume is not None:
        if topologies or suites or include or job or robot_options:
            raise click.UsageError("A resumed run keeps its suites and options: leave them out.")
        outcome = go_on(resume, force=force, wait=wait or 0.0, limits=limits)
    else:
        if not topologies and job is None:
            raise click.UsageError(
                "Name the testbed, for example --topology local or --topology my-lab.yaml."
            )
        if not suites and job is None:
            raise click.UsageError("Name the suites to run, or --job FILE.")
        outcome = begin(
            RunRequest(
                topologies, suites, include, robot_options, wait or 0.0, purpose, job, limits
            )
        )
    status = outcome.status
    if (
        results is not None
        and outcome.directory is not None
        and not _is_kept(outcome.directory, results)
    ):
        status = with_trouble(status)
    _show_problems(outcome)
    if outcome.error is None:
        _show_skipped(outcome.verdicts)
        click.echo(_summary(outcome.verdicts, int(status), is_dry=outcome.is_dry), err=True)
    sys.exit(int(status))


_VERBOSE = ("--variable", "LOSSRATIO_VERBOSE:yes")
"""The measuring keywords read this variable."""


def _check_variables(variables: Sequence[str]) -> None:
    """Checks the variables of the command line.

    Raises:
        click.UsageError: If one has no value, or a value that no suite takes.
    """
    from lossratio.keywords import problem_with_variable

    for variable in variables:
        name, colon, value = variable.partition(":")
        if not colon:
            raise click.UsageError(
                f"--variable {variable} gives no value. Write NAME:VALUE, e.g. --variable FRAME_SIZE:64B."
            )
        problem = problem_with_variable(name, value)
        if problem is not None:
            raise click.UsageError(f"--variable {variable}: {problem}")


def _show_skipped(verdicts: Sequence[TestVerdict]) -> None:
    """Shows each reason for which tests were skipped, with the number of these tests."""
    from lossratio.units import tests_counted

    skipped = Counter(
        (verdict.skip, verdict.message) for verdict in verdicts if verdict.skip is not None
    )
    for (what, reason), count in skipped.items():
        click.echo(f"{what.capitalize()}, {tests_counted(count)}: {reason}", err=True)


def _repeated(name: str, values: Sequence[str]) -> Iterator[str]:
    for value in values:
        yield from (name, value)


def _show_problems(outcome: RunOutcome) -> None:
    """Shows what went wrong in a run, and how to resume a run that was stopped."""
    for problem in (*outcome.troubles, *filter(None, (outcome.error,))):
        click.echo(f"Error: {problem}", err=True)
    if outcome.status is ExitStatus.INTERRUPTED and outcome.directory is not None:
        way_on = shlex.join(["lossratio", "run", "--resume", str(outcome.directory)])
        click.echo(f"All trials are kept in {outcome.directory}. To continue: {way_on}", err=True)


def _is_kept(directory: Path, url: str) -> bool:
    """Sends a run to the archive, or keeps it on this machine until it can be sent. Returns whether either worked."""
    from lossratio.errors import ArchiveError, ReportError, StorageError
    from lossratio.history import Outbox

    outbox = Outbox.of(url)
    try:
        for problem in outbox.add(directory):
            click.echo(problem, err=True)
        beginning = outbox.beginning()
        outbox.send()
        if beginning is not None:
            click.echo(beginning, err=True)
    except StorageError as error:
        click.echo(f"Not sent: {error}", err=True)
        return False
    except (ArchiveError, ReportError) as error:
        click.echo(f"Not sent: {error} {outbox.way_on()}".rstrip(), err=True)

    return True


def _summary(verdicts: Sequence[TestVerdict], status: int, *, is_dry: bool) -> str:
    from lossratio.units import tests_counted

    passed = sum(verdict.status == "PASS" for verdict in verdicts)
    skipped = Counter(verdict.skip for verdict in verdicts if verdict.skip is not None)
    failures = Counter(verdict.failure.value for verdict in verdicts if verdict.failure is not None)

    did = "passed a dry run, which measures nothing" if is_dry else "passed"
    counts = [f"{passed} of {tests_counted(len(verdicts))} {did}"]
    counts += [f"{count} {what}" for what, count in skipped.items()]
    counts += [f"{count} failed ({kind})" for kind, count in failures.items()]
    return f"lossratio run: {'; '.join(counts)}. Exit status {status}."


_RESOURCES = Path(__file__).parents[1] / "resources"
_JOB = _RESOURCES / "demo.yaml"
_JOB_OF_BUSY_MACHINES = _RESOURCES / "demo-busy.yaml"
_SENDS = {
    "xdp": "from inside the kernel",
    "afpacket": "through packet sockets, because the kernel accepts no XDP programs here",
}
_COULD_NOT = "this machine could not measure it, as shown above."
_OF_THIS_MACHINE = (ExitStatus.FAILED, ExitStatus.INFRASTRUCTURE, ExitStatus.UNAVAILABLE)
_LONGEST_DEMO = 150.0
"""Seconds for the demo's search before it begins again with less traffic. Where all frames leave in time, it takes some
60 s."""


@command()
def demo(
    output: Path | None = option(
        "Directory for the results. Default: a new one, results/demo.", metavar="DIR"
    ),
    *,
    verbose: bool = option(_VERBOSE_HELP),
) -> None:
    """Measure the Linux bridge of this machine with real frames. A policer limits it to a known rate.

    The testbed is made of network namespaces, and is removed at the end. If this machine is too busy to send all
    frames in time, the demo measures again with a lower limit for the bridge. If the machine cannot build the testbed,
    or still cannot measure the bridge, the demo simulates the bridge, and shows the reason.

    Exit status: that of `lossratio run`.
    """
    from lossratio.runs import Limits, RunRequest, check_directory

    check_directory(output or Path("results"), "--output")
    robot_options = (
        *(() if output is None else ("--outputdir", str(output))),
        *(_VERBOSE if verbose else ()),
    )
    real = RunRequest((Path("local"),), (), (), robot_options, job=_JOB, name="demo")
    simulated = replace(real, topologies=(Path("simulated"),))
    slower = replace(real, job=_JOB_OF_BUSY_MACHINES)
    limited = replace(real, limits=Limits(test=_LONGEST_DEMO))
    outcome = measured_or_simulated(limited, simulated, slower=slower)
    _show_problems(outcome)
    if outcome.directory is not None and outcome.status is ExitStatus.PASSED:
        try:
            _show_truth(outcome.directory)
        finally:
            click.echo(
                f"The page of this measurement: {(outcome.directory / 'lossratio.html').resolve()}"
            )
    sys.exit(int(outcome.status))


def measured_or_simulated(
    real: RunRequest, simulated: RunRequest, *, slower: RunRequest | None = None
) -> RunOutcome:
    """Measures on a local testbed. If this machine cannot do that, or is too busy, simulates it, and shows the reason.

    Args:
        real: The measurement on a local testbed.
        simulated: The same measurement on a simulated testbed.
        slower: The same measurement with less traffic, to try first if the machine is too busy, or if a goal's result
            is irregular; None: there is none.
    """
    from lossratio.results import in_columns
    from lossratio.runs import run
    from lossratio.testbed.local import why_unavailable

    reason = why_unavailable()
    outcome = None if reason else run(real)
    if outcome is not None:
        if outcome.status in _OF_THIS_MACHINE:
            reason = outcome.error or _COULD_NOT
        elif slower is not None and outcome.status is ExitStatus.PASSED:
            reason = _irregular_in(outcome.directory)
        if reason and slower is not None:
            click.echo(in_columns(f"Measuring again with a lower limit: {reason}"))
            outcome = run(slower)
            is_measured = outcome.status not in _OF_THIS_MACHINE
            reason = None if is_measured else outcome.error or _COULD_NOT
    if outcome is None or reason:
        click.echo(in_columns(f"Simulated instead of real: {reason}"))
        outcome = run(simulated)
    return outcome


def _irregular_in(directory: Path | None) -> str | None:
    """Why a goal's result of a run is irregular; None: all of them are regular, or there are none."""
    from lossratio.results import RunDirectory

    results: Sequence[Any] = () if directory is None else RunDirectory(directory).results()
    for report in (report for result in results for report in result.goals):
        if report.result is not None and not report.result.regular:
            return f"{report.goal.name} is irregular: {report.result.reason}."
    return None


def _show_truth(directory: Path) -> None:
    """Compares the bounds with the largest load that meets each goal, by the policer. Also shows a real generator."""
    from lossratio.results import RunDirectory
    from lossratio.simulation import sut_from

    results: Sequence[Any] = RunDirectory(directory).results()
    (result,) = results
    if result.conditions is None:
        return

    bridge = result.conditions.duts["DUT1"]
    model = cast(dict[str, Any], bridge.get("modelled_as") or bridge["model"])
    policer = sut_from(model)
    which = "simulated policer" if result.conditions.testbed.is_simulated else "policer"
    limited = f"{model['rate']:,.0f} frames/s and a burst of {model['burst']:,} frames"
    click.echo(f"The true limits of the {which} ({limited}):")

    for goal, found in ((report.goal, report.result) for report in result.goals):
        truth = policer.truth(
            loss_ratio=goal.loss_ratio,
            duration=goal.final_trial_duration_s,
            exceed_ratio=goal.exceed_ratio,
        )
        if (
            truth is None
            or found is None
            or not found.relevant_lower_bound
            or not found.relevant_upper_bound
        ):
            continue
        lower, upper = (
            found.relevant_lower_bound.per_interface_fps,
            found.relevant_upper_bound.per_interface_fps,
        )
        if lower <= truth <= upper:
            verdict = "between the bounds"
        else:
            verdict = "NOT between the bounds"

        click.echo(
            f"  {goal.name}  {truth:,.0f} fps per interface: {verdict}, {lower:,.0f} and {upper:,.0f} fps"
        )

    if result.conditions.generator["kind"] != "simulated":
        _show_generator()


def _show_generator() -> None:
    """Measures how much the generator sends and receives without a DUT."""
    from lossratio.errors import LossRatioError
    from lossratio.measurements.open_testbed import open_testbed

    try:
        with (
            tempfile.TemporaryDirectory() as results,
            open_testbed("local-cable-xdp", results=results) as cable,
        ):
            result = cable.mrr("64B", bidirectional=False, trials=3, trial_duration=0.5)
    except LossRatioError as error:
        click.echo(f"The generator alone could not be measured: {error}")
        return
    if result.mrr is not None and result.conditions is not None:
        way = _SENDS[str(result.conditions.generator["kind"])]
        click.echo(
            f"The generator alone, {way}: {result.mrr.mean.per_interface_fps:,.0f} fps over a cable."
        )


@command()
def self_test(
    topology: Path = argument(),
    *,
    sizes: tuple[str, ...] = option(
        "Frame size; you can give this option several times.",
        "--frame-size",
        default=("64",),
        metavar="SIZE",
    ),
    profile: str = option("The traffic profile.", default="ethip4-udp", metavar="NAME|FILE"),
    one_way: bool = option("Transmit from the first port only."),
    max_load: float | None = option(
        "The largest load to try, e.g. '1 Mfps'.", metavar="RATE", type=FRAME_RATE
    ),
    record: Path | None = option(
        "Write the limits to this file. A topology file can name it as its generator's 'self_test'."
    ),
    output: Path = option(
        "Directory for the results.", default=Path("results/self-test"), metavar="DIR"
    ),
) -> None:
    """Find the largest load that the tester itself can send and receive.

    TOPOLOGY is a file in which a cable joins the ports of the TG, or the name local-cable.
    """
    from lossratio.measurements import Progress, TestPlace
    from lossratio.measurements.self_test import SelfTestRequest, check_cable, find_tester_limit
    from lossratio.results import RunDirectory, TestIdentity
    from lossratio.runs import check_directory
    from lossratio.testbed import open_testbed
    from lossratio.topology import load_topology
    from lossratio.traffic import load_profile

    def tell(progress: Progress) -> None:
        click.echo(
            Progress(progress.number, progress.trial, progress.bounds, None).line(), err=True
        )

    check_directory(output, "--output")
    traffics = [
        load_profile(profile, frame_size=size, bidirectional=False if one_way else None)
        for size in sizes
    ]
    described = load_topology(topology)
    check_cable(topology, described, described.path())
    with open_testbed(topology, traffics=traffics) as testbed:
        for traffic in traffics:
            place = TestPlace(
                TestIdentity(name=f"self-test {traffic.frame_size}", suite=""), RunDirectory(output)
            )
            request = SelfTestRequest(profile=traffic, max_load=max_load, record=record)
            click.echo(find_tester_limit(testbed, request, place, tell))
    if record is None:
        click.echo(
            "To use it: --record FILE, and 'self_test: FILE' with the generator in the topology file."
        )
