"""What the tests of TRex do all the time: a generator that talks to a stand-in."""

from dataclasses import replace
from types import SimpleNamespace

from performed import perform
from trex_stand_in import StandIn

from lossratio.agent.trex.connection import TrexLibrary, TrexSettings
from lossratio.agent.trex.generator import TrexGenerator
from lossratio.traffic import PortPair, TrafficPort, load_profile, make_configuration
from lossratio.traffic.answers import read_counters
from lossratio.trials.counters import output_from_counters
from lossratio.trials.trial_input import TrialInput

PAIR = PortPair(TrafficPort("port0", "east"), TrafficPort("port1", "west"))
BOTH_WAYS = ("port0>port1", "port1>port0")
SETTINGS = TrexSettings(
    directory="/opt/trex",
    ports={"east": 0, "west": 1},
    rpc_port=4501,
    publisher_port=4500,
    uses_linux=False,
    connect_timeout=5.0,
    late_end=0.03,
    largest_frame=9000,
    log=__file__,
    is_ours=True,
)


def generator(
    server,
    profile="ethip4-udp",
    frame_size=64,
    settle_time=0.1,
    late_end=SETTINGS.late_end,
    uses_linux=False,
    modes=None,
    pair=PAIR,
    **options,
):
    configuration = make_configuration(
        load_profile(profile, frame_size=frame_size, **options), [pair], settle_time=settle_time
    )
    settings = replace(SETTINGS, late_end=late_end, uses_linux=uses_linux, **modes or {})
    library = TrexLibrary(StandIn(server), "here")
    return TrexGenerator(configuration, settings, library, clock=server.clock, sleep=server.sleep)


def connection(api):
    """What streams need to know of a connection with this client."""
    return SimpleNamespace(api=api, settings=SETTINGS)


def still_there():
    pass


def trial(server, load=10_000.0, duration=1.0, ramp=0.0, trex=None, **options):
    trex = trex or generator(server, **options)
    directions = perform(trex, load, duration, ramp=ramp).directions
    return read_counters({"directions": directions}, [direction["name"] for direction in directions])


def loss_ratio(counters, load=10_000.0, duration=1.0):
    """The loss ratio of a trial with these counters."""
    return output_from_counters(TrialInput(duration, load), counters).loss_ratio
