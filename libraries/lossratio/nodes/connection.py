"""Opens SSH connections to nodes, with strict host keys. Private keys or an SSH agent come before passwords.

The files with host keys and private keys may be broken: an error then names the file and the line.
"""

import io
import logging
import os
import shlex
import socket
import struct
import subprocess
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import paramiko
from cryptography.exceptions import UnsupportedAlgorithm
from paramiko.hostkeys import HostKeyEntry, InvalidHostKey

from lossratio.errors import NodeError
from lossratio.files import read_input_file
from lossratio.nodes.credentials import Credentials, own_name
from lossratio.nodes.limits import within
from lossratio.topology import Node

KEEPALIVE = 10
"""Seconds without traffic after which a keepalive goes out."""
DEAD_PEER = 30
"""Seconds without an acknowledgement from the node after which the connection counts as lost."""
_RSA_SIGNATURES = ("rsa-sha2-512", "rsa-sha2-256", "ssh-rsa")
_LOG_CHANNEL = "lossratio.nodes.transport"

_USER_CONFIG = Path("~/.ssh/config")
"""The names of hosts, and the ways to them, that the user has for ``ssh``."""
_MOST_CONFIG_BYTES = 1 << 20
_PROXY_ENDS = 1.0
"""Seconds in which the command that leads to a host ends after its connection was closed."""
_USER_KNOWN_HOSTS = Path("~/.ssh/known_hosts")
"""The host keys that the user has accepted so far."""
_HOST_KEY_TYPES = (
    "ssh-ed25519",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "ssh-rsa",
)
"""The types of host keys that can be compared."""
_MOST_KNOWN_HOSTS_BYTES = 1 << 25
_MOST_KEY_BYTES = 1 << 20
_NO_KEY = (
    *(paramiko.SSHException, InvalidHostKey, UnsupportedAlgorithm, struct.error),
    *(ValueError, LookupError, TypeError, AttributeError, ArithmeticError, AssertionError),
)
"""Exceptions of paramiko for bytes that are neither a key nor the hash of a host name."""

# Without a handler of the application, Python would print paramiko's tracebacks to stderr beside our one clear error.
logging.getLogger(_LOG_CHANNEL).addHandler(logging.NullHandler())


def open_client(name: str, node: Node, credentials: Credentials) -> paramiko.SSHClient:
    """Connects to a node's sshd, checks its host key and logs in, all within the node's ``connect_timeout``.

    Raises:
        NodeError: If the node has no host or cannot be reached in time, its host key is unknown or has changed, or it
            refuses the log-in.
    """
    if node.host is None:
        raise NodeError(
            f"Node {name} has no host to connect to. Bring its local testbed up first with 'lossratio lab up'."
        )
    node, way = _as_configured(name, node)
    host = str(node.host)
    username = node.username or own_name()
    if username is None:
        raise NodeError(
            f"Node {name}: your user has no name on this machine. Set the node's 'username'."
        )

    where = f"Node {name} ({username}@{node.host}:{node.port})"
    if way.proxy:
        where = f"Node {name} ({username}@{node.host}:{node.port}, through '{way.proxy}')"
    client = paramiko.SSHClient()
    client.set_log_channel(_LOG_CHANNEL)
    client.set_missing_host_key_policy(_RefuseUnknown(name, node, where))
    identity = way.alias or (host if node.port == 22 else f"[{host}]:{node.port}")
    _load_host_keys(client.get_host_keys(), identity, node, where)
    if node.key_file is None:
        key = None
    else:
        key = _load_private_key(node.key_file, credentials.passphrase, where)

    proxy = None if way.command is None else _Proxy(way.command)
    if proxy is None:
        connection = _open_socket(host, node.port, node.connect_timeout, where)
    else:
        connection = proxy.socket
    keys: dict[str, Any] = {"key_filename": list(way.keys)} if key is None else {}
    # paramiko's own limits must not be reached first: their messages say less.
    later = 2 * node.connect_timeout

    with within(node.connect_timeout, lambda: connection.shutdown(socket.SHUT_RDWR)) as expired:
        try:
            # Record: everything that paramiko would decide by itself.
            client.connect(
                way.alias or host,
                node.port if way.alias is None else 22,
                sock=connection,
                username=username,
                pkey=key,
                **keys,
                password=credentials.password,
                passphrase=credentials.passphrase,
                allow_agent=key is None,
                look_for_keys=key is None,
                timeout=later,
                banner_timeout=later,
                auth_timeout=later,
                disabled_algorithms={"keys": _unknown_algorithms(client.get_host_keys(), identity)},
            )
        except BaseException as cause:
            # Even a test's timeout or an interrupt must not leave a connection behind.
            client.close()
            connection.close()
            if isinstance(cause, NodeError) or not isinstance(cause, Exception):
                raise
            why = _explain(cause, node, expired.is_set())
            is_answer = isinstance(
                cause, (paramiko.AuthenticationException, paramiko.BadHostKeyException)
            )
            if proxy is not None and not is_answer:
                why = proxy.failed() or why
            raise NodeError(f"{where}: {why}") from cause

    transport = client.get_transport()
    if transport is not None:
        transport.set_keepalive(KEEPALIVE)
    return client


