"""Reserving in a suite, on a real local testbed that is there to stay."""

from __future__ import annotations

import os
import tempfile

import pytest
from robot_runs import ROOT, run_suite, write_suite

from lossratio.testbed.local import LocalTestbed
from lossratio.testbed.requirements import why_unavailable
from lossratio.topology import load_topology

WHY_NOT = why_unavailable()
pytestmark = [pytest.mark.netns, pytest.mark.skipif(WHY_NOT is not None, reason=str(WHY_NOT))]


@pytest.fixture(scope="module")
def topology(tmp_path_factory):
    file = tmp_path_factory.mktemp("topology") / f"keywords-{os.getpid()}.yaml"
    file.write_text((ROOT / "topologies" / "local.yaml").read_text().replace("name: local", f"name: {file.stem}"))
    with tempfile.TemporaryDirectory(prefix="lossratio-state-") as state, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", state)
        testbed = LocalTestbed.up(load_topology(file), keep=True)
        yield file
        testbed.down()


def test_a_reservation_lasts_from_one_set_up_to_the_next(topology, tmp_path):
    tests = """
Reserved Once
    Reserve Testbed    ${TOPOLOGY}    wait=5 s    purpose=the night
    Run Keyword And Expect Error    LossRatioError: A testbed is reserved already*    Reserve Testbed    ${TOPOLOGY}
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
