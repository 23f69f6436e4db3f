"""Loops of tests that must not be empty."""

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")


def at_least_one(things: Iterable[T]) -> list[T]:
    """The things to look at: a test that finds none of them proves nothing, and fails."""
    found = list(things)
    assert found
    return found
