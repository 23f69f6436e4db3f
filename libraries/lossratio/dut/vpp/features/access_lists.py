"""Access control lists of VPP."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import Field

from lossratio.dut.vpp.features.feature import Command, Feature, Needs, Ports


class AccessLists(Feature):
    """Rules that every frame passes."""

    acl: int | None = Field(default=None, ge=1, le=100)
    """Rules of an access control list that every frame passes, up to 100; the last rule permits the frame."""

    needs = Needs(plugins={"acl": ""}, tags=("iacl", "oacl"))

    @property
    def filters(self) -> int:
        """The option ``acl``."""
        return self.acl or 0

    def commands(self, ports: Ports) -> Iterator[Command]:
        """The list, and its use on both interfaces."""
        any_network = "::/0" if self.ip_version == 6 else "0.0.0.0/0"
        # All rules but the last one are for a protocol that no frame has: 255 is reserved.
        others = [f"deny src {any_network} dst {any_network} proto 255"] * (self.filters - 1)
        rules = ", ".join((*others, f"permit src {any_network} dst {any_network}"))
        yield Command(f"set acl-plugin acl {rules} tag lossratio", answer=r"ACL index:\d+")
        for port in ports:
            yield Command(f"set acl-plugin interface {port.link} input acl 0")
