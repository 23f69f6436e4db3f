"""Sizes of frames: numbers of bytes, and mixes of sizes by name."""

from collections.abc import Mapping
from math import gcd

from lossratio.traffic.headers import LARGEST_FRAME, SMALLEST_FRAME, SMALLEST_IPV6_FRAME
from lossratio.values import did_you_mean, parse_bytes, shown_value

_IMIX = "IMIX_v4_1"
IMIX: Mapping[str, Mapping[int, int]] = {_IMIX: {64: 28, 570: 16, 1518: 4}}
"""Mixes of frame sizes by name: bytes with FCS, each with its weight."""
RESERVED_NAMES = frozenset({"imix", *(name.casefold() for name in IMIX)})
"""Names, in lower case, that mean the same in every profile."""
LONGEST_PATTERN = 4096
"""The maximum number of frames after which a mix of sizes repeats."""
MOST_SIZES = 64
"""The maximum number of sizes in a mix: the embedded generator's packet filter knows all of them."""
RFC2544_FRAME_SIZES = (64, 128, 256, 512, 1024, 1280, 1518)
"""Frame sizes of RFC 2544, section 9.1."""


def parse_frame_size(frame_size: int | str) -> int | str:
    """Reads bytes of a frame with FCS (``64``, ``64B``); anything else is the name of a mix of sizes.

    ``IMIX`` is short for ``IMIX_v4_1``.

    Raises:
        ValueError: If it begins like a number but is not a number of bytes, or if it looks like a named argument,
            because that is how Robot Framework passes named arguments that a keyword does not have.
    """
    text = str(frame_size).strip()
    if "," in text:
        raise ValueError(
            f"{shown_value(text)} are several frame sizes, but one is measured at a time. In a suite, write a test for "
            "each, or use 'Run RFC 2544', which takes frame_sizes."
        )
    if not isinstance(frame_size, str | int) or isinstance(frame_size, bool):
        raise ValueError(f"{shown_value(frame_size)} is not a frame size; write it like '64B'.")

    name, is_named, _ = text.partition("=")
    if is_named and name.isidentifier():
        meant = did_you_mean(name, ("frame_size", "profile", "bidirectional"))
        raise ValueError(
            f"there is no argument {name!r}: {shown_value(text)} was taken for the frame size, such as 64B.{meant}"
        )

    if text.casefold() == "imix":
        return _IMIX
    if text[:1].isalpha():
        return next((name for name in IMIX if name.casefold() == text.casefold()), text)
    return parse_bytes(text)


def check_frame_size(frame_size: int | str) -> None:
    """Makes sure that some traffic can have a frame size; a profile may have mixes of any name.

    Raises:
        ValueError: If it cannot be read, or is a number of bytes that no frame has.
    """
    size = parse_frame_size(frame_size)
    if isinstance(size, int) and not SMALLEST_FRAME <= size <= LARGEST_FRAME:
        raise ValueError(f"{size} is not between {SMALLEST_FRAME} and {LARGEST_FRAME} bytes")


def weights_of(
    frame_size: int | str, mixes: Mapping[str, Mapping[int, int]], *, has_ipv6: bool
) -> Mapping[int, int]:
    """Sizes of the frames in bytes with FCS, each with its weight; `mixes` are the profile's own ones.

    If the frames have an IPv6 header, a well-known mix has frames of `SMALLEST_IPV6_FRAME` instead of smaller ones, as
    the documentation of FD.io CSIT's tests says.

    Raises:
        ValueError: If there is no such mix, or its weights are impossible.
    """
    if isinstance(frame_size, int):
        return {frame_size: 1}

    if frame_size in mixes:
        _check_mix(frame_size, mixes[frame_size])
        return mixes[frame_size]

    if frame_size not in IMIX:
        known = ", ".join(sorted({*IMIX, *mixes}))
        raise ValueError(
            f"{shown_value(frame_size)} is neither a size like 64 or '64B' nor a mix of sizes. Known mixes: {known}"
        )
    if not has_ipv6:
        return IMIX[frame_size]
    return {max(size, SMALLEST_IPV6_FRAME): weight for size, weight in IMIX[frame_size].items()}


def _check_mix(name: str, weights: Mapping[int, int]) -> None:
    """Makes sure that a mix can be sent."""
    if not weights or min(weights.values()) < 1:
        raise ValueError(f"mix {name}: it needs sizes, each with a weight of 1 or more")
    if len(weights) > MOST_SIZES:
        raise ValueError(
            f"mix {name}: it has {len(weights)} sizes, but at most {MOST_SIZES} are supported"
        )

    pattern = sum(weights.values()) // gcd(*weights.values())
    if pattern > LONGEST_PATTERN:
        raise ValueError(
            f"mix {name}: its sizes repeat only after {pattern} frames, and the limit is {LONGEST_PATTERN}. "
            "Use smaller weights, or weights with a common divisor"
        )
