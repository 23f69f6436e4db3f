"""The nodes' SSH servers: one address, port and host key per node, one sshd process per connection."""

from __future__ import annotations

import os
import pwd
import selectors
import signal
import socket
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lossratio.holder import system
from lossratio.holder.plan import Plan

ADDRESS = "127.0.0.1"
"""Where the servers listen."""

_PRIVATE = Path("/run/lossratio")

_CONFIG = """\
HostKey {directory}/host_key
AuthorizedKeysFile {private}/authorized_keys
ForceCommand exec {directory}/enter
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

_ENTER = """\
#!/bin/sh
export PATH={path} XDG_CACHE_HOME=/run
exec {nsenter} --target={pid} {user} --net --mount --ipc -- \
/bin/sh -c 'cd "$HOME" 2>/dev/null; eval "${{SSH_ORIGINAL_COMMAND:-exec /bin/sh -i}}"'
"""


@dataclass(frozen=True)
class Server:
    """A node's SSH server.

    Attributes:
        listener: The socket it listens on.
        config: Its configuration file.
        host_key: Its public host key.
    """

    listener: socket.socket
    config: str
    host_key: str


def prepare(plan: Plan, nodes: dict[str, int], authorized_key: str) -> dict[str, Server]:
    """Opens the servers' sockets, and lays out what sshd needs in a mount namespace of its own.

    None of it is ever on the machine's disks: /run is a new file system here, with the directory that sshd insists on
    and everything of ours, and the accounts are ours alone, so that no expired account, odd shell or directory
    service gets in the way.

    Args:
        plan: What is being built.
        nodes: Id of each node's process, as /proc shows it.
        authorized_key: The public key that may log in.

    Raises:
        OSError: If the kernel forbids one of the mounts, or no port is left.
    """
    system.mount("tmpfs", "/run", "tmpfs", system.NO_SUID | system.NO_DEVICES, "mode=755")
    # sshd notes interactive log-ins there, and the machine's own records are none of our business.
    if Path("/var/log").is_dir():
        system.mount("tmpfs", "/var/log", "tmpfs", system.NO_SUID | system.NO_DEVICES, "mode=755")
    Path("/run/sshd").mkdir(mode=0o755)
    _PRIVATE.mkdir(mode=0o755)
    _lay_out_accounts(plan)
    (_PRIVATE / "authorized_keys").write_text(authorized_key)
    return {name: _prepare_server(plan, _PRIVATE / f"node{n}", pid) for n, (name, pid) in enumerate(nodes.items())}


def serve(servers: dict[str, Server], nodes: set[int], holder: int, plan: Plan) -> None:
    """Starts an sshd for every connection, and reaps what has ended, until the holder or a node's process ends.

    Args:
        servers: The servers.
        nodes: Process ids that must live.
        holder: Pipe whose other end only the holder has.
        plan: What has been built.
    """
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
    # Whoever it was may be gone again, or sshd be replaced at this moment: that ends one connection, not the testbed.
    with suppress(OSError):
        connection, _ = server.listener.accept()
        with connection:
            connection.setblocking(True)
            # sshd itself does so only once a command runs; before, the client's delayed acknowledgement costs 40 ms.
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            descriptor = connection.fileno()
            system.spawn([sshd, "-i", "-e", "-f", server.config], stdin=descriptor, stdout=descriptor, stderr=log)


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
    enter = directory / "enter"
    user = "" if plan.privileged else "--user --preserve-credentials"
    enter.write_text(_ENTER.format(path=system.SEARCH_PATH, nsenter=plan.tools.nsenter, pid=pid, user=user))
    enter.chmod(0o755)
    config = directory / "config"
    sftp = "" if plan.tools.sftp_server is None else f"Subsystem sftp {plan.tools.sftp_server}\n"
    config.write_text(_CONFIG.format(private=_PRIVATE, directory=directory) + sftp)
    host_key = make_key(plan.tools.ssh_keygen, directory / "host_key")
    listener = socket.create_server((ADDRESS, 0), backlog=128)
    listener.setblocking(False)
    return Server(listener, str(config), host_key)


def make_key(ssh_keygen: str, path: Path) -> str:
    """Makes an Ed25519 key pair without a passphrase, and gives the public key.

    Raises:
        OSError: If it cannot be written.
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
    accounts = (
        f"{plan.user}:x:{user}:{group}::{plan.home}:/bin/sh",
        f"sshd:x:{separation}:65534::/run/sshd:/bin/false",
    )
    files = {
        "passwd": "\n".join((*accounts, "")),
        "group": f"{plan.user}:x:{group}:\nnogroup:x:65534:\n",
        "shadow": f"{plan.user}:*:::::::\n",
        "nsswitch.conf": "passwd: files\ngroup: files\nshadow: files\nhosts: files\n",
    }
    for name, text in files.items():
        own = _PRIVATE / name
        own.write_text(text)
        if Path("/etc", name).exists():
            system.mount(str(own), f"/etc/{name}", None, system.BIND)
