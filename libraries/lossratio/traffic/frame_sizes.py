"""Sizes of test frames: one for all of them, or a mix of several."""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd
from types import MappingProxyType

from lossratio.units import parse_bytes

_IMIX = "IMIX_v4_1"

IMIX: Mapping[str, Mapping[int, int]] = MappingProxyType({_IMIX: {64: 28, 570: 16, 1518: 4}})
"""Mixes of frame sizes by name: bytes with FCS, each with its weight."""

RESERVED_NAMES = frozenset({"imix", *(name.casefold() for name in IMIX)})
"""Names, in lower case, that mean the same in every profile."""

SMALLEST_FRAME = 64
"""Bytes, with FCS, of the smallest Ethernet frame."""

SMALLEST_IPV6_FRAME = 78
"""Bytes, with FCS, of the smallest frame with IPv6 that tests use."""

LARGEST_FRAME = 9000
"""Bytes, with FCS, of the largest (jumbo) frame that tests use."""

LONGEST_PATTERN = 4096
"""The most frames after which a mix of sizes repeats."""

MOST_SIZES = 64
"""The most sizes of a mix: the embedded generator's packet filter knows all of them."""


def parse_frame_size(frame_size: int | str) -> int | str:
    """Reads bytes of a frame with FCS (``64``, ``64B``); anything else is the name of a mix of sizes.

    ``IMIX`` is short for ``IMIX_v4_1``.

    Raises:
        ValueError: If it begins like a number, and is no number of bytes.
    """
    text = str(frame_size).strip()
    if text.casefold() == "imix":
        return _IMIX
    if text[:1].isalpha():
        return next((name for name in IMIX if name.casefold() == text.casefold()), text)
    return parse_bytes(text)


def weights_of(frame_size: int | str, mixes: Mapping[str, Mapping[int, int]], *, has_ipv6: bool) -> Mapping[int, int]:
    """Sizes of the frames in bytes with FCS, each with its weight.

    Args:
        frame_size: Bytes, or the name of a mix.
        mixes: Mixes besides those that everybody knows.
        has_ipv6: Whether the frames have an IPv6 header. A well-known mix then has frames of `SMALLEST_IPV6_FRAME`
            where it would have smaller ones, as the documentation of FD.io CSIT's tests says.

    Raises:
        ValueError: If there is no such mix, or it has no frames, too many sizes, or too many frames until it repeats.
    """
    if isinstance(frame_size, int):
        return {frame_size: 1}
    if frame_size in mixes:
        return _checked(frame_size, mixes[frame_size])
    if frame_size not in IMIX:
        known = ", ".join(sorted({*IMIX, *mixes}))
        raise ValueError(f"{frame_size!r} is neither bytes like 64 or '64B', nor a mix of sizes; there are {known}")
    if not has_ipv6:
        return IMIX[frame_size]
    return {max(size, SMALLEST_IPV6_FRAME): weight for size, weight in IMIX[frame_size].items()}


def _checked(name: str, weights: Mapping[int, int]) -> Mapping[int, int]:
    if not weights or min(weights.values()) < 1:
        raise ValueError(f"mix {name}: it needs sizes, each with a weight of 1 or more")
    if len(weights) > MOST_SIZES:
        raise ValueError(f"mix {name}: it has {len(weights)} sizes, and may have {MOST_SIZES} at most")
    pattern = sum(weights.values()) // gcd(*weights.values())
    if pattern > LONGEST_PATTERN:
        raise ValueError(f"mix {name}: its weights add up to {pattern} frames, and may to {LONGEST_PATTERN} at most")
    return weights
