# SPDX-License-Identifier: Apache-2.0
"""The clock with which the kernel stamps frames, and its error by chrony, for one-way latency between two machines."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from typing import Sequence

_CHRONYC = ("chronyc", "-c")
_SECONDS = 5.0
_NANOSECOND = 1e-9
_NETWORK_SOURCES = "^="
"""Modes of chrony's sources that are reached over the network: servers and peers."""
_SELECTED = "*"
# Table: columns of chronyc's comma separated values.
_OWN_REFERENCE, _OWN_NAME, _OFFSET, _ROOT_DELAY, _ROOT_DISPERSION, _LEAP = 0, 1, 4, 10, 11, 13
_MODE, _STATE, _ADDRESS = 0, 1, 2


@dataclass(frozen=True)
class ClockState:
    """What a node's own chrony reports about the node's clock."""

    reference: str = ""
    """The source that the clock follows, as chrony names it; empty: not known."""
    error_ns: float = 0.0
    """The largest difference from the reference's time, in nanoseconds."""
    problem: str = ""
    """Why the error is not known; empty: it is known."""


def clock_state() -> ClockState:
    """Asks this node's chrony. The error bound is its manual's: offset, root dispersion, and half of the root delay."""
    try:
        tracking, sources = _answer("tracking"), _answer("sources")
    except FileNotFoundError:
        return ClockState(problem="chrony is not installed")
    except (OSError, subprocess.SubprocessError):
        return ClockState(problem="chronyd does not answer (see 'chronyc tracking')")
    try:
        return state_of(tracking, sources)
    except (IndexError, ValueError):
        return ClockState(problem="the answer of 'chronyc -c tracking' cannot be read")


def state_of(tracking: Sequence[Sequence[str]], sources: Sequence[Sequence[str]]) -> ClockState:
    """Reads the lines of ``chronyc -c tracking`` and ``chronyc -c sources``, in columns.

    Raises:
        IndexError: If columns are missing.
        ValueError: If a number is malformed.
    """
    own = tracking[0]
    selected = [source for source in sources if source[_STATE] == _SELECTED]
    if own[_LEAP] == "Not synchronised" or not selected:
        return ClockState(problem="its clock is not synchronised (see 'chronyc tracking')")
    if selected[0][_MODE] not in _NETWORK_SOURCES:
        # Chrony does not know the error of a card's or a receiver's own clock.
        named = selected[0][_ADDRESS]
        return ClockState(problem=f"its clock follows its own reference clock, {named}, instead of a server")

    # Formula: the bound of the manual of chronyc, section "tracking".
    seconds = abs(float(own[_OFFSET])) + float(own[_ROOT_DISPERSION]) + float(own[_ROOT_DELAY]) / 2
    return ClockState(f"{own[_OWN_NAME]} ({own[_OWN_REFERENCE]})", seconds / _NANOSECOND)


def clocks_error(left: ClockState, arrived: ClockState) -> ClockState:
    """How much the clocks of two machines may differ, or why that is not known."""
    for end, state in (("sending", left), ("receiving", arrived)):
        if state.problem:
            return ClockState(problem=f"at the {end} end, {state.problem}")
    if left.reference != arrived.reference:
        return ClockState(problem=f"the ends follow different servers, {left.reference} and {arrived.reference}")
    return ClockState(left.reference, left.error_ns + arrived.error_ns)


def _answer(question: str) -> list[list[str]]:
    done = subprocess.run([*_CHRONYC, question], capture_output=True, text=True, timeout=_SECONDS, check=True)
    return [line.split(",") for line in done.stdout.splitlines()]
