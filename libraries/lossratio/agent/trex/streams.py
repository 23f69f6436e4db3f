# SPDX-License-Identifier: Apache-2.0
"""From a direction's frames to the streams of TRex's client: a packet, and a program of its field engine."""

from __future__ import annotations

import inspect
from contextlib import ExitStack
from random import Random
from typing import Any, Sequence

from ..core.configuration import Direction
from ..core.frames_spec import ChecksumField, SteppingField
from ..core.headers import IPV4, IPV6
from ..core.pacing import frames_within
from ..core.protocol import unsupported
from ..core.wire import FCS_BYTES, TCP_PROTOCOL, UDP_PROTOCOL
from .connection import TrexConnection

LATENCY_HEADER_BYTES = 16
"""Bytes that TRex writes at the end of each latency frame."""
_ADDRESSES_OF_PACKET = 1
GAP = 10e-6
"""Seconds by which each direction begins later than the previous one."""
_GROUPS_OF_DIRECTION = 1000
MOST_LISTED = (1 << 16) - 1
"""The maximum number of values of a field in random order, which are given to TRex one by one."""
_SIZES = (1, 2, 4, 8)


class StreamMaker:
    """Makes the streams of one direction, and adds them to its port.

    `number` is the number of directions before it; it begins that many gaps of 10 microseconds later.
    """

    def __init__(
        self, connection: TrexConnection, direction: Direction, source_mac: bytes, destination_mac: bytes, number: int
    ) -> None:
        self._connection = connection
        self._api = connection.api
        self._port = connection.settings.ports[direction.transmit]
        self._load: list[int] = []
        self._direction = direction
        self._gap = 1e6 * (connection.settings.lead + GAP * number)
        self._counts_streams = connection.settings.flow_statistics
        self._first_group = _GROUPS_OF_DIRECTION * (number + 1)
        self._macs = destination_mac + source_mac

    def add_load(self) -> None:
        """Adds the streams of a load."""
        self._load = self._connection.add_streams(self.load_streams(), self._port)

    def remove_load(self) -> None:
        """Removes the streams of the load."""
        self._connection.remove_streams(self._load, self._port)

    def add_for_now(self, streams: Sequence[Any], undo: ExitStack) -> None:
        """Adds streams, which `undo` removes."""
        numbers = self._connection.add_streams(streams, self._port)
        undo.callback(self._connection.remove_streams, numbers, self._port)

    def load_streams(self, load: float = 1.0) -> list[Any]:
        """Streams, one for each size, whose rates add up to the direction's share of a load in frames per second."""
        weights = dict(self._direction.frames.sizes)
        rate = load * self._direction.load_share / sum(weights.values())
        return [
            self._stream(
                size,
                rate * weights[size],
                **({"flow_stats": self._api.STLFlowStats(pg_id=group)} if self._counts_streams else {}),
            )
            for group, size in self.groups
        ]

    def burst_streams(self, load: float, duration: float) -> list[Any]:
        """Streams, one for each size, that send the frames of a duration at a load, in frames per second, and end.

        Frames of several sizes are divided by their weights, and the remainder goes to the largest share.
        """
        weights = dict(self._direction.frames.sizes)
        total = sum(weights.values())
        rate = load * self._direction.load_share
        frames = frames_within(duration, rate)
        shares = {size: frames * weight // total for size, weight in weights.items()}
        most = max(weights, key=lambda size: weights[size])
        shares[most] += frames - sum(shares.values())

        return [
            self._stream(
                size,
                rate * weights[size] / total,
                mode=self._api.STLTXSingleBurst(pps=rate * weights[size] / total, total_pkts=share),
            )
            for size, share in shares.items()
            if share
        ]

    def latency_stream(self, group: int, rate: float) -> Any:
        """A stream whose frames measure latency, of the smallest size that has room for TRex's latency header.

        No factor changes its rate in frames per second; `group` is the number that its counters get.
        """
        return self._stream(self.latency_size, rate, flow_stats=self._api.STLFlowLatencyStats(pg_id=group))

    @property
    def groups(self) -> list[tuple[int, int]]:
        """Number of the counters of each stream of the load, and the size of its frames in bytes with FCS."""
        return list(enumerate(dict(self._direction.frames.sizes), start=self._first_group))

    @property
    def latency_size(self) -> int:
        """Bytes, with FCS, of the smallest frames that have room for TRex's latency header."""
        least = len(bytes.fromhex(self._direction.frames.header)) + LATENCY_HEADER_BYTES + FCS_BYTES
        fitting = [size for size, _ in self._direction.frames.sizes if size >= least]
        if not fitting:
            raise unsupported(f"TRex's latency frames need {least} bytes with these headers. Use larger frames.")
        return min(fitting)

    def _stream(self, size: int, rate: float, mode: Any = None, **more: Any) -> Any:
        return self._api.STLStream(
            packet=self._packet(size),
            mode=self._api.STLTXCont(pps=rate) if mode is None else mode,
            isg=self._gap,
            mac_src_override_by_pkt=_ADDRESSES_OF_PACKET,
            mac_dst_override_mode=_ADDRESSES_OF_PACKET,
            **more,
        )

    def _packet(self, size: int) -> Any:
        """Frames of one size, in bytes with FCS: the first one, without FCS, and the program that changes it."""
        spec = self._direction.frames
        header = bytes.fromhex(spec.header)
        if size - FCS_BYTES < len(header):
            raise unsupported(
                f"A frame of {size} bytes is too small: these headers need {len(header) + FCS_BYTES}. Use larger "
                "frames."
            )

        # The embedded generator's frame, but with zeros in place of its tag.
        data = spec.template(size - FCS_BYTES, self._macs)
        rest = data[len(header) : spec.payload_offset]
        data[len(header) : spec.payload_offset] = bytes(len(rest))
        program: list[Any] = []

        for number, field in enumerate(spec.fields):
            values = _values(field)
            data[field.offset : field.offset + field.width] = values[0].to_bytes(field.width, "big")
            program += self._variable(f"field{number}", field, values)

        for checksum in spec.checksums:
            data[checksum.offset : checksum.offset + 2] = checksum.value(checksum.sum_in(bytes(data)))
        changing = [checksum for checksum in spec.checksums if _is_changed(checksum, spec.fields)]
        program += [self._api.STLVmFixIpv4(offset=each.start) for each in changing if each.pseudo_header is None]
        program += self._transport([checksum for checksum in changing if checksum.pseudo_header is not None])

        return self._api.STLPktBuilder(pkt_buffer=bytes(data), vm=program or None)

    def _variable(self, name: str, field: SteppingField, values: tuple[int, ...] | range) -> list[Any]:
        """A number that the field engine writes into each frame; all numbers of a packet step together."""
        last = max(values) if isinstance(values, tuple) else values[-1]
        fitting = (size for size in _SIZES if size <= field.width and field.first >> 8 * size == last >> 8 * size)
        size = next(fitting, None)
        if size is None:
            raise unsupported(
                f"TRex cannot step a field of {field.width} bytes from {field.first} to {last}: its numbers have 1, 2, "
                "4 or 8 bytes. Use a range that changes no more bytes than that at the end of the field."
            )

        mask = (1 << 8 * size) - 1
        wanted: dict[str, Any] = {"min_value": field.first & mask, "max_value": last & mask}
        if isinstance(values, tuple):
            wanted = {"value_list": [value & mask for value in values]}
        make = self._api.STLVmFlowVar
        known = inspect.signature(make).parameters
        if set(wanted) - set(known):
            raise unsupported(
                "The client of this TRex does not support fields in repeatable random order. Use 'order: increment' "
                "in the traffic profile, or a newer TRex."
            )

        # Each core goes through all values, so that the set of flows does not depend on the number of cores.
        splitting = {"split_to_cores": False} if "split_to_cores" in known else {}
        variable = make(name=name, size=size, op="inc", **wanted, **splitting)
        return [variable, self._api.STLVmWrFlowVar(fv_name=name, pkt_offset=field.offset + field.width - size)]

    def _transport(self, changing: list[ChecksumField]) -> list[Any]:
        """Makes the field engine compute the checksum of UDP or TCP, with its pseudo header, for each frame."""
        if not changing:
            return []
        checksum = changing[-1]
        start, end, protocol = checksum.pseudo_header or (0, 0, 0)
        offsets = {header.length - header.addresses: header.addresses for header in (IPV4, IPV6)}
        if len(changing) > 1 or protocol not in (UDP_PROTOCOL, TCP_PROTOCOL) or end - start not in offsets:
            raise unsupported(
                "If fields change from frame to frame, TRex can compute one checksum, of UDP or "
                "TCP, but this traffic profile needs more than that. Use 'kind: afpacket'."
            )
        kinds = self._api.CTRexVmInsFixHwCs
        kind = kinds.L4_TYPE_UDP if protocol == UDP_PROTOCOL else kinds.L4_TYPE_TCP
        return [self._api.STLVmFixChecksumHw(start - offsets[end - start], checksum.start, kind)]


def _values(field: SteppingField) -> tuple[int, ...] | range:
    values = range(field.first, field.first + field.count)
    if field.seed is None and not field.values:
        return values
    if field.count > MOST_LISTED:
        raise unsupported(
            f"TRex supports {MOST_LISTED} values of a field in random order, but the traffic profile has "
            f"{field.count}. Use 'order: increment' or fewer values."
        )
    return field.values or tuple(Random(field.seed).sample(values, field.count))


def _is_changed(checksum: ChecksumField, fields: tuple[SteppingField, ...]) -> bool:
    covered = [(checksum.start, checksum.end)]
    if checksum.pseudo_header is not None:
        covered.append(checksum.pseudo_header[:2])
    return any(
        field.offset + field.width > start and (end is None or field.offset < end)
        for field in fields
        for start, end in covered
    )


def least_sent(duration: float, rate: float, number: int) -> int:
    """Frames that a direction has sent when its traffic has ended in time, at a rate in frames per second.

    Each of the `number` directions that begin earlier delays this one by some microseconds. Frames that are due in that
    time at the end stay unsent.
    """
    return frames_within(max(0.0, duration - (number + 1) * GAP), rate)
