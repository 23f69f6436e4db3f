"""The nodes: their namespaces, the links between them, and an SSH server for each."""

import os
import pwd
import selectors
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from lossratio.nodes.holder import system
from lossratio.nodes.holder.plan import ADDRESS, LinkEnd, Plan

_FIRST_INDEX = 10
_CARRIER_TIMEOUT = 5.0
_QUIET_IPV6 = {"disable_ipv6": 1, "addr_gen_mode": 1} | dict.fromkeys(
    ("accept_ra", "autoconf", "router_solicitations", "dad_transmits"), 0
)
"""Settings of new interfaces of a node. A DUT that routes IPv6 sets ``disable_ipv6`` of its interfaces to 0. The other
settings then keep the kernel from sending: no link-local address, no router or neighbour solicitation."""


def build(plan: Plan, report: Callable[[Any], None]) -> None:
    """Builds all nodes and links, and reports the ids of the nodes' processes. Runs in a process that then ends.

    The report is ``{"visible": {name: id as /proc shows it}, "own": [ids in this PID namespace]}``.
    """
    if not plan.privileged:
        system.unshare_user(0, 0)
    keepers = {name: system.fork(partial(_be_node, name)) for name in plan.nodes}
    visible = {name: keeper.report() for name, keeper in keepers.items()}

    for name in plan.nodes:
        _enter(visible[name])
        _quiet_new_interfaces(name)

    for index, (one, other) in enumerate(plan.links):
        _enter(visible[one.node])
        _ip(plan, one.node, [_pair(index, one, other, keepers[other.node].pid, plan.mtu)])

    for name in plan.nodes:
        _enter(visible[name])
        interfaces = _interfaces(plan, name)
        for interface in interfaces:
            system.switch_offloads_off(interface)
        ups = (f"link set dev {interface} addrgenmode none up" for interface in interfaces)
        _ip(plan, name, ["link set lo up", *ups])

    for name in plan.nodes:
        _enter(visible[name])
        _wait_until_running(name, _interfaces(plan, name))

    for name in plan.take_xdp_frames:
        _enter(visible[name])
        for interface in _interfaces(plan, name):
            # This comes last, because the other end does not see the setting before this end is up.
            system.take_xdp_frames(interface)

    report({"visible": visible, "own": [keeper.pid for keeper in keepers.values()]})


def _be_node(name: str, report: Callable[[Any], None]) -> None:
    system.unshare(system.NEW_NET | system.NEW_MOUNT | system.NEW_IPC)
    _mount_own_sys(name)
    system.mount("tmpfs", "/run", "tmpfs", system.NO_SUID | system.NO_DEVICES, "mode=755")
    # As /proc shows it, which may belong to an outer PID namespace.
    report(int(os.readlink("/proc/self")))
    while True:
        signal.pause()


def _mount_own_sys(name: str) -> None:
    """Mounts a /sys that shows the interfaces of this network namespace, rather than the machine's."""
    try:
        system.mount("sysfs", "/sys", "sysfs")
    except PermissionError:
        # If the machine's own /sys is read-only, as in many containers, no other /sys may be writable.
        try:
            system.mount("sysfs", "/sys", "sysfs", system.READ_ONLY)
        except OSError as error:
            raise system.BuildError(
                f"node {name}: its own /sys cannot be mounted ({error})"
            ) from error


def _quiet_new_interfaces(name: str) -> None:
    directory = Path("/proc/sys/net/ipv6/conf/default")
    if not directory.exists():
        return
    for setting, value in _QUIET_IPV6.items():
        try:
            (directory / setting).write_text(str(value))
        except OSError as error:
            raise system.BuildError(
                f"node {name}: cannot set {directory / setting}: {error.strerror}"
            ) from error


def _pair(index: int, one: LinkEnd, other: LinkEnd, other_pid: int, mtu: int) -> str:
    # If both ends had the same interface index, each in its own namespace, the kernel would not see them as a pair, and
    # would notice their carrier up to a second later.
    first = _FIRST_INDEX + 2 * index
    own = f"{_end(one, first)} mtu {mtu}{_address(one)}"
    peer = f"{_end(other, first + 1)} mtu {mtu}{_address(other)}"
    return f"link add {own} type veth peer {peer} netns {other_pid}"


def _end(end: LinkEnd, index: int) -> str:
    return f"name {end.interface} index {index}"


def _address(end: LinkEnd) -> str:
    return "" if end.mac_address is None else f" address {end.mac_address}"


def _interfaces(plan: Plan, name: str) -> list[str]:
    return [end.interface for pair in plan.links for end in pair if end.node == name]


def _wait_until_running(name: str, interfaces: list[str]) -> None:
    # A bridge does not use a port before the port is running.
    deadline = time.monotonic() + _CARRIER_TIMEOUT
    while waiting := [interface for interface in interfaces if not system.is_running(interface)]:
        if time.monotonic() > deadline:
            raise system.BuildError(
                f"node {name}: still no carrier on {', '.join(waiting)} after {_CARRIER_TIMEOUT:g} s"
            )
        time.sleep(0.002)


def _enter(visible_pid: int) -> None:
    descriptor = os.open(f"/proc/{visible_pid}/ns/net", os.O_RDONLY)
    try:
        system.enter(descriptor, system.NEW_NET)
    finally:
        os.close(descriptor)


def _ip(plan: Plan, name: str, lines: Iterable[str]) -> None:
    done = subprocess.run(
        [plan.tools.ip, "-batch", "-"],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
    )
    if done.returncode != 0:
        raise system.BuildError(f"node {name}: {' '.join(done.stderr.split())}")


_PRIVATE = Path("/run/lossratio")

