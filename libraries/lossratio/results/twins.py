"""Tests without a device: the tester alone, as the twin of a test. `lossratio.keywords.Catalogue` makes them."""

import re

_TWIN = re.compile(r"-tg(?=-[^-]+$|$)")
"""How the name of such a test ends."""
_CORES = re.compile(r"(?<=-)\d+c-")


def common_name(test: str) -> str:
    """The part of a test's name that it shares with its twin, which needs no cores of a device."""
    return _CORES.sub("", _TWIN.sub("", test), count=1)