@dataclass(frozen=True)
class _Way:
    """What ``~/.ssh/config`` says of a host, besides the fields that nodes have."""

    alias: str | None = None
    """The name in known_hosts that stands for the host (HostKeyAlias); None: its own."""
    proxy: str | None = None
    """The bastions (ProxyJump) or the command (ProxyCommand) that lead to it; None: it is reached directly."""
    command: str | None = None
    """The line of shell code that connects its standard input and output with the host."""
    keys: Sequence[str] = ()
    """The private keys to try besides those of the agent (IdentityFile)."""


def _as_configured(name: str, node: Node) -> tuple[Node, _Way]:
    """The node as the user's ``ssh`` would reach it. What the topology file says comes first.

    Raises:
        NodeError: If the file of the configuration cannot be read.
    """
    try:
        file = _USER_CONFIG.expanduser()
    except RuntimeError:
        # Without a home directory, there is no file.
        return node, _Way()
    if not file.exists():
        return node, _Way()
    where = f"Node {name}"
    text = _read(file, "its SSH configuration", _MOST_CONFIG_BYTES, where)
    # As in OpenSSH, the first value counts.
    own = {"Port": node.port if "port" in node.model_fields_set else None, "User": node.username}
    first = "".join(f"{field} {value}\n" for field, value in own.items() if value is not None)
    try:
        found = paramiko.SSHConfig.from_text(f"{first}\n{text}").lookup(str(node.host))
    except (paramiko.SSHException, ValueError, ImportError) as cause:
        raise NodeError(f"{where}: {file} cannot be used: {cause}. Correct it.") from cause

    fields: dict[str, Any] = {"host": found["hostname"], "port": int(found.get("port", node.port))}
    fields["username"] = node.username or found.get("user")
    files = [_expanded(Path(key), where) for key in found.get("identityfile", ())]
    keys = [str(file) for file in files if file.exists()]
    if node.known_hosts is None:
        known = map(Path, found.get("userknownhostsfile", "").replace('"', "").split())
        fields["known_hosts"] = next((file for file in known if file.expanduser().exists()), None)
    jump = found.get("proxyjump", "none")
    command = proxy = found.get("proxycommand")
    if command is None and jump.casefold() != "none":
        command, proxy = _jump(jump, fields, node, file), jump
    # Record: what the file says.
    return node.model_copy(update=fields), _Way(found.get("hostkeyalias"), proxy, command, keys)


def _jump(bastions: str, host: Mapping[str, Any], node: Node, file: Path) -> str:
    """The command that reaches a host through bastions, the last of which connects to it."""
    *before, last = bastions.split(",")
    words = [
        "ssh",
        "-F",
        str(file),
        "-o",
        "BatchMode=yes",
        "-W",
        f"[{host['host']}]:{host['port']}",
    ]
    if before:
        words += ["-J", ",".join(before)]
    # Keys of the topology file or the command line open the bastion, too.
    if node.key_file is not None:
        words += ["-i", str(node.key_file)]
    if node.known_hosts is not None:
        words += ["-o", f"UserKnownHostsFile={node.known_hosts}"]
    return shlex.join([*words, f"ssh://{last}"])


