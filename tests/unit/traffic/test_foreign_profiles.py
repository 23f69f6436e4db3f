"""Traffic profiles that are made of other generators' files, which are run without rights."""

from __future__ import annotations

import re

import pytest
import yaml
from click.testing import CliRunner
from foreign_files import capture, converted, loaded, problem, udp_frame
from frame_samples import frames, with_fields_of_scapy
from hypothesis import given, strategies
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import Ether

from lossratio.agent.core.comparison import header_fields
from lossratio.commands.testbed import import_command
from lossratio.errors import ProfileError
from lossratio.topology.addressing import EAST, WEST
from lossratio.traffic import load_profile
from lossratio.traffic.foreign import enclosed
from lossratio.traffic.frame_headers import frames_spec

STL = """
from trex_stl_lib.api import *
import argparse, os

class Traffic(object):
    sizes = {{'small': 60}}
    sizes['large'] = 1514

    def __init__(self):
        self.port = 12

    def stream(self, size, pps, vm, **options):
        base = Ether()/IP(src="16.0.0.1", dst="48.0.0.1", tos=184)/UDP(sport=1025, dport=self.port)
        pad = max(0, size - len(base)) * 'x'
        return STLStream(packet=STLPktBuilder(pkt=base/pad, vm=vm), mode=STLTXCont(pps=pps){options})

    def get_streams(self, direction, tunables, **kwargs):
        parser = argparse.ArgumentParser(description='{{}}'.format(os.path.basename(__file__)))
        parser.add_argument('--rate', type=int, default=100)
        args = parser.parse_args(tunables)
        vm = STLVM()
        vm.var(name="src", min_value="16.0.0.1", max_value="16.0.0.16", size=4, op="{order}")
        vm.write(fv_name="src", pkt_offset={offset})
        vm.fix_chksum()
        return [self.stream(self.sizes[name], rate * args.rate, vm) for name, rate in (('small', 3), ('large', 1))]

def register():
    return Traffic()
"""


def stl(**given: str) -> str:
    return STL.format(**{"options": "", "order": "inc", "offset": '"IP.src"', **given})


@pytest.mark.parametrize("offset", ['"IP.src"', "26"])
@pytest.mark.parametrize(("order", "ours"), [("inc", "increment"), ("random", "random")])
def test_streams_of_trex_are_streams_with_their_sizes_shares_and_ranges(tmp_path, offset, order, ours):
    profile = loaded(tmp_path, "trex", stl(offset=offset, order=order))
    eastward, westward = profile.directions
    assert [(one.name, one.weight, one.size_weights) for one in eastward.streams] == [
        ("stream1", 3, {64: 1}),
        ("stream2", 1, {1518: 1}),
    ]
    for stream in (*eastward.streams, *westward.streams):
        source = stream.headers.ipv4.source
        assert (source.first, source.count, source.order) == (1, 16, ours)
        assert (stream.headers.ipv4.dscp, stream.headers.udp.destination_port.first) == (46, 12)


