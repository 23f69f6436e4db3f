"""A device with a table of connections, and traffic that opens them."""

from __future__ import annotations

from lossratio.dut import ConnectionTable
from lossratio.testbed.connections import Connections, EstablishingMeasurer
from lossratio.topology import EAST, WEST
from lossratio.traffic import PortPair, TrafficPort, load_profile, make_configuration
from lossratio.trials import TrialOutput

FLOWS = 10_000


def profile_of(*, bidirectional=False, name="ethip4-udp-10kflows"):
    return load_profile(name, frame_size=100, bidirectional=bidirectional)


def traffic(**options):
    pair = PortPair(TrafficPort("port0", "a"), TrafficPort("port1", "b"))
    return make_configuration(profile_of(**options), [pair], settle_time=0.0, sides=[(WEST, EAST)])


class Table(ConnectionTable):
    """A device with room for so many connections, which may keep some when it is told to forget."""

    translates = is_one_way = False
    safe_rate = None

    def timeout_of(self, tcp_state):
        return 30.0 if tcp_state is None else 60.0

    def __init__(self, room=FLOWS, kept=0):
        self.room, self.kept, self.entries, self.log = room, kept, 0, []

    def check(self, wanted):
        self.log.append(wanted)

    def count(self):
        return self.entries

    def forget(self):
        self.entries = min(self.kept, self.entries)
        return 0.5

    def counters(self):
        return {"insert_failed": 7}

    def measure(self, trial):
        self.log.append(trial)
        self.entries = min(self.room, round(trial.load * trial.duration))
        return TrialOutput(0.0, sent_frames=1, elapsed=2.0)


def establishing(table, **options):
    return EstablishingMeasurer(table, Connections({"DUT1": table}, traffic(**options)))
