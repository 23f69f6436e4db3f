"""How long the steps of a benchmark take."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import click

T = TypeVar("T")


def timed(name: str, step: Callable[[], T]) -> T:
    """Runs a step, and prints a row with its time."""
    elapsed, cpu = time.perf_counter(), time.process_time()
    result = step()
    click.echo(f"{name:<40}{time.perf_counter() - elapsed:>10.2f}{time.process_time() - cpu:>10.2f}")
    return result
