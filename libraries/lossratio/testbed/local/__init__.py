"""The local testbed: network namespaces of this machine, with an SSH server in each."""

from lossratio.testbed.local.requirements import (
    TestbedUnavailableError,
    find_tools,
    is_privileged,
    why_unavailable,
)
from lossratio.testbed.local.testbed import LocalTestbed, describe, find, reachable, status
