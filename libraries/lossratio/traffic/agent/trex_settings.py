"""What the agent must know about a TRex server, besides the traffic."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from .protocol import AgentError, Message


@dataclass(frozen=True)
class TrexSettings:
    """How to reach a TRex server, and what its ports are. The controller's side makes it, too.

    Attributes:
        directory: The installation that the server runs from.
        ports: TRex's numbers of the ports, by the names that the configuration has for them.
        rpc_port: TCP port of its requests.
        publisher_port: TCP port of its events.
        uses_linux: Whether the ports are Linux interfaces, which it sends on through packet sockets.
        connect_timeout: Seconds that it may take to get ready.
        late_end: Seconds after a trial's end within which its traffic must have ended by itself; what is sent later
            than that was sent too slowly.
        largest_frame: Bytes, with FCS, of the largest frame that its buffers are made for.
        log: File that the server writes its log into.
        is_ours: Whether nobody else can use the server, so that its ports are taken from whoever holds them: an earlier
            agent that was killed.
    """

    directory: str
    ports: dict[str, int]
    rpc_port: int
    publisher_port: int
    uses_linux: bool
    connect_timeout: float
    late_end: float
    largest_frame: int
    log: str
    is_ours: bool

    def to_json(self) -> Message:
        """The settings as JSON data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Message) -> TrexSettings:
        """Reads what `to_json` wrote.

        Raises:
            AgentError: Of kind ``bad_request``.
        """
        try:
            return cls(**data)
        except TypeError as error:
            raise AgentError("bad_request", f"The settings of TRex cannot be read: {error}.") from error
