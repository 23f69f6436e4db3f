"""Trials with TRex: what the generator makes of the client's behaviour, on a virtual clock."""

from dataclasses import asdict
from pathlib import Path

import pytest
from at_least_one import at_least_one
from performed import Controller, hold, late, perform
from trex_lab import BOTH_WAYS, SETTINGS, generator, loss_ratio, trial
from trex_parts import TRexError
from trex_stand_in import MACS, Server, StandIn

from lossratio.agent.core.plan import VERDICTS, Plan
from lossratio.agent.core.protocol import AgentError, ControllerGoneError
from lossratio.agent.trex.connection import TrexLibrary
from lossratio.agent.trex.generator import TrexGenerator
from lossratio.traffic import PortPair, TrafficPort, load_profile, make_configuration
from lossratio.traffic.answers import read_counters


def nobody_left():
    raise ControllerGoneError


def held(trex, server, load=1_000.0):
    """Traffic without an end, which lasts two seconds."""
    return hold(trex, load, (server.sleep(0.05) for _ in range(20)))


def test_a_trial_without_loss_has_every_frame_back():
    west, east = trial(Server())
    assert (west.name, west.intended_frames, west.sent_frames, west.received_frames, west.unsent_frames) == (
        "port0>port1",
        10_000,
        10_001,
        10_001,
        0,
    )
    assert east.name == "port1>port0"
    assert loss_ratio([west, east]) == 0.0


def test_lost_frames_are_counted_for_their_direction():
    west, east = trial(Server(lost=(0.1, 0.0)))
    assert west.sent_frames - west.received_frames == pytest.approx(1000, abs=1)
    assert east.sent_frames == east.received_frames


@pytest.mark.parametrize("capacity", [9_500.0, 5_000.0, 1_000.0])
def test_an_overloaded_server_leaves_frames_unsent_although_it_would_send_them_all(capacity):
    counters = trial(Server(capacity=capacity))
    assert loss_ratio(counters) == pytest.approx(1 - capacity / 10_000, abs=0.02)
    assert all(direction.sent_frames == direction.received_frames for direction in counters)


def test_nothing_flows_any_more_when_an_overloaded_trial_is_counted():
    server = Server(capacity=1_000.0)
    trial(server)
    assert not server.is_transmitting(0)
    assert not server.is_transmitting(1)


def test_a_server_that_begins_and_answers_slowly_sends_in_full():
    counters = trial(Server(answer_seconds=0.01, start_seconds=0.015))
    assert loss_ratio(counters) == 0.0
    assert [direction.unsent_frames for direction in counters] == [0, 0]


def test_no_port_goes_on_when_another_one_cannot_be_started(monkeypatch):
    server = Server(ahead=0.0067)
    trex = generator(server)
    client = trex._connection._client
    start = client.start

    def first_port_only(ports, **named):
        if ports != [0]:
            raise TRexError("no memory")
        start(ports, **named)

    monkeypatch.setattr(client, "start", first_port_only)
    with pytest.raises(AgentError, match="no memory"):
        trial(server, trex=trex)
    assert not server.is_transmitting(0)


def test_a_frame_that_is_due_in_the_last_microseconds_makes_no_trial_slow():
    """The second direction begins 10 us later: it sends 24,989 of 24,990 frames, and always did so."""
    server = Server(ahead=0.0067)
    trex = generator(server)
    counters = trial(server, load=12_494.556030392281, duration=2.0, trex=trex)
    assert counters[1].sent_frames == 24_989
    assert loss_ratio(counters, load=12_494.556030392281, duration=2.0) == 0.0
    assert [direction.elapsed_s for direction in counters] == [2.0, 2.0]


@pytest.mark.parametrize("late_answer", [0.2, 0.6, 1.6, 5.0])
def test_a_trial_that_took_too_long_does_not_hide_behind_a_late_answer_to_its_start(late_answer):
    # All frames are sent in 2.5 s.
    west, east = trial(Server(capacity=4_000.0, late_answer=late_answer))
    assert loss_ratio([west, east]) >= 0.58
    assert west.elapsed_s > 1.0
    assert (west.stretch_s, east.stretch_s) == (0.0, 0.0)