def test_one_stream_is_a_profile_without_streams_whose_size_is_said(tmp_path):
    text = stl().replace("return [self.stream", "return self.stream(self.sizes['large'], 1, vm)\n        [self.stream")
    made = converted(tmp_path, "trex", text)
    assert made.frame_size == 1518
    assert "streams" not in made.fields
    assert made.fields["udp"] == {"source_port": {"first": 1025}, "destination_port": {"first": 12}}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"options": ", next='other'"}, "STLStream.next: 'other' is neither the stream after it nor the first one"),
        ({"options": ", self_start=False"}, "STLStream.self_start: no stream starts it"),
        ({"options": ", action_count=7"}, "STLStream.action_count"),
        ({"offset": '"IP.ttl"'}, "IP.ttl: only addresses and ports can change"),
        ({"offset": "22"}, "pkt_offset: 22 is neither an address nor a port"),
        ({"offset": '"TCP.dport"'}, "pkt_offset: 'TCP.dport' is neither an address"),
    ],
)
def test_a_field_that_cannot_be_had_is_refused_with_its_name(tmp_path, change, told):
    assert told in problem(tmp_path, "trex", stl(**change))


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("STLTXCont(pps=pps)", "STLTXOther(total_pkts=9)", "line 15: STLTXOther: this mode of sending cannot be read"),
        ("STLTXCont(pps=pps)", "STLTXSingleBurst(total_pkts=0)", "STLTXSingleBurst.total_pkts: 0 is no number"),
        (
            "STLTXCont(pps=pps)",
            "(STLTXCont() if size > 60 else STLTXSingleBurst())",
            "line 15: mode: some streams end (bursts), and others do not. Use one kind",
        ),
        ("pkt=base/pad", "pkt='../their.pcap'", "STLPktBuilder.pkt: ../their.pcap cannot be read: it is not in the"),
        ("pkt=base/pad", "pkt='missing.pcap'", "line 15: STLPktBuilder.pkt: missing.pcap cannot be read: "),
        ("dport=self.port)", "dport=self.port)/DNS()", "line 13: DNS: this header is not supported"),
        ("UDP(", "TCP(flags='U', ", "TCP.flags: 'U' cannot be set"),
        ("tos=184", "tos=3", "IP.tos: 3 has congestion marks"),
        ("tos=184", "options=IPOption(7)", "line 13: IPOption: its value is not known"),
        ('size=4, op="', 'size=4, step=0, op="', "line 22: var.max_value: it is below min_value, or its step 0"),
        ('size=4, op="', 'size=4, next_var="src", op="', "line 23: write.fv_name: it steps only when another"),
        ("pkt_offset=", "byte_order='little', pkt_offset=", "write.byte_order: numbers in frames have"),
        ('size=4, op="', 'size=8, op="', "line 23: write.pkt_offset: 8 bytes from there are not within IP.src"),
        ("16.0.0.16", "16.0.0.0", "var.max_value: it is below min_value"),
        ("default=100", "required=True", "line 20: args = parser.parse_args(tunables): it exits here"),
        ("return Traffic()", "return 7", "get_streams: the file's class has no method of this name"),
        ("def register", "def registered", "register: the file has no function of this name"),
        (
            "self.port = 12",
            "self.__init__()",
            "line 10: self.__init__(): it fails with RecursionError('maximum recursion depth",
        ),
        ("self.port = 12", "self.port = 1 << 100 << 100", "udp.destination_port: a port can be at most 65535"),
        ("import argparse, os", "def broken(:", "line 3: the file: it is not Python 3: invalid syntax. Name"),
    ],
)
def test_what_is_no_profile_is_refused_with_its_line(tmp_path, old, new, told):
    assert told in problem(tmp_path, "trex", stl().replace(old, new))


OS = "argparse._os"
SHUT = "a foreign profile cannot use files, the network or other programs"
MODULES = "argparse._sys.modules"


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("open('harm', 'w')", f"open: {SHUT}"),
        ("__import__('os').system('touch harm')", f"os.system: {SHUT}"),
        ("import subprocess; subprocess.run(['touch', 'harm'])", f"subprocess.run: {SHUT}"),
        ("from socket import create_connection", f"socket.create_connection: {SHUT}"),
        ("__import__('ctypes').CDLL(None)", f"ctypes.CDLL: {SHUT}"),
        # Past the modules that it gets, Python's audit notices.
        (f"{OS}.system('touch harm')", f"os.system: {SHUT}"),
        (f"{OS}.fork()", f"os.fork: {SHUT}"),
        (f"{OS}.kill({OS}.getppid(), 0)", f"os.kill: {SHUT}"),
        # What is not audited, the kernel refuses.
        (f"{OS}.stat('/')", "Operation not permitted"),
        (f"{OS}.dup(0)", "Operation not permitted"),
        (f"{MODULES}['_thread'].start_new_thread(int, ())", "can't start new thread"),
        ("bytearray(1 << 33)", "MemoryError"),
        (f"{OS}._exit(0)", "the file: it took longer than 10 s, or ended without a result"),
    ],
)
def test_a_file_that_needs_rights_is_refused_with_its_line(tmp_path, monkeypatch, statement, told):
    monkeypatch.chdir(tmp_path)
    said = problem(tmp_path, "trex", stl().replace("self.port = 12", statement))
    assert told in said
    assert "line 10:" in said or "_exit" in statement
    assert not (tmp_path / "harm").exists()


