# SPDX-License-Identifier: Apache-2.0
"""From the description of one direction's frames to the parts that a program writes, and compares.

The bytes are those that the embedded generator sends: see `lossratio.agent.afpacket.frames`. Here a frame is
made of constant bytes, stepping fields, and checksums over these, so that a program of the kernel computes it.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..core.frames_spec import ChecksumField, FramesSpec
from ..core.protocol import AgentError, unsupported
from ..core.wire import FCS_BYTES

MOST_BYTES = 3400
"""Bytes of the largest frame, without FCS, that fits into live frames: a page minus its headers."""


@dataclass(frozen=True)
class Share:
    """A stream: a part of a direction's frames that one sender sends, numbered separately from 0 on."""

    number: int = 0
    """Its number among all streams: its place in the ring of times, and the lowest bits of its tag."""
    direction: int = 0
    """Number of its direction."""
    sender: int | None = 0
    """Number of its sender; None: another node sends it."""
    place: int = 0
    """Its number among the sender's streams."""
    share: tuple[int, int] = (0, 1)
    """Its part of the direction: index, and number of parts, which is also the distance between its frames."""


@dataclass(frozen=True)
class ChangingChecksum:
    """A checksum over stepping fields."""

    field: ChecksumField
    """Its place, and what it covers."""
    sums: tuple[int, ...]
    """For each size: the sum of all 16-bit words that do not change."""
    covered: tuple[int, ...]
    """Numbers of the stepping fields that it covers."""


class FramePlan:
    """The frames of one direction.

    Attributes:
        spec: Their description.
        source_mac: Source MAC address of all frames.
        destination_mac: Destination MAC address of all frames.
        lengths: Bytes of each size, without FCS.
        pattern: Numbers of the sizes of the first frames, which repeat for all others.
        flows: How many flows there are.
        period: After how many frames everything repeats.
        round: After how many frames the patterns of sizes and flows return together.
        templates: For each size, a frame with zero stepping fields and changing checksums.
        sized: Places of 16-bit words that depend on the size alone.
        orders: For each field that steps, what is added to its first value in each step; None: the step's number.
        checksums: Checksums over these.
    """

    def __init__(self, spec: FramesSpec, source_mac: bytes, destination_mac: bytes) -> None:
        spec.check_room()
        if spec.max_size - FCS_BYTES > MOST_BYTES:
            raise AgentError(
                "no_xdp",
                f"Frames of {spec.max_size} bytes do not fit into a page of memory: the generator 'xdp' sends at "
                f"most {MOST_BYTES + FCS_BYTES} bytes. Use 'kind: afpacket' or smaller frames.",
            )

        self.spec = spec
        self.source_mac, self.destination_mac = source_mac, destination_mac
        self.lengths = tuple(size - FCS_BYTES for size, _ in spec.sizes)
        self.pattern = spec.size_order
        self.flows = spec.flows
        self.period = spec.period
        self.round = spec.round
        self.orders = tuple(field.steps if field.is_shuffled else None for field in spec.fields)
        self._fixed = [checksum for checksum in spec.checksums if not self._covered(checksum)]
        sized = [*(length.offset for length in spec.lengths), *(checksum.offset for checksum in self._fixed)]
        self.sized = tuple(sized) if len(self.lengths) > 1 else ()
        self.templates = tuple(self._template(length) for length in self.lengths)
        self.checksums = tuple(
            ChangingChecksum(checksum, tuple(map(checksum.sum_in, self.templates)), covered)
            for checksum in spec.checksums
            if (covered := self._covered(checksum))
        )
        changing = [checksum.field for checksum in self.checksums]
        if any(over.end is None and over.start < one.start for over in changing for one in changing):
            raise unsupported(
                "The generator xdp cannot compute a checksum over another checksum that changes. Use 'kind: afpacket'."
            )

    def _covered(self, checksum: ChecksumField) -> tuple[int, ...]:
        regions = [(checksum.start, max(self.lengths) if checksum.end is None else checksum.end)]
        if checksum.pseudo_header is not None:
            regions.append(checksum.pseudo_header[:2])
        covered = []
        for number, field in enumerate(self.spec.fields):
            for start, end in regions:
                if start <= field.offset < end:
                    if (field.offset - start) % 2:
                        raise unsupported(
                            "The generator xdp cannot compute a checksum over a changing field "
                            f"that begins at an odd byte ({field.offset}). Use 'kind: afpacket'."
                        )
                    covered.append(number)
        return tuple(covered)

    def _template(self, length: int) -> bytes:
        frame = self.spec.template(length, self.destination_mac + self.source_mac)
        for checksum in self._fixed:
            checksum.write(frame)
        return bytes(frame)
