"""The plan of a testbed, which a run sends to the holder."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

ADDRESS = "127.0.0.1"
"""Where the nodes' SSH servers listen."""


@dataclass(frozen=True)
class LinkEnd:
    """One end of a veth pair.

    Attributes:
        node: Name of the node that the end is in.
        interface: Name of the interface.
        mac_address: MAC address of the interface; None: the kernel chooses one.
    """

    node: str
    interface: str
    mac_address: str | None


@dataclass(frozen=True)
class Tools:
    """Absolute paths of the programs that the holder starts.

    Attributes:
        sshd: OpenSSH's server.
        ssh_keygen: OpenSSH's key generator.
        ip: iproute2.
        nsenter: From util-linux.
        sftp_server: OpenSSH's SFTP server; None: the nodes have no SFTP.
    """

    sshd: str
    ssh_keygen: str
    ip: str
    nsenter: str
    sftp_server: str | None


@dataclass(frozen=True)
class Plan:
    """A local testbed to build.

    Attributes:
        nodes: Names of the nodes.
        links: The two ends of each link.
        tools: The programs to use.
        directory: The testbed's own directory; the holder puts the user's private key there.
        lock: File descriptor that holds the directory's lock.
        runner: Process id of the run that the testbed belongs to.
        user: Name to log in with.
        home: Home directory of the sessions.
        privileged: Whether no user namespace is needed.
        keep: Whether the run may ask the holder to outlive it.
        device_cpus: Nodes whose interfaces take frames of XDP programs, each with the processor for a thread of the
            kernel that receives for them; None: the processor that sends does that.
        mtu: MTU of the links, bytes.
    """

    nodes: tuple[str, ...]
    links: tuple[tuple[LinkEnd, LinkEnd], ...]
    tools: Tools
    directory: str
    lock: int
    runner: int
    user: str
    home: str
    privileged: bool
    keep: bool
    device_cpus: dict[str, int | None] = field(default_factory=dict)
    mtu: int = 9216

    def to_json(self) -> str:
        """The plan as one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Reads what `to_json` wrote."""
        fields = json.loads(text)
        links = tuple((LinkEnd(**one), LinkEnd(**other)) for one, other in fields.pop("links"))
        return cls(nodes=tuple(fields.pop("nodes")), links=links, tools=Tools(**fields.pop("tools")), **fields)
