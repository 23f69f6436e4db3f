"""What a person asks for, put together from the parts: a testbed to measure on, and measurements that use it.

All that keywords can do, from Python::

    from pathlib import Path

    from lossratio.bench import SearchRequest, TestPlace, find_conditional_throughput, open_testbed
    from lossratio.mlrsearch import NDR, PDR
    from lossratio.report.model import TestIdentity
    from lossratio.report.run_directory import RunDirectory
    from lossratio.traffic import load_profile

    place = TestPlace(TestIdentity(name="my search", suite="mine"), RunDirectory(Path("results")))
    request = SearchRequest((NDR, PDR), load_profile("ethip4-udp", frame_size="64B"))
    testbed = open_testbed("topologies/local.yaml", dut="linux_bridge", options={"police": "50 kfps"})
    try:
        result = find_conditional_throughput(testbed, request, place)
    finally:
        testbed.close()
"""

from lossratio.bench.goals import goal_from
from lossratio.bench.measurement import TestPlace
from lossratio.bench.mrr import MrrRequest, measure_mrr
from lossratio.bench.opening import open_testbed
from lossratio.bench.progress import Progress
from lossratio.bench.search import SearchRequest, find_conditional_throughput
from lossratio.bench.testbed import Testbed
from lossratio.bench.traffic import RunningTraffic, start_traffic

__all__ = [
    "MrrRequest",
    "Progress",
    "RunningTraffic",
    "SearchRequest",
    "TestPlace",
    "Testbed",
    "find_conditional_throughput",
    "goal_from",
    "measure_mrr",
    "open_testbed",
    "start_traffic",
]
