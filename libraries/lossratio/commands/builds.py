"""The commands ``lossratio builds ab`` and ``lossratio builds bisect``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lossratio.commands.parameters import (
    DURATION,
    FILE_TO_WRITE,
    FRAME_RATE,
    ONLY_NAME,
    ONLY_QUANTITY,
    ONLY_TAG,
    SUITE,
    TESTBED,
    PerCent,
    WholeNumber,
    argument,
    command,
    option,
    say,
)
from lossratio.errors import BuildError
from lossratio.files import check_directory
from lossratio.values import ExitStatus

if TYPE_CHECKING:
    from lossratio.runs import builds

_MOST_RUNS, _MOST_TRIALS = 40, 2000


def _in_words(setting: object) -> str | list[str]:
    """A setting as it is written in a file."""
    if isinstance(setting, tuple):
        return [str(item) for item in setting]
    return str(setting)


@dataclass(frozen=True)
class _Measured:
    """The arguments and options that both commands have."""

    suites: tuple[Path, ...] = argument("[TEST...]", type=SUITE)
    topology: Path = option(TESTBED, metavar="FILE|NAME")
    tests: tuple[str, ...] = option(ONLY_NAME, "--test", metavar="NAME")
    include: tuple[str, ...] = option(ONLY_TAG, metavar="TAG")
    quantity: str | None = option(ONLY_QUANTITY, metavar="NAME")
    least_change: float = option(
        "Ignore changes below this percentage.",
        type=PerCent(min=0.0, max=100.0, min_open=True, max_open=True),
        default=1.0,
    )
    limit: int | None = option(
        "Measure at most this many times. Default: 40; with --in-place: 2,000.",
        type=WholeNumber(min=8),
        default=None,
    )
    in_place: str | None = option(
        "Instead of TEST: keep the testbed open, and measure with ten trials of frames of this size.",
        metavar="SIZE",
    )
    profile: str = option(
        "The traffic profile for --in-place.", default="ethip4-udp", metavar="NAME|FILE"
    )
    dut: str | None = option(
        "The kind of the DUTs for --in-place. They are restarted for each build.", metavar="KIND"
    )
    options: tuple[str, ...] = option("An option of that kind.", "--option", metavar="NAME=VALUE")
    max_load: float | None = option(
        "The load of --in-place, e.g. '1 Mfps'.", metavar="RATE", type=FRAME_RATE
    )
    trial_duration: float = option("The duration of its trials.", default="0.1 s", type=DURATION)
    output: Path = option(
        "Directory for the runs. An existing comparison is continued.", metavar="DIR"
    )

    @property
    def conditions(self) -> dict[str, Any]:
        """The settings that must be the same when a comparison is continued."""
        names = ["suites", "topology", "tests", "include", "quantity", "least_change"]
        if self.in_place is not None:
            names += ["in_place", "profile", "dut", "options", "max_load", "trial_duration"]
        values = {name: getattr(self, name) for name in names}
        return {name: _in_words(value) for name, value in values.items()}

    @contextmanager
    def kept(self) -> Iterator[None]:
        """If the user stops the measurements, says how to continue."""
        try:
            yield
        except KeyboardInterrupt:
            say(
                f"The measurements so far are kept in {self.output}. To continue, repeat the command.",
                err=True,
            )
            raise

    @property
    def most(self) -> int:
        return self.limit or (_MOST_RUNS if self.in_place is None else _MOST_TRIALS)

    def bench(self) -> builds.BuildBench | builds.TrialBench:
        """Sets builds up, and measures them."""
        from lossratio.runs import RunRequest, builds

        check_directory(self.output, "--output")
        if bool(self.suites) is (self.in_place is not None):
            raise click.UsageError("Name suites to measure, or a frame size with --in-place.")

        if self.in_place is not None:
            wrong = [text for text in self.options if "=" not in text]
            if wrong:
                raise click.UsageError(f"--option {wrong[0]}: write it as NAME=VALUE.")

            request = builds.InPlace(
                topology=self.topology,
                frame_size=self.in_place,
                profile=self.profile,
                dut=self.dut,
                options=dict(text.split("=", 1) for text in self.options),
                max_load=self.max_load,
                duration=self.trial_duration,
            )
            return builds.TrialBench(request, self._note)

        options = tuple(part for name in self.tests for part in ("--test", name))
        run = RunRequest(
            (self.topology,), self.suites, self.include, options, purpose="builds compared"
        )
        return builds.BuildBench(run, self.quantity, self._note)

    def _note(self, caveat: str) -> None:
        say(f"Note: {caveat}", err=True)


@command()
def ab(
    *,
    set_up_a: str = option(
        "Command that sets up build A, e.g. the parent of a patch.", metavar="COMMAND"
    ),
    set_up_b: str = option("Command that sets up build B, e.g. the patch.", metavar="COMMAND"),
    certainty: float = option(
        (
            "The confidence, in per cent: if builds are equal, at least this share of comparisons "
            "finds no difference."
        ),
        type=PerCent(min=50.0, max=100.0, max_open=True),
        default=95.0,
    ),
    markdown: Path | None = option(
        "Also write the verdicts as a comment for a pull request.",
        metavar="FILE",
        type=FILE_TO_WRITE,
    ),
    measured: _Measured,
) -> None:
    """Compare two builds of the SUT: measure TEST on both until the verdict is clear.

    Each TEST is a suite, or a directory of suites. The builds are measured in pairs in random order. Their set-up
    commands run in a shell before each measurement.

    Exit status: 0 if B is not slower, 3 if B is slower, 4 if undecided at the limit, or the status of the run that
    failed.
    """
    from lossratio.report import write_report
    from lossratio.results import in_columns
    from lossratio.runs import builds

    bench = measured.bench()
    commands = {builds.Build.A.value: set_up_a, builds.Build.B.value: set_up_b}
    record = builds.BuildRecord(
        measured.output, {"set_up_a": set_up_a, "set_up_b": set_up_b, **measured.conditions}
    )

    def measure(build: str, directory: Path) -> Any:
        if not bench.set_up(commands[build], build):
            raise BuildError(
                f"The set-up command of build {build} ended with the exit status for a build that cannot be measured. "
                "Choose another build.",
                ExitStatus.FAILED,
            )
        return bench.measure(directory)

    request = builds.AbRequest(measured.least_change / 100, measured.most, certainty / 100)
    with measured.kept(), closing(bench):
        results = builds.compare_builds(request, record, measure, say)
    for name, result in results.items():
        say(in_columns(builds.describe_comparison(name, result)))
    if markdown is not None:
        write_report(markdown, builds.comparison_comment(results, request))
    verdicts = {result.verdict for result in results.values()}
    if builds.ComparisonVerdict.SLOWER in verdicts:
        sys.exit(ExitStatus.REGRESSION)
    if builds.ComparisonVerdict.UNDECIDED in verdicts:
        sys.exit(ExitStatus.UNDECIDED)


@command()
def bisect(
    *,
    good: str = option("A revision without the change.", metavar="REV"),
    bad: str = option("A later revision with the change.", metavar="REV"),
    repository: Path = option(
        "The git repository. Default: the current directory.",
        metavar="DIR",
        show_default=False,
        default=Path(),
    ),
    set_up: str = option(
        "Command that sets up the revision in $LOSSRATIO_REVISION. Exit status 125: it cannot be measured.",
        metavar="COMMAND",
    ),
    measured: _Measured,
) -> None:
    """Find the revision that changed the throughput of TEST.

    Measurements are repeated as often as the noise requires.

    Exit status: 0 if the revision is found, 1 if no change matters, 4 if undecided at the limit, or the status of the
    run that failed.
    """
    from lossratio.results import in_columns
    from lossratio.runs import builds
    from lossratio.values import counted

    bench = measured.bench()
    revisions = builds.revisions_between(good, bad, repository)
    asked = {"good": revisions[0], "bad": revisions[-1], "set_up": set_up, **measured.conditions}
    record = builds.BuildRecord(measured.output, asked)

    def measure(revision: str, directory: Path) -> Any:
        if bench.set_up(set_up, revision, "LOSSRATIO_REVISION"):
            return bench.measure(directory)
        return None

    search = builds.Bisection(
        revisions, least_change=measured.least_change / 100, limit=measured.most
    )
    say(f"{counted(len(revisions) - 1, 'revision')} could have changed the throughput.")
    with measured.kept(), closing(bench):
        result = builds.bisect(search, record, measure, say)

    answer = builds.describe_bisection(result, builds.subject_of(repository))
    say(in_columns(answer))
    if result.verdict is builds.BisectionVerdict.UNDECIDED:
        sys.exit(ExitStatus.UNDECIDED)
    if result.verdict is not builds.BisectionVerdict.FOUND:
        sys.exit(ExitStatus.FAILED)
