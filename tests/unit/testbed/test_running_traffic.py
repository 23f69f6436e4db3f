"""Traffic that flows apart from trials, on a real testbed."""

import pytest
from local_testbeds import local_topology, needs_testbed, own_state
from measurement_examples import PROFILE, place, policed

from lossratio.errors import TrafficError
from lossratio.measurements.mrr import MrrRequest, measure_mrr
from lossratio.simulation import Device, SimulatedMeasurer
from lossratio.testbed.opening import open_testbed
from lossratio.testbed.running_traffic import describe_stopped, start_traffic
from lossratio.testbed.simulated import SimulatedSource

real = [pytest.mark.netns, needs_testbed]


@pytest.fixture(scope="module")
def bridge(tmp_path_factory):
    with own_state():
        file = local_topology(tmp_path_factory.mktemp("topology"), "traffic")
        testbed = open_testbed(file, dut="linux_bridge")
        yield testbed
        testbed.close()


def test_a_simulated_testbed_has_no_time_for_traffic_between_trials():
    with pytest.raises(TrafficError, match="simulated"):
        start_traffic(policed(police="10 kfps"), PROFILE, 1000.0)


def test_watched_traffic_flows_on_a_simulated_testbed_while_somebody_waits():
    sut = Device(capacity=1e6, downtime=0.2)
    source = SimulatedSource(SimulatedMeasurer(sut, seed=1, directions=2), None, shared=True, seed=1)
    source.wait(3.0)
    source.start_traffic(1e4, watch=True)
    source.wait(1.0)
    at = source.now()
    source.reset()
    source.wait(2.0)
    stopped = source.stop_traffic(0.0)
    assert (stopped.sent, stopped.lost) == (60_000, 4000)
    for course in stopped.timelines:
        (outage,) = course.outages
        assert at - course.began == pytest.approx(outage.first_sent, abs=1e-4)
        assert outage.duration == pytest.approx(0.2, abs=2e-4)
        assert (len(course.steps), course.steps[0].sent, course.steps[0].elapsed) == (1, 30_000, 3.0)
    with pytest.raises(TrafficError, match="no traffic to stop"):
        source.stop_traffic(0.0)


@pytest.mark.usefixtures("bridge")
class TestOnARealTestbed:
    pytestmark = real

    def test_it_flows_until_it_is_stopped(self, bridge):
        traffic = start_traffic(bridge, PROFILE, 1000.0)
        stopped = traffic.stop(0.0)
        assert stopped.sent == stopped.received > 0
        assert (stopped.lost, stopped.late) == (0, 0)
        assert describe_stopped(stopped).startswith("port0>port1: sent ")
        with pytest.raises(TrafficError, match="was already stopped"):
            traffic.stop()

    def test_nothing_else_is_measured_meanwhile_and_everything_afterwards(self, bridge, tmp_path):
        request = MrrRequest(profile=PROFILE, max_load=2000.0, trials=1, trial_duration=0.1)
        with start_traffic(bridge, PROFILE, 1000.0), pytest.raises(TrafficError, match="Stop it before"):
            measure_mrr(bridge, request, place(tmp_path))
        assert measure_mrr(bridge, request, place(tmp_path)).mrr is not None

    def test_an_error_meanwhile_stops_it_and_the_testbed_stays_usable(self, bridge, tmp_path):
        with pytest.raises(KeyError), start_traffic(bridge, PROFILE, 1000.0):
            raise KeyError
        stopped = start_traffic(bridge, PROFILE, 500.0).stop(0.0)
        assert stopped.lost == 0
