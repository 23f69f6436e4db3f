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


def lose_connections(session):
    """Kills the servers of all connections, the session's own included; the listeners stay."""
    session.run("kill", "-KILL", *connections(session))


def agents(session):
    """Pids of the traffic agents."""
    return session.run("pgrep", "-f", "^[^ ]*python[^ ]* -c .*lossratio-agent", check=False).stdout.split()