@pytest.mark.whole
@pytest.mark.parametrize(
    "statement",
    [
        "while True: pass",
        "sum(iter(int, 1))",
        f"lock = {MODULES}['_thread'].allocate_lock(); lock.acquire(); lock.acquire()",
    ],
)
def test_a_file_that_does_not_end_is_ended_with_its_line(tmp_path, monkeypatch, statement):
    monkeypatch.setattr(enclosed, "_SECONDS", 2)
    told = problem(tmp_path, "trex", stl().replace("self.port = 12", statement))
    assert "line 10: the file: it took longer than 2 s" in told


@pytest.mark.whole
@pytest.mark.parametrize("statement", ["x = [0 for _ in range(1 << 40)]", f"{OS}.write(1, b'{{}}' * (1 << 24))"])
def test_a_file_that_takes_or_says_too_much_is_refused(tmp_path, statement):
    assert "line " in problem(tmp_path, "trex", stl().replace("self.port = 12", statement))


def test_a_machine_that_cannot_take_rights_away_runs_no_file(tmp_path, monkeypatch):
    program = tmp_path / "program.py"
    program.write_text(enclosed._PROGRAM.read_text().replace('"x86_64"', '"vax"').replace('"aarch64"', '"pdp11"'))
    monkeypatch.setattr(enclosed, "_PROGRAM", program)
    told = problem(tmp_path, "trex", "open('harm', 'w')")
    assert "line 1: the file: this machine cannot run it in isolation (seccomp)" in told


def test_names_of_the_generator_that_no_stream_needs_change_nothing(tmp_path):
    added = "class VXLAN(Packet):\n    fields_desc = [ByteField('flags', 8)]\nbind_layers(UDP, VXLAN, dport=4789)\n"
    text = stl().replace("class Traffic", added + "class Traffic")
    assert loaded(tmp_path, "trex", text).directions[0].streams


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("STLTXCont(pps=pps)", "STLTXCont(**{'pps': pps})"),
        ("STLTXCont(pps=pps)", "STLTXCont(**{**dict(pps=9), 'pps': pps})"),
        ("dport=self.port)", "dport=self.port_of(port=3, **{'more': 9}))"),
        ("dport=self.port)", "dport=dict(node=self.port, calculate=9)['node'])"),
        ("self.stream(self.sizes[name], rate * args.rate, vm)", "self.stream(*(self.sizes[name], rate, vm))"),
        ("parser.add_argument('--rate',", "parser.add_argument(*['--flags'])\n        parser.add_argument('--rate',"),
        (
            "parser.add_argument('--rate',",
            "parser.add_argument(dest='more', nargs='?')\n        parser.add_argument('--rate',",
        ),
    ],
)
def test_arguments_that_stand_in_a_list_or_a_mapping_count_like_any_others(tmp_path, old, new):
    method = "    def port_of(self, *all, port=9, **options):\n        return port + options['more']\n\n"
    text = stl().replace(old, new).replace("    def stream(", f"{method}    def stream(")
    streams = loaded(tmp_path, "trex", text).directions[0].streams
    assert [stream.weight for stream in streams] == [3, 1]
    assert streams[0].headers.udp.destination_port.first == 12


