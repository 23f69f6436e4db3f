"""Devices with every kind of table of connections that we know, each with its truth, for simulated and real frames.

A device is told of each frame with its time: `west` of one from the west, `east` of an answer. The key of a connection
is any value; what `west` returns is the key that the far end sees (a NAT has changed it), and None is a lost frame.
"""

from __future__ import annotations

import hashlib
import random
from collections import OrderedDict

ROOM = 600


def spread(key, seed=0):
    """A number that is the same in each process, and looks random."""
    return int.from_bytes(hashlib.blake2s(f"{seed} {key}".encode()).digest()[:4], "big")


class Plain:
    """Keeps so many connections, and takes no more."""

    def __init__(self, room=ROOM):
        self.room, self.entries = room, {}

    def west(self, key, now):
        if key not in self.entries and len(self.entries) >= self.room:
            return None
        self.entries[key] = now
        return key

    def east(self, key, now):
        return key if key in self.entries else None

    def reset(self):
        self.entries.clear()


class Parts(Plain):
    """A table in parts, each with its own room: buckets, or the shards of workers."""

    def __init__(self, parts, room):
        super().__init__(room)
        self.parts, self.filled = parts, {}

    def west(self, key, now):
        part = spread(key, "part") % self.parts
        if key not in self.entries:
            if self.filled.get(part, 0) >= self.room:
                return None
            self.filled[part] = self.filled.get(part, 0) + 1
        self.entries[key] = now
        return key

    def reset(self):
        super().reset()
        self.filled.clear()


class Lru(Plain):
    """Forgets the connection that was used least recently for a new one."""

    def __init__(self, room=ROOM):
        super().__init__(room)
        self.entries = OrderedDict()

    def west(self, key, now):
        self.entries[key] = now
        self.entries.move_to_end(key)
        while len(self.entries) > self.room:
            self.entries.popitem(last=False)
        return key


class PortBlocks(Plain):
    """A NAT that gives each inside host a block of ports."""

    def __init__(self, hosts=64, block=8):
        super().__init__()
        self.hosts, self.block, self.ports, self.inside = hosts, block, {}, {}

    def west(self, key, now):
        if key not in self.entries:
            host = spread(key, 1) % self.hosts
            used = self.ports.get(host, 0)
            if used >= self.block:
                return None
            self.ports[host] = used + 1
            self.entries[key] = ("outside", host, used)
            self.inside[self.entries[key]] = key
        return self.entries[key]

    def east(self, key, now):
        return self.inside.get(key)

    def reset(self):
        super().reset()
        self.ports.clear()
        self.inside.clear()


class RandomNat(Plain):
    """A NAT that draws the port of a connection, and draws again a few times if another one has it."""

    def __init__(self, ports=1000, draws=3, seed=1):
        super().__init__()
        self.ports, self.draws, self.seed, self.taken = ports, draws, seed, {}

    def west(self, key, now):
        if key in self.entries:
            return self.entries[key]
        for draw in range(self.draws):
            port = spread(key, f"{self.seed} {draw}") % self.ports
            if port not in self.taken:
                self.taken[port] = key
                self.entries[key] = ("outside", port)
                return self.entries[key]
        return None

    def east(self, key, now):
        return self.taken.get(key[1]) if key[0] == "outside" else None

    def reset(self):
        super().reset()
        self.taken.clear()


class Expiring(Plain):
    """Forgets a connection that nobody has used for so many seconds."""

    def __init__(self, timeout, inner):
        super().__init__(10**9)
        self.timeout, self.inner = timeout, inner

    def west(self, key, now):
        if self.inner.west(key, now) is None:
            return None
        return super().west(key, now)

    def east(self, key, now):
        begun = self.entries.get(key)
        if begun is None or now - begun > self.timeout:
            return None
        self.entries[key] = now
        return key

    def reset(self):
        super().reset()
        self.inner.reset()


class Bucket(Plain):
    """Takes so many new connections per second, and a burst besides."""

    def __init__(self, rate, burst=10.0, room=10**9):
        super().__init__(room)
        self.rate, self.burst = rate, burst
        self.tokens, self.filled_at = burst, None

    def west(self, key, now):
        if self.filled_at is not None:
            self.tokens = min(self.burst, self.tokens + (now - self.filled_at) * self.rate)
        self.filled_at = now
        if key in self.entries:
            return key
        # The times of frames have rounding errors.
        if self.tokens < 1.0 - 1e-9:
            return None
        self.tokens -= 1.0
        return super().west(key, now)

    def reset(self):
        super().reset()
        self.tokens, self.filled_at = self.burst, None


class Losing(Plain):
    """Loses a share of all frames from the west, whatever they are."""

    def __init__(self, share=0.1, seed=1):
        super().__init__(10**9)
        self.share, self.random = share, random.Random(seed)

    def west(self, key, now):
        if self.random.random() < self.share:
            return None
        return super().west(key, now)


class FailingOpen(Plain):
    """Lets frames pass whose connection it has no room for, and not their answers."""

    def west(self, key, now):
        super().west(key, now)
        return key


class NeverReset(Plain):
    """Its reset does nothing."""

    def reset(self):
        pass


class HardlyReset(Plain):
    """Its reset leaves some entries."""

    def reset(self):
        self.entries = dict([*self.entries.items()][:50])


class Stateless(Plain):
    """Lets everything pass."""

    def west(self, key, now):
        return key

    def east(self, key, now):
        return key


class OneWay(Plain):
    """Has a table for frames from the west alone: answers pass in any case."""

    def east(self, key, now):
        return key
