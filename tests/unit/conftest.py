"""Fixtures that more than one area of the unit tests needs."""

from __future__ import annotations

from collections.abc import Iterator

import hypothesis
import pytest
from netns import NetnsLab, NetnsUnavailableError

# How long an example takes says something about the machine, and nothing about the code.
hypothesis.settings.register_profile("lossratio", deadline=None)
hypothesis.settings.load_profile("lossratio")


@pytest.fixture
def netns_lab() -> Iterator[NetnsLab]:
    """Private network namespaces, gone after the test."""
    try:
        lab = NetnsLab()
    except (NetnsUnavailableError, FileNotFoundError) as error:
        pytest.skip(f"network namespaces cannot be had here: {error}")
    with lab:
        yield lab