def test_a_method_without_self_is_called_as_such_and_gets_what_trex_gives(tmp_path):
    method = "    @staticmethod\n    def port_of(first, more=2):\n        return first + more\n\n"
    text = (
        stl()
        .replace("dport=self.port)", "dport=self.port_of(10))")
        .replace("    def stream(", f"{method}    def stream(")
    )
    text = text.replace("vm = STLVM()", "vm = STLVM() if kwargs['port_id'] < 2 else None")
    assert loaded(tmp_path, "trex", text).directions[0].streams[0].headers.udp.destination_port.first == 12


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("STLTXCont(pps=pps)", "STLTXCont(**os.environ)", "line 15: os.environ: a foreign profile cannot use"),
        ("rate * args.rate, vm)", "rate, vm, **os.environ)", "line 25: os.environ: a foreign profile cannot use"),
        ("default=100)", "**os.environ)", "line 19: os.environ: a foreign profile cannot use"),
        ("STLTXCont(pps=pps)", "STLTXCont(**{5: 1})", "line 15: return STLStream("),
        ("STLTXCont(pps=pps)", "STLTXCont(pps=Rates())", "line 15: STLTXCont.pps: Rates() is not a rate"),
        ("self.port = 12", "self.port = 9 if Known() else 8", "line 10: Known: its value is not known"),
        (
            "self.port = 12",
            "self.ports = [12]; self.ports[1] = 9",
            "it fails with IndexError('list assignment index out of range",
        ),
        (
            "def __init__(self):",
            "def __init__():",
            "line 28: return Traffic(): it fails with TypeError('Traffic.__init__() takes 0",
        ),
    ],
)
def test_what_is_not_known_or_impossible_is_refused_and_never_left_out(tmp_path, old, new, told):
    assert told in problem(tmp_path, "trex", stl().replace(old, new))


def test_expressions_that_are_nested_too_deeply_are_an_error(tmp_path):
    told = problem(tmp_path, "trex", "value = " + "-" * 5000 + "1\n" + stl())
    assert "it is not Python 3" in told


@pytest.mark.whole
@given(
    rates=strategies.lists(strategies.integers(1, 60), min_size=2, max_size=16),
    size=strategies.sampled_from([60, 96, 1514]),
)
def test_shares_are_those_of_the_rates(tmp_path_factory, rates, size):
    streams = ", ".join(f"self.stream({size}, {rate}, None)" for rate in rates)
    text = stl().replace("return [self.stream", f"return [{streams}]\n        [self.stream")
    profile = loaded(tmp_path_factory.mktemp("profile"), "trex", text)
    weights = [stream.weight for stream in profile.directions[0].streams]
    assert [weight * sum(rates) for weight in weights] == [rate * sum(weights) for rate in rates]


def test_the_command_writes_a_profile_that_can_be_measured_with(tmp_path):
    theirs = tmp_path / "mix.py"
    theirs.write_text(stl())
    ours = tmp_path / "mix.yaml"
    done = CliRunner().invoke(import_command, ["trex", str(theirs), "--output", str(ours)])
    assert done.exit_code == 0, done.output
    assert f"Next: measure with profile={ours} and frame_size=64B" in done.output
    assert yaml.safe_load(ours.read_text())["name"] == "mix"
    again = CliRunner().invoke(import_command, ["trex", str(theirs), "--output", str(ours)])
    assert "already exists" in str(again.exception)
    other = CliRunner().invoke(import_command, ["trex", str(theirs), "--tg", "host1"])
    assert "Only --name and --output can be used" in str(other.exception)


@pytest.mark.parametrize(
    ("mode", "chain"),
    [
        ("STLTXSingleBurst(pps=10, total_pkts=3 if size == 60 else 1)", ", name=str(size), self_start=size < 61"),
        ("STLTXMultiBurst(pkts_per_burst=3 if size == 60 else 1, count=9, ibg=5)", ", name=str(size)"),
    ],
)
def test_bursts_are_streams_whose_shares_are_those_of_their_frames(tmp_path, mode, chain):
    following = ", next='1514' if size == 60 else '60', action_count=2"
    text = stl(options=chain + following).replace("STLTXCont(pps=pps)", mode)
    made = converted(tmp_path, "trex", text)
    assert [stream["share"] for stream in made.fields["streams"]] == [3, 1]
    assert any(remark.startswith("Bursts become continuous") for remark in made.remarks)


