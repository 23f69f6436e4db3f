# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-or-later
"""The connection to a TRex server: its settings, TRex's client, and all calls of the client.

The client is the installation's own one, or else the package ``trex-stl-lib``. The client's errors come out as the
agent's.
"""

from __future__ import annotations

import importlib
import math
import os
import re
import sys
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Callable, Iterator, Mapping, NoReturn, Sequence

from ..core.protocol import AgentError, Message, unsupported

SERVER_LOST = "server_lost"
"""Kind of the error if a server does not answer, or no longer answers."""
_OWN_CLIENT = "automation/trex_control_plane/interactive"
_OWN_CLIENTS = ((_OWN_CLIENT, "trex.stl.api"), ("automation/trex_control_plane/stl", "trex_stl_lib.api"))

_RETRY_SECONDS = 0.25
_LONGEST_SECONDS = 3600.0
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_LEAD = 0.07
# Table: words of TRex's errors, and what they mean.
_FAULTS = (
    (
        ("version mismatch", "mismatch between client and server"),
        "version",
        "TRex's server and client are of different versions: {text}. The client is {origin}; set the generator's "
        "'directory' in the topology file to the installation that the server runs from.",
    ),
    (
        ("already taken", "is owned by", "not owned", "acquired by"),
        "ports_taken",
        "TRex's ports belong to another client: {text}. Wait until they are released, or stop that program.",
    ),
    (
        (
            "failed to get server response",
            "failed to send message",
            "not connected to server",
            "while disconnected",
            "connection to the server had been lost",
            "connection lost",
            "timeout",
            "timed out",
        ),
        SERVER_LOST,
        "The TRex server does not answer the request to {doing}: {text}. If it is still running, it hangs. Kill it; "
        "its process id is in {pid}.",
    ),
)


@dataclass(frozen=True)
class TrexSettings:
    """How to reach a TRex server, and what its ports are. The controller's side also makes this object."""

    directory: str
    """The installation that the server runs from."""
    ports: dict[str, int]
    """TRex's numbers of the ports, by the names that the configuration has for them."""
    rpc_port: int
    """TCP port of its requests."""
    publisher_port: int
    """TCP port of its events."""
    uses_linux: bool
    """Whether the ports are Linux interfaces, on which it sends through packet sockets."""
    connect_timeout: float
    """Seconds that it may take to get ready."""
    late_end: float
    """Seconds after a trial's end within which its traffic must have ended by itself; frames sent later were sent too
    slowly."""
    largest_frame: int
    """Bytes, with FCS, of the largest frame that its buffers are made for."""
    log: str
    """File that the server writes its log into."""
    is_ours: bool
    """Whether lossratio started the server, so that nobody else can use it. Its ports are then taken from their owner,
    an earlier agent that was killed."""
    pin_cores: bool = False
    """Whether each core sends on only one port of its pair."""
    promiscuous: bool = False
    """Whether ports accept frames to any MAC address."""
    force: bool = False
    """Whether traffic starts although the server refuses it."""
    flow_statistics: bool = False
    """Whether each stream counts its own frames in trials."""
    neighbours: tuple[dict[str, str], ...] = ()
    """The fields of a `lossratio.agent.core.neighbours.Question` for each address of a port that a next hop
    must know and for which nobody answers, because the ports are not the kernel's."""
    most_connections: int = 1 << 20
    """Connections that the server has memory for."""

    @property
    def lead(self) -> float:
        """Seconds from the start of streams to their first frames.

        In software mode, the server's clock may be up to 50 ms behind when it starts a port. It would send at once all
        frames that are due by then, and so a trial's frames in less time than the trial's duration.
        """
        return _LEAD if self.uses_linux else 0.0


@dataclass(frozen=True)
class TrexLibrary:
    """TRex's Python client."""

    api: Any
    """The module with its names (``STLClient``, ``STLStream`` ...)."""
    origin: str
    """Where it comes from, for people."""


