"""The public names, listed once: type checkers read them here, and the room imports each on first use."""

from .cabling import describe_cabling as describe_cabling, probe_cabling as probe_cabling
from .candidates import (
    Candidate as Candidate,
    candidate as candidate,
    log_in as log_in,
    reserved as reserved,
)
from .changes import guilty_of as guilty_of
from .hosts import Host as Host, HostPath as HostPath, find_host_path as find_host_path
from .inspection import describe_node as describe_node, inspect_nodes as inspect_nodes
from .loads import LoadRange as LoadRange, load_limits as load_limits, load_range as load_range
from .opening import check_sut_model as check_sut_model, open_testbed as open_testbed
from .running_traffic import (
    DEFAULT_LATE_WAIT as DEFAULT_LATE_WAIT,
    RunningTraffic as RunningTraffic,
    describe_stopped as describe_stopped,
    start_traffic as start_traffic,
)
from .set_up import threads_and_cores as threads_and_cores
from .testbed import (
    Ready as Ready,
    Recovery as Recovery,
    Testbed as Testbed,
    TestbedRequest as TestbedRequest,
    TrafficSource as TrafficSource,
    TrialSettings as TrialSettings,
    dut_request as dut_request,
)
