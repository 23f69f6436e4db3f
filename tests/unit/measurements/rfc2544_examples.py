"""A device with all that RFC 2544 measures, and a quick request for all of its tests."""

from __future__ import annotations

from measurement_examples import ROOT

from lossratio.measurements.rfc2544 import QUICK, Rfc2544Request
from lossratio.traffic import load_profile

DEVICE = ROOT / "topologies" / "simulated-device.yaml"
"""150 kfps in both directions together, a queue of 1000 frames, recovery 500 ms, downtime 300 ms; links of 1 Gbit/s."""
PROFILES = [load_profile("ethip4-udp", frame_size=size) for size in (64, 1518)]
REQUEST = Rfc2544Request(PROFILES, settings=QUICK)
