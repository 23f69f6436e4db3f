"""Results of latency that tests of several rooms share."""

from datetime import timedelta

from report_examples import STARTED, conditions

from lossratio.measurements.latency import LatencyPoint
from lossratio.measurements.latency.measure import Measured
from lossratio.measurements.latency.result import latency_result
from lossratio.results.conditions import LoadOrigin
from lossratio.results.model import TestIdentity, TestRun
from lossratio.trials import DirectionCounters, LatencyCounters, LatencyOutput, TrialInput, TrialOutput, TrialResult

FORWARD, REVERSE = "port0>port1", "port1>port0"


def counters(name=FORWARD, histogram=((10.0, 900), (50.0, 99), (1000.0, 1)), **changes):
    values = {"least_us": 10.0, "mean_us": 15.0, "most_us": 1000.0, "jitter_us": 2.0, "resolution_us": 0.1}
    values |= {"error": None, "hdr": None}
    return LatencyCounters(name, 1000, 1000, 0, 0, **(values | changes), histogram=histogram)


def dead(name=FORWARD):
    nothing = dict.fromkeys(("least_us", "mean_us", "most_us", "jitter_us"))
    return counters(name, (), **nothing, error="None of 1000 latency frames came back.")


def at(load, *directions, share=None):
    traffic = tuple(
        DirectionCounters(direction.direction, 10_000, 9_990, 9_990, unsent_frames=10) for direction in directions
    )
    goal = None if share is None else "PDR"
    trial = TrialResult(TrialInput(5.0, load), TrialOutput(0.001))
    return Measured(LatencyPoint(load, goal, share), LatencyOutput(traffic, directions), trial).at_load(
        conditions(), 5.0
    )


def failed(load):
    return Measured(LatencyPoint(load), "Interface tg0 went down.", None).at_load(conditions(), 5.0)


def result(*latency):
    run = TestRun(TestIdentity(name="a test", suite="a suite"), STARTED, STARTED + timedelta(minutes=1), conditions())
    loads = [at_load.load.per_interface_fps for at_load in latency if at_load.error is None]
    trials = [TrialResult(TrialInput(5.0, load), TrialOutput(0.001)) for load in loads]
    return latency_result(run, conditions().max_load(200e3, LoadOrigin.GIVEN), latency, trials)
