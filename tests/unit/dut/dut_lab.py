"""A DUT's node in a network namespace between two ports of a TG, and frames to send through it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import dropwhile
from pathlib import Path
from typing import Any

from netns import NetnsLab
from real_vpp import skip_without_plugins
from waiting import is_running, wait_until

from lossratio.dut import create_dut
from lossratio.dut.daemon import Daemon
from lossratio.errors import NodeError
from lossratio.nodes import CommandResult
from lossratio.topology import Hop, Interface, Port

ENVIRONMENT_LENGTH = 3
STATE = """
show() { "$@" | sed "s|^|$*: |"; }
for version in -4 -6; do
    show ip $version route show table all
    show ip $version rule
done
show ip neighbour
show bridge fdb
show nft list ruleset
show tc qdisc
show ethtool -k dut0
show ethtool -k dut1
grep -rs '' /proc/sys/net/bridge /proc/sys/net/core /proc/sys/net/ipv4/conf /proc/sys/net/ipv6/conf
grep -s '' /sys/class/net/*/queues/*/rps_cpus /sys/class/net/*/threaded
true
"""
PAYLOAD = b"lossratio flood"
FLOOD = Path(__file__).with_name("flood.py")


class NamespaceShell:
    """Runs commands in a namespace as `NodeSession` does on a node, without the SSH in between."""

    def __init__(self, lab: NetnsLab, namespace: str, environment: dict[str, str] | None = None) -> None:
        self.name = "DUT1"
        self.boot_id: str | None = None
        self._lab = lab
        self._namespace = namespace
        self._environment = environment or {}

    def run(
        self, *command: str, timeout: float = 30.0, check: bool = True, stdin: str | bytes | None = None
    ) -> CommandResult:
        if self.boot_id is not None and command[-1].endswith("/boot_id"):
            return CommandResult(command, 0, f"{command[-1]}:{self.boot_id}\n", "")
        given = stdin.decode() if isinstance(stdin, bytes) else stdin
        variables, words = _without_env(command)
        line = self._lab.command(self._namespace, *words)
        environment = {**os.environ, **self._environment, **variables}
        done = subprocess.run(
            line, input=given or "", capture_output=True, text=True, timeout=timeout, check=check, env=environment
        )
        return CommandResult(command, done.returncode, done.stdout, done.stderr)


def _without_env(command: Sequence[str]) -> tuple[dict[str, str], Sequence[str]]:
    """The variables that `env` would set for a command, and the command: one program less for each."""
    words = list(dropwhile(lambda word: "=" in word, command[1:]))
    if command[0] != "env" or words[0].startswith("-"):
        return {}, command
    variables = [word.partition("=") for word in command[1 : len(command) - len(words)]]
    return {name: value for name, _, value in variables}, words


class FailingShell(NamespaceShell):
    """A shell with one command that fails, or that is interrupted by an error.

    Args:
        steps: How commands begin, in order; others may come in between.
        failing: Index of the step that fails; those before it are run.
        error: The interruption. A `ConnectionError` is raised as an SSH session raises it.
        is_done: Whether the node has done it when it is interrupted.
    """

    def __init__(
        self,
        lab: NetnsLab,
        namespace: str,
        steps: list[list[str]],
        failing: int,
        error: type[BaseException] | None = None,
        *,
        is_done: bool = True,
    ) -> None:
        super().__init__(lab, namespace)
        self.stays_lost = False
        self._expected = steps[: failing + 1]
        self._error = error
        self._is_done = is_done
        self._is_lost = False

    def run(
        self, *command: str, timeout: float = 30.0, check: bool = True, stdin: str | bytes | None = None
    ) -> CommandResult:
        if self._is_lost and self.stays_lost:
            raise NodeError("Node DUT1: the connection is lost.")
        line = list(command[ENVIRONMENT_LENGTH:])
        if not self._expected or line[: len(self._expected[0])] != self._expected[0]:
            return super().run(*command, timeout=timeout, check=check, stdin=stdin)
        self._expected.pop(0)
        if self._expected:
            return super().run(*command, timeout=timeout, check=check, stdin=stdin)
        if self._error is None:
            return CommandResult(command, 1, "", "no luck")
        if self._is_done:
            super().run(*command, timeout=timeout, check=check, stdin=stdin)
        self._is_lost = self._error is ConnectionError
        raise NodeError("Node DUT1: the connection was lost.") if self._is_lost else self._error


@dataclass(frozen=True)
class Flooded:
    """What came of a flood: frames sent and received, and the first frame received.

    The seconds are from the 1000th frame to the last, at least, and from the first to the last, at most.
    """

    sent: int
    received: int
    seconds: tuple[float, float]
    first: bytes


def hop(west: str | None = "dut0", east: str | None = "dut1") -> Hop:
    return Hop(
        "DUT1",
        Port("DUT1", "port0", Interface(name=west, link="link0")),
        Port("DUT1", "port1", Interface(name=east, link="link1")),
    )


class DutLab:
    """Namespaces ``tg`` and ``dut``: tg0 - dut0, dut1 - tg1."""

    def __init__(self, lab: NetnsLab) -> None:
        self.lab = lab
        self.shell = NamespaceShell(lab, "dut")
        for namespace in ("tg", "dut"):
            lab.namespace(namespace)
        for number in (0, 1):
            lab.veth("tg", f"tg{number}", "dut", f"dut{number}")
        self.wait_for_links()
        self.macs = (lab.mac("tg", "tg0"), lab.mac("tg", "tg1"))

    def create(self, kind: str, **options: Any):
        return create_dut(kind, self.shell, hop(), options)

    @contextmanager
    def setting_up(self, kind: str, **always: Any) -> Iterator[Callable[..., Any]]:
        """Yields what sets up a DUT of a kind, with options besides those that it always has; all are torn down."""
        with ExitStack() as undo:

            def set_up(**options: Any):
                if kind == "vpp":
                    skip_without_plugins({**always, **options})
                dut = self.create(kind, **always, **options)
                undo.callback(dut.tear_down)
                dut.set_up(*self.macs)
                return dut

            yield set_up

    def assert_restarts(self, dut: Any) -> None:
        """Restarts a DUT of a single program: it must be another one, which forwards as before."""
        (killed,) = dut.daemons
        dut.restart()
        assert not killed.is_alive()
        dut.verify()
        self.assert_accounted_for(dut)

    def assert_accounted_for(self, dut: Any, version: int = 4, routed: bool = False) -> None:
        """Sends frames both ways, which must pass, be counted once, and be dropped nowhere.

        Args:
            dut: The DUT.
            version: IP version of the frames.
            routed: Whether they must arrive with the MAC address of the port where they come out.
        """
        macs = dut.destination_macs(*self.macs)
        before = dut.read_counters()
        for entry, destination, out in (("west", macs.from_west, 1), ("east", macs.from_east, 0)):
            flooded = self.flood(entry, destination, frames=100, version=version)
            assert (flooded.sent, flooded.received) == (100, 100)
            if routed:
                assert flooded.first[:6].hex(":") == self.macs[out]
        counted = dut.read_counters().since(before)
        assert counted.received == counted.transmitted == {"west": 100, "east": 100}
        assert set(counted.dropped.values()) == {0}

    def on_dut(self, *command: str) -> str:
        return self.lab.run("dut", *command).stdout

    @staticmethod
    def pid(daemon: Daemon) -> int:
        """The process of a program of a DUT."""
        return int(Path(daemon.directory, f"{daemon.name}.pid").read_text().split()[0])

    def kill(self, daemon: Daemon) -> None:
        """Kills a program of a DUT, and waits until it has ended."""
        pid = self.pid(daemon)
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not is_running(pid))

    def flood(
        self,
        entry: str,
        destination: str,
        *,
        frames: int = 0,
        seconds: float = 0.0,
        version: int = 4,
        destinations: int = 1,
        raw: Sequence[bytes] = (),
    ) -> Flooded:
        """Sends frames into the DUT as fast as they go, and counts those of them that come out at the other side.

        Frames of one's own, `raw`, end in `PAYLOAD`.
        """
        sides = ("tg0", "tg1") if entry == "west" else ("tg1", "tg0")
        asked = {"out": sides[0], "in": sides[1], "destination": destination, "source": self.lab.mac("tg", sides[0])}
        asked |= {"frames": frames, "seconds": seconds, "version": version, "west": entry == "west"}
        asked |= {"destinations": destinations, "raw": [data.hex() for data in raw]}
        answer = json.loads(self.lab.run("tg", sys.executable, "-IS", str(FLOOD), json.dumps(asked)).stdout)
        return Flooded(answer["sent"], answer["received"], tuple(answer["seconds"]), bytes.fromhex(answer["first"]))

    def links(self) -> dict[str, Any]:
        return {link["ifname"]: link for link in json.loads(self.on_dut("ip", "-json", "-details", "address"))}

    def wait_for_links(self, *states: str) -> None:
        """Waits until all interfaces but lo, or only the first ones, are up or in the given states."""
        while True:
            present = self.lab.states("dut")
            wanted = states or ("UP",) * len(present)
            if present[: len(wanted)] == list(wanted):
                return
            time.sleep(0.01)

    def snapshot(self) -> dict[str, Any]:
        """Everything about the DUT's network that a set-up might change."""
        links = self.links()
        for link in links.values():
            _drop_timers(link)
            # Both follow the carrier, once in a second only.
            del link["operstate"]
            link["flags"] = [flag for flag in link["flags"] if flag != "NO-CARRIER"]
            link["addr_info"] = sorted(link["addr_info"], key=lambda address: address["local"])
        state = {
            # The kernel keeps an interface that never spoke IPv6 in the group of all nodes, but not one that did.
            line
            for line in self.on_dut("sh", "-c", STATE).splitlines()
            if not line.startswith("bridge fdb: 33:33:")
        }
        return {"links": links, "state": state}


def _drop_timers(data: dict[str, Any]) -> None:
    for name, value in list(data.items()):
        if name.endswith("_timer"):
            del data[name]
        elif isinstance(value, dict):
            _drop_timers(value)