def test_nobody_knows_how_long_traffic_took_whose_start_was_answered_after_its_end():
    west, _ = trial(Server(late_answer=1.6))
    assert west.sent_frames == 10_001
    assert west.unsent_frames == pytest.approx(6_000, abs=300)


@pytest.mark.parametrize("late_end", [0.0, 0.001, 0.03])
def test_a_server_that_says_late_that_it_has_sent_everything_sent_it_in_time(late_end):
    counters = trial(Server(status_seconds=0.01), late_end=late_end)
    assert loss_ratio(counters) == 0.0
    assert all(direction.stretch_s < late_end + 0.02 for direction in counters)


@pytest.mark.whole
@pytest.mark.parametrize(("late_end", "unnoticed"), [(0.001, 0.01), (0.03, 0.04)])
def test_a_server_that_is_slower_than_is_allowed_leaves_frames_unsent(late_end, unnoticed):
    in_time = [share for share in range(1, 60) if not _unsent(1.0 / (1.0 + share / 1000), late_end)]
    assert max(in_time, default=0) / 1000 <= unnoticed
    assert not _unsent(1.0, late_end)


def _unsent(speed, late_end):
    counters = trial(Server(capacity=10_000.0 * speed, status_seconds=0.005), late_end=late_end)
    assert all(direction.unsent_frames == 0 or direction.stretch_s == 0.0 for direction in counters)
    return loss_ratio(counters) > 0.0


def test_by_how_much_longer_a_trial_may_have_taken_is_in_its_result():
    quick, slow = (trial(Server(start_seconds=seconds))[0] for seconds in (0.0005, 0.02))
    assert 0.0 < quick.stretch_s < 0.01
    assert 0.02 < slow.stretch_s < 0.03


def test_frames_that_came_back_and_were_dropped_are_reported_apart_from_unsent_ones():
    west, east = trial(Server(errors={"ierrors": 3, "oerrors": 4, "queue_full": 5}))
    assert (west.generator_drop_frames, east.generator_drop_frames) == (3, 3)


def test_foreign_frames_show_as_more_received_than_sent():
    west, _ = trial(Server(foreign=7))
    assert west.received_frames - west.sent_frames == 7


def test_counters_are_read_only_after_all_frames_were_sent_and_have_settled():
    server = Server(late=(50, 0.24))
    assert [direction.received_frames for direction in trial(server, settle_time=0.25)] == [10_001, 10_000]
    assert server.calls[-1] == "get_port_info"
    assert server.now > 1.25


def test_one_that_sends_too_slowly_is_stopped_before_its_frames_settle():
    server = Server(capacity=5_000.0)
    trial(server, settle_time=0.25)
    assert server.calls.index("stop") < len(server.calls) - 1 - server.calls[::-1].index("get_port_stats")
    assert server.ports[0].stopped < 1.1


def test_a_trial_takes_three_requests_beside_looks_at_its_end():
    """The server takes some milliseconds for each, and more for those about its ports' links."""
    server = Server(answer_seconds=0.0)
    trex = generator(server)
    server.calls.clear()
    trial(server, trex=trex)
    assert [call for call in server.calls if call != "get_port_stats"] == ["start", "stop", "get_port_info"]
    assert server.calls.count("get_port_stats") <= 6


def test_ports_have_the_modes_that_the_topology_asks_for_and_no_others():
    plain, special = Server(), Server()
    trial(plain)
    assert (plain.modes, plain.start_options) == ([], [{}])
    modes = {"promiscuous": True, "force": True, "pin_cores": True}
    trial(special, modes=modes)
    assert special.modes == [((0, 1), {"promiscuous": True})]
    assert special.start_options == [{"force": True, "core_mask": 2}]


def test_a_card_that_cannot_be_promiscuous_is_an_error_that_names_the_port():
    server = Server(refused_modes=("promiscuous",))
    refusal = r"port 0 \(east, driver net_stand_in\) does not support promiscuous mode"
    with pytest.raises(AgentError, match=refusal) as raised:
        generator(server, modes={"promiscuous": True})
    assert raised.value.kind == "unsupported"
    assert not server.acquired


