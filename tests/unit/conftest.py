"""Fixtures that more than one area of the unit tests needs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from netns import NetnsLab, NetnsUnavailableError


@pytest.fixture
def netns_lab() -> Iterator[NetnsLab]:
    """Private network namespaces, gone after the test."""
    try:
        lab = NetnsLab()
    except (NetnsUnavailableError, FileNotFoundError) as error:
        pytest.skip(f"network namespaces cannot be had here: {error}")
    with lab:
        yield lab
