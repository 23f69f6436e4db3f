"""Policers of VPP."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from lossratio.dut.vpp.features.feature import Command, Feature, Needs, Ports, VppPort
from lossratio.units import parse_bit_rate

_BURST_SECONDS = 0.02
"""Seconds of its rate that a policer's bucket holds: with less, bursts of frames lose some below the rate."""
_KILO = 1000
_BITS_PER_BYTE = 8


def _whole_kilobits(value: Any) -> int | None:
    if value is None:
        return None
    rate = parse_bit_rate(value)
    if rate < _KILO or rate % _KILO:
        raise ValueError(f"{value!r} is not a rate that VPP can police: whole kbit/s, e.g. '50 Mbps'")
    return int(rate)


class Policer(Feature):
    """A token bucket for the frames that enter on each interface."""

    police: Annotated[int | None, BeforeValidator(_whole_kilobits)] = None
    """The bit rate to which the frames that enter on each interface are policed, in whole kbit/s, e.g. ``50 Mbps``,
    computed from frames without their FCS."""
    burst: int | None = Field(default=None, ge=1, le=2**32 - 1)
    """Bytes that a full bucket of the policer holds; where missing, 20 ms of its rate."""

    needs = Needs(plugins={"policer": "26.06"}, tags=("policer",))

    @property
    def police_kilobits(self) -> int | None:
        """The policer's rate in kbit/s."""
        return None if self.police is None else self.police // _KILO

    @property
    def bucket(self) -> int | None:
        """Bytes that a full bucket of the policer holds."""
        if self.police is None:
            return None
        return self.burst or math.ceil(self.police / _BITS_PER_BYTE * _BURST_SECONDS)

    @property
    def recovery_time(self) -> float:
        """Idle seconds after which an empty bucket is full again."""
        if self.police is None or self.bucket is None:
            return 0.0
        return self.bucket * _BITS_PER_BYTE / self.police

    def problem(self) -> str | None:
        """A bucket without a rate."""
        return None if self.police else "burst is the size of a policer's bucket; give police, too"

    def commands(self, ports: Ports) -> Iterator[Command]:
        """A policer for each interface."""
        bucket = f"rate kbps cir {self.police_kilobits} cb {self.bucket} type 1r2c"
        actions = "conform-action transmit exceed-action drop violate-action drop"
        for port in ports:
            yield Command(f"policer add name {policer_name(port)} {bucket} {actions}", answer=r"(\d+)?")
            yield Command(f"policer input name {policer_name(port)} {port.link}")

    def reset_commands(self, ports: Ports) -> Iterator[str]:
        """Fills the buckets."""
        yield from (f"policer reset name {policer_name(port)}" for port in ports)


def policer_name(port: VppPort) -> str:
    """Name of the policer of frames that enter on a port."""
    return f"police-{port.link}"