def test_packet_sockets_get_all_frames_in_any_mode(no_links):
    trex = generator(Server(refused_modes=("promiscuous",)), uses_linux=True, modes={"promiscuous": True})
    assert trex.facts()["ports"]["east"]["prom"] == "off"


def test_frames_in_flight_for_less_than_the_settle_time_are_not_lost():
    assert loss_ratio(trial(Server(late=(50, 0.09)), settle_time=0.1)) == 0.0


def test_frames_that_come_too_late_are_lost_and_reported_with_the_next_trial():
    server = Server(late=(50, 0.3))
    trex = generator(server, settle_time=0.1)
    first = trial(server, trex=trex)
    assert [direction.sent_frames - direction.received_frames for direction in first] == [50, 50]
    server.now += 1.0
    server.late = (0, 0.0)
    assert [direction.late_frames for direction in trial(server, trex=trex)] == [50, 50]
    assert [direction.late_frames for direction in trial(server, trex=trex)] == [0, 0]


def test_late_frames_of_the_last_trial_can_be_asked_for():
    server = Server(late=(50, 0.3))
    trex = generator(server, settle_time=0.1)
    trial(server, trex=trex)
    server.sleep(0.5)
    assert list(late(trex).values()) == [[50], [50]]
    server.late = (0, 0.0)
    assert [direction.late_frames for direction in trial(server, trex=trex)] == [0, 0]


def test_a_ramp_s_frames_are_not_counted():
    server = Server()
    counters = trial(server, ramp=1.0)
    assert [direction.sent_frames for direction in counters] == pytest.approx([10_000, 10_000], abs=1)
    assert [direction.late_frames for direction in counters] == [0, 0]
    *ramp, load = server.loads
    assert (len(ramp), load) == (20, 10_000.0)
    assert ramp == pytest.approx([10_000.0 * part / 21 for part in range(1, 21)], abs=1e-6)


def test_one_connection_serves_all_trials_of_a_suite():
    server = Server()
    trex = generator(server)
    for _ in range(3):
        trial(server, trex=trex)
    assert [server.calls.count(name) for name in ("connect", "acquire", "reset", "start")] == [1, 1, 1, 3]


def test_an_odd_load_is_neither_rounded_nor_written_with_an_exponent():
    server = Server()
    trex = generator(server)
    for load in (0.5, 12_345.678, 14_880_952.4):
        perform(trex, load, 2.0)
    assert server.loads == [0.5, 12_345.678, 14_880_952.4]


def test_a_direction_sends_its_share_of_the_load():
    counters = trial(Server(), profile="ethip4-udp-download", frame_size=512)
    assert counters[0].load_ratio != counters[1].load_ratio
    for direction in counters:
        assert direction.sent_frames == pytest.approx(10_000 * direction.load_ratio, abs=2)
    assert loss_ratio(counters) == 0.0


def test_only_one_port_sends_in_one_direction():
    server = Server()
    (west,) = trial(server, bidirectional=False)
    assert west.sent_frames == 10_001
    assert server.ports[1].began is None


def test_no_more_frames_are_late_than_were_missing(no_links):
    server = Server()
    trex = generator(server)
    assert loss_ratio(trial(server, trex=trex)) == 0.0
    # Others send to a port between the trials.
    server.foreign = 7
    server.sleep(0.1)
    assert late(trex) == {name: [0] for name in BOTH_WAYS}


def test_traffic_apart_from_trials_has_its_late_frames_apart():
    server = Server(late=(20, 0.2))
    trex = generator(server, settle_time=0.1)
    counters = read_counters(asdict(held(trex, server)), BOTH_WAYS)
    server.sleep(0.5)
    came = late(trex)
    for direction in at_least_one(counters):
        assert direction.sent_frames == pytest.approx(2_000, abs=10)
        assert direction.sent_frames - direction.received_frames == 20
        assert came[direction.name] == [20]