def load_library(directory: str, *, is_stateful: bool = False) -> TrexLibrary:
    """Imports the client that belongs to an installation, the directory with ``_t-rex-64`` in it.

    If the installation has none, the client is the package of the same age, which has no advanced stateful mode
    (`is_stateful`).

    Raises:
        AgentError: If there is no client that fits.
    """
    for place, module in ((_OWN_CLIENT, "trex.astf.api"),) if is_stateful else _OWN_CLIENTS:
        path = os.path.join(directory, place)
        if os.path.isdir(path):
            return TrexLibrary(_import_own(directory, path, module), path)

    if is_stateful:
        raise AgentError(
            "no_installation",
            f"{directory!r} on this node has no {_OWN_CLIENT}, TRex's own client, which connections need. "
            "Name a complete "
            "installation of TRex 2.89 or later as the generator's 'directory' in the topology file (or TREX_HOME).",
        )

    try:
        packaged = importlib.import_module("trex_stl_lib.api")
    except ImportError as error:
        raise AgentError(
            "missing_module",
            f"{directory} has a TRex server without its Python client, and the package that replaces it cannot be "
            f"imported: {error}. Install it on this node (pip install trex-stl-lib), for a Python from 3.8 to 3.11.",
        ) from error

    return TrexLibrary(packaged, "the Python package trex-stl-lib")


def _import_own(directory: str, path: str, module: str) -> Any:
    external = os.path.join(directory, "external_libs")
    if os.path.isdir(external):
        os.environ.setdefault("TREX_EXT_LIBS", external)
    sys.path.insert(0, path)

    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise AgentError(
            "missing_module",
            f"TRex's client in {path} needs a Python module that is missing: {error}. Install it on this node.",
        ) from error
    # Importing other people's code may raise anything.
    except Exception as error:
        raise AgentError(
            "wrong_directory",
            f"TRex's client in {path} cannot be used: {error}. Set the generator's 'directory' in the "
            "topology file to a complete installation of TRex.",
        ) from error


