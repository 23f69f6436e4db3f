"""Traffic profiles in the words of test reports."""

from __future__ import annotations

from lossratio.report.conditions import FrameSizeShare, LoadSemantics, Traffic
from lossratio.traffic import TrafficProfile
from lossratio.traffic.wording import addresses, frame_format, ip_versions, modifiers


def describe_traffic(profile: TrafficProfile) -> Traffic:
    """What a test report says about a traffic profile."""
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


def describe_load(profile: TrafficProfile, west: str, east: str) -> LoadSemantics:
    """What a load of this profile is.

    Args:
        profile: The traffic.
        west: Name of the path's first port.
        east: Name of its second port.
    """
    directions = (f"{west}>{east}", f"{east}>{west}")[: profile.transmitting_directions]
    return LoadSemantics(directions=directions, aggregate_factor=len(directions))
