"""A pytest plugin: benchmarks of the data plane together with other tests.

A topology file is named on the command line, ``--lossratio-topology FILE``, or in pytest's settings as
``lossratio_topology``. Then a test measures with the fixture ``lossratio``, and makes assertions about the result::

    def test_forwards_50_kfps(lossratio):
        result = lossratio.ndr_pdr("64B", goals="quick", dut="linux_bridge")
        assert result.throughput("QUICK_NDR") > 50_000

A test that needs more than the testbed has, e.g. ``cores=4`` on a machine with two CPUs, is skipped, with the reason.
The results are in the report of a failed test, and in the properties of tests in JUnit files.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from lossratio.measurements.open_testbed import OpenTestbed

_TOPOLOGY = "lossratio_topology"
_BEFORE = pytest.StashKey[int]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options of the plugin."""
    group = parser.getgroup("lossratio", "benchmarks of the data plane")
    group.addoption(
        "--lossratio-topology", metavar="FILE", help="The topology file of the testbed."
    )
    group.addoption(
        "--lossratio-results",
        metavar="DIR",
        default="lossratio-results",
        help="Directory of the results. [%(default)s]",
    )
    parser.addini(_TOPOLOGY, "The topology file of the testbed, relative to the settings file.")


@pytest.fixture(scope="session")
def lossratio_testbed(pytestconfig: pytest.Config) -> Iterator[OpenTestbed]:
    """The testbed of all tests. The first test that measures opens it."""
    # Imported here, because most runs of pytest measure nothing.
    from lossratio.measurements.open_testbed import open_testbed

    given = pytestconfig.getoption("lossratio_topology")
    set_ = pytestconfig.getini(_TOPOLOGY)
    if not (given or set_):
        pytest.fail(
            "There is no topology file. Name one with --lossratio-topology FILE, or with lossratio_topology in "
            "pytest's settings.",
            pytrace=False,
        )

    if pytestconfig.inipath:
        root = pytestconfig.inipath.parent
    else:
        root = pytestconfig.rootpath

    topology = Path(given) if given else root / str(set_)
    with open_testbed(
        topology, results=Path(pytestconfig.getoption("lossratio_results"))
    ) as testbed:
        yield testbed


@pytest.fixture
def lossratio(lossratio_testbed: OpenTestbed, request: pytest.FixtureRequest) -> OpenTestbed:
    """The testbed for one test. Its results go into the report of the test."""
    request.node.stash[_BEFORE] = len(lossratio_testbed.results)
    return lossratio_testbed


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Adds the results of a test to its report before the report is made. Skips a test that needs a larger testbed."""
    if call.excinfo is not None and "lossratio_testbed" in getattr(item, "fixturenames", ()):
        from lossratio.errors import NotMeasuredHereError

        if isinstance(call.excinfo.value, NotMeasuredHereError):
            reason = str(call.excinfo.value)
            call.excinfo = pytest.CallInfo.from_call(lambda: pytest.skip(reason), call.when).excinfo
    before = item.stash.get(_BEFORE, None)
    if call.when == "call" and before is not None:
        from lossratio.results import findings_of, message

        results = item.funcargs["lossratio"].results[before:]  # type: ignore[attr-defined]
        for result in results:
            item.add_report_section("call", "lossratio", message(result))
        for finding in findings_of(results):
            item.user_properties.append(
                (f"{finding.result.test.name}: {finding.quantity}", finding.in_short)
            )
    return (yield)
