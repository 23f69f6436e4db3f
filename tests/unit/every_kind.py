"""Every kind of measurement on a simulated testbed: what its method needs besides a frame size, to be quick."""

from __future__ import annotations

import pytest

from lossratio.measurements.open_testbed import measured_kinds

_ASKED = {
    "back_to_back": {"throughput": "150 kfps", "repeats": 2},
    "confirmation": {"load": "100 kfps", "loss_ratio": 1e-3, "longest": 50.0},
    "connection_rate": {"min_load": "50 kcps"},
    "critical_load": {"timeout": 10.0},
    "frame_loss": {"max_load": "149999 fps"},
    "latency": {"points": ["12345 fps", "10 kfps"], "duration": 0.5},
    "mrr": {"trials": 2, "max_load": "199999 fps"},
    "ndr_pdr": {"goals": "quick", "min_load": "50 kfps"},
    "reconfiguration": {"reconfigure": print, "goals": "NDR"},
    "recovery": {"throughput": "100 kfps", "repeats": 2, "duration": 1.0},
    "reset_time": {"throughput": "100 kfps", "repeats": 2, "lead": 0.5, "limit": 1.0},
}
"""Arguments of methods that need some, or take long without them."""

REFUSED = {
    "reconfiguration": "no time passes between trials",
    "teardown_rate": "needs a single device whose table lossratio can empty",
}
"""Kinds that no simulated testbed of this kind can measure, and why."""


def methods():
    """The names of all methods, as parameters of a test."""
    return [pytest.param(name, id=name) for name in sorted(measured_kinds())]


def ask(testbed, method, **more):
    """Measures a kind; a method that is new here takes no arguments but these."""
    connects = measured_kinds()[method].request.connects
    settings = _ASKED.get(method, {})
    if connects:
        settings = {"stateless": True, **settings}
    return getattr(testbed, method)("100B" if connects else "64B", **settings, **more)
