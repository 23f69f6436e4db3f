"""What goes over connections that frames have opened (RFC 9693)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Exchange:
    """What goes over each connection that a frame has opened: answers, data, and an end."""

    answer_ratio: float = 1.0
    """Rate of all frames but the first ones, as a multiple of the load (RFC 9693, alpha)."""
    data_frames: int = 0
    """Further frames in each direction, one after the other."""
    closing: str | None = None
    """How connections of TCP end: ``fin`` or ``rst``; None: they stay open."""
    established: bool = False
    """Whether devices have all of these connections before, and keep them: it is their throughput that is measured."""

    @property
    def end_of_tcp(self) -> Literal["established", "time_wait", "close"]:
        """What connections of TCP are then, as the kernel calls it."""
        return "established" if self.closing is None else "time_wait" if self.closing == "fin" else "close"

    def passes(self, *, is_tcp: bool) -> int:
        """How often a frame goes over each connection."""
        ending = {None: 0, "rst": 1, "fin": 3}[self.closing] if is_tcp else 0
        return 2 + is_tcp + 2 * self.data_frames + ending

    def rounds(self, *, is_tcp: bool) -> float:
        """How many times as long as the first frames all of them take."""
        return 1.0 + (self.passes(is_tcp=is_tcp) - 1) / self.answer_ratio