@pytest.mark.parametrize(
    ("engine", "first", "values"),
    [
        ("vm.var('v', min_value=3, max_value=9, size=1, step=3, op='dec'); vm.write('v', 29)", 3, [9, 6, 3]),
        ("vm.var('v', value_list=['16.0.0.7', '16.0.0.5'], size=4); vm.write('v', 'IP.src')", 5, [7, 5]),
        ("vm.var('v', min_value=65534, max_value=65536, size=2); vm.write('v', 28, add_val=2)", 0, [0, 1, 2]),
        # Of a number, the mask leaves the two lowest bits after the shift: twice each.
        (
            "vm.var('v', min_value=0, max_value=3, size=2)\n"
            "        vm.write_mask('v', 'IP.src', 1, 3, -1, offset_fixup=3)",
            0,
            [0, 0, 1, 1],
        ),
    ],
)
def test_numbers_that_do_not_follow_each_other_are_listed(tmp_path, engine, first, values):
    text = stl().replace("return [self.stream", f"vm = STLVM()\n        {engine}\n        return [self.stream")
    source = loaded(tmp_path, "trex", text).directions[0].streams[0].headers.ipv4.source
    assert (source.first, list(source.values)) == (first, values)


def test_sizes_that_step_are_a_mix_and_payloads_do_not_change(tmp_path):
    engine = (
        "vm.var('size', min_value=60, max_value=1514, size=2); vm.var('byte', max_value=9, size=1)\n"
        "        vm.write('byte', 'Raw.load'); vm.write('byte', 50); vm.write('size', 'IP.len', add_val=-14)\n"
        "        vm.trim('size')\n        return self.stream(1514, 1, vm)\n"
    )
    made = converted(tmp_path, "trex", stl().replace("return [self.stream", f"{engine}        [self.stream"))
    sizes = made.fields["mixes"][made.frame_size]
    assert (len(sizes), min(sizes), max(sizes), set(sizes.values())) == (64, 64, 1518, {1})
    assert "Of 1455 sizes, 64 at equal intervals are sent." in made.remarks
    assert "The payload is the generator's own, and does not change." in made.remarks


def test_a_stream_of_hltapi_is_read_by_its_arguments(tmp_path):
    text = """
def get(direction=0, **more):
    return STLHltStream(l3_protocol='ipv4', l4_protocol='tcp', ip_src_addr='16.0.0.9', ip_dst_addr='48.0.0.3',
        ip_src_mode='decrement', ip_src_step='0.0.0.4', ip_src_count=3, ip_dscp=10, tcp_syn_flag=1, tcp_dst_port=443,
        tcp_dst_port_count='5', vlan_id='7 8', vlan_user_priority=[2], length_mode='imix', direction=direction)

class Traffic:
    def get_streams(self, **given):
        return get(**given)

def register():
    return Traffic()
"""
    profile = loaded(tmp_path, "trex", text)
    eastward, westward = profile.directions
    headers = eastward.headers
    assert (headers.dot1ad.id, headers.dot1ad.priority, headers.dot1q.id, headers.dot1q.priority) == (7, 2, 8, 1)
    assert (headers.ipv4.source.values, headers.ipv4.destination.first, headers.ipv4.dscp) == ((9, 5, 1), 3, 10)
    assert westward.headers.ipv4.destination.values == (9, 5, 1)
    assert (headers.tcp.flags, headers.tcp.destination_port.first, headers.tcp.destination_port.count) == ("S", 443, 5)
    assert eastward.size_weights == {74: 7, 570: 4, 1518: 1}


@pytest.mark.parametrize(
    ("argument", "told"),
    [
        ("ip_id=4", "line 4: STLHltStream.ip_id: the argument cannot be used here"),
        ("l3_protocol='arp'", "STLHltStream.l3_protocol: 'arp' is not supported"),
        ("vlan_id_mode='increment', vlan_id_count=2", "STLHltStream.vlan_id_mode: it must be the same in all frames"),
        ("l2_encap='ethernet_ii_vlan'", "dot1q.id: must be at least 1, not 0"),
        ("l2_encap='raw'", "STLHltStream.l2_encap: 'raw' is not supported"),
        ("frame_size='large'", "STLHltStream: an argument is wrong: invalid literal"),
        ("ip_src_mode='list', ip_src_count=2", "STLHltStream.ip_src_mode: 'list' is not supported"),
        ("length_mode='quad'", "STLHltStream.length_mode: 'quad' is not supported"),
        ("rate_pps=1, rate_bps=1", "STLHltStream.transmit_mode: 'continuous' with ['rate_pps', 'rate_bps']"),
        ("vlan_protocol_tag_id='88A8'", "STLHltStream.vlan_protocol_tag_id: only the EtherType 0x8100 is supported"),
    ],
)
def test_an_argument_of_hltapi_that_cannot_be_had_is_refused_with_its_name(tmp_path, argument, told):
    protocol = "" if argument.startswith("l3_") else "l3_protocol='ipv4', "
    text = f"""
class Traffic:
    def get_streams(self, **given):
        return STLHltStream({protocol}{argument})

def register():
    return Traffic()
"""
    assert told in problem(tmp_path, "trex", text)


