"""TRex's connections: what its programs and counters are taken for. Its client is a stand-in on a virtual clock."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from performed import connect
from trex_lab import PAIR, SETTINGS
from trex_parts import Recorded

from lossratio.agent.core.protocol import AgentError
from lossratio.agent.trex.astf import AstfGenerator
from lossratio.agent.trex.connection import TrexLibrary
from lossratio.traffic import PortPair, load_profile, make_configuration
from lossratio.traffic.answers import read_counters
from lossratio.trials import Exchange

UDP, TCP = "ethip4-udp-connections", "ethip4-tcp-connections"


class Program:
    """Remembers its commands."""

    def __init__(self, stream):
        self.commands = ["stream"] if stream else []

    def __getattr__(self, name):
        return lambda *arguments, **_: self.commands.append((name, *arguments))


class Info:
    def __init__(self):
        self.tcp = Recorded()


class Astf:
    """A client, its server, and a path: `device` says what becomes of so many connections.

    Args:
        device: From the connections that are open to the counters of both ends.
        slowness: How many times as long as it should the server takes.
        missing: Frames of each way that its ports have not received.
    """

    ASTFProgram, ASTFGlobalInfo = Program, Info
    ASTFIPGen = ASTFIPGenGlobal = ASTFIPGenDist = ASTFTCPClientTemplate = ASTFTCPServerTemplate = Recorded
    ASTFAssociationRule = ASTFTemplate = ASTFProfile = Recorded
    LoggerApi = None

    def __init__(self, device, slowness=1.0, missing=5):
        self.now, self.device, self.slowness = 0.0, device, slowness
        self.called = []
        self.profile = None
        self.began = None
        self.missing = missing

    def clock(self):
        return self.now

    def pause(self, seconds):
        self.now += seconds

    def ASTFClient(self, **_):  # noqa: N802
        return self

    def __getattr__(self, name):
        return lambda *arguments, **named: self.called.append((name, *arguments, *named.values()))

    def is_connected(self):
        return True

    def get_all_ports(self):
        return [0, 1]

    def get_port_info(self, ports):
        return [{"driver": "net_af_packet"} for _ in ports]

    def get_server_version(self):
        return {"version": "v3.08"}

    def load_profile(self, profile):
        self.profile, self.began = profile, None

    @property
    def template(self):
        return self.profile.templates.client_template

    def start(self, mult, duration, nc):
        self.rate, self.began = mult, self.clock() + 0.05

    def get_stats(self, ports):
        due = 0 if self.began is None else max(0.0, self.clock() - self.began) * self.rate / self.slowness
        opened = min(self.template.limit, int(due))
        client, server = self.device(opened)
        traffic = {"client": client, "server": server}
        ports = ({"opackets": opened, "ipackets": opened - self.missing, "ierrors": 0} for _ in range(2))
        return dict(enumerate(ports)) | {"traffic": traffic}


def udp(opened, accepted=1.0, closed=1.0, **more):
    arrived = int(opened * accepted)
    done = int(opened * closed)
    return {"udps_connects": opened, "udps_closed": done, "udps_rcvpkt": done, **more}, {"udps_accepts": arrived}


def tcp(opened, accepted=1.0, closed=0, again=0):
    arrived = int(opened * accepted)
    client = {"tcps_connattempt": opened, "tcps_connects": arrived, "tcps_rexmttimeo": again}
    return client, {"tcps_accepts": arrived, "tcps_connects": arrived, "tcps_closed": int(opened * closed)}


def generator(server, profile=UDP, pair=PAIR, size=100, **settings):
    made = make_configuration(load_profile(profile, frame_size=size), [pair], settle_time=0.1)
    configuration = replace(made, connects=True)
    options = replace(SETTINGS, **settings)
    return AstfGenerator(configuration, options, TrexLibrary(server, "here"), clock=server.clock, sleep=server.pause)


def connected(server, count=1000, rate=10_000.0, profile=UDP, **exchange):
    (counters,) = connect(generator(server, profile), rate, count, Exchange(**exchange)).directions
    return read_counters({"directions": [counters]}, ["port0>port1"])[0]


@pytest.mark.parametrize(
    ("profile", "device", "exchange"),
    [
        (UDP, udp, {}),
        (UDP, udp, {"data_frames": 3}),
        (TCP, tcp, {}),
        (TCP, lambda opened: tcp(opened, closed=1.0), {"data_frames": 3, "closing": "fin"}),
        (TCP, lambda opened: tcp(opened, closed=1.0), {"closing": "rst"}),
    ],
)
def test_connections_that_both_ends_carried_through_are_established(profile, device, exchange):
    server = Astf(device)
    counters = connected(server, profile=profile, **exchange)
    assert (counters.sent_frames, counters.received_frames, counters.unsent_frames) == (1000, 1000, 0)
    assert counters.unanswered_frames == 0
    assert server.template.limit == 1000
    assert counters.elapsed_s == pytest.approx(0.1, abs=0.02)
    # The one at the beginning, and none for a trial that was whole.
    assert [name for name, *_ in server.called].count("reset") == 1


def test_addresses_sizes_and_data_are_those_of_the_traffic_profile():
    server = Astf(lambda opened: tcp(opened, closed=1.0))
    connected(server, profile=TCP, data_frames=2, closing="fin")
    addresses = server.template.ip_gen
    assert addresses.dist_client.ip_range == ["198.18.0.1", "198.18.0.16"]
    assert addresses.dist_server.ip_range == ["198.19.0.1", "198.19.0.16"]
    sends = [command[1] for command in server.template.program.commands if command[0] == "send"]
    # A frame of 100 bytes has 18 of Ethernet, 20 of IP and 20 of TCP.
    assert [len(data) for data in sends] == [42, 42]
    assert server.profile.default_c_glob_info.tcp.mss == 42


@pytest.mark.parametrize(
    ("profile", "device", "established", "unanswered"),
    [
        (UDP, lambda opened: udp(opened, accepted=0.9, closed=0.7), 700, 200),
        (TCP, lambda opened: tcp(opened, accepted=0.9), 900, 0),
        # TCP's stack has mended what the device lost.
        (TCP, lambda opened: tcp(opened, again=5), 995, 5),
    ],
)
def test_what_is_not_established_or_was_sent_again_is_lost_and_ended(profile, device, established, unanswered):
    server = Astf(device)
    counters = connected(server, profile=profile)
    assert (counters.received_frames, counters.lost) == (established, 1000 - established)
    assert counters.unanswered_frames == unanswered
    assert [name for name, *_ in server.called][-1] == "reset"


def test_what_a_slow_server_did_not_open_in_time_is_unsent_and_no_loss():
    counters = connected(Astf(udp, slowness=2.0), count=10_000, rate=10_000.0)
    assert 4500 < counters.unsent_frames < 5500
    assert counters.lost == 0


def test_connections_that_are_complete_long_after_their_load_are_unsent_and_no_loss():
    # A path on which 5,000 connections are carried through in a second, whatever their rate; 100 of them are lost.
    server = Astf(lambda opened: udp(opened, closed=min(1.0, carried() / max(1, opened))))
    carried = lambda: min(9900.0, 5000.0 * max(0.0, server.clock() - server.began))  # noqa: E731
    counters = connected(server, count=10_000, rate=10_000.0)
    # Five frames that follow each other, and the batches of software mode, have some milliseconds more.
    assert 5000 <= counters.received_frames <= 5700
    assert counters.lost == 100
    assert counters.unsent_frames == 9900 - counters.received_frames
    assert counters.unanswered_frames == 100


def test_connections_whose_number_alone_matters_may_all_be_late():
    slow = connected(Astf(udp, slowness=2.0), count=10_000, rate=10_000.0, is_complete=True)
    assert (slow.received_frames, slow.unsent_frames, slow.lost) == (10_000, 0, 0)

    server = Astf(lambda opened: udp(opened, closed=min(1.0, carried() / max(1, opened))))
    carried = lambda: min(9900.0, 5000.0 * max(0.0, server.clock() - server.began))  # noqa: E731
    behind = connected(server, count=10_000, rate=10_000.0, is_complete=True)
    assert (behind.received_frames, behind.unsent_frames, behind.lost) == (9900, 0, 100)
    # What TRex does not open within twice the time is unsent.
    assert connected(Astf(udp, slowness=9.0), count=10_000, rate=10_000.0, is_complete=True).unsent_frames > 4000


@pytest.mark.parametrize(("profile", "data_frames", "frames"), [(UDP, 0, 2), (UDP, 4, 10), (TCP, 4, 14)])
@pytest.mark.parametrize(("beyond", "established"), [(-0.01, 1000), (SETTINGS.late_end + 0.01, 900)])
def test_each_frame_of_a_connection_has_ten_milliseconds(profile, data_frames, frames, beyond, established):
    def carried(opened):
        is_late = server.began is not None and server.clock() < server.began + 0.1 + 0.01 * frames + beyond
        done = 0.9 if is_late else 1.0
        return udp(opened, closed=done) if profile is UDP else tcp(opened, closed=done)

    server = Astf(carried)
    closing = None if profile is UDP else "fin"
    counters = connected(server, profile=profile, data_frames=data_frames, closing=closing)
    assert counters.received_frames == established


@pytest.mark.parametrize(
    ("stall_at", "closed"),
    [(0.02, 1.0), (0.11, 1.0), (0.11, 0.99)],
    ids=["as it opens them", "behind its load", "and some never are"],
)
def test_what_is_complete_while_trex_does_not_answer_is_not_in_time(stall_at, closed):
    server = Astf(lambda opened: udp(opened, closed=0.0 if server.clock() < server.began + 0.12 else closed))
    asked = server.get_stats

    def get_stats(ports):
        if server.began is not None and stall_at < server.clock() - server.began < stall_at + 0.01:
            server.pause(0.6)
        return asked(ports)

    server.get_stats = get_stats
    counters = connected(server)
    assert (counters.received_frames, counters.unsent_frames, counters.lost) == (0, 1000, 0)


def test_what_trex_sent_again_as_it_was_late_itself_is_no_loss():
    counters = connected(Astf(lambda opened: tcp(opened, again=5), missing=0), profile=TCP)
    assert (counters.received_frames, counters.unsent_frames, counters.lost) == (995, 5, 0)


@pytest.mark.parametrize(("is_software", "lost"), [(True, 0), (False, 100)])
def test_what_is_complete_after_a_stall_of_the_machine_is_unsent_where_it_does_other_work_too(is_software, lost):
    server = Astf(lambda opened: udp(opened, closed=0.9 if server.clock() < server.began + 0.6 else 1.0))
    opens = generator(server)
    if is_software:
        opens._links = SimpleNamespace(mark=lambda: None, after=lambda: None)
    (counters,) = connect(opens, 10_000.0, 1000, Exchange()).directions
    assert counters["received_frames"] == 900
    assert counters["sent_frames"] - counters["received_frames"] == lost


def test_a_segment_that_is_sent_again_more_than_once_is_no_further_connection_that_is_lost():
    # As a real TRex did behind a limiter of new connections: more were "sent" than were to be opened.
    server = Astf(
        lambda opened: tcp(opened, accepted=0.9, again=int(0.1 * opened) + 40 * sent_once_more()), missing=500
    )
    sent_once_more = lambda: server.began is not None and server.clock() > server.began + 0.2  # noqa: E731
    counters = connected(server, profile=TCP)
    assert sent_once_more()
    assert (counters.sent_frames, counters.unsent_frames) == (1000, 0)
    assert (counters.received_frames, counters.lost) == (900, 100)


def test_a_server_that_opens_nothing_leaves_all_unsent():
    assert connected(Astf(lambda _: udp(0))).unsent_frames == 1000


def refused(server, *arguments, **exchange):
    with pytest.raises(AgentError) as raised:
        connected(server, *arguments, **exchange)
    return raised.value.kind, str(raised.value)


def test_a_server_that_still_ends_what_was_before_is_waited_for():
    server, answers = Astf(udp), ["_ state:Transmitting, should be one of following:Idle, Loaded profile"]
    begin = server.start

    def start(**named):
        if answers:
            raise RuntimeError(answers.pop())
        begin(**named)

    server.start = start
    assert connected(server).received_frames == 1000
    answers.extend(["another reason"])
    with pytest.raises(AgentError, match="another reason"):
        connected(server)


def test_errors_of_trex_are_no_loss_of_the_device():
    kind, message = refused(Astf(lambda opened: udp(opened, closed=0.5, err_c_nf_throttled=7)))
    assert kind == "memory"
    assert "err_c_nf_throttled 7" in message
    assert "nothing about the device" in message


@pytest.mark.parametrize(("error", "said"), [({"err_cwf": 9}, "err_cwf 9"), ({}, "nothing came back")])
def test_a_path_back_that_is_another_one_is_an_error(error, said):
    kind, message = refused(Astf(lambda opened: udp(opened, closed=0.0, **error)))
    assert kind == "asymmetric"
    assert said in message
    assert "arrived at west" in message


def test_more_connections_than_trex_can_keep_are_refused():
    server = Astf(udp)
    kind, message = refused(server, 1_000_000)
    assert kind == "unsupported"
    assert "From 16 source addresses, TRex can keep 996,147 connections" in message
    assert "'most_connections'" in message
    assert server.profile is None
    connect(generator(server, most_connections=2_000_000), 1e6, 1_000_000, Exchange())
    with pytest.raises(AgentError, match="1,024,000 connections"):
        connect(generator(server, most_connections=2_000_000), 1e6, 1_024_001, Exchange())


def test_data_over_connections_that_stay_open_cannot_be_counted():
    _, message = refused(Astf(tcp), profile=TCP, data_frames=2)
    assert "closing=fin or rst" in message


@pytest.mark.parametrize("profile", ["dot1q-ip4base", "ethip6-udp", "ethip4-udp-hosts", "ethip4vxlan-ip4base"])
def test_traffic_that_trex_cannot_open_connections_with_is_refused(profile):
    with pytest.raises(AgentError, match="TRex opens connections") as raised:
        generator(Astf(udp), profile, size=200)
    assert raised.value.kind == "unsupported"


def test_frames_go_to_the_next_router():
    server = Astf(udp)
    generator(server, pair=PortPair(replace(PAIR.west, destination_mac="02:00:00:00:00:77"), PAIR.east))
    modes = [called for called in server.called if called[0] in ("set_service_mode", "set_l2_mode")]
    assert modes == [
        ("set_service_mode", [0], True),
        ("set_l2_mode", 0, "02:00:00:00:00:77"),
        ("set_service_mode", [0], False),
    ]
