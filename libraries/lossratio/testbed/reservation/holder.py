"""The holder of a testbed, as the TG node reports it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lossratio.units import format_duration


@dataclass(frozen=True)
class Holder:
    """The holder of a lease.

    Attributes:
        owner: The owner, e.g. ``alice@ci3``.
        process: Process id of the controller on the owner's machine.
        purpose: Purpose of the lease.
        started: Start of the lease by the clock of the owner's machine, RFC 3339.
        held: Seconds since its start by the TG's clock; None: the TG has been rebooted since.
        left: Seconds until the lease expires unless it is renewed; 0: it has expired.
    """

    owner: str
    process: int
    purpose: str
    started: str
    held: float | None
    left: float

    @classmethod
    def from_json(cls, data: Mapping[str, Any] | None) -> Holder | None:
        """Reads the keeper's report."""
        return None if data is None else cls(**data)

    def __str__(self) -> str:
        purpose = f" for {self.purpose}" if self.purpose else ""
        held = ", before the TG was booted" if self.held is None else f", for {format_duration(self.held)}"
        return f"{self.owner} (process {self.process}){purpose}, since {self.started}{held}"
