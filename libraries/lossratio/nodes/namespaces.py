"""Nodes that are network namespaces or containers of this machine: programs are started in them, without an SSH server.

A `Client` and its channels have the parts of paramiko's interface that sessions use, so a session does not notice the
difference. A program keeps this machine's file system, so a container needs neither Python nor a shell: only its
network is entered.
"""

import fcntl
import os
import re
import select
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from lossratio.errors import NodeError
from lossratio.topology import Node
from lossratio.values import names_near

NETNS_DIRECTORY = Path("/run/netns")
"""The directory with the names of network namespaces."""
_LOG_LINE = re.compile(r"[EWI]\d{4} ")
"""The beginning of a line of a log of Kubernetes: the level, month and day."""
_INSPECT_SECONDS = 20.0
_STATE = ("inspect", "--type", "container", "-f", "{{.State.Pid}}")
_INSPECT = {
    "docker": _STATE,
    "podman": _STATE,
    "nerdctl": _STATE,
    "crictl": ("inspect", "-o", "go-template", "--template", "{{.info.pid}}"),
}
"""How the tools of docker, podman and containerd say the process of a container."""
_AS_ROOT = "Run this as root"
_PIPE_BYTES = 1 << 20

# /sys shows the interfaces of the namespace that mounted it. The cgroups below it are those of this machine.
_ENTER = """
[ ! -d /sys/fs/cgroup ] || exec 3< /sys/fs/cgroup
mount -t sysfs sysfs /sys || exit
mount --no-canonicalize --rbind /proc/self/fd/3 /sys/fs/cgroup 2> /dev/null
exec sh -c "$1" 3<&-
"""


def _of_name(name: str, netns: str) -> Path:
    path = NETNS_DIRECTORY / netns
    try:
        # A name stays behind when its process has died; only opening it shows that.
        with path.open("rb"):
            return path
    except OSError as error:
        names = sorted(entry.name for entry in NETNS_DIRECTORY.glob("*") if entry != path)
        there = (
            f"The namespaces are {names_near(netns, names)}" if names else "There are no others."
        )
        raise NodeError(
            f"Node {name}: there is no network namespace {netns!r} ({error.strerror}). {there} Is the lab up? See "
            "'ip netns list'."
        ) from error


def namespace_key(netns: str) -> str:
    """What distinguishes a network namespace from all others of this machine: its name, and the kernel's number for it.

    Names alone are not enough, because processes with their own mounts may have other namespaces with the same names.
    """
    try:
        return f"{netns}-{(NETNS_DIRECTORY / netns).stat().st_ino}"
    except OSError:
        return netns


def _of_container(name: str, container: str, sudo: Sequence[str]) -> Path:
    reasons = []
    way_out = "See 'docker ps' and 'podman ps' for running containers."
    for tool, words in _INSPECT.items():
        command = (*sudo, tool, *words, container)
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_INSPECT_SECONDS)
        except FileNotFoundError:
            if sudo:
                raise NodeError(
                    f"Node {name}: entering container {container!r} needs sudo, which is not installed on this "
                    f"machine. {_AS_ROOT}, or install sudo and allow 'sudo -n'."
                ) from None
            if tool in ("docker", "podman"):
                reasons.append(f"{tool} is not installed")
            continue
        except subprocess.TimeoutExpired:
            reasons.append(f"{tool} does not answer")
            continue

        pid = done.stdout.strip()
        if done.returncode == 0 and pid.isdecimal() and pid != "0":
            return Path("/proc", pid, "ns", "net")
        if pid == "0":
            reasons.append(f"{tool}: the container is not running")
            way_out = f"Start it: {tool} start {container}"
            continue

        said = " ".join(done.stderr.split()).rstrip(".")
        reasons.append(f"{tool}: {said or 'no answer'}")
        if said.startswith("sudo: "):
            way_out = f"{_AS_ROOT}, or allow 'sudo -n'."

    raise NodeError(
        f"Node {name}: container {container!r} cannot be entered: {'; '.join(reasons)}. {way_out}"
    )


