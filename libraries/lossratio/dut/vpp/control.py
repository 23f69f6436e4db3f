"""The command line of a running VPP, and checks of a node's VPP. Only VPP's answers show success or failure."""

import re
import time
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from lossratio.dut.changes import Changes
from lossratio.dut.daemon import Daemon, quoted, write_file
from lossratio.dut.vpp.configuration import VppOptions
from lossratio.dut.vpp.features.feature import Command, Needs, Shown
from lossratio.dut.vpp.reports import parse_interfaces
from lossratio.dut.vpp.startup import Card
from lossratio.nodes import DutNode, reason


@dataclass
class LastCommand:
    """When VPP was last given a command."""

    ended_at: float | None = None
    """Seconds of the monotonic clock; None: there was no command."""

    def note(self) -> None:
        """Notes that a command has just ended."""
        self.ended_at = time.monotonic()

    @property
    def wakeful_time(self) -> float:
        """Seconds for which VPP's workers still poll because of the command."""
        if self.ended_at is None:
            return 0.0
        return max(0.0, self.ended_at + _WAKEFUL_SECONDS - time.monotonic())


@dataclass(frozen=True)
class VppControl:
    """A running VPP."""

    node: DutNode
    """The node that it runs on."""
    home: str
    """Directory that it is installed in."""
    directory: str
    """Directory of its sockets."""
    last: LastCommand = field(default_factory=LastCommand)
    """Its last command."""

    def ask(self, command: str, seconds: float = 30.0) -> str:
        """VPP's answer to a command, which may take this many seconds."""
        try:
            return self.node.run(*self._line(command), timeout=seconds).replace("\r", "")
        finally:
            self.last.note()

    def lines(self, command: str) -> list[str]:
        """VPP's answer for a result: only its first lines, because each of thousands of tunnels may be an interface."""
        lines = self.ask(command).splitlines()
        left = len(lines) - _MOST_LINES
        if left <= 0:
            return lines
        return [*lines[:_MOST_LINES], f"({left} more lines)"]

    def answers(self) -> bool:
        """Whether it answers."""
        return self.node.attempt(*self._line("show version")).exit_status == 0

    def configure(self, changes: Changes, command: Command) -> None:
        """Gives VPP a command that changes its configuration. The configuration ends with VPP, so there is no undo.

        Raises:
            DutError: If VPP refuses the command, or does not answer in time.
        """
        # VPP waits for its workers at many lines, and the workers may share their CPUs with other programs.
        seconds = max(command.seconds, _LINE_SECONDS * command.text.count("\n"))
        text = command.text
        if command.is_secret:
            self._configure_secretly(changes, command, seconds)
            return
        if "\n" in text:
            path = f"{self.directory}/commands{len(changes.commands)}"
            write_file(changes, path, text)
            text = f"exec {path}"
        written = self.ask(text, seconds).strip()
        if re.fullmatch(command.answer, written) is None:
            raise self.node.error(f"VPP refused {text!r}: {written or 'it gave no reason'}.")
        changes.commands.append(f"vppctl {text}")

    def _configure_secretly(self, changes: Changes, command: Command, seconds: float) -> None:
        path = f"{self.directory}/secret"
        size = str(len(command.text.encode()))
        given = self.node.attempt(
            *("sh", "-c", _SECRETLY, "secretly", path, size, *self._line(f"exec {path}")),
            stdin=command.text,
            timeout=seconds,
        )
        self.last.note()
        if given.exit_status != 0:
            raise self.node.error(
                f"The commands with keys did not reach VPP: {_KEY.sub('KEY', reason(given))}."
            )

        answer = given.stdout.replace("\r", "").strip()
        if re.fullmatch(command.answer, answer) is None:
            said = _KEY.sub("KEY", answer)[-_LONGEST_ANSWER:] or "it gave no reason"
            raise self.node.error(f"VPP refused a command with a key: {said}.")
        changes.commands.append(
            f"vppctl exec FILE, which is gone: {len(command.text.splitlines())} lines with keys"
        )

    def shows(self, shown: Shown) -> bool:
        """Whether VPP shows something now."""
        return re.search(shown.pattern, self.ask(shown.command)) is not None

    def check(self, shown: Collection[Shown]) -> dict[str, str]:
        """Checks what VPP shows, and returns it in words, by command.

        Raises:
            DutError: If VPP does not show something in time; with its last answer.
        """
        for each in shown:
            end = time.monotonic() + each.within
            while re.search(each.pattern, answer := self.ask(each.command)) is None:
                if time.monotonic() < end:
                    time.sleep(_POLL)
                    continue
                said = " ".join(answer.split())
                raise self.node.error(
                    f"VPP's {each.command!r} does not show {each.meaning}: {said[-500:]}"
                )
        return {each.command: each.meaning for each in shown}

    def check_cards(self, cards: Iterable[Card], daemon: Daemon) -> None:
        """Checks that DPDK in VPP drives the cards.

        Args:
            cards: The cards.
            daemon: The running VPP; it also writes errors to its output that are not in its log.

        Raises:
            DutError: If DPDK does not drive one of the cards; the message has what VPP says about it.
        """
        there = parse_interfaces(self.ask("show interface"))
        missing = [card.address for card in cards if card.name not in there]
        if missing:
            log = self.ask("show log").splitlines()
            # VPP logs all lines of DPDK as notices, also its errors.
            about_dpdk = [" ".join(line.split()) for line in log if _ABOUT_DPDK.search(line)]
            said = quoted(about_dpdk)
            raise self.node.error(
                f"VPP has started without the PCI device {' and '.join(missing)}. DPDK in VPP says: "
                f"{said or 'nothing'}. {daemon.last_output()}"
            )

    def outlast_reports(self, names: Collection[str]) -> None:
        """Waits until VPP has sent its only report of multicast groups (RFC 3810), which no trial may count.

        Args:
            names: VPP's interfaces that report.
        """
        end = time.monotonic() + _REPORTS_SECONDS
        while time.monotonic() < end:
            counts = parse_interfaces(self.ask("show interface"))
            if all(counts.get(name, {}).get("tx packets") for name in names):
                return
            time.sleep(_POLL)

    def _line(self, command: str) -> tuple[str, ...]:
        return (f"{self.home}/bin/vppctl", "-s", f"{self.directory}/cli.sock", *command.split())


