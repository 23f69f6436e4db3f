"""Options that DUTs on Linux nodes share: a policer, and options of the kernel's own forwarding."""

from __future__ import annotations

import math
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from lossratio.dut.base import DutOptions
from lossratio.units import parse_frame_rate

BURST_SECONDS = 0.02
"""Seconds of its rate that a policer's bucket holds by default: with less, a sender's stalls lose frames."""

_NANOSECONDS = 1_000_000_000
_LARGEST_BURST = 2**32 - 1
_MOST_CPUS = 8192
"""The most CPUs that Linux can be built for on any architecture."""


def _whole_frame_rate(value: Any) -> int | None:
    if value is None:
        return None
    rate = parse_frame_rate(value)
    if not rate.is_integer() or rate > _NANOSECONDS:
        raise ValueError(f"{value!r} is not a rate that the kernel can police: whole frames per second, at most 1e9")
    return int(rate)


def parse_cpus(value: Any) -> tuple[int, ...]:
    """Reads a list of CPU numbers in Linux's form, such as ``1`` or ``0,2-3``.

    Raises:
        ValueError: If the text is not such a list.
    """
    if isinstance(value, tuple):
        return value
    cpus: set[int] = set()
    for part in str(value).split(","):
        first, dash, last = part.strip().partition("-")
        last = last if dash else first
        if not (_is_cpu(first) and _is_cpu(last) and int(first) <= int(last)):
            raise ValueError(f"{value!r} are not CPU numbers; write them like '1' or '0,2-3'")
        cpus.update(range(int(first), int(last) + 1))
    return tuple(sorted(cpus))


def _is_cpu(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= len(str(_MOST_CPUS)) and int(text) < _MOST_CPUS


class PolicedOptions(DutOptions):
    """The options of a DUT with a policer of frames: a token bucket for each direction."""

    police: Annotated[int | None, BeforeValidator(_whole_frame_rate)] = None
    """Frame rate to which each direction is policed by its own token bucket, e.g. ``50 kfps``."""
    burst: int | None = Field(default=None, ge=1, le=_LARGEST_BURST)
    """Frames that a full bucket of the policer holds; where missing, 20 ms of its rate."""

    @model_validator(mode="after")
    def _burst_belongs_to_a_policer(self) -> PolicedOptions:
        if self.burst is not None and self.police is None:
            raise ValueError("burst is the size of a policer's bucket; give police, too")
        return self

    @property
    def policed_rate(self) -> float | None:
        """The exact rate of the policer in frames per second."""
        return None if self.police is None else float(self.police)

    @property
    def bucket(self) -> int | None:
        """Frames that a full bucket of the policer holds."""
        return None if self.police is None else self.burst or max(1, math.ceil(self.police * BURST_SECONDS))

    @property
    def recovery_time(self) -> float:
        """Idle seconds after which an empty bucket is full again: burst over rate."""
        return 0.0 if self.policed_rate is None or self.bucket is None else self.bucket / self.policed_rate

    def modelled_as(self) -> dict[str, Any] | None:
        """A policer passes ``rate * T + burst`` frames in T seconds from a full bucket."""
        if self.police is None:
            return None
        return {"model": "policer", "rate": self.policed_rate, "burst": self.bucket}


class LinuxOptions(PolicedOptions):
    """The options of every DUT made of the Linux kernel's own forwarding."""

    rps_cpus: Annotated[tuple[int, ...], BeforeValidator(parse_cpus)] = ()
    """CPUs to which arriving frames are handed (receive packet steering), e.g. ``1`` or ``0,2-3``; where missing, the
    node's setting stays. It needs root on the machine, not only in a namespace."""

    @property
    def policed_rate(self) -> float | None:
        """The exact rate of the policer in frames per second: the kernel counts whole nanoseconds per frame."""
        return None if self.police is None else _NANOSECONDS / (_NANOSECONDS // self.police)
