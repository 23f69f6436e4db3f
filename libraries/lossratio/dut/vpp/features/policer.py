"""Policers of VPP."""

import math
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from lossratio.dut.linux.kernel_dut import BURST_SECONDS
from lossratio.dut.vpp.features.feature import LOOKING, Feature, Needs, Steps
from lossratio.values import parse_bit_rate

_KILO = 1000
_BITS_PER_BYTE = 8


def _whole_kilobits(value: Any) -> int | None:
    if value is None:
        return None
    rate = parse_bit_rate(value)
    if rate < _KILO or rate % _KILO:
        raise ValueError(
            f"{value!r} is not a rate that VPP can police; write a multiple of 1 kbit/s, such as '50 Mbps'"
        )
    return int(rate)


class Policer(Feature):
    """A token bucket for the frames that enter on each interface."""

    police: Annotated[int | None, BeforeValidator(_whole_kilobits)] = None
    """The bit rate to which the frames that enter each interface are policed, in whole kbit/s, e.g. ``50 Mbps``; frames
    count without their FCS. Not with ``l2patch`` or ``sfdp``, which pass frames on before they reach the policer."""
    burst: int | None = Field(default=None, ge=1, le=2**32 - 1)
    """Bytes that a full bucket of the policer holds. Default: 20 ms of its rate."""

    requires = (("burst", "police", "burst is the size of a policer's bucket; also set police"),)
    needs = Needs(LOOKING, plugins={"policer": "26.06"}, tags=("policer",))
    steps = Steps(
        commands=r"""
            % for port in ports
                policer add name police-{{ port.link }} \
                rate kbps cir {{ options.police_kilobits }} cb {{ options.bucket }} type 1r2c \
                conform-action transmit exceed-action drop violate-action drop | (\d+)?
                policer input name police-{{ port.link }} {{ port.entrance }}
            % endfor
        """,
        proved=r"""
            show policer | (onform|xceed|iolate) [1-9]\d* packets | frames in a policer
        """,
        reset_commands=r"""
            % for port in ports
                policer reset name police-{{ port.link }}
            % endfor
        """,
    )

    @property
    def police_kilobits(self) -> int | None:
        """The policer's rate in kbit/s."""
        return self.police and self.police // _KILO

    @property
    def bucket(self) -> int | None:
        """Bytes that a full bucket of the policer holds."""
        if self.police is None:
            return None
        return self.burst or math.ceil(self.police / _BITS_PER_BYTE * BURST_SECONDS)

    @property
    def recovery_time(self) -> float:
        """Idle seconds after which an empty bucket is full again."""
        return (self.bucket or 0) * _BITS_PER_BYTE / (self.police or 1)


class Marker(Feature):
    """A three-colour policer that marks frames within its rate."""

    mark: Literal["AF11", "AF12", "AF13", "AF21", "AF22", "AF23", "EF"] | None = None
    """The code point (DSCP) that a policer of RFC 2698 gives to frames to the first host of each network when they
    enter the path. As in FD.io CSIT, it marks what comes at up to 307 kbit/s, and lets all other frames pass unmarked.
    With ``ip4``."""

    needs = Needs(("ip4",), plugins={"policer": "26.06"}, tags=("police_mark",))
    # As in CSIT: all frames exceed the committed rate by their colour, and most of them the peak rate, too. At rates in
    # pps, VPP counts 256 bytes for a frame, and bursts in milliseconds.
    steps = Steps(
        commands=r"""
            % if entrances
                policer add name mark cir 100 cb 64 eir 150 eb 64 rate pps type 2r3c-2698 color-aware \
                conform-action transmit exceed-action mark-and-transmit {{ options.mark }} violate-action transmit \
                | (\d+)?
                classify table mask l3 ip4 dst buckets 2
            % endif
            % for port in entrances
                classify session policer-hit-next mark exceed-color table-index 0 \
                match l3 ip4 dst {{ port.destination(4) }}
            % endfor
            % for port in entrances
                set policer classify interface {{ port.link }} ip4-table 0
            % endfor
        """,
        verified=r"""
            % for port in entrances
                show interface features {{ port.link }} | ip4-policer-classify | ip4-policer-classify
            % endfor
        """,
    )


def policer_name(link: str) -> str:
    """Name of the policer of frames that enter by a link, which is VPP's name for the interface there."""
    return f"police-{link}"