class Channel:
    """A program in a namespace, with the interface of `paramiko.Channel`.

    Attributes:
        exit_status: Its exit status; -1: it has not ended, or a signal has ended it.
        status_event: Set when it has ended, or the channel is closed.
        closed: Whether all readers and writers are gone.
        eof_received: True: unlike a connection, a namespace of this machine is never lost.
    """

    eof_received = True

    def __init__(self, enter: Sequence[str], client: "Client") -> None:
        self.exit_status = -1
        self.status_event = threading.Event()
        self.closed = False
        self._enter = enter
        self._client = client
        self._timeout: float | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._woken, self._wake = os.pipe()

    def get_transport(self) -> "Client":
        """The client that the channel belongs to."""
        return self._client

    def settimeout(self, timeout: float | None) -> None:
        """Sets how many seconds `recv` and `sendall` may take; None: no limit."""
        self._timeout = timeout

    def exec_command(self, line: str) -> None:
        """Starts a line of shell code."""
        # In its own session, so that Ctrl-C at the controller's terminal does not end it.
        process = self._process = subprocess.Popen(
            [*self._enter, line],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        for pipe in filter(None, (process.stdin, process.stdout)):
            # As much as an SSH connection takes from a program whose output nobody reads at the moment.
            fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        os.set_blocking(process.stdin.fileno(), False)  # type: ignore[union-attr]
        threading.Thread(target=self._wait, daemon=True).start()

    def exit_status_ready(self) -> bool:
        """Whether it has ended."""
        return self.status_event.is_set()

    def recv_exit_status(self) -> int:
        """Waits for its end, and returns the exit status; -1 after a signal."""
        self.status_event.wait()
        return self.exit_status

    def recv(self, size: int) -> bytes:
        """Reads from its standard output; empty at the end."""
        return self._receive(self._started.stdout.fileno(), size, self._timeout)  # type: ignore[union-attr]

    def recv_stderr(self, size: int) -> bytes:
        """Reads from its standard error; empty at the end."""
        return self._receive(self._started.stderr.fileno(), size, None)  # type: ignore[union-attr]

    def sendall(self, data: bytes) -> None:
        """Writes to its standard input."""
        deadline = None if self._timeout is None else time.monotonic() + self._timeout
        stdin = self._started.stdin
        if stdin is None or stdin.closed:
            raise OSError("the standard input is closed")
        while data:
            try:
                data = data[os.write(stdin.fileno(), data) :]
            except ValueError:
                # It was closed meanwhile, by another thread.
                raise OSError("the standard input is closed") from None
            except BlockingIOError:
                left = None if deadline is None else deadline - time.monotonic()
                if not self._ready(stdin.fileno(), select.POLLOUT, left):
                    raise OSError("the channel is closed") from None

    def shutdown_write(self) -> None:
        """Closes its standard input."""
        stdin = self._started.stdin
        if stdin is not None:
            # Closing a pipe whose reader has ended is no error.
            with suppress(OSError):
                stdin.close()

    def close(self) -> None:
        """Closes its standard input, and ends all waiting; the program itself may end or continue."""
        if self.closed:
            return
        self.closed = True
        self.status_event.set()
        os.write(self._wake, b".")
        if self._process is not None:
            self.shutdown_write()

    def __del__(self) -> None:
        os.close(self._wake)
        os.close(self._woken)

    @property
    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise OSError("nothing was started in the channel")
        return self._process

    def _wait(self) -> None:
        status = self._started.wait()
        if not self.closed:
            self.exit_status = max(status, -1)
        self.status_event.set()

    def _receive(self, file: int, size: int, timeout: float | None) -> bytes:
        if self._ready(file, select.POLLIN, timeout):
            return os.read(file, size)
        return b""

    def _ready(self, file: int, event: int, timeout: float | None) -> bool:
        """Waits until a file can be read or written. Returns False if the channel is closed."""
        poll = select.poll()
        poll.register(file, event)
        poll.register(self._woken, select.POLLIN)
        events = poll.poll(None if timeout is None else 1000.0 * max(timeout, 0.0))
        if not events:
            raise TimeoutError("timed out")
        return any(ready == file for ready, _ in events)


def open_here() -> "Client":
    """The way to programs on this machine itself, outside of any namespace, as the user who runs this process."""
    return Client(("sh", "-c"))


class Client:
    """The way into a namespace, with the interface of `paramiko.SSHClient` and its transport; see `open_namespace`."""

    def __init__(self, enter: Sequence[str]) -> None:
        self._enter = enter
        self._channels: list[Channel] = []
        self._is_open = True

    def get_transport(self) -> "Client | None":
        """Itself; None if it is closed."""
        if self._is_open:
            return self
        return None

    def is_active(self) -> bool:
        """Whether it is open."""
        return self._is_open

    def open_session(self, timeout: float | None = None) -> Channel:
        """A channel for one program. Opening it takes no time, so there is no timeout."""
        channel = Channel(self._enter, self)
        self._channels = [other for other in self._channels if not other.closed]
        self._channels.append(channel)
        return channel

    def close(self) -> None:
        """Closes all channels."""
        self._is_open = False
        for channel in self._channels:
            channel.close()
        self._channels.clear()


def open_pod(name: str, node: Node) -> Client:
    """Makes sure that commands can be run in a pod, with the user's own kubectl.

    Raises:
        NodeError: If they cannot.
    """
    *namespace, pod = str(node.pod).split("/")[:2]
    container = str(node.pod).split("/")[2:]
    enter = ("kubectl", "exec", "-i", *(word for part in namespace for word in ("-n", part)), pod)
    enter += tuple(word for part in container for word in ("-c", part))
    enter += ("--", "sh", "-c")
    try:
        done = subprocess.run(
            [*enter, "command -v ip"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=node.connect_timeout,
        )
    except FileNotFoundError as error:
        raise NodeError(
            f"Node {name}: commands in pods need kubectl, which this machine does not have. Install it."
        ) from error
    except subprocess.TimeoutExpired as error:
        raise NodeError(
            f"Node {name}: kubectl did not answer within {node.connect_timeout:g} s. Is the cluster up? Raise the "
            "node's connect_timeout if it is slow."
        ) from error
    if done.stdout.strip():
        return Client(enter)
    # kubectl logs what its library tried before it says what is wrong.
    lines = done.stderr.splitlines()
    lines = [line for line in lines if not _LOG_LINE.match(line)] or lines
    said = " ".join(" ".join(lines).split()).rstrip(".?")
    if said and "exit code" not in said:
        raise NodeError(
            f"Node {name}: kubectl cannot run commands in pod {node.pod}: {said}. See 'kubectl get pods'."
        )
    raise NodeError(
        f"Node {name}: the container in pod {node.pod} has no 'ip' (Debian package iproute2)"
        f"{f': {said}' if said else ''}. Use an image with Python 3.8 and iproute2, and the capability NET_RAW."
    )


def open_namespace(name: str, node: Node) -> Client:
    """Finds the namespace of a node, and makes sure that it can be entered.

    Raises:
        NodeError: If it cannot be entered.
    """
    sudo = ("sudo", "-n", "--") if node.sudo else ()
    if node.container is not None:
        path = _of_container(name, node.container, sudo)
    else:
        path = _of_name(name, str(node.netns))

    enter = (
        *sudo,
        "nsenter",
        f"--net={path}",
        "--",
        "unshare",
        "--mount",
        "--",
        "sh",
        "-c",
        _ENTER,
        "sh",
    )

    try:
        done = subprocess.run(
            [*enter, "true"], capture_output=True, text=True, timeout=node.connect_timeout
        )
    except FileNotFoundError as error:
        package = "sudo" if sudo else "util-linux"
        raise NodeError(
            f"Node {name}: {enter[0]} is missing on this machine (Debian package {package})."
        ) from error
    except subprocess.TimeoutExpired as error:
        raise NodeError(
            f"Node {name}: its namespace could not be entered within {node.connect_timeout:g} s. Look at the load of "
            "this machine, or raise the node's connect_timeout."
        ) from error

    if done.returncode != 0:
        way_out = "allow 'sudo -n'" if node.sudo else "allow 'sudo -n' and set 'sudo: true'"
        raise NodeError(
            f"Node {name}: {' '.join(done.stderr.split()).rstrip('.')}. Only root can enter a namespace: run this "
            f"as root, or {way_out}."
        )
    return Client(enter)
