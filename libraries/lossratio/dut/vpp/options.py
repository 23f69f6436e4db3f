"""What VPP can be asked for."""

from __future__ import annotations

import math
import os
from enum import Enum
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from lossratio.dut.linux.program_dut import ProgramOptions
from lossratio.units import parse_bit_rate

HOME_VARIABLE = "VPP_HOME"
"""Environment variable that says where VPP is installed, unless a suite does."""

_BURST_SECONDS = 0.02
"""Seconds of its rate that a policer's bucket holds: frames come in bursts, and less loses some below the rate."""
_MOST_IPV4_ROUTES = 130_000
_KILO = 1000
_BITS_PER_BYTE = 8


class VppForwarding(str, Enum):
    """How VPP forwards."""

    CROSS_CONNECT = "l2xc"
    """Layer 2 cross-connect: what comes in on one interface goes out on the other."""
    BRIDGE_DOMAIN = "l2bd"
    """Bridge domain with MAC learning."""
    IP4 = "ip4"
    """IPv4 routing."""
    IP6 = "ip6"
    """IPv6 routing."""


def _whole_kilobits(value: Any) -> int | None:
    if value is None:
        return None
    rate = parse_bit_rate(value)
    if rate < _KILO or rate % _KILO:
        raise ValueError(f"{value!r} is not a rate that VPP can police: whole kbit/s, e.g. '50 Mbps'")
    return int(rate)


class VppOptions(ProgramOptions):
    """What VPP can be asked for."""

    home: str = Field(default_factory=lambda: os.environ.get(HOME_VARIABLE, "/usr"))
    """Directory on the node that VPP is installed in, with ``bin/vpp`` and ``bin/vppctl``; where missing, what the
    environment variable ``VPP_HOME`` says where the suite runs, or ``/usr``."""
    forwarding: VppForwarding = VppForwarding.CROSS_CONNECT
    """``l2xc``, ``l2bd``, ``ip4`` or ``ip6``."""
    routes: int | None = Field(default=None, ge=2, le=2_000_000, multiple_of=2)
    """Routes to single hosts, half of them to the first hosts of each side's network, and no others. IPv4 has room for
    130,000 of them."""
    vxlan: bool = False
    """Whether frames come and go in VXLAN tunnels, one on each link, with a bridge domain between them."""
    acl: int | None = Field(default=None, ge=1, le=100)
    """Rules of an access control list that every frame walks; the last one permits it."""
    police: Annotated[int | None, BeforeValidator(_whole_kilobits)] = None
    """Bits per second that what comes in on each interface is policed to, e.g. ``50 Mbps``, reckoned of frames without
    their FCS."""
    burst: int | None = Field(default=None, ge=1, le=2**32 - 1)
    """Bytes that a full bucket of the policer holds; where missing, 20 ms of its rate."""
    frame_queue: int = Field(default=1024, ge=64, le=65_536)
    """Descriptors of each queue of a card; of no concern to interfaces of the kernel."""

    @model_validator(mode="after")
    def _goes_together(self) -> VppOptions:
        routed = self.forwarding in (VppForwarding.IP4, VppForwarding.IP6)
        if self.routes is not None and not routed:
            raise ValueError("routes go with forwarding=ip4 or ip6")
        if self.routes is not None and self.forwarding is VppForwarding.IP4 and self.routes > _MOST_IPV4_ROUTES:
            raise ValueError(f"the networks of test traffic have {_MOST_IPV4_ROUTES} hosts; ask for fewer routes")
        if self.vxlan and self.forwarding is not VppForwarding.BRIDGE_DOMAIN:
            raise ValueError("vxlan goes with forwarding=l2bd")
        if self.burst is not None and self.police is None:
            raise ValueError("burst is a policer's; give police, too")
        return self

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
