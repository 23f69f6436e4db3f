# SPDX-License-Identifier: Apache-2.0
"""Single frames through cards that TRex has taken from the kernel: questions for next hops, and reminders for them."""

from __future__ import annotations

from contextlib import ExitStack, closing
from typing import Any, Callable, Sequence

from ..core.configuration import mac_bytes
from ..core.neighbours import Question, asking_frame, reminding_frame, resolve
from ..core.protocol import AgentError, unsupported
from .connection import TrexConnection

_MOST_CAPTURED = 1000
_POLL_SECONDS = 5e-3
_RESOLVE_SECONDS = 3.0
_COUNTED_SECONDS = 0.1
_REMIND_SECONDS = 5.0
"""Seconds between two reminders; Linux doubts an entry after at least 15 s, and gives it up some seconds later."""


class CardWire:
    """TRex's ports in service mode, as a `lossratio.agent.core.packets.Wire`.

    In service mode, TRex gives received frames to its captures; no traffic may then be started. The connection is
    closed with it if `is_own`.
    """

    def __init__(self, connection: TrexConnection, *, is_own: bool = False) -> None:
        self._connection = connection
        self._ports = connection.settings.ports
        self._names = {number: name for name, number in self._ports.items()}

        with ExitStack() as undo:
            if is_own:
                undo.callback(connection.close)
            info = connection.port_info()
            self._macs = {name: mac_bytes(info[number]["src_mac"]) for name, number in self._ports.items()}
            numbers = sorted(self._names)
            undo.callback(self._quietly, "set_service_mode", ports=numbers, enabled=False)
            connection.call("begin service mode", "set_service_mode", ports=numbers, enabled=True)
            answer = connection.call("capture frames", "start_capture", rx_ports=numbers, limit=_MOST_CAPTURED)
            self._capture = int(answer["id"])
            undo.callback(self._quietly, "stop_capture", self._capture)
            self._undo = undo.pop_all()

    def mac(self, port: str) -> bytes:
        """See `Wire.mac`."""
        return self._macs[port]

    def send(self, port: str, frame: bytes) -> None:
        """See `Wire.send`."""
        if push(self._connection, [frame], self._ports[port]) < 1:
            raise OSError(f"TRex did not send it on port {self._ports[port]}")

    def receive(self, seconds: float) -> list[tuple[str, bytes]]:
        """See `Wire.receive`."""
        end = self._connection.clock() + seconds
        while True:
            taken: list[Any] = []
            self._connection.call("show what it captured", "fetch_capture_packets", self._capture, taken)
            if taken or self._connection.clock() >= end:
                return [(self._names[int(packet["port"])], bytes(packet["binary"])) for packet in taken]
            self._connection.sleep(_POLL_SECONDS)

    def close(self) -> None:
        """See `Wire.close`: service mode is left."""
        self._undo.close()

    def _quietly(self, method: str, *arguments: Any, **named: Any) -> None:
        # A server that is gone has left service mode; and an error must not be hidden by another one.
        try:
            self._connection.call("end service mode", method, *arguments, **named)
        except AgentError as error:
            print(f"lossratio agent: {error}")


def push(connection: TrexConnection, frames: Sequence[bytes], port: int) -> int:
    """Sends single frames, without FCS, which the port's counters include; returns how many were sent."""
    wrap = getattr(connection.api, "PacketBuffer", None)
    if wrap is None:
        raise unsupported(
            f"TRex's client ({connection.origin}) cannot send single frames with other MAC addresses, which ARP "
            "needs. Use a newer TRex. Or leave out 'gateway' and 'address', set the gateway's MAC address on the "
            "DUT ('west_mac', 'east_mac'), and the TG's on the gateway."
        )
    doing = f"send frames on port {port}"
    data = connection.call(doing, "push_packets", [wrap(frame) for frame in frames], ports=[port]).data()
    return int((data[0] if isinstance(data, list) else data)["sent"])


class Neighbours:
    """Keeps the ports' addresses known to their next hops, although TRex answers no questions while traffic flows.

    The next hops are first asked in service mode, and so learn the addresses. Then they get unrequested answers every 5
    s, also in trials, so that their entries do not age. TRex's counters of sent frames include these, so `exclude` is
    called with a port's number and how many it has sent.
    """

    def __init__(self, connection: TrexConnection, exclude: Callable[[int, int], None]) -> None:
        settings = connection.settings
        self._connection = connection
        self._exclude = exclude
        self._ports = settings.ports
        self._questions = [Question(**question) for question in settings.neighbours]
        self._own: dict[str, bytes] = {}
        self._macs: dict[Question, bytes] = {}
        self._last = -float("inf")
        if self._questions:
            with closing(CardWire(connection)) as wire:
                self._own = {name: wire.mac(name) for name in settings.ports}
                self._learn(resolve(self._questions, wire, _RESOLVE_SECONDS))

    def greet(self, settle: float) -> bool:
        """Asks the next hops again before traffic begins, if some time has passed, and waits some seconds for answers.

        Returns whether it asked, because the ports' counters then include the answers.
        """
        if not self._questions or self._connection.clock() - self._last < _REMIND_SECONDS:
            return False
        self._push([(question.port, asking_frame(question, self._own[question.port])) for question in self._questions])
        self.remind()
        # TRex counts them some milliseconds after it has said that they were sent.
        self._connection.sleep(max(settle, _COUNTED_SECONDS))
        return True

    def remind(self) -> None:
        """Reminds the next hops, if it is time; to be called several times a second."""
        now = self._connection.clock()
        if self._macs and now - self._last >= _REMIND_SECONDS:
            self._last = now
            self._push(
                [(asked.port, reminding_frame(asked, self._own[asked.port], mac)) for asked, mac in self._macs.items()]
            )

    def _learn(self, answers: list[list[str]]) -> None:
        for question, macs in zip(self._questions, answers):
            if len(macs) != 1:
                if not macs:
                    how = "is silent"
                else:
                    how = f"is the address of several devices ({', '.join(macs)})"

                raise AgentError(
                    "no_neighbour",
                    f"The next hop {question.target} of {question.port} {how}. The "
                    f"request came from {question.source}. Look at the link, at the device's address and VLAN there, "
                    "and at 'address' and 'gateway' in the topology file.",
                )
            self._macs[question] = mac_bytes(macs[0])

    def _push(self, frames: list[tuple[str, bytes]]) -> None:
        for port in dict.fromkeys(port for port, _ in frames):
            number = self._ports[port]
            self._exclude(number, push(self._connection, [frame for name, frame in frames if name == port], number))
