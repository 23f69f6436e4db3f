"""Private network namespaces for tests: as root, or as an ordinary user inside a user namespace."""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

LIBRARIES = Path(__file__).parents[2] / "libraries"
_HOLD = "mount -t tmpfs tmpfs /run && ip link set lo up && echo ready && exec cat"
_BE_NAMESPACE = """
mount -t sysfs sysfs /sys && ip link set lo up &&
sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1 && echo ready && exec cat
"""


def run_alone(script: str, *arguments: str, cwd: Path, timeout: float | None = None) -> str:
    """Runs a shell script in network and mount namespaces that nobody else sees, and returns what it prints.

    Args:
        script: The script, which must succeed. It finds the library, and sees only its own network interfaces.
        arguments: Its arguments, from ``$0`` on.
        cwd: The directory that it begins in.
        timeout: Seconds that it may take; None: no limit of its own.
    """
    done = subprocess.run(
        ["unshare", "--net", "--mount", "sh", "-c", script, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(LIBRARIES)},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class NetnsUnavailableError(Exception):
    """Network namespaces cannot be had here; the message says why."""


class NetnsLab:
    """A set of network namespaces and veth pairs that nobody else sees.

    All of it lives inside the network and mount namespaces of one holder process, which ends when its standard input
    is closed: nothing stays behind, even if the tests are killed. Names need not be unique on the machine.
    """

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[Any]] = []
        self._namespaces: dict[str, subprocess.Popen[Any]] = {}
        user = () if os.geteuid() == 0 else ("--user", "--map-root-user")
        self._holder = subprocess.Popen(
            ["unshare", *user, "--net", "--mount", "sh", "-c", _HOLD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        if self._holder.stdout.readline() != "ready\n":
            _, stderr = self._holder.communicate()
            raise NetnsUnavailableError(stderr.strip() or "unshare failed")
        self._as_user = ("--user", "--preserve-credentials") if user else ()
        self._enter = self._entering(self._holder)

    def __enter__(self) -> NetnsLab:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Kills what `popen` started, and takes the namespaces down."""
        self.end_processes()
        for namespace in (*self._namespaces.values(), self._holder):
            namespace.communicate()

    def end_processes(self, but: int = 0) -> None:
        """Kills what `popen` started, but the first processes."""
        for process in self._processes[but:]:
            process.kill()
            process.wait()
            for stream in filter(None, (process.stdin, process.stdout, process.stderr)):
                with suppress(BrokenPipeError):
                    stream.close()
        del self._processes[but:]

    def namespace(self, name: str) -> str:
        """Adds a namespace, without IPv6 chatter on links that are added later."""
        # Entering a process costs less than half of `ip netns exec`, which mounts /sys anew for each command.
        process = subprocess.Popen(
            [*self._enter, "unshare", "--net", "--mount", "sh", "-c", _BE_NAMESPACE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._namespaces[name] = process
        if process.stdout.readline() != "ready\n":
            raise AssertionError(f"no namespace {name}: {process.communicate()[1]}")
        return name

    def veth(self, ns_a: str, if_a: str, ns_b: str, if_b: str) -> None:
        """Adds a veth pair between two namespaces (or within one), both ends up."""
        pid_a, pid_b = (str(self._namespaces[ns].pid) for ns in (ns_a, ns_b))
        peer = ("peer", "name", if_b, "netns", pid_b)
        self._call(*self._enter, "ip", "link", "add", "name", if_a, "netns", pid_a, "type", "veth", *peer)
        self.run(ns_a, "ip", "link", "set", "dev", if_a, "up")
        self.run(ns_b, "ip", "link", "set", "dev", if_b, "up")

    def bridge(self, ns: str, name: str, *ports: str) -> None:
        """Adds a bridge with the given ports, up."""
        self.run(ns, "ip", "link", "add", "name", name, "type", "bridge", "mcast_snooping", "0")
        for port in ports:
            self.run(ns, "ip", "link", "set", "dev", port, "master", name)
        self.run(ns, "ip", "link", "set", "dev", name, "up")

    def mac(self, ns: str, interface: str) -> str:
        """MAC address of an interface."""
        links = json.loads(self.run(ns, "ip", "-json", "link", "show", "dev", interface).stdout)
        return str(links[0]["address"])

    def states(self, ns: str) -> list[str]:
        """Operational states of the interfaces of a namespace but lo, in the order in which they were added."""
        # Where its own process sees them: a command would cost a hundred times as much.
        links = Path(f"/proc/{self._namespaces[ns].pid}/root/sys/class/net").iterdir()
        index = {int((link / "ifindex").read_text()): link for link in links if link.name != "lo"}
        return [(index[number] / "operstate").read_text().strip().upper() for number in sorted(index)]

    def command(self, ns: str, *argv: str) -> list[str]:
        """The command line that runs another one inside a namespace; it becomes that program, with its process id."""
        return [*self._entering(self._namespaces[ns]), *argv]

    def run(self, ns: str, *argv: str, input: str | None = None) -> subprocess.CompletedProcess[str]:
        """Runs a command inside a namespace, which must succeed."""
        return self._call(*self.command(ns, *argv), input=input)

    def popen(self, ns: str, *argv: str, **options: Any) -> subprocess.Popen[Any]:
        """Starts a command inside a namespace; it is killed with the lab."""
        process = subprocess.Popen(self.command(ns, *argv), **options)
        self._processes.append(process)
        return process

    def _entering(self, process: subprocess.Popen[Any]) -> tuple[str, ...]:
        return ("nsenter", f"--target={process.pid}", "--net", "--mount", *self._as_user)

    def _call(self, *argv: str, input: str | None = None) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(argv, input=input, capture_output=True, text=True, timeout=240, check=False)
        if done.returncode:
            raise AssertionError(f"{' '.join(argv)} exited with {done.returncode}: {done.stderr}")
        return done
