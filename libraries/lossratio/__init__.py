"""Benchmarks the data plane throughput of software networking with MLRsearch (RFC 9971) and soak tests.

The package is a Robot Framework keyword library (`lossratio.keywords`) and the Python API below it. You can measure
with a single line, also in a notebook: ``with open_testbed("local") as testbed: testbed.ndr_pdr("64B")``. For all
settings, a script imports the names that it needs from this package::

    from pathlib import Path

    from lossratio import (
        NDR, PDR, RunDirectory, SearchRequest, TestIdentity, TestPlace,
        find_conditional_throughput, load_profile, open_testbed,
    )

    place = TestPlace(TestIdentity(name="my search", suite="mine"), RunDirectory(Path("results")))
    request = SearchRequest(goals=(NDR, PDR), profile=load_profile("ethip4-udp", frame_size="64B"))
    with open_testbed("local", dut="linux_bridge", options={"police": "50 kfps"}) as testbed:
        result = find_conditional_throughput(testbed, request, place)
"""

import lazy_loader

# Imported when a script asks for a name: each part of the package imports this module first, and some must start fast.
_public_name, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    if name == __name__:
        # Robot Framework asks for this name when a suite imports this module as a library.
        from lossratio.keywords.wrong_import import WrongImport

        return WrongImport
    return _public_name(name)
