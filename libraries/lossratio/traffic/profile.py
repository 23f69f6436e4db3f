"""Traffic profiles: what the frames of a test look like, read from YAML files."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import as_file, files
from math import lcm
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, computed_field, field_validator, model_validator

from lossratio.errors import TrafficError
from lossratio.units import parse_bytes
from lossratio.yaml_file import load_yaml_file

IMIX: Mapping[str, Mapping[int, int]] = {"IMIX_v4_1": {64: 28, 570: 16, 1518: 4}}
"""Mixes of frame sizes by name: bytes with FCS, each with its weight."""

SMALLEST_FRAME = 64
"""Bytes, with FCS, of the smallest Ethernet frame."""

LARGEST_FRAME = 1518
"""Bytes, with FCS, of the largest Ethernet frame that needs no jumbo support."""

_PROFILES = "resources/traffic_profiles"
_HOSTS = 1 << 16
_PORTS = 1 << 16


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class AddressRange(_Model):
    """Addresses within the benchmarking network of the side that they belong to; see `lossratio.addressing`."""

    first: int = Field(default=1, ge=1, lt=_HOSTS)
    """Number of the first address within that network."""
    count: int = Field(default=1, ge=1, lt=_HOSTS)
    """How many addresses are used in turn, frame by frame."""

    @model_validator(mode="after")
    def _fits(self) -> AddressRange:
        if self.first + self.count > _HOSTS:
            raise ValueError(f"address {self.first + self.count - 1} is not in a network of {_HOSTS} addresses")
        return self


class PortRange(_Model):
    """UDP ports."""

    first: int = Field(ge=1, lt=_PORTS)
    """The first port."""
    count: int = Field(default=1, ge=1, lt=_PORTS)
    """How many ports are used in turn, frame by frame."""

    @model_validator(mode="after")
    def _fits(self) -> PortRange:
        if self.first + self.count > _PORTS:
            raise ValueError(f"there is no port {self.first + self.count - 1}")
        return self


class Ipv4(_Model):
    """The IPv4 header."""

    source: AddressRange = AddressRange()
    """Source addresses, on the transmitting side."""
    destination: AddressRange = AddressRange()
    """Destination addresses, on the receiving side."""
    ttl: int = Field(default=64, ge=1, le=255)
    """Time to live."""
    protocol: int = Field(default=61, ge=0, le=255)
    """Protocol number where no other header follows; 61 is 'any host internal protocol'."""


class Udp(_Model):
    """The UDP header."""

    source_port: PortRange = PortRange(first=1024)
    """Source ports."""
    destination_port: PortRange = PortRange(first=1024)
    """Destination ports."""


class ProfileFile(_Model):
    """A traffic profile as its file describes it: everything but the size of the frames."""

    format: Literal["lossratio-traffic-profile/1"]
    """Format of the file."""
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")
    """Name of the profile; it is in every result."""
    description: str = ""
    """What is special about it."""
    bidirectional: bool = True
    """Whether both ports transmit, at the same load; otherwise only the first one does."""
    ipv4: Ipv4
    """The IPv4 header."""
    udp: Udp | None = None
    """The UDP header; without it, the payload follows the IPv4 header."""


class TrafficProfile(ProfileFile):
    """What the frames of a test look like. Read it with `load_profile`."""

    frame_size: int | Literal["IMIX_v4_1"]
    """Bytes of a frame with FCS, or the name of a mix of sizes."""

    @field_validator("frame_size")
    @classmethod
    def _is_possible(cls, size: int | str) -> int | str:
        if isinstance(size, int) and not SMALLEST_FRAME <= size <= LARGEST_FRAME:
            raise ValueError(f"{size} is not within {SMALLEST_FRAME} and {LARGEST_FRAME} bytes")
        return size

    @property
    def size_weights(self) -> Mapping[int, int]:
        """Sizes of the frames in bytes with FCS, with their weights."""
        return {self.frame_size: 1} if isinstance(self.frame_size, int) else IMIX[self.frame_size]

    @computed_field  # type: ignore[prop-decorator]
    @property
    def average_frame_size(self) -> float:
        """Average size of the frames, in bytes with FCS."""
        weights = self.size_weights
        return sum(size * weight for size, weight in weights.items()) / sum(weights.values())

    @computed_field  # type: ignore[prop-decorator]
    @property
    def transmitting_directions(self) -> int:
        """Number of directions that traffic is sent in; the aggregate load is the load times this."""
        return 2 if self.bidirectional else 1

    @computed_field  # type: ignore[prop-decorator]
    @property
    def flows(self) -> int:
        """Number of different flows in each direction."""
        ranges: list[AddressRange | PortRange] = [self.ipv4.source, self.ipv4.destination]
        if self.udp is not None:
            ranges += [self.udp.source_port, self.udp.destination_port]
        return lcm(*(each.count for each in ranges))

    def description_in_full(self) -> dict[str, Any]:
        """The whole profile as JSON data, with its frame sizes and all defaults, for results."""
        return {**self.model_dump(mode="json"), "size_weights": {str(k): v for k, v in self.size_weights.items()}}


def load_profile(
    name_or_path: str | Path, *, frame_size: int | str, bidirectional: bool | None = None
) -> TrafficProfile:
    """Reads a traffic profile.

    Args:
        name_or_path: Name of a profile that comes with lossratio, or path of a file (anything with a ``/`` or ending
            in ``.yaml``).
        frame_size: Bytes of a frame with FCS (``64`` or ``64B``), or the name of a mix of sizes (``IMIX_v4_1``).
        bidirectional: Whether both ports transmit; None: as the profile says.

    Raises:
        TrafficError: If there is no such profile, the file does not describe one (with file, line and field of each
            problem), or the frame size is impossible.
    """
    size = _parse_frame_size(frame_size)
    profile = _read_profile(name_or_path)
    fields = profile.model_dump()
    if bidirectional is not None:
        fields["bidirectional"] = bidirectional
    try:
        return TrafficProfile.model_validate({**fields, "frame_size": size})
    except ValidationError as error:
        message = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise TrafficError(f"Traffic profile {profile.name}, frame size: {message}.") from error


def profile_names() -> tuple[str, ...]:
    """Names of the profiles that come with lossratio."""
    entries = files("lossratio").joinpath(_PROFILES).iterdir()
    return tuple(sorted(entry.name.removesuffix(".yaml") for entry in entries if entry.name.endswith(".yaml")))


def _read_profile(name_or_path: str | Path) -> ProfileFile:
    if isinstance(name_or_path, Path) or "/" in name_or_path or name_or_path.endswith((".yaml", ".yml")):
        return load_yaml_file(name_or_path, ProfileFile, TrafficError)
    if name_or_path not in profile_names():
        raise TrafficError(
            f"There is no traffic profile {name_or_path!r}; there are {', '.join(profile_names())}. "
            "A file of your own is given by its path."
        )
    with as_file(files("lossratio").joinpath(_PROFILES).joinpath(f"{name_or_path}.yaml")) as path:
        return load_yaml_file(path, ProfileFile, TrafficError)


def _parse_frame_size(frame_size: int | str) -> int | str:
    if frame_size in IMIX:
        return frame_size
    try:
        return parse_bytes(frame_size)
    except ValueError as error:
        raise TrafficError(
            f"{frame_size!r} is no frame size; give bytes with FCS, like 64 or '64B', or one of {', '.join(IMIX)}."
        ) from error