def test_a_capture_beside_the_file_is_its_packet(tmp_path):
    (tmp_path / "one.pcap").write_bytes(capture(udp_frame(53, 124)))
    text = stl().replace("pkt=base/pad", "pkt=os.path.join(os.path.dirname(__file__), 'one.pcap')")
    stream = loaded(tmp_path, "trex", text).directions[0].streams[0]
    assert stream.size_weights == {128: 1}
    assert (stream.headers.udp.source_port.first, stream.headers.udp.destination_port.first) == (1000, 53)


def test_options_of_ip_and_listed_addresses_are_in_the_frames(tmp_path):
    engine = "vm = STLVM(); vm.var('v', value_list=['16.0.0.7', '16.0.0.5'], size=4); vm.write('v', 'IP.src')"
    text = stl().replace("tos=184", "options=IPOption(b'\\x01\\x01\\x01')")
    text = text.replace("return [self.stream", f"{engine}\n        return self.stream(60, 1, vm)\n        [self.stream")
    direction = loaded(tmp_path, "trex", text).directions[0]
    assert direction.size_weights == {64: 1}
    sent = frames(frames_spec(direction, WEST, EAST))
    assert [Ether(frame)[IP].src for frame in sent] == ["198.18.0.7", "198.18.0.5"]
    for frame in sent:
        assert frame == with_fields_of_scapy(frame)
        assert (Ether(frame)[IP].ihl, frame[34:38], Ether(frame)[UDP].dport) == (6, b"\1\1\1\0", 12)
    shown = {each.name: each.shown(sent[0]) for each in header_fields(sent[0])}
    assert (shown["IPv4 header length"], shown["UDP source port"], shown["UDP destination port"]) == ("6", "1025", "12")


@pytest.mark.parametrize(("flags", "bits"), [("'FA'", "FA"), ("0x12", "SA"), ("''", ""), ("None or 'A'", "A")])
def test_flags_of_tcp_are_in_the_frames(tmp_path, flags, bits):
    profile = loaded(tmp_path, "trex", stl().replace("UDP(", f"TCP(flags={flags}, "))
    sent = frames(frames_spec(profile.directions[0], WEST, EAST))[0]
    assert str(Ether(sent)[TCP].flags) == bits
    assert sent == with_fields_of_scapy(sent)


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        (
            {"udp": {"source_port": {"first": 4, "values": [5, 9]}}},
            "'values' contradict 'first' and 'count': leave these out",
        ),
        ({"udp": {"source_port": {"values": [5, 9], "order": "random"}}}, "'values' are sent in their order"),
        ({"udp": {"source_port": {"values": [5, 70000]}}}, "a port can be at most 65535, not 70000"),
        (
            {"tcp": {"flags": "S", "connects": True}},
            "flags: leave them out, because a connection ('connects') has the flags of",
        ),
        ({"tcp": {}, "ipv4": {"options": "01010100"}}, "'options' need a 'udp' header after them"),
        ({"udp": {}, "ipv4": {"options": "0101"}}, "whole words of four bytes in hexadecimal"),
    ],
)
def test_values_flags_and_options_that_cannot_be_had_are_refused(tmp_path, headers, told):
    path = tmp_path / "ours.yaml"
    path.write_text(yaml.safe_dump({"format": "lossratio-traffic-profile/1", "name": "ours", "ipv4": {}, **headers}))
    with pytest.raises(ProfileError, match=re.escape(told)):
        load_profile(str(path), frame_size=128)
