"""Reads host keys and private keys from files, which may be broken."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import paramiko
from cryptography.exceptions import UnsupportedAlgorithm
from paramiko.hostkeys import HostKeyEntry, InvalidHostKey

from lossratio.errors import NodeError
from lossratio.input_file import read_input_file
from lossratio.topology import Node

USER_KNOWN_HOSTS = Path("~/.ssh/known_hosts")
"""The host keys that the user has accepted so far."""

HOST_KEY_TYPES = ("ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521", "ssh-rsa")
"""The types of host keys that can be compared."""

_MOST_KNOWN_HOSTS_BYTES = 1 << 25
_MOST_KEY_BYTES = 1 << 20
_KINDS = (paramiko.Ed25519Key, paramiko.ECDSAKey, paramiko.RSAKey)
_NO_KEY = (
    *(paramiko.SSHException, InvalidHostKey, UnsupportedAlgorithm, struct.error),
    *(ValueError, LookupError, TypeError, AttributeError, ArithmeticError, AssertionError),
)
"""Exceptions of paramiko for bytes that are no key, or no hash of a host name."""


def load_host_keys(keys: paramiko.HostKeys, identity: str, node: Node, where: str) -> None:
    """Loads the host keys of a node: the key in the topology file, or those in known_hosts.

    As in OpenSSH, broken lines of known_hosts do no harm if they belong to other nodes.

    Args:
        keys: Gets the keys.
        identity: The node's name in known_hosts.
        node: The node.
        where: The node's name in errors.

    Raises:
        NodeError: If the file cannot be read, or its entry for the node is no public key; with file and line.
    """
    if node.host_key is not None:
        key = _parsed(f"{identity} {node.host_key}")
        if key is None:
            raise NodeError(f"{where}: its host_key is no public key; it must be a line like 'ssh-ed25519 AAAA...'.")
        keys.add(identity, key.get_name(), key)
        return
    file = _expanded(node.known_hosts or USER_KNOWN_HOSTS, where)
    if node.known_hosts is None and not file.exists():
        return
    for number, line in enumerate(_read(file, "its known_hosts file", _MOST_KNOWN_HOSTS_BYTES, where).splitlines(), 1):
        names, kind, *_ = (*line.split(), "", "")
        # A node may have keys of types that this version of paramiko does not know, beside a key that it knows.
        if kind not in HOST_KEY_TYPES or not any(_is_about(name, identity) for name in names.split(",")):
            continue
        key = _parsed(line)
        if key is None:
            raise NodeError(
                f"{where}: {file}:{number}: the line of {identity} has no public key of type {kind}. Correct the "
                f"line, or remove it (ssh-keygen -R '{identity}' -f {file})."
            )
        # The first of several keys of one type counts.
        if key.get_name() not in (keys.lookup(identity) or {}):
            keys.add(identity, key.get_name(), key)


def is_public_key(text: str) -> bool:
    """Whether a text is a public host key, as a topology file has it: ``ssh-ed25519 AAAA...``."""
    return _parsed(f"host {text}") is not None


def load_private_key(path: Path, passphrase: str | None, where: str) -> paramiko.PKey:
    """Loads a private key, and the certificate beside it if there is one.

    Args:
        path: The file.
        passphrase: Passphrase of the key; None: it is not encrypted.
        where: The node's name in errors.

    Raises:
        NodeError: If the file cannot be read or is no key, or is encrypted and there is no passphrase.
    """
    path = _expanded(path, where)
    text = _read(path, "its key file", _MOST_KEY_BYTES, where)
    cause: Exception | None = None
    for kind in _KINDS:
        try:
            key: paramiko.PKey = kind.from_private_key(io.StringIO(text), passphrase)
        except paramiko.PasswordRequiredException as error:
            raise NodeError(
                f"{where}: its key file {path} is encrypted; set the environment variable LOSSRATIO_PASSPHRASE."
            ) from error
        except _NO_KEY as error:
            cause = error
        else:
            _load_certificate(key, Path(f"{path}-cert.pub"), where)
            return key
    hint = "the passphrase may be wrong" if passphrase else "it must be an Ed25519, ECDSA or RSA key"
    raise NodeError(f"{where}: its key file {path} cannot be used as a private key; {hint}.") from cause


def _expanded(path: Path, where: str) -> Path:
    """A path with the home directory for ``~``."""
    try:
        return path.expanduser()
    except RuntimeError as cause:
        raise NodeError(f"{where}: there is no home directory for {path}. Write the path in full.") from cause


def _load_certificate(key: paramiko.PKey, path: Path, where: str) -> None:
    if not path.exists():
        return
    text = _read(path, "the certificate", _MOST_KEY_BYTES, where)
    try:
        key.load_certificate(text)
    except _NO_KEY as cause:
        raise NodeError(f"{where}: {path} is no certificate of its key. Correct the file, or remove it.") from cause


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


def _parsed(line: str) -> paramiko.PKey | None:
    try:
        entry = HostKeyEntry.from_line(" ".join(line.split()))
    except _NO_KEY:
        return None
    return None if entry is None else entry.key
