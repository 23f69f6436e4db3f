"""The start of a server that sleeps between its frames, and so is ahead of its clock."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Callable, Mapping, Sequence

from .connection import TrexConnection

_AHEAD_LOAD = 2000.0
_AHEAD_RUNS = 5
_AHEAD_LOOKS = 5
_LOOK_SECONDS = 1e-3
# 50 ms, and the time of an answer.
_MOST_AHEAD = 0.07
_AHEAD_MARGIN = 1e-3


def start_delayed(connection: TrexConnection, delays: Mapping[int, float], load: float, duration: float | None) -> None:
    """Starts ports whose streams wait: each of them for its own time longer than the duration.

    Args:
        connection: The server, with the streams of the load.
        delays: Seconds that the streams of each port wait, by the port's number.
        load: Frames per second.
        duration: Seconds; None: until they are stopped.

    Raises:
        AgentError: If the server does not start one of them; then none of them sends.
    """
    with ExitStack() as undo:
        undo.callback(connection.stop_quietly, list(delays))
        for port, delay in delays.items():
            connection.start([port], load, None if duration is None else duration + delay)
        undo.pop_all()


def find_delays(
    connection: TrexConnection,
    clear: Callable[[], None],
    seconds_sent: Callable[[float], Mapping[int, float]],
    ports: Sequence[int],
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> dict[int, float]:
    """Finds how long streams must wait before their first frames, so that a server which sleeps sends none at once.

    TRex takes off some time of each sleep, for what a sleep costs by its own measurement. But that number depends on
    when the server was started (up to version 3.08): it is anything up to 50 ms. By so much a server without traffic is
    ahead of its clock: the frames of that time leave at once when traffic begins on its first port, and the last ones
    leave earlier by it. Ports that begin while another one has traffic are in time. The frames that each port has sent
    soon after the start show the time. It is found several times, as the server may be stalled then.

    Args:
        connection: The server, with the streams of the load.
        clear: Sets its counters to zero.
        seconds_sent: Returns how many seconds of a load each port has sent since then, by the port's number.
        ports: TRex's numbers of the ports that transmit, in the order of their starts.
        clock: Returns the time, in seconds.
        sleep: Waits for so many seconds.

    Returns:
        Seconds, by the port's number: all ports begin right after the answer to the request to start.
    """
    found = []
    for _ in range(_AHEAD_RUNS):
        clear()
        start_delayed(connection, dict.fromkeys(ports, 0.0), _AHEAD_LOAD, None)
        answered = clock()
        looks = []
        for _ in range(_AHEAD_LOOKS):
            looked = clock()
            sent = seconds_sent(_AHEAD_LOAD)
            looks.append({port: sent[port] - (looked - answered) for port in ports})
            sleep(_LOOK_SECONDS)
        connection.stop(ports)
        found.append({port: max(look[port] for look in looks) for port in ports})
    # What is found is too long by the time that the answer took; or too short in a run that was stalled.
    seconds = {port: sorted(run[port] for run in found)[1] for port in ports}
    return {port: min(_MOST_AHEAD, max(0.0, ahead)) + _AHEAD_MARGIN for port, ahead in seconds.items()}
