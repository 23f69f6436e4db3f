"""The plan of a testbed, which a run sends to the holder."""

import json
from dataclasses import asdict, dataclass

ADDRESS = "127.0.0.1"
"""The address on which the nodes' SSH servers listen."""


@dataclass(frozen=True)
class LinkEnd:
    """One end of a veth pair."""

    node: str
    """Name of the node that the end is in."""
    interface: str
    """Name of the interface."""
    mac_address: str | None
    """MAC address of the interface; None: the kernel chooses one."""


@dataclass(frozen=True)
class Tools:
    """Absolute paths of the programs that the holder starts."""

    sshd: str
    """OpenSSH's server."""
    ssh_keygen: str
    """OpenSSH's key generator."""
    ip: str
    """iproute2."""
    nsenter: str
    """From util-linux."""
    sftp_server: str | None
    """OpenSSH's SFTP server; None: the nodes have no SFTP."""


@dataclass(frozen=True)
class Plan:
    """A local testbed to build."""

    nodes: tuple[str, ...]
    """Names of the nodes."""
    links: tuple[tuple[LinkEnd, LinkEnd], ...]
    """The two ends of each link."""
    tools: Tools
    """The programs to use."""
    directory: str
    """The testbed's own directory; the holder puts the user's private key there."""
    lock: int
    """File descriptor that holds the directory's lock."""
    runner: int
    """Process id of the run that the testbed belongs to."""
    user: str
    """Name to log in with."""
    home: str
    """Home directory of the sessions."""
    privileged: bool
    """Whether no user namespace is needed."""
    keep: bool
    """Whether the run may ask the holder to outlive it."""
    take_xdp_frames: tuple[str, ...] = ()
    """Names of the nodes whose interfaces accept frames from XDP programs."""
    mtu: int = 9216
    """MTU of the links, bytes."""

    def to_json(self) -> str:
        """The plan as one line of JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Plan":
        """Reads what `to_json` wrote."""
        fields = json.loads(text)
        links = tuple((LinkEnd(**one), LinkEnd(**other)) for one, other in fields.pop("links"))
        return cls(
            nodes=tuple(fields.pop("nodes")),
            links=links,
            tools=Tools(**fields.pop("tools")),
            **fields,
        )
