"""The node that a DUT is on: runs commands there, reads its files, and raises the DUT's errors."""

import json
import re
import shlex
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, TypeVar

from lossratio.errors import DutError
from lossratio.nodes.facts import GatheredFacts, gather_facts
from lossratio.nodes.session import COMMAND_SECONDS, CommandResult, CommandRunner

SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The search path of programs on nodes: users other than root may lack the sbin directories in theirs."""
# Messages should be in one language.
_ENVIRONMENT = ("env", "LC_ALL=C", f"PATH={SEARCH_PATH}")
NOT_FOUND = 127
"""Exit status of a command whose program the node does not have."""
_LONGEST_SHOWN = 400

KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")


class Will:
    """Keeps the commands that undo the changes to a node, in case the controller dies before it runs them.

    This base class keeps nothing: after the death of the controller, the changes stay.
    """

    def add(self, command: Sequence[str], stdin: str | None) -> None:
        """Adds a command, which will run before all earlier ones."""

    def drop_last(self) -> None:
        """Removes the command that was added last."""


class DutNode:
    """A DUT's node, whose `will` gets the command that undoes a change before the change is made."""

    def __init__(self, session: CommandRunner) -> None:
        self.will = Will()
        self._session = session

    @property
    def name(self) -> str:
        """The node's name in the topology."""
        return self._session.name

    def error(self, problem: str) -> DutError:
        """The error for a problem on the node."""
        return DutError(f"{self.name}: {problem}")

    def facts(self) -> GatheredFacts:
        """The node's facts."""
        return gather_facts(self._session)

    def attempt(
        self, *command: str, stdin: str | None = None, timeout: float = COMMAND_SECONDS
    ) -> CommandResult:
        """Runs a command that may fail, but must end in time.

        Args:
            command: The program and its arguments, one string each.
            stdin: What it reads from its standard input; None: nothing.
            timeout: Seconds that it may take in all.

        Raises:
            NodeError: If it cannot be started or does not end in time, or the connection is lost.
        """
        return self._session.run(*_ENVIRONMENT, *command, timeout=timeout, check=False, stdin=stdin)

    def run(self, *command: str, stdin: str | None = None, timeout: float = COMMAND_SECONDS) -> str:
        """Runs a command that must succeed in time, and returns its standard output.

        Args:
            command: The program and its arguments, one string each.
            stdin: What it reads from its standard input; None: nothing.
            timeout: Seconds that it may take in all.

        Raises:
            DutError: If its exit status is not 0.
            NodeError: If it cannot be started or does not end in time, or the connection is lost.
        """
        result = self.attempt(*command, stdin=stdin, timeout=timeout)
        if result.exit_status != 0:
            raise self.error(f"{shown(command, stdin)} failed: {reason(result)}.")
        return result.stdout

    def json(self, *command: str) -> Any:
        """Runs a command that must succeed and writes JSON, and returns the data; None if it writes nothing.

        Raises:
            DutError: If its exit status is not 0, or it writes something that is not JSON.
            NodeError: If it cannot be started or does not end in time, or the connection is lost.
        """
        text = self.run(*command)
        try:
            if text.strip():
                return json.loads(text)
            return None
        except ValueError as cause:
            raise self.error(f"{shown(command)} did not write JSON: {cause}.") from cause

    def parse_json_lines(self, text: str) -> list[Any]:
        """Reads JSON data, one value per line.

        Raises:
            DutError: If a line is not JSON.
        """
        try:
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        except ValueError as cause:
            raise self.error(f"not JSON: {text[:_LONGEST_SHOWN]!r}: {cause}.") from cause

    def find(self, what: str, name: KeyT, reported: Mapping[KeyT, ValueT]) -> ValueT:
        """The node's report about a part of the DUT's set-up.

        Raises:
            DutError: If the report does not have it.
        """
        if name not in reported:
            there = ", ".join(sorted(map(str, reported))) or "none"
            raise self.error(
                f"{what} {name} no longer exists. There are: {there}. Tear the DUT down and set it up again."
            )
        return reported[name]

    def read_files(self, *paths: str, under: str | None = None) -> dict[str, str]:
        """Reads small text files by path, without the last line feed; missing and empty files are left out.

        If `under` is given, files with these names are looked for below that directory, at any depth.
        """
        if under:
            where = [f"--include={path}" for path in paths] + ["-r", under]
        else:
            where = ["--", *paths]

        # A path may itself contain colons, as paths of cards in /sys do.
        named = re.compile(rf"(.*?{'|.*?'.join(map(re.escape, paths))}):(.*)" if paths else r"(?!)")
        texts: dict[str, list[str]] = {}
        for line in self.attempt("grep", "-sH", "", *where).stdout.splitlines():
            found = named.fullmatch(line)
            if found is not None:
                texts.setdefault(found[1], []).append(found[2])
        return {path: "\n".join(lines) for path, lines in texts.items()}


def shown(command: Sequence[str], stdin: str | None = None) -> str:
    """A command line for people, with its standard input."""
    line = shlex.join(command)
    if stdin is None:
        return line
    given = stdin.strip()
    if len(given) > _LONGEST_SHOWN:
        given = f"{given[:_LONGEST_SHOWN]}... ({len(given)} characters)"
    return f"{line} <<< {shlex.quote(given)}"


def reason(result: CommandResult) -> str:
    """Why a command failed, in its own words."""
    lines = [line.strip() for line in result.stderr.splitlines() if line.strip()]
    if lines:
        return " ".join(lines).rstrip(".")
    return f"exit status {result.exit_status}"
