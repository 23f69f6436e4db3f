"""Self-test: the load that the tester alone can send and receive."""

from lossratio.measurements.self_test.measure import SelfTest, SelfTestRequest, check_cable, find_tester_limit

__all__ = ["SelfTest", "SelfTestRequest", "check_cable", "find_tester_limit"]