_WAKEFUL_SECONDS = 0.55
"""VPP's workers do not sleep for half a second after any command, even if no frames come (`vlib_file_poll` in its
source). The rest is a margin for the end of the command."""
_MOST_LINES = 2000
_ABOUT_DPDK = re.compile(r"^\S+ \S+ +\w+ +dpdk\b")
_LINE_SECONDS = 0.1
_POLL = 0.2
_REPORTS_SECONDS = 3.0
"""Seconds after which VPP has reported its multicast groups. It checks for new interfaces every second."""
_KEY = re.compile(r"[0-9A-Fa-f]{16,}|[A-Za-z0-9+/]{40,}=?")
_LONGEST_ANSWER = 500
# The node removes the file by itself, because the controller may be gone by then. A killed controller may have sent a
# part of the file, and nobody reads that part.
_SECRETLY = """
umask 077
file=$1 size=$2
shift 2
trap 'rm -f -- "$file"' EXIT
trap 'exit 1' HUP INT TERM PIPE
cat > "$file" || exit
[ "$(wc -c < "$file")" -eq "$size" ] || exit
"$@"
exit
"""
_PLUGINS = (
    'cd "$1" && ls -d lib*/vpp_plugins/*.so lib*/*/vpp_plugins/*.so 2>/dev/null; "$2" --version'
)


def check_installed(
    node: DutNode, program: str, options: VppOptions, drivers: dict[str, Needs]
) -> None:
    """Checks that a node's VPP has what its features and the drivers of its interfaces need.

    Raises:
        DutError: If VPP is too old, or a plugin is missing; the message says what needs it.
    """
    needed = {feature.given(options)[0]: feature.needs for feature in options.features} | drivers
    if not any(needs.plugins or needs.version for needs in needed.values()):
        return

    text = node.run("sh", "-c", _PLUGINS, "plugins", options.home, program)
    found = re.search(r"\bv(\d+\.\d+)", text)
    version = found[1] if found else ""

    for option, needs in needed.items():
        if version < needs.version:
            raise node.error(
                f"{option} needs VPP {needs.version} or later, but {program} is {version}."
            )
        for plugin, since in needs.plugins.items():
            if version >= since and f"/{plugin}_plugin.so" not in text:
                raise node.error(
                    f"{option} needs VPP's plugin {plugin}, and {options.home} has no {plugin}_plugin.so. "
                    "Install it there (Debian: vpp-plugin-core or vpp-plugin-dpdk), or build VPP with it."
                )