class _Proxy:
    """A command that leads to a host.

    Attributes:
        socket: Its standard input and output.
    """

    def __init__(self, command: str) -> None:
        self.socket, far = socket.socketpair()
        self._errors = io.FileIO(os.memfd_create("errors"), "r+")
        self._process = subprocess.Popen(
            ["sh", "-c", f"exec {command}"],
            stdin=far.fileno(),
            stdout=far.fileno(),
            stderr=self._errors,
            start_new_session=True,
        )
        far.close()
        # It ends when the connection is closed, and nobody else waits for it.
        threading.Thread(target=self._process.wait, daemon=True).start()

    def failed(self) -> str | None:
        """Why a log-in failed, if the command is the reason; None: it is not."""
        self.socket.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_PROXY_ENDS)
        self._errors.seek(0)
        said = " ".join(self._errors.read().decode(errors="replace").split()).rstrip(".")
        if not said and not self._process.returncode:
            return None
        return (
            f"the connection through the bastion or the ProxyCommand failed: {said or 'it was closed'}. Try the same "
            "host with 'ssh', which asks about unknown host keys and passphrases."
        )


class _RefuseUnknown(paramiko.MissingHostKeyPolicy):
    def __init__(self, name: str, node: Node, where: str) -> None:
        self._name = name
        self._node = node
        self._where = where

    def missing_host_key(
        self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey
    ) -> None:
        file = self._node.known_hosts or _USER_KNOWN_HOSTS
        line = f"{key.get_name()} {key.get_base64()}"
        raise NodeError(
            f"{self._where}: its host key is not known. It offers {key.get_name()} with fingerprint {key.fingerprint}. "
            f"If that is the node's key, add it: either 'host_key: {line}' to node {self._name} in the topology file, "
            f"or the line '{hostname} {line}' to {file}."
        )


def _unknown_algorithms(keys: paramiko.HostKeys, identity: str) -> list[str]:
    known = keys.lookup(identity)
    if known is None:
        return []
    # A node may have keys of several types; it must send one that we can compare.
    return [
        algorithm
        for key_type in _HOST_KEY_TYPES
        if key_type not in known
        for algorithm in (_RSA_SIGNATURES if key_type == "ssh-rsa" else (key_type,))
    ]


def _open_socket(host: str, port: int, timeout: float, where: str) -> socket.socket:
    try:
        connection = socket.create_connection((host, port), timeout)
    except ConnectionRefusedError as cause:
        raise NodeError(
            f"{where}: connection refused. Is sshd running there, and is this its port?"
        ) from cause
    except (socket.gaierror, UnicodeError) as cause:
        reason = getattr(cause, "strerror", None) or "it is not a host name"
        raise NodeError(
            f"{where}: the host name cannot be resolved: {reason}. Check the name, or give an address."
        ) from cause
    except TimeoutError as cause:
        raise NodeError(
            f"{where}: no connection within {timeout:g} s. Is the node up, and the network to it?"
        ) from cause
    except OSError as cause:
        raise NodeError(f"{where}: cannot connect: {cause.strerror}.") from cause

    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, DEAD_PEER * 1000)
    return connection


def _explain(cause: Exception, node: Node, expired: bool) -> str:
    if expired:
        return (
            f"the log-in was not finished within {node.connect_timeout:g} s. Look at the load of the node and at the "
            "network to it, or raise its connect_timeout."
        )
    if isinstance(cause, paramiko.BadHostKeyException):
        return (
            f"its host key has CHANGED: expected {cause.expected_key.get_name()} {cause.expected_key.fingerprint}, "
            f"got {cause.key.get_name()} {cause.key.fingerprint}. Somebody may intercept the connection. If the "
            "node was reinstalled, replace its key in the topology file or in known_hosts."
        )
    if isinstance(cause, paramiko.AuthenticationException):
        if node.key_file:
            tried = f"key {node.key_file}"
        else:
            tried = "the keys of the agent and of ~/.ssh"

        return f"log-in refused ({tried}). Check the user name, and that the user's authorized_keys has the key."
    if "no acceptable host key" in str(cause):
        return "the node no longer has a host key of the known type. Replace the known key with one of its keys."
    if "protocol banner" in str(cause) or "Indecipherable protocol version" in str(cause):
        return (
            "the connection was accepted, but no SSH server answered. Check that "
            f"{node.port} is the port of its sshd, and that this machine may log in there."
        )
    if "No authentication methods" in str(cause):
        return (
            "nothing to log in with: no key_file, no key in the agent, no key in ~/.ssh, no LOSSRATIO_PASSWORD. Name "
            "the key_file, or give the agent a key: ssh-add."
        )

    return f"no SSH connection: {str(cause) or type(cause).__name__}."


