"""The `lossratio` command: its commands by group, each imported when it is used, and how errors end it."""

import sys
from importlib import import_module

import click

from lossratio.errors import LossRatioError
from lossratio.exit_status import MEANINGS, ExitStatus, status_of_error
from lossratio.shipped import did_you_mean
from lossratio.version import __version__

COMMANDS = {
    "Measure": {
        "demo": (
            "demo:demo",
            "Measure this machine's Linux bridge with real frames, behind a policer whose truth is known.",
        ),
        "run": ("run:run", "Run suites on a testbed, which is reserved for the time of the run."),
        "self-test": ("self_test:self_test", "Find the largest load that the tester itself can send and receive."),
    },
    "Read results": {
        "report": ("report:report", "Report the runs in directories DIR."),
        "compare": ("report:compare", "Compare the tests of run B with the tests of run A."),
        "trend": ("trend:trend", "Report what changed lately in HISTORY, a folder or the URL of an archive."),
        "ack": ("trend:ack", "Explain the open alarms of HISTORY: WHY is known, and they are alarms no more."),
        "site": (
            "site:site",
            "Write a site with the trends, coverage and comparisons of HISTORY, which needs no server.",
        ),
        "replay": ("replay:replay", "Compute the result of a search again from the trials in its JOURNAL."),
        "repair": ("report:repair", "Save the good part of damaged journals and results."),
        "csit": ("report:csit", "Export the results of the run in DIR for FD.io CSIT's dashboards, below FOLDER."),
    },
    "Testbeds": {
        "doctor": ("doctor:doctor", "Show what this machine can do, and what it lacks for the rest."),
        "init": ("init:init", "Write topology, suite and job of a new lab to DIRECTORY."),
        "check": ("testbed:check", "Check a topology FILE, and draw what it describes."),
        "import": ("lab:import_command", "Write a topology file for the lab in FILE, which another TOOL made."),
        "testbed": ("testbed:testbed", "Build and take down local testbeds: network namespaces of this machine."),
        "reserve": ("reserve:reserve", "Reserve the testbed of a topology FILE for some time, e.g. to work by hand."),
        "release": ("reserve:release", "End the reservation of the testbed of a topology FILE."),
        "status": ("reserve:status", "Show who has reserved the testbeds of topology FILEs."),
    },
    "Nights and builds": {
        "plan": ("night:plan", "Show how long a night will take, and spread its tests over equal testbeds."),
        "csit-coverage": (
            "night:csit_coverage_command",
            "Show which tests of FD.io CSIT's jobs in DIRECTORY are in our suites.",
        ),
        "matrix": ("night:matrix", "Print the jobs of a nightly as JSON for CI systems, one for each testbed."),
        "send": ("night:send", "Send the runs in directories DIR to the archive."),
        "fetch": ("night:fetch", "Fetch the newest runs of a testbed from the archive into DIR."),
        "ab": ("builds:ab", "Compare two builds of the SUT: measure TEST on both until the verdict is clear."),
        "bisect": ("builds:bisect", "Find the revision that changed the throughput of TEST."),
    },
    "Serve": {
        "otg-serve": (
            "otg:otg_serve",
            "Serve the Open Traffic Generator's REST interface, with INTERFACEs of this machine as ports.",
        )
    },
    "Study": {"study": ("study:study", "Compare search algorithms side by side on simulated SUTs.")},
}
"""Module, attribute and first line of each command's help, by group and name. To print the help imports no command."""

_PLACES = {name: place for group in COMMANDS.values() for name, (place, _) in group.items()}


class _Commands(click.Group):
    """The commands, which need different and mostly heavy libraries."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for group in COMMANDS.values() for name in group]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _PLACES:
            return None
        module, _, attribute = _PLACES[cmd_name].partition(":")
        command: click.Command = getattr(import_module(f"lossratio.commands.{module}"), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in _PLACES and not args[0].startswith("-"):
            ctx.fail(f"No such command {args[0]!r}.{did_you_mean(args[0], self.list_commands(ctx))}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, group in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl([(name, line) for name, (_, line) in group.items()])
        with formatter.section("Exit statuses"):
            formatter.write_dl([(str(int(status)), meaning) for status, meaning in MEANINGS.items()])


@click.group(cls=_Commands)
@click.version_option(__version__, prog_name="lossratio")
def commands() -> None:
    """Benchmark the data plane throughput of software networking."""


def main() -> None:
    """Runs a command; an error is one message and the exit status that it means, never a traceback."""
    try:
        commands(standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(ExitStatus.INTERRUPTED)
    except click.ClickException as error:
        error.show()
        sys.exit(ExitStatus.BAD_INPUT)
    except LossRatioError as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(status_of_error(error))
    except OSError as error:
        if error.filename is None:
            raise
        click.echo(f"Error: {error.filename}: {error.strerror}.", err=True)
        sys.exit(status_of_error(error))