_CONFIG = """\
HostKey {directory}/host_key
AuthorizedKeysFile {private}/authorized_keys
ForceCommand {enter}
PubkeyAuthentication yes
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
PermitUserRC no
StrictModes no
UsePAM no
UseDNS no
PrintMotd no
PrintLastLog no
DisableForwarding yes
MaxSessions 100
"""

_ENTER = (
    "export PATH={path} XDG_CACHE_HOME=/run; exec {nsenter} --target={pid} {user} --net --mount --ipc -- "
    """/bin/sh -c 'cd "$HOME" 2>/dev/null; eval "${{SSH_ORIGINAL_COMMAND:-exec /bin/sh -i}}"'"""
)


@dataclass(frozen=True)
class Server:
    """The SSH server of a node."""

    listener: socket.socket
    """The socket that it listens on."""
    config: str
    """Path of its configuration file."""
    host_key: str
    """Its public host key."""


def prepare_servers(plan: Plan, nodes: dict[str, int], authorized_key: str) -> dict[str, Server]:
    """Opens the servers' sockets, and makes the files that sshd needs, in a mount namespace of its own.

    None of these files is on the machine's disks: /run is a new file system here, with the directory that sshd demands
    and all files of the testbed. The accounts are the testbed's own, so no expired account, unusual shell or directory
    service can prevent a log-in.
    """
    system.mount("tmpfs", "/run", "tmpfs", system.NO_SUID | system.NO_DEVICES, "mode=755")
    # sshd records interactive log-ins there. It must not write into the machine's own records.
    if Path("/var/log").is_dir():
        system.mount("tmpfs", "/var/log", "tmpfs", system.NO_SUID | system.NO_DEVICES, "mode=755")
    Path("/run/sshd").mkdir(mode=0o755)
    _PRIVATE.mkdir(mode=0o755)
    _lay_out_accounts(plan)
    (_PRIVATE / "authorized_keys").write_text(authorized_key)
    return {
        name: _prepare_server(plan, _PRIVATE / f"node{n}", pid)
        for n, (name, pid) in enumerate(nodes.items())
    }


def serve(servers: dict[str, Server], nodes: set[int], holder: int, plan: Plan) -> None:
    """Starts an sshd for each connection, and reaps ended processes, until the holder or a node's process ends."""
    waking, woken = socket.socketpair()
    for end in (waking, woken):
        end.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(woken.fileno())

    with selectors.DefaultSelector() as selector, open(f"{plan.directory}/sshd.log", "ab") as log:
        selector.register(holder, selectors.EVENT_READ)
        selector.register(waking, selectors.EVENT_READ)
        for server in servers.values():
            selector.register(server.listener, selectors.EVENT_READ, server)

        while True:
            for key, _ in selector.select():
                if key.fileobj is holder:
                    return
                if key.fileobj is waking:
                    waking.recv(4096)
                    if nodes & _reap():
                        return
                elif isinstance(key.data, Server):
                    _accept(key.data, plan.tools.sshd, log.fileno())


def _accept(server: Server, sshd: str, log: int) -> None:
    # The client may have closed the connection, or sshd may be replaced by an upgrade at this moment. Either must end
    # only one connection, not the testbed.
    with suppress(OSError):
        connection, _ = server.listener.accept()
        with connection:
            connection.setblocking(True)
            # sshd itself sets this option only when a command runs. Before that, the client's delayed acknowledgement
            # costs 40 ms.
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            descriptor = connection.fileno()
            system.spawn(
                [sshd, "-i", "-e", "-f", server.config],
                stdin=descriptor,
                stdout=descriptor,
                stderr=log,
            )


def _reap() -> set[int]:
    ended: set[int] = set()
    while True:
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended.add(pid)


def _prepare_server(plan: Plan, directory: Path, pid: int) -> Server:
    directory.mkdir()
    user = "" if plan.privileged else "--user --preserve-credentials"
    enter = _ENTER.format(path=system.SEARCH_PATH, nsenter=plan.tools.nsenter, pid=pid, user=user)
    config = directory / "config"
    if plan.tools.sftp_server is None:
        sftp = ""
    else:
        sftp = f"Subsystem sftp {plan.tools.sftp_server}\n"

    config.write_text(_CONFIG.format(private=_PRIVATE, directory=directory, enter=enter) + sftp)
    host_key = make_key(plan.tools.ssh_keygen, directory / "host_key")
    listener = socket.create_server((ADDRESS, 0), backlog=128)
    listener.setblocking(False)
    return Server(listener, str(config), host_key)


def make_key(ssh_keygen: str, path: Path) -> str:
    """Makes an Ed25519 key pair without a passphrase, and returns the public key.

    Raises:
        OSError: If it cannot be made.
    """
    command = [ssh_keygen, "-q", "-t", "ed25519", "-N", "", "-C", "lossratio", "-f", str(path)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"{ssh_keygen} failed: {done.stderr.strip()}")
    return Path(f"{path}.pub").read_text().strip()


def _lay_out_accounts(plan: Plan) -> None:
    user, group = os.getuid(), os.getgid()
    try:
        separation = pwd.getpwnam("sshd").pw_uid
    except KeyError:
        separation = 65534

    sshd = f"sshd:x:{separation}:65534::/run/sshd:/bin/false"
    files = {
        "passwd": f"{plan.user}:x:{user}:{group}::{plan.home}:/bin/sh\n{sshd}\n",
        "group": f"{plan.user}:x:{group}:\nnogroup:x:65534:\n",
        "shadow": f"{plan.user}:*:::::::\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files\n",
    }
    for name, text in files.items():
        own = _PRIVATE / name
        own.write_text(text)
        if Path("/etc", name).exists():
            system.mount(str(own), f"/etc/{name}", None, system.BIND)
