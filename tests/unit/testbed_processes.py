"""Processes of a local testbed, found from a log-in on one of its nodes, and stopped by their pids."""

from __future__ import annotations

_CONNECTIONS = """
for pid in $(pgrep -P 1); do
    if ! cmp -s /proc/1/cmdline "/proc/$pid/cmdline"; then echo "$pid"; fi
done
"""


def connections(session):
    """Pids of the servers of all connections: what the holder, the first process, has started, and not forked."""
    return session.run("sh", "-c", _CONNECTIONS).stdout.split()


_LOSE = """
own=$$
while parent=$(ps -o ppid= -p "$own" | tr -d ' '); [ "$parent" -gt 1 ]; do own=$parent; done
for pid in "$@"; do [ "$pid" = "$own" ] || kill -KILL "$pid"; done
kill -KILL "$own"
"""


def lose_connections(session):
    """Kills the servers of all connections, the session's own at last: then no other is alive. The listeners stay."""
    session.run("sh", "-c", _LOSE, "lose", *connections(session))


def agents(session):
    """Pids of the traffic agents."""
    return session.run("pgrep", "-f", "^[^ ]*python[^ ]* -c .*lossratio-agent", check=False).stdout.split()
