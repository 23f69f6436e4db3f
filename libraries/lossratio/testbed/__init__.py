"""The testbed: opening, set-up, checks, changes, repair, and traffic outside of trials."""

from lossratio.testbed.cabling import probe_cabling
from lossratio.testbed.cabling_report import describe_cabling
from lossratio.testbed.candidates import Candidate, candidate, log_in, reserved
from lossratio.testbed.changes import guilty_of
from lossratio.testbed.hosts import Host, HostPath, find_host_path
from lossratio.testbed.inspection import describe_node, inspect_nodes
from lossratio.testbed.loads import LoadRange, TesterLimit, load_limits, load_range, own_record
from lossratio.testbed.opening import check_sut_model, open_testbed
from lossratio.testbed.running_traffic import (
    DEFAULT_LATE_WAIT,
    RunningTraffic,
    describe_stopped,
    start_traffic,
)
from lossratio.testbed.set_up import threads_and_cores
from lossratio.testbed.testbed import (
    Ready,
    Recovery,
    Testbed,
    TestbedRequest,
    TrafficSource,
    dut_request,
)
