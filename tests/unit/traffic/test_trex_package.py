"""The package trex-stl-lib, which stands in for an installation's own client, makes the streams that it should."""

import base64

import pytest
from frame_samples import DESTINATION_MAC, SOURCE_MAC, spec
from trex_lab import connection

from lossratio.agent.core.configuration import Direction
from lossratio.agent.core.protocol import AgentError
from lossratio.agent.trex.connection import TrexConnection, TrexLibrary, TrexSettings
from lossratio.agent.trex.streams import StreamMaker

# Its import alone takes 2 s of CPU.
pytestmark = pytest.mark.whole


@pytest.fixture(scope="module")
def api():
    return pytest.importorskip("trex_stl_lib.api", reason="trex-stl-lib (extra trex) is not installed")


def maker(api, profile="ethip4-udp", frame_size=64):
    direction = Direction("a>b", "east", "west", None, spec(profile, frame_size))
    return StreamMaker(connection(api), direction, SOURCE_MAC, DESTINATION_MAC, 1)


def test_streams_carry_the_frame_its_rate_and_the_field_that_steps(api):
    (stream,) = maker(api).load_streams()
    fields = stream.to_json()
    frame = base64.b64decode(fields["packet"]["binary"])
    assert frame[:12] == DESTINATION_MAC + SOURCE_MAC
    assert len(frame) == 60
    assert fields["mode"] == {"rate": {"type": "pps", "value": 1.0}, "type": "continuous"}
    assert fields["isg"] == 10.0
    variable, write, *_ = fields["vm"]["instructions"]
    assert (variable["type"], variable["min_value"], variable["max_value"]) == ("flow_var", 1, 254)
    assert (write["type"], write["pkt_offset"]) == ("write_flow_var", 29)


def test_a_mix_is_a_stream_for_each_size(api):
    rates = [stream.to_json()["mode"]["rate"]["value"] for stream in maker(api, frame_size="IMIX_v4_1").load_streams()]
    assert rates == pytest.approx([28 / 48, 16 / 48, 4 / 48])


def test_latency_streams_have_counters_of_their_own(api):
    stream = maker(api).latency_stream(group=7, rate=100.0)
    assert stream.to_json()["flow_stats"] == {"enabled": True, "stream_id": 7, "rule_type": "latency"}


def test_what_it_does_not_know_yet_is_refused(api):
    with pytest.raises(AgentError, match="does not support fields in repeatable random order"):
        maker(api, "ethip4-ip4scale20k-rnd").load_streams()


def test_a_server_that_is_not_there_is_one_clear_error(api):
    settings = TrexSettings("/opt/trex", {"a": 0, "b": 1}, 9, 9, False, 0.0, 0.03, 1518, "/nowhere", True)
    with pytest.raises(AgentError, match="does not answer the request to answer") as raised:
        TrexConnection(TrexLibrary(api, "the package"), settings)
    assert raised.value.kind == "server_lost"