class TrexConnection:
    """A connected client with its ports acquired and reset; see `TrexLibrary` for its `origin` and `api`.

    Its `clock` returns the time in seconds, and its `sleep` waits for seconds. Making it fails if the server does not
    answer or does not fit the client, or if its ports belong to somebody else.
    """

    _client_class = "STLClient"

    def __init__(
        self,
        library: TrexLibrary,
        settings: TrexSettings,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.sleep = sleep
        self.origin, self.api = library.origin, library.api
        self._ports = sorted(settings.ports.values())
        self._client = self._call(
            "make a client",
            getattr(library.api, self._client_class),
            server="127.0.0.1",
            sync_port=settings.rpc_port,
            async_port=settings.publisher_port,
            verbose_level=getattr(getattr(library.api, "LoggerApi", None), "VERBOSE_QUIET", "none"),
        )
        _contain_crashes(self._client)

        with ExitStack() as undo:
            undo.callback(self.close)
            self._connect()
            there = list(self._call("list its ports", self._client.get_all_ports))
            if set(self._ports) - set(there):
                raise AgentError(
                    "ports",
                    f"The TRex server has the ports {there}, but the traffic needs {self._ports}. It was started "
                    "with another configuration file. Stop it, and lossratio starts one with the configuration of "
                    "this topology.",
                )

            self._take_ports()
            if settings.promiscuous:
                self._be_promiscuous()
            undo.pop_all()

    def version(self) -> str:
        """The server's version."""
        answer = self._call("report its version", self._client.get_server_version)
        return str(answer.get("version", answer))

    def port_info(self) -> dict[int, Message]:
        """Facts that the server reports about each port, by its number."""
        answers = self._call("describe the ports", self._client.get_port_info, ports=self._ports)
        return dict(zip(self._ports, answers))

    def is_transmitting(self, ports: Sequence[int]) -> bool:
        """Whether one of the ports transmits."""
        return any(facts.get("status") == "TRANSMITTING" for port, facts in self.port_info().items() if port in ports)

    def check_links(self) -> None:
        """Makes sure that no port's link is down, as far as TRex knows.

        Raises:
            AgentError: If one is down.
        """
        for number, answer in self.port_info().items():
            if answer.get("link") == "DOWN":
                raise AgentError(
                    "interface_down",
                    f"The link of TRex's port {number} is down. Look at both of its ends, and its cable.",
                )

    def add_streams(self, streams: Sequence[Any], port: int) -> list[int]:
        """Adds streams to a port, and returns their numbers."""
        numbers = self._call(f"add streams to port {port}", self._client.add_streams, list(streams), ports=[port])
        if isinstance(numbers, (list, tuple)):
            return list(numbers)
        return [numbers]

    def remove_streams(self, numbers: Sequence[int], port: int) -> None:
        """Removes streams from a port."""
        if not numbers:
            return
        self._call(f"remove streams from port {port}", self._client.remove_streams, list(numbers), ports=[port])

    def clear(self) -> None:
        """Sets all counters to zero."""
        self._call("clear its counters", self._client.clear_stats, ports=self._ports)

    def start(self, ports: Sequence[int], factor: float, duration: float | None) -> None:
        """Starts the ports' streams. This sets no counters to zero: other ports may already have traffic.

        Without a duration in seconds, which begins with the first frames, they run until they are stopped, or for an
        hour, because a killed agent cannot stop them.
        """
        seconds = _LONGEST_SECONDS if duration is None else self.settings.lead + duration
        options: dict[str, Any] = {"force": True} if self.settings.force else {}
        if self.settings.pin_cores:
            options["core_mask"] = self._client.CORE_MASK_PIN

        try:
            with _kept_statistics(self._client):
                self._call(
                    "start traffic",
                    self._client.start,
                    ports=list(ports),
                    mult=_decimal(factor),
                    duration=seconds,
                    **options,
                )
        except AgentError:
            # Some of the ports may have been started before.
            self.stop_quietly(ports)
            raise

    def change(self, ports: Sequence[int], factor: float) -> None:
        """Changes the factor of streams that run."""
        self._call("change the load", self._client.update, ports=list(ports), mult=_decimal(factor))

    def stop(self, ports: Sequence[int], settle_time: float = 0.0) -> None:
        """Stops the ports' streams, unless they have ended. Latency frames have the settle time to come back."""
        self._call("stop traffic", self._client.stop, ports=list(ports), rx_delay_ms=math.ceil(1e3 * settle_time))

    def stop_quietly(self, ports: Sequence[int]) -> None:
        """Stops the ports' streams after an error, which another error must not hide."""
        try:
            self.stop(ports)
        except AgentError as error:
            print(f"lossratio agent: {error}")

    def stats(self) -> Mapping[Any, Any]:
        """All counters since `clear`."""
        stats: Mapping[Any, Any] = self._call("report its counters", self._client.get_stats, ports=self._ports)
        self._check_connected()
        return stats

    def port_counters(self) -> dict[int, Mapping[str, int]]:
        """Counters of each port, from one request; `clear` does not change them."""
        rpc = getattr(getattr(self._client, "conn", None), "rpc", None)
        if rpc is None:
            # The client trex-stl-lib.
            stats = self.stats()
            return {port: stats[port] for port in self._ports}
        requests = [SimpleNamespace(method="get_port_stats", params={"port_id": port}) for port in self._ports]
        answer = self._call("report its counters", rpc.transmit_batch, requests)
        if not answer.good():
            self._fail("report its counters", str(answer.err()))
        self._check_connected()
        return dict(zip(self._ports, answer.data()))

    def _check_connected(self) -> None:
        if not self._client.is_connected():
            self._fail("report its counters", "the connection was lost: no more events came")

    def call(self, doing: str, method: str, *arguments: Any, **named: Any) -> Any:
        """Calls a method of the client; `doing` is what the server is asked to do, for people."""
        return self._call(doing, getattr(self._client, method), *arguments, **named)

    def close(self) -> None:
        """Stops all traffic, releases the ports and disconnects; a server that is gone is no error here."""
        try:
            if self._client.is_connected():
                self._client.disconnect(stop_traffic=True, release_ports=True)
        except Exception as error:  # noqa: BLE001 (whatever it was, this was the last call)
            print(f"lossratio agent: TRex did not release its ports: {_text(error)}")

    def _take_ports(self) -> None:
        self._call("acquire the ports", self._client.acquire, ports=self._ports, force=self.settings.is_ours)
        self._call("reset the ports", self._client.reset, ports=self._ports)

    def _be_promiscuous(self) -> None:
        self._call("set the modes of its ports", self._client.set_port_attr, ports=self._ports, promiscuous=True)
        if self.settings.uses_linux:
            # Packet sockets get all frames of their interface, whatever the mode of TRex's port.
            return

        names = {number: name for name, number in self.settings.ports.items()}
        for number, answer in self.port_info().items():
            if answer.get("prom") == "off":
                raise unsupported(
                    f"TRex's port {number} ({names[number]}, driver {answer.get('driver')}) does "
                    "not support promiscuous mode. Remove this mode from the "
                    "generator in the topology file."
                )

    def _connect(self) -> None:
        deadline = self.clock() + self.settings.connect_timeout
        while True:
            try:
                self._call("answer", self._client.connect)
                return
            except AgentError as error:
                if error.kind != SERVER_LOST or self.clock() > deadline:
                    raise
            self.sleep(_RETRY_SECONDS)

    def _call(self, doing: str, function: Callable[..., Any], *arguments: Any, **named: Any) -> Any:
        try:
            return function(*arguments, **named)
        except Exception as error:  # noqa: BLE001 (the clients raise errors of many kinds, some of them bare)
            self._fail(doing, _text(error), error)

    def _fail(self, doing: str, text: str, cause: Exception | None = None) -> NoReturn:
        lowered = text.lower()
        log = self.settings.log
        pid = os.path.join(os.path.dirname(log), "pid")
        for words, kind, message in _FAULTS:
            if any(word in lowered for word in words):
                text = message.format(text=text, origin=self.origin, doing=doing, pid=pid)
                raise AgentError(kind, text) from cause

        raise AgentError(
            "trex", f"The TRex server refused to {doing}: {text}. See its log on that node ({log})."
        ) from cause


def _contain_crashes(client: Any) -> None:
    """Keeps trex-stl-lib from killing a process group, which is not even its own, when its event thread fails."""
    events = getattr(client, "event_handler", None)
    if events is None or not hasattr(events, "on_async_crash"):
        return
    report = events.on_async_crash

    def end_thread() -> NoReturn:
        report()
        raise SystemExit

    events.on_async_crash = end_thread


@contextmanager
def _kept_statistics(client: Any) -> Iterator[None]:
    """Keeps the client from setting the counters of all streams to zero, which would take two requests."""
    statistics = getattr(client, "pgid_stats", None)
    if statistics is None:
        yield
        return
    statistics.clear_stats = lambda **_: None
    try:
        yield
    finally:
        # The method of its class remains.
        del statistics.clear_stats


def _decimal(factor: float) -> str:
    """A number as TRex reads it: without an exponent."""
    return f"{factor:.9f}"


def _text(error: Exception) -> str:
    # str() of an STLError of trex-stl-lib raises another error.
    message = getattr(error, "msg", None)
    text = str(message) if message is not None else f"{type(error).__name__}: {error}"
    return "; ".join(line.strip() for line in _COLOURS.sub("", text).splitlines() if line.strip()).rstrip(".")