def test_late_frames_of_traffic_apart_from_trials_are_not_reported_again_with_the_next_trial():
    server = Server(late=(20, 0.2))
    trex = generator(server, settle_time=0.1)
    held(trex, server)
    server.sleep(0.5)
    late(trex)
    assert [direction.late_frames for direction in trial(server, 1_000.0, trex=trex)] == [0, 0]


def test_frames_are_addressed_to_the_other_port_or_to_the_next_router():
    server = Server()
    generator(server)
    (stream,) = server.ports[0].streams.values()
    assert stream.packet.pkt_buffer[:12].hex(":") == f"{MACS[1]}:{MACS[0]}"
    routed = PortPair(TrafficPort("port0", "east", "02:11:22:33:44:55"), TrafficPort("port1", "west"))
    configuration = make_configuration(load_profile("ethip4-udp", frame_size=64), [routed], settle_time=0.0)
    TrexGenerator(configuration, SETTINGS, TrexLibrary(StandIn(server), "here"), clock=server.clock, sleep=server.sleep)
    (stream,) = server.ports[0].streams.values()
    assert stream.packet.pkt_buffer[:6].hex(":") == "02:11:22:33:44:55"


def test_the_second_direction_begins_ten_microseconds_later():
    server = Server()
    generator(server)
    assert [stream.isg for port in server.ports.values() for stream in port.streams.values()] == [0.0, 10.0]


def test_a_controller_that_is_gone_leaves_no_traffic():
    server = Server()
    trex = generator(server)
    with pytest.raises(ControllerGoneError):
        perform(trex, 10_000.0, 60.0, nobody_left)
    assert not server.is_transmitting(0)
    assert server.now < 2.0
    with pytest.raises(ControllerGoneError):
        perform(trex, 10_000.0, 1.0, nobody_left, ramp=60.0)
    assert not server.is_transmitting(0)


def test_closing_stops_all_traffic_and_releases_the_ports():
    server = Server()
    trex = generator(server)
    hold(trex, 1_000.0)
    trex.close()
    assert not server.is_transmitting(0)
    assert not server.acquired


def test_traffic_that_nobody_is_left_to_stop_ends_after_an_hour():
    server = Server()
    hold(generator(server), 1_000.0)
    assert server.ports[0].duration == 3600.0


def test_facts_name_the_server_s_version_and_its_ports():
    facts = generator(Server()).facts()
    assert (facts["version"], facts["client"]) == ("v3.08", "here")
    assert facts["ports"]["west"]["mac"] == MACS[1]


def test_the_log_of_the_server_is_kept_with_the_results():
    log = generator(Server()).facts()["server_log"]
    assert log[-1] == Path(SETTINGS.log).read_text().splitlines()[-1]


@pytest.mark.parametrize("modes", [{}, {"flow_statistics": True}])
def test_a_trial_that_is_shown_at_a_terminal_is_the_same_with_cards_and_with_flow_statistics(modes):
    seen = []
    trex = generator(Server(lost=(0.1, 0.0)), modes=modes)
    answer = trex.run(Plan(((10_000.0, 2.0),), notes=True), Controller(note=lambda *frames: seen.append(frames)))
    west, _ = read_counters(asdict(answer), BOTH_WAYS)
    assert west.sent_frames - west.received_frames == pytest.approx(2000, abs=1)
    assert len(seen) > 10
    assert all(0.9 < received / sent < 1.0 for sent, received in seen[1:])


def test_nothing_ends_early_because_cards_may_count_late():
    assert VERDICTS not in generator(Server()).facts()["can"]


@pytest.mark.parametrize("ahead", [0.0, 0.0067, 0.0499])
def test_a_server_in_software_mode_that_is_ahead_of_its_clock_sends_no_frames_at_once(no_links, ahead):
    """Its streams wait until none of their frames can be due already."""
    server = Server(ahead=ahead)
    west, east = trial(server, uses_linux=True)
    assert (west.unsent_frames, east.unsent_frames) == (0, 0)
    assert west.received_frames == west.sent_frames


@pytest.mark.parametrize("uses_linux", [False, True])
def test_nothing_is_known_about_stalls(no_links, uses_linux):
    west, _ = trial(Server(ahead=0.12), uses_linux=uses_linux)
    assert west.lateness_s is None
