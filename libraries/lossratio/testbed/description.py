"""Traffic profiles, loads, and the threads and cores of DUTs, in the words of test reports."""

from __future__ import annotations

from collections.abc import Sequence

from lossratio.dut import Dut, DutOptions
from lossratio.dut.linux import ProgramOptions
from lossratio.results import FrameSizeShare, LoadSemantics, Traffic, load_semantics
from lossratio.traffic import TrafficProfile, addresses, frame_format, ip_versions, modifiers


def describe_traffic(profile: TrafficProfile) -> Traffic:
    """The description of a traffic profile for test reports."""
    weights = profile.size_weights
    total = sum(weights.values())
    return Traffic(
        name=profile.name,
        frame_sizes=tuple(
            FrameSizeShare(size_bytes=size, share_ratio=weight / total) for size, weight in weights.items()
        ),
        average_frame_size_bytes=profile.average_frame_size,
        frame_format=frame_format(profile),
        addresses=addresses(profile),
        modifiers=modifiers(profile),
        ip_versions=ip_versions(profile),
        pattern="bidirectional" if profile.bidirectional else "unidirectional",
        profile=profile.description_in_full(),
    )


def describe_load(
    profile: TrafficProfile, pairs: Sequence[tuple[str, str]], *, encapsulation_overhead: int = 0
) -> LoadSemantics:
    """The description of what a load means with this profile.

    Args:
        profile: The traffic.
        pairs: Names of the first and the second port of each path.
        encapsulation_overhead: Bytes that encapsulation adds to each frame between DUTs.
    """
    shares = {
        f"{source}>{sink}": direction.load_share
        for west, east in pairs
        for direction, (source, sink) in zip(profile.directions, ((west, east), (east, west)), strict=False)
    }
    return load_semantics(shares, encapsulation_overhead=encapsulation_overhead)


def threads_and_cores(duts: Sequence[Dut[DutOptions]]) -> tuple[str, ...]:
    """Tags such as ``2t1c``: two worker threads on one physical core.

    Args:
        duts: The DUTs, set up.

    Returns:
        One tag for each combination; no tag for DUTs that have no cores of their own.
    """
    tags = (
        f"{len(dut.describe()['cores']['workers'])}t{dut.options.cores}c"
        for dut in duts
        if isinstance(dut.options, ProgramOptions)
    )
    return tuple(dict.fromkeys(tags))