def _load_host_keys(keys: paramiko.HostKeys, identity: str, node: Node, where: str) -> None:
    """Loads the host keys of a node: the key in the topology file, or those in known_hosts.

    As in OpenSSH, broken lines of known_hosts do no harm if they belong to other nodes.
    """
    if node.host_key is not None:
        key = parsed_key(f"{identity} {node.host_key}")
        if key is None:
            raise NodeError(
                f"{where}: its host_key is not a public key. It must be a line like 'ssh-ed25519 AAAA...'."
            )
        keys.add(identity, key.get_name(), key)
        return

    file = _expanded(node.known_hosts or _USER_KNOWN_HOSTS, where)
    if node.known_hosts is None and not file.exists():
        return
    for number, line in enumerate(
        _read(file, "its known_hosts file", _MOST_KNOWN_HOSTS_BYTES, where).splitlines(), 1
    ):
        names, kind, *_ = (*line.split(), "", "")
        # Besides a key of a known type, a node may have keys of types that this version of paramiko does not know.
        if kind not in _HOST_KEY_TYPES or not any(
            _is_about(name, identity) for name in names.split(",")
        ):
            continue

        key = parsed_key(line)
        if key is None:
            raise NodeError(
                f"{where}: {file}:{number}: the line of {identity} has no public key of type {kind}. Correct the "
                f"line, or remove it (ssh-keygen -R '{identity}' -f {file})."
            )
        # If there are several keys of one type, the first one counts.
        if key.get_name() not in (keys.lookup(identity) or {}):
            keys.add(identity, key.get_name(), key)


def _load_private_key(path: Path, passphrase: str | None, where: str) -> paramiko.PKey:
    """Loads a private key, and the certificate beside it if there is one."""
    path = _expanded(path, where)
    text = _read(path, "its key file", _MOST_KEY_BYTES, where)
    cause: Exception | None = None

    for kind in (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey):
        try:
            key: paramiko.PKey = kind.from_private_key(io.StringIO(text), passphrase)
        except paramiko.PasswordRequiredException as error:
            raise NodeError(
                f"{where}: its key file {path} is encrypted; set the environment variable LOSSRATIO_PASSPHRASE."
            ) from error
        except _NO_KEY as error:
            cause = error
        else:
            break
    else:
        if passphrase:
            hint = "the passphrase may be wrong"
        else:
            hint = "it must be an Ed25519, ECDSA or RSA key"

        raise NodeError(
            f"{where}: its key file {path} cannot be used as a private key; {hint}."
        ) from cause

    certificate = Path(f"{path}-cert.pub")
    if certificate.exists():
        text = _read(certificate, "the certificate", _MOST_KEY_BYTES, where)
        try:
            key.load_certificate(text)
        except _NO_KEY as error:
            raise NodeError(
                f"{where}: {certificate} is not a certificate of its key. Correct or remove it."
            ) from error

    return key


def _expanded(path: Path, where: str) -> Path:
    """A path with the home directory for ``~``."""
    try:
        return path.expanduser()
    except RuntimeError as cause:
        raise NodeError(
            f"{where}: the path {path} needs a home directory, and there is none. Write the path in full."
        ) from cause


def _read(path: Path, what: str, most_bytes: int, where: str) -> str:
    try:
        return read_input_file(path, NodeError, most_bytes, what).decode(errors="replace")
    except NodeError as cause:
        message = str(cause)
        raise NodeError(f"{where}: {message[0].lower()}{message[1:]}") from cause


def _is_about(name: str, identity: str) -> bool:
    if not name.startswith("|1|"):
        return name == identity
    try:
        return paramiko.HostKeys.hash_host(identity, name) == name
    except _NO_KEY:
        return False


def parsed_key(line: str) -> paramiko.PKey | None:
    """The key in a line of known_hosts; None: there is none."""
    try:
        entry = HostKeyEntry.from_line(" ".join(line.split()))
    except _NO_KEY:
        return None
    if entry is None:
        return None
    return entry.key
