"""Policers of VPP."""

import math
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from lossratio.dut.vpp.features.feature import (
    LOOKING,
    Command,
    Feature,
    Needs,
    Ports,
    Shown,
    VppPort,
    entrances,
)
from lossratio.units import parse_bit_rate

_BURST_SECONDS = 0.02
"""Seconds of its rate that a policer's bucket holds: with less, bursts would lose frames even below the rate."""
_KILO = 1000
_BITS_PER_BYTE = 8
_MARKER_KILOBITS = 100_000_000
"""More than any interface can receive."""


def _whole_kilobits(value: Any) -> int | None:
    if value is None:
        return None
    rate = parse_bit_rate(value)
    if rate < _KILO or rate % _KILO:
        raise ValueError(
            f"{value!r} is not a rate that VPP can police: whole kbit/s, e.g. '50 Mbps'"
        )
    return int(rate)


class Policer(Feature):
    """A token bucket for the frames that enter on each interface."""

    police: Annotated[int | None, BeforeValidator(_whole_kilobits)] = None
    """The bit rate to which the frames that enter each interface are policed, in whole kbit/s, e.g. ``50 Mbps``; frames
    count without their FCS. Not with ``l2patch`` or ``sfdp``, which hand frames on before they meet the policer."""
    burst: int | None = Field(default=None, ge=1, le=2**32 - 1)
    """Bytes that a full bucket of the policer holds. Default: 20 ms of its rate."""

    needs = Needs(
        LOOKING,
        plugins={"policer": "26.06"},
        tags=("policer",),
        proves=(
            Shown("show policer", r"(onform|xceed|iolate) [1-9]\d* packets", "frames in a policer"),
        ),
    )

    @property
    def police_kilobits(self) -> int | None:
        """The policer's rate in kbit/s."""
        if self.police is None:
            return None
        return self.police // _KILO

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
        """A bucket needs a rate."""
        if self.police:
            return None
        return "burst is the size of a policer's bucket; also set police"

    def commands(self, ports: Ports) -> Iterator[Command]:
        """A policer for each interface."""
        bucket = f"rate kbps cir {self.police_kilobits} cb {self.bucket} type 1r2c"
        actions = "conform-action transmit exceed-action drop violate-action drop"
        for port in ports:
            yield Command(
                f"policer add name {policer_name(port)} {bucket} {actions}", answer=r"(\d+)?"
            )
            yield Command(f"policer input name {policer_name(port)} {port.entrance}")

    def reset_commands(self, ports: Ports) -> Iterator[str]:
        """Fills the buckets."""
        yield from (f"policer reset name {policer_name(port)}" for port in ports)


class Marker(Feature):
    """A three-colour policer that marks frames."""

    mark: Literal["AF11", "AF12", "AF13", "AF21", "AF22", "AF23", "EF"] | None = None
    """The code point (DSCP) that frames to the first host of each network get when they enter the path. The mark comes
    from a policer of RFC 2698 that all of these frames exceed. With ``ip4``."""

    needs = Needs(("ip4",), plugins={"policer": "26.06"}, tags=("police_mark",))

    def commands(self, ports: Ports) -> Iterator[Command]:
        """A policer, a table of destinations, and its use."""
        if not entrances(ports):
            return
        rates = f"cir {_KILO} cb {_KILO} eir {_MARKER_KILOBITS} eb {2**31} rate kbps type 2r3c-2698 color-aware"
        actions = f"conform-action transmit exceed-action mark-and-transmit {self.mark} violate-action transmit"
        yield Command(f"policer add name mark {rates} {actions}", answer=r"(\d+)?")
        yield Command("classify table mask l3 ip4 dst buckets 64")
        for port in entrances(ports):
            match = f"match l3 ip4 dst {port.destination(4)}"
            yield Command(
                f"classify session policer-hit-next mark exceed-color table-index 0 {match}"
            )
        for port in entrances(ports):
            yield Command(f"set policer classify interface {port.link} ip4-table 0")

    def verified(self, ports: Ports) -> Iterator[Shown]:
        """The policer on these interfaces."""
        for port in entrances(ports):
            yield Shown(
                f"show interface features {port.link}",
                "ip4-policer-classify",
                "ip4-policer-classify",
            )


def policer_name(port: VppPort) -> str:
    """Name of the policer of frames that enter on a port."""
    return f"police-{port.link}"
