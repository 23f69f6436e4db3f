"""Reserving in a suite, on a real local testbed that is there to stay."""

from __future__ import annotations

import pytest
from local_testbeds import local_topology, needs_testbed, own_state
from robot_runs import run_suite, write_suite

from lossratio.testbed.local import LocalTestbed
from lossratio.topology import load_topology

pytestmark = [pytest.mark.netns, needs_testbed]


@pytest.fixture(scope="module")
def topology(tmp_path_factory):
    file = local_topology(tmp_path_factory.mktemp("topology"), "keywords")
    with own_state():
        testbed = LocalTestbed.up(load_topology(file), keep=True)
        yield file
        testbed.down()


@pytest.mark.smoke
def test_a_reservation_lasts_from_one_set_up_to_the_next(topology, tmp_path):
    tests = """
Reserved Once
    Reserve Testbed    ${TOPOLOGY}    wait=5 s    purpose=the night
    Run Keyword And Expect Error    LossRatioError: A testbed is already reserved*    Reserve Testbed    ${TOPOLOGY}
    Set Up Testbed    ${TOPOLOGY}
    Tear Down Testbed
    ${token}    Evaluate    os.environ.pop('LOSSRATIO_RESERVATION')    modules=os
    Run Keyword And Expect Error    TestbedReservedError: *for the night*    Set Up Testbed    ${TOPOLOGY}
    Evaluate    os.environ.update(LOSSRATIO_RESERVATION=$token)    modules=os
    Set Up Testbed    ${TOPOLOGY}
    Tear Down Testbed
    Release Testbed
    Release Testbed
Free Afterwards
    Set Up Testbed    ${TOPOLOGY}
    Tear Down Testbed
"""
    run = run_suite(write_suite(tmp_path, tests, settings=""), TOPOLOGY=topology)
    assert {name: (test.status, test.message) for name, test in run.tests.items()} == {
        "Reserved Once": ("PASS", ""),
        "Free Afterwards": ("PASS", ""),
    }
