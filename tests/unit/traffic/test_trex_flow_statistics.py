"""TRex with statistics of single streams: what a trial says about each stream, and what contradicts its ports."""

from types import SimpleNamespace

import pytest
from at_least_one import at_least_one
from trex_lab import generator, trial
from trex_stand_in import Server

from lossratio.agent.core.protocol import AgentError
from lossratio.results.doubts import foreign_frames
from lossratio.trials.causes import MissingFrames
from lossratio.trials.counters import NegativeLossError, output_from_counters
from lossratio.trials.trial_input import TrialInput

ON = {"flow_statistics": True}


def test_each_size_of_a_mix_has_a_stream_and_some_frames_have_numbers():
    west, _ = trial(Server(), frame_size="IMIX_v4_1", modes=ON)
    assert [stream.frame_size_bytes for stream in west.streams] == [64, 570, 1518, 64]
    assert [stream.duplicated_frames for stream in west.streams] == [None, None, None, 0]
    assert sum(stream.sent_frames for stream in west.streams) == west.sent_frames
    assert west.streams[-1].sent_frames == pytest.approx(100, abs=2)
    assert west.examined_frames == west.streams[-1].received_frames
    assert 10_000 <= west.sent_frames <= 10_004


def test_without_them_trials_are_as_before():
    west, _ = trial(Server())
    assert (west.streams, west.examined_frames) == ((), None)


def test_frames_of_a_port_that_begins_while_another_one_is_started_count():
    """TRex's client sets all streams' counters to zero in each start."""
    server = Server()
    trex = generator(server, frame_size="IMIX_v4_1", modes=ON)
    server.answer_seconds = 0.02
    for direction in at_least_one(trial(server, trex=trex)):
        assert sum(stream.sent_frames for stream in direction.streams) == direction.sent_frames


def test_loss_is_that_of_the_ports_and_shows_in_the_streams():
    west, east = trial(Server(lost=(0.1, 0.0)), modes=ON)
    assert west.sent_frames - west.received_frames == pytest.approx(1000, abs=1)
    assert (
        sum(stream.sent_frames - stream.received_frames for stream in west.streams)
        == west.sent_frames - west.received_frames
    )
    assert all(stream.sent_frames == stream.received_frames for stream in east.streams)


def test_copies_do_not_make_up_for_lost_frames_and_order_is_reported():
    numbers = {"dup": 5, "out_of_order": 7, "seq_too_high": 3, "seq_too_low": 2}
    west, _ = trial(Server(numbers=numbers), modes=ON)
    stream = west.streams[-1]
    assert (stream.duplicated_frames, stream.out_of_order_frames, stream.too_high_frames, stream.too_low_frames) == (
        5,
        7,
        3,
        2,
    )
    # 5 of about 100 numbered frames, so 5 % of all.
    assert west.duplicated_frames == pytest.approx(500, abs=15)
    assert west.reordered_frames == pytest.approx(700, abs=20)
    assert west.received_frames == west.sent_frames - west.duplicated_frames


def test_frames_of_others_are_a_doubt_where_they_hide_loss_and_an_error_where_they_do_not():
    west, east = trial(Server(foreign=7, lost=(0.01, 0.0)), modes=ON)
    trials = [Trialled((west, east))]
    (doubt,) = foreign_frames(SimpleNamespace(evidence=trials))
    assert "received 7 frames that belong to no trial" in doubt
    with pytest.raises(NegativeLossError):
        output_from_counters(TrialInput(1.0, 10_000.0), trial(Server(foreign=7), modes=ON))


class Trialled:
    """As much of a trial as doubts about frames need."""

    missing = MissingFrames()

    def __init__(self, directions):
        self.directions = directions


def test_trials_without_statistics_or_foreign_frames_are_no_doubt():
    for server, modes in ((Server(), ON), (Server(foreign=7, lost=(0.01, 0.0)), None)):
        directions = trial(server, modes=modes)
        assert list(foreign_frames(SimpleNamespace(evidence=[Trialled(directions)]))) == []


def test_streams_that_sent_other_frames_than_their_port_are_an_error():
    with pytest.raises(AgentError, match=r"the streams of port0>port1 sent 10001 frames, but its port sent 10004"):
        trial(Server(jump=3), modes=ON)


def test_where_no_frame_has_room_for_a_number_streams_are_counted_all_the_same():
    for counters in at_least_one(trial(Server(), profile="ethip6-udp", frame_size=78, modes=ON)):
        assert [stream.duplicated_frames for stream in counters.streams] == [None]
        assert sum(stream.sent_frames for stream in counters.streams) == counters.sent_frames
        assert counters.examined_frames is None


def test_a_ramp_is_not_counted():
    west, _ = trial(Server(), ramp=1.0, modes=ON)
    assert 10_000 <= west.sent_frames <= 10_002


def test_the_result_says_what_is_not_checked():
    integrity = generator(Server(), modes=ON).facts()["integrity"]
    assert integrity["in_trials"] is True
    assert "duplicates and order of frames without numbers" in integrity["not_checked"]
