"""Frames as TRex builds them, from the packets and programs that its client is given, checked by scapy's parser."""

from dataclasses import replace

import numpy as np
import pytest
from at_least_one import at_least_one
from frame_samples import DESTINATION_MAC, SOURCE_MAC, UNSCALED, spec, with_fields_of_scapy
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from trex_lab import connection
from trex_parts import CTRexVmInsFixHwCs, STLVmFixChecksumHw, STLVmFixIpv4, STLVmFlowVar, STLVmWrFlowVar
from trex_stand_in import Server, StandIn

from lossratio.agent.afpacket.frames import FrameBuilder, FrameOrder
from lossratio.agent.core.configuration import Direction
from lossratio.agent.core.frames_spec import SteppingField
from lossratio.agent.core.protocol import AgentError
from lossratio.agent.trex.streams import MOST_LISTED, StreamMaker
from lossratio.traffic import load_profile, profile_names

RANDOM = [f"{scale}{count}-rnd" for scale in ("ethip4-ip4scale", "ethip6-ip6scale") for count in ("200k", "2m")]


def streams(frames_spec):
    direction = Direction("a>b", "east", "west", None, frames_spec)
    return StreamMaker(connection(StandIn(Server())), direction, SOURCE_MAC, DESTINATION_MAC, 0).load_streams()


def built(stream, count):
    """The first frames of a stream: its program, step by step, as TRex's field engine runs it."""
    program = stream.packet.vm or []
    variables = {stream.name: stream for stream in program if isinstance(stream, STLVmFlowVar)}
    for number in range(count):
        data = bytearray(stream.packet.pkt_buffer)
        fixes = []
        for step in program:
            if isinstance(step, (STLVmFixIpv4, STLVmFixChecksumHw)):
                fixes.append(step)
            elif not isinstance(step, STLVmFlowVar):
                variable = variables[step.fv_name]
                value = variable.values[number % len(variable.values)]
                data[step.pkt_offset : step.pkt_offset + variable.size] = value.to_bytes(variable.size, "big")
        for fix in fixes:
            FIXES[type(fix)](fix, data)
        yield bytes(data)


def fix_ipv4(step, data):
    packet = IP(bytes(data[step.offset :]))
    del packet.chksum
    data[step.offset :] = bytes(packet)


def fix_transport(step, data):
    network, transport, kind = step.arguments
    packet = (IP if data[network] >> 4 == 4 else IPv6)(bytes(data[network:]))
    layer = packet[{CTRexVmInsFixHwCs.L4_TYPE_UDP: UDP, CTRexVmInsFixHwCs.L4_TYPE_TCP: TCP}[kind]]
    assert len(packet) - len(layer) == transport - network
    del layer.chksum
    if isinstance(packet, IP):
        del packet.chksum
    data[network:] = bytes(packet)


FIXES = {STLVmFixIpv4: fix_ipv4, STLVmFixChecksumHw: fix_transport}


@pytest.mark.parametrize("profile", [name for name in profile_names() if name not in RANDOM])
@pytest.mark.parametrize("frame_size", [118, 119, 1518])
def test_lengths_and_checksums_are_those_that_scapy_computes(profile, frame_size):
    (stream,) = streams(spec(profile, frame_size))
    frames = list(built(stream, 5))
    assert [with_fields_of_scapy(frame) for frame in frames] == frames
    assert {len(frame) for frame in frames} == {frame_size - 4}


@pytest.mark.whole
@pytest.mark.parametrize("profile", UNSCALED)
def test_both_generators_send_the_same_headers(profile):
    frames_spec = spec(profile, 128)
    builder, order = FrameBuilder(frames_spec, SOURCE_MAC, DESTINATION_MAC), FrameOrder(frames_spec)
    numbers = np.arange(order.flows)
    embedded = builder.beginnings(numbers, np.full(order.flows, 128))[:, : frames_spec.tag_offset]
    (stream,) = streams(frames_spec)
    assert [frame[: frames_spec.tag_offset] for frame in built(stream, order.flows)] == [
        row.tobytes() for row in embedded
    ]


def test_a_million_flows_are_a_few_numbers_that_step():
    (stream,) = streams(spec("ethip6-ip6scale2m", 128))
    flows = load_profile("ethip6-ip6scale2m", frame_size=128).flows
    assert flows >= 1_000_000
    assert max(len(step.values) for step in stream.packet.vm if isinstance(step, STLVmFlowVar)) == flows


def test_a_random_order_takes_every_value_once_and_is_the_same_each_time():
    frames_spec = spec("ethip4-ip4scale20k-rnd", 64)
    first, second = ({step.name: step.values for step in streams(frames_spec)[0].packet.vm if
                      isinstance(step, STLVmFlowVar)} for _ in range(2))  # fmt: skip
    assert first == second
    for name, field in zip(first, frames_spec.fields, strict=True):
        assert len(set(first[name])) == len(first[name]) == field.count
        assert list(first[name]) != sorted(first[name])


def test_each_size_of_a_mix_is_a_stream_with_its_share_of_the_rate():
    mix = streams(spec("ethip4-udp", "IMIX_v4_1"))
    rates = {len(stream.packet.pkt_buffer) + 4: stream.mode.pps for stream in mix}
    assert rates == pytest.approx({64: 28 / 48, 570: 16 / 48, 1518: 4 / 48})


def test_every_flow_of_a_mix_comes_in_every_size():
    for stream in at_least_one(streams(spec("ethip4-udp", "IMIX_v4_1"))):
        (variable,) = (step for step in stream.packet.vm if isinstance(step, STLVmFlowVar))
        assert len(variable.values) == 254


def packet_of(field):
    (stream,) = streams(replace(spec(), fields=(field,), checksums=()))
    return stream.packet


@pytest.mark.parametrize(
    ("width", "first", "count", "size"),
    [(4, 0xC6120001, 254, 1), (4, 0xC61200FF, 2, 2), (2, 1024, 60_000, 2), (8, 1 << 40, 1 << 20, 4), (3, 5, 200, 1)],
)
def test_a_field_is_stepped_in_its_last_bytes(width, first, count, size):
    packet = packet_of(SteppingField(26, width, first, count))
    variable, write = packet.vm
    assert isinstance(write, STLVmWrFlowVar)
    assert variable.size == size
    assert write.pkt_offset + variable.size == 26 + width
    assert packet.pkt_buffer[26 : 26 + width] == first.to_bytes(width, "big")
    assert len(variable.values) == count


def test_a_number_that_trex_does_not_have_is_refused():
    with pytest.raises(AgentError, match="cannot step a field of 3 bytes from 65535 to 65536"):
        packet_of(SteppingField(26, 3, 65_535, 2))


def test_more_flows_in_random_order_than_trex_takes_are_refused():
    with pytest.raises(AgentError, match="65535 values of a field in random order, but the traffic profile has 65536"):
        packet_of(SteppingField(26, 4, 0, MOST_LISTED + 1, seed=1))
    assert len(packet_of(SteppingField(26, 4, 0, 4, seed=1)).vm[0].values) == 4


def test_frames_that_are_smaller_than_their_headers_are_refused():
    with pytest.raises(AgentError, match=r"A frame of 40 bytes is too small: these headers need \d+"):
        streams(replace(spec(), sizes=((40, 1),)))
