"""Faults of real machines while frames are on their way: who is to blame."""

from __future__ import annotations

import threading
from contextlib import contextmanager

import pytest
from layouts import set_up, topologies
from measuring import count_through

from lossratio.errors import LinkError, TesterError
from lossratio.testbed import Recovery, open_testbed

ONCE = Recovery(pauses=(5.0,), most=1)


@pytest.fixture(scope="module")
def bridged(lab):
    """A testbed that stays open from fault to fault, with a bridge."""
    with open_testbed(topologies(lab)["vmxnet3"], dut="linux_bridge", recovery=ONCE) as opened:
        yield opened


@contextmanager
def soon(what, seconds=6.0):
    """Does something in another thread, a while after the block has begun."""
    timer = threading.Timer(seconds, what)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def counted(opened, tmp_path, what):
    with soon(what):
        return count_through(opened, tmp_path, trials=30)


def test_a_cable_that_is_pulled_at_the_far_end_is_the_link_s_fault(lab, bridged, tmp_path):
    """The card of the TG keeps its link: only the DUT sees that the cable is out."""
    dut = lab["DUT1"]
    try:
        with pytest.raises(LinkError, match=r"link .*DUT1.* is lost"):
            counted(bridged, tmp_path, lambda: dut.ask("set_link", name="card1", up=False))
    finally:
        dut.ask("set_link", name="card1", up=True)


def test_an_interface_of_the_tg_that_is_set_down_is_the_tg_s_fault(lab, bridged, tmp_path):
    tg = lab["TG"]
    try:
        with pytest.raises(TesterError, match=f"interface {tg.interface(0)} of TG was set down"):
            counted(bridged, tmp_path, lambda: tg.run("ip", "link", "set", tg.interface(0), "down"))
    finally:
        set_up(tg)
