"""Black boxes with tables of connections, as programs that forward real frames, and that a hook resets."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
import table_forwarder
from local_testbeds import local_topology, needs_testbed, own_state
from measurement_examples import place

from lossratio.errors import DutError
from lossratio.measurements import measure
from lossratio.measurements.connection_capacity import CapacityRequest, ConnectionCapacity
from lossratio.measurements.connection_mrr import ConnectionMrr, ConnectionMrrRequest
from lossratio.measurements.mrr import MrrRequest, measure_mrr
from lossratio.nodes import NodeSession
from lossratio.testbed.local import LocalTestbed
from lossratio.testbed.opening import open_testbed
from lossratio.topology import load_topology
from lossratio.traffic import load_profile
from lossratio.trials import Integrity

pytestmark = [pytest.mark.netns, needs_testbed]
PROFILE = load_profile("ethip4-udp-connections", frame_size=100)
ROOM = 120
RATE = 1000.0


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    with own_state():
        file = local_topology(tmp_path_factory.mktemp("topology"), "tables")
        lab = LocalTestbed.up(load_topology(file), keep=True)
        try:
            yield file, lab.topology.nodes["DUT1"]
        finally:
            lab.down()


@contextmanager
def box(lab, table, room=ROOM):
    """A testbed whose device is a program with such a table."""
    file, node = lab
    tests = Path(table_forwarder.__file__).parent
    with NodeSession.connect("DUT1", node) as session:
        names = [interface.name for interface in node.interfaces.values()]
        for name in names:
            session.run("ip", "link", "set", name, "up")
        program = str(tests / "table_forwarder.py")
        process = session.start(sys.executable, program, table, str(room), *names)
        try:
            assert process.read_line(60.0).strip() == "ready"

            def reset():
                process.write_line("")
                assert process.read_line(60.0).strip() == "reset"

            with open_testbed(file, dut="black_box", options={"hold": "0.5 s"}) as testbed:
                testbed.duts[0].hooks.use("reset", reset)
                yield testbed
        finally:
            process.close()


def capacity_of(testbed, tmp_path, name="a test"):
    request = CapacityRequest(profile=PROFILE, max_load=RATE, first=60, most=480, step=4, repeats=1)
    return measure(ConnectionCapacity(), testbed, request, place(tmp_path / "run", name))


def test_a_table_that_a_measurement_has_filled_is_no_dead_device_for_the_next_one(lab, tmp_path):
    with box(lab, "Plain") as testbed:
        for name in ("once", "again"):
            result = capacity_of(testbed, tmp_path, name)
            assert ROOM - 4 <= result.capacity.median_connections <= ROOM
            assert any(
                remark.text.startswith("DUT1 forgets connections: after a reset, no answer")
                for remark in result.remarks
            )


def test_a_table_is_told_from_a_rate(lab, tmp_path):
    request = ConnectionMrrRequest(profile=PROFILE, trials=1, trial_duration=0.4, max_load=RATE)
    with box(lab, "Plain") as testbed, pytest.raises(DutError, match=r"connections, 120 were established at"):
        measure(ConnectionMrr(), testbed, request, place(tmp_path / "run"))


def test_a_reset_that_does_nothing_is_found_out(lab, tmp_path):
    # The check of the path has taken some of the entries.
    error = r"DUT1 does not forget connections: .* over (1\d\d) of \1 earlier connections"
    with box(lab, "NeverReset") as testbed, pytest.raises(DutError, match=error):
        capacity_of(testbed, tmp_path)


def test_a_nat_that_nobody_described_can_be_measured(lab, tmp_path):
    profile = load_profile("ethip4-udp-hosts", frame_size=100, bidirectional=False)
    request = MrrRequest(
        profile=profile, trials=1, trial_duration=0.4, max_load=500.0, integrity=Integrity.OFF, rest=0.1
    )
    with box(lab, "RandomNat", room=4000) as testbed:
        result = measure_mrr(testbed, request, place(tmp_path / "mrr"))
        assert result.mrr.lost_frames == 0
        assert any("does not seem to remember trials" in remark.text for remark in result.remarks)
        found = capacity_of(testbed, tmp_path, "capacity")
        assert found.capacity.median_connections >= ROOM
