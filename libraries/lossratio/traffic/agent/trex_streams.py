"""From a direction's frames to the streams of TRex's client."""

from __future__ import annotations

import inspect
from typing import Any, Mapping

from .configuration import FCS_BYTES, Direction
from .protocol import AgentError
from .trex_frames import Template, Variable, make_template

LATENCY_HEADER_BYTES = 16
"""What TRex writes into the end of each latency frame."""

_ADDRESSES_OF_TEMPLATE = 1
_GAP = 10.0


class StreamMaker:
    """Makes the streams of one direction.

    Args:
        api: The module of TRex's client.
        direction: The direction.
        source_mac: Six bytes.
        destination_mac: Six bytes.
        number: How many directions come before it; it begins so many gaps of 10 microseconds later.

    Raises:
        AgentError: Of kind ``unsupported``, if TRex cannot build its frames.
    """

    def __init__(self, api: Any, direction: Direction, source_mac: bytes, destination_mac: bytes, number: int) -> None:
        self._api = api
        self._direction = direction
        self._gap = _GAP * number
        self._templates = {
            size: make_template(direction.frames, size, source_mac, destination_mac)
            for size, _ in direction.frames.sizes
        }

    def load_streams(self, load: float = 1.0) -> list[Any]:
        """Streams, one for each size, whose rates sum up to the direction's share of a load in frames per second."""
        weights = dict(self._direction.frames.sizes)
        rate = load * self._direction.load_share / sum(weights.values())
        return [self._stream(template, rate * weights[size]) for size, template in self._templates.items()]

    def latency_stream(self, group: int, rate: float) -> Any:
        """A stream whose frames measure latency, of the smallest size that has room for TRex's latency header.

        Args:
            group: Number that its counters get.
            rate: Frames per second; no factor changes it.

        Raises:
            AgentError: Of kind ``unsupported``, if no frame has room for it.
        """
        headers = len(bytes.fromhex(self._direction.frames.header))
        least = headers + LATENCY_HEADER_BYTES + FCS_BYTES
        fitting = [size for size in self._templates if size >= least]
        if not fitting:
            raise AgentError("unsupported", f"TRex's latency frames need {least} bytes with these headers.")
        template = self._templates[min(fitting)]
        return self._stream(template, rate, flow_stats=self._api.STLFlowLatencyStats(pg_id=group))

    def _stream(self, template: Template, rate: float, **more: Any) -> Any:
        builder = self._api.STLPktBuilder(pkt_buffer=template.data, vm=self._program(template) or None)
        return self._api.STLStream(
            packet=builder,
            mode=self._api.STLTXCont(pps=rate),
            isg=self._gap,
            mac_src_override_by_pkt=_ADDRESSES_OF_TEMPLATE,
            mac_dst_override_mode=_ADDRESSES_OF_TEMPLATE,
            **more,
        )

    def _program(self, template: Template) -> list[Any]:
        program: list[Any] = []
        for number, variable in enumerate(template.variables):
            name = f"field{number}"
            program.append(self._variable(name, variable))
            program.append(self._api.STLVmWrFlowVar(fv_name=name, pkt_offset=variable.offset))
        program += [self._api.STLVmFixIpv4(offset=offset) for offset in template.ipv4_headers]
        transport = template.transport
        if transport is not None:
            kinds = self._api.CTRexVmInsFixHwCs
            kind = kinds.L4_TYPE_UDP if transport.is_udp else kinds.L4_TYPE_TCP
            program.append(self._api.STLVmFixChecksumHw(transport.network, transport.transport, kind))
        return program

    def _variable(self, name: str, variable: Variable) -> Any:
        make = self._api.STLVmFlowVar
        wanted: Mapping[str, Any] = (
            {"value_list": list(variable.values)}
            if variable.values
            else {"min_value": variable.first, "max_value": variable.last}
        )
        known = inspect.signature(make).parameters
        if set(wanted) - set(known):
            raise AgentError(
                "unsupported",
                "This TRex's client knows no fields in random order that repeats. Use 'order: increment' in the "
                "traffic profile, or a newer TRex.",
            )
        # Each core goes through all values, so that the set of flows does not depend on the number of cores.
        splitting = {"split_to_cores": False} if "split_to_cores" in known else {}
        return make(name=name, size=variable.size, op="inc", **wanted, **splitting)
