"""Self-test: the load that the tester alone can send and receive."""

from lossratio.measurements.self_test.measure import (
    SelfTest as SelfTest,
    SelfTestRequest as SelfTestRequest,
    check_cable as check_cable,
    find_tester_limit as find_tester_limit,
)
