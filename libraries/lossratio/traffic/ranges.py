"""The numbers that fields of headers take, as traffic profiles describe them."""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field, model_validator

from lossratio.values import FileModel, left_out_if_empty, resolved

PORTS = 1 << 16
"""How many ports UDP and TCP have; the last one is below."""
_IPV6_HOSTS = 1 << 32
_LARGEST_COUNT = 1 << 20
_MOST_VALUES = 4096


class Range(FileModel):
    """Numbers that a header's field takes, one in each frame, over and over."""

    first: int = Field(ge=1)
    """The first number."""
    count: int = Field(default=1, ge=1, le=_LARGEST_COUNT)
    """How many numbers are used."""
    order: Literal["increment", "random"] = "increment"
    """increment: one after the other. random: in an order that the profile's seed decides."""
    step: int | None = Field(default=None, ge=1, le=PORTS)
    """Distance between one number and the next; None: 1."""
    repeat: int | None = Field(default=None, ge=1, le=PORTS)
    """For how many frames in a row each number stays; None: 1."""
    slips: bool = False
    """Whether each round begins one number later, so that two ranges of the same size make all pairs."""
    values: tuple[int, ...] = Field(default=(), max_length=_MOST_VALUES)
    """The numbers in their order, if they are no steps; `first` is the lowest of them, and `count` says how many there
    are."""

    _leave_out = left_out_if_empty("step", "repeat", "slips", "values")

    @model_validator(mode="before")
    @classmethod
    def _counts_values(cls, data: Any) -> Any:
        values = resolved(data.get("values")) if isinstance(data, dict) else None
        if not isinstance(values, list | tuple) or not values:
            return data
        numbers = [value for value in values if isinstance(value, int)]
        return {"first": min(numbers, default=0), "count": len(values), **data}

    @model_validator(mode="after")
    def _can_be_listed(self) -> "Range":
        if self.frames > _LARGEST_COUNT:
            raise ValueError(
                f"it repeats only after {self.frames} frames, and the limit is {_LARGEST_COUNT}; use fewer "
                "values, or a smaller 'repeat'"
            )
        if not self.values:
            return self
        if (min(self.values), len(self.values)) != (self.first, self.count):
            raise ValueError(
                "'values' contradict 'first' and 'count': leave these out, or give the lowest value and the number "
                "of values"
            )
        if self.order == "random" or self.step is not None:
            raise ValueError("'values' are sent in their order: leave 'order' and 'step' out")
        return self

    @property
    def last(self) -> int:
        """The last number; the highest one if the numbers are listed."""
        return max(self.values, default=self.first + (self.count - 1) * (self.step or 1))

    @property
    def frames(self) -> int:
        """After how many frames the numbers begin again."""
        return self.count * (self.repeat or 1) * (self.count if self.slips else 1)

    @property
    def is_listed(self) -> bool:
        """Whether it is anything but consecutive numbers, one for each frame."""
        return bool(self.values) or (self.step or 1) > 1 or self.frames > self.count

    def listed(self, order: Sequence[int]) -> list[int]:
        """What to add to the first number in each of these frames, for an order of the numbers in a round."""
        places = (
            (place + number) % self.count
            for number in range(self.count if self.slips else 1)
            for place in range(self.count)
        )
        if self.values:
            added = [value - self.first for value in self.values]
        else:
            added = [number * (self.step or 1) for number in order]
        return [added[place] for place in places for _ in range(self.repeat or 1)]


class AddressRange(Range):
    """Addresses within the benchmarking network of their side; see `lossratio.topology`."""

    first: int = Field(default=1, ge=0, lt=_IPV6_HOSTS)
    """Number of the first address within that network."""


class PortRange(Range):
    """Ports of UDP or TCP."""

    first: int = Field(ge=0)
    """The first port; 0 as a source of UDP means that nobody answers (RFC 768)."""

    @model_validator(mode="after")
    def _fits(self) -> "PortRange":
        if self.last >= PORTS:
            raise ValueError(f"a port can be at most {PORTS - 1}, not {self.last}")
        return self
