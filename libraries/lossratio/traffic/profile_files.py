"""Traffic profiles by name, and from files."""

import re
from collections.abc import Iterable
from difflib import get_close_matches
from importlib.resources import as_file, files
from math import gcd
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lossratio.errors import ProfileError
from lossratio.files import describe_problem, load_yaml_file, shown_name
from lossratio.topology import WEST
from lossratio.traffic.frame_sizes import IMIX, parse_frame_size
from lossratio.traffic.profile import ProfileFile, TrafficProfile
from lossratio.traffic.ranges import PORTS
from lossratio.traffic.streams import StreamError
from lossratio.values import did_you_mean, in_words, shortened, shown_value

_PROFILES = "resources/traffic_profiles"
_SIMILAR = 0.6
"""Minimum similarity of the names that an error lists, as measured by `difflib` (0 to 1)."""
_COUNTED = re.compile(
    r"(?P<stem>ethip4-(?P<way>ip4dst|ip4src|ip4net|udp-h|tcp-h|geneve))(?P<count>[1-9]\d{0,4})(?P<end>(?:-p63)?(?:-det44)?)"
)
"""Names of profiles that differ only in their number of addresses; the file has ``N`` in its place."""
HOSTS_OF_NAT_ADDRESS = 1024
"""Hosts that share an address of a NAT where each has 63 ports."""


def load_profile(
    name_or_path: str | Path, *, frame_size: int | str, bidirectional: bool | None = None
) -> TrafficProfile:
    """Reads a traffic profile.

    Args:
        name_or_path: Name of a profile that comes with lossratio, or a file (anything with a ``/`` or ``.yaml``).
        frame_size: Bytes with FCS (``64`` or ``64B``), or the name of a mix of sizes: ``IMIX_v4_1``, or one of the
            profile's own.
        bidirectional: Whether both ports transmit; None: as the profile says.

    Raises:
        ProfileError: If there is no such profile, the file does not describe one (the message has file, line and field
            of each problem), or the frame size is impossible.
    """
    profile = read_profile(name_or_path)
    if profile.name == name_or_path:
        shown = profile.name
    else:
        shown = f"{profile.name} ({name_or_path})"

    fields = profile.model_dump()
    if bidirectional is not None:
        fields["bidirectional"] = bidirectional

    try:
        return TrafficProfile.model_validate({**fields, "frame_size": parse_frame_size(frame_size)})
    except ValidationError as error:
        problem = error.errors()[0]
        cause = problem.get("ctx", {}).get("error")
        if isinstance(cause, StreamError) and profile.name != name_or_path:
            number = [stream.name for stream in profile.streams].index(cause.name)
            text = f"{cause.name} {cause.problem} (frame size {shown_name(shortened(str(frame_size)))})."
            raise ProfileError(describe_problem(name_or_path, ("streams", number), text)) from error
        # A check of the whole profile belongs to no field.
        where = "".join(f"{field}: " for field in problem["loc"])
        message = in_words(problem)
        raise ProfileError(
            f"Traffic profile {shown}, frame size {shown_name(shortened(str(frame_size)))}: {where}{message}."
        ) from error
    except ValueError as error:
        raise ProfileError(f"Traffic profile {shown}, frame size: {error}") from error


def profile_names() -> tuple[str, ...]:
    """Names of the profiles that come with lossratio."""
    files_there = (entry.name for entry in files("lossratio").joinpath(_PROFILES).iterdir())
    names = (name.removesuffix(".yaml") for name in files_there if name.endswith(".yaml"))
    return tuple(sorted(names))


def profile_descriptions() -> dict[str, str]:
    """The description of each profile that comes with lossratio, by its name."""
    return {name: read_profile(name).description for name in profile_names()}


def mix_names(profiles: Iterable[str]) -> tuple[str, ...]:
    """Names of the mixes of sizes that the frames of at least one of some profiles can have.

    Args:
        profiles: Names or files of profiles.

    Raises:
        ProfileError: If there is no such profile, or its file does not describe one.
    """
    own = {name for profile in profiles for name in read_profile(profile).mixes}
    return tuple(sorted({*IMIX, *own}))


def read_profile(name_or_path: str | Path) -> ProfileFile:
    """Reads the file of a traffic profile, for frames of any size.

    Args:
        name_or_path: Name of a profile that comes with lossratio, or a file (anything with a ``/`` or ``.yaml``).

    Raises:
        ProfileError: If there is no such profile, or the file does not describe one.
    """
    if not isinstance(name_or_path, str | Path):
        raise ProfileError(
            f"A traffic profile is given by its name or path, not by {shown_value(name_or_path)}."
        )
    if (
        isinstance(name_or_path, Path)
        or "/" in name_or_path
        or name_or_path.endswith((".yaml", ".yml"))
    ):
        return load_yaml_file(name_or_path, ProfileFile, ProfileError)

    if counted := _COUNTED.fullmatch(name_or_path):
        fields = _counted_fields(counted)
        return ProfileFile.model_validate({**fields, "name": name_or_path})

    if name_or_path not in profile_names():
        names = profile_names()
        near = get_close_matches(name_or_path, names, n=3, cutoff=_SIMILAR)
        similar = (
            f" Similar names are {', '.join(near)}." if near else did_you_mean(name_or_path, names)
        )
        raise ProfileError(
            f"There is no traffic profile {shown_value(name_or_path)}.{similar} 'lossratio list profiles' lists all. "
            f"To use your own file, give its path."
        )

    with as_file(files("lossratio").joinpath(_PROFILES).joinpath(f"{name_or_path}.yaml")) as path:
        return load_yaml_file(path, ProfileFile, ProfileError)


def _counted_fields(counted: re.Match[str]) -> dict[str, Any]:
    """The fields of a profile whose name has a number of addresses."""
    fields = read_profile(f"{counted['stem']}N{counted['end']}").model_dump()
    count = int(counted["count"])
    destinations = fields["ipv4"]["destination"]
    if counted["way"] in ("ip4src", "ip4net"):
        fields["ipv4"]["source"]["count"] = count
        destinations["count"] = count if counted["way"] == "ip4net" else 1
        return fields
    if counted["way"] == "ip4dst":
        destinations["count"] = count
        return fields
    if counted["way"] == "geneve":
        tunnel = fields["reverse"]["headers"]["geneve"]
        flows = count * tunnel["vni"]["repeat"]
        for addresses in (fields["ipv4"], tunnel["inner"]["ipv4"]):
            addresses["source"]["count"] = addresses["destination"]["count"] = flows
        tunnel["vni"]["count"] = count
        ports = min(flows, PORTS)
        tunnel["source_port"] |= {"first": PORTS - ports, "count": ports}
        return fields

    fields["ipv4"]["source"]["count"] = count
    # Each host and port has one destination.
    destinations["count"] = gcd(count, destinations["count"])
    if fields["reverse"]["to_nat"]:
        addresses = max(1, count // HOSTS_OF_NAT_ADDRESS)
        back = fields["reverse"]["headers"]["ipv4"]["destination"]
        back["count"] = addresses
        # 64,512 ports: so, all addresses meet all ports.
        back["repeat"] = HOSTS_OF_NAT_ADDRESS if addresses > 1 else None
        back["first"] = WEST.ipv4.num_addresses - addresses
    return fields
