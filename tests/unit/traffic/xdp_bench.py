"""A bench for the programs inside the kernel: the kernel runs them on single frames, which go nowhere."""

from __future__ import annotations

import time

import pytest
from bpf_objects import XdpAction, run_once
from frame_samples import DESTINATION_MAC, SOURCE_MAC

from lossratio.agent.xdp.constants import FOREVER
from lossratio.agent.xdp.frames import FramePlan, Share
from lossratio.agent.xdp.receive_program import ReceiveProgram, ReceiveWay, Reception
from lossratio.agent.xdp.send_program import Segment, SendProgram
from lossratio.bpf import why_impossible

needs_bpf = pytest.mark.skipif(why_impossible() is not None, reason=f"no BPF here: {why_impossible()}")
TAG = 0xA1B2C300
BURST = Segment(interval=0.0, frames=1 << 40, begin=0.0, last_call=float("inf"), catch_up=float("inf"), tag=TAG)


class Bench:
    """A sender and a receiver of one stream, which are run by hand."""

    def __init__(self, description, first=0, step=1):
        self.plan = FramePlan(description, SOURCE_MAC, DESTINATION_MAC)
        self.reception = Reception(1, 64)
        stream = Share(share=(first, step))
        self.sender = SendProgram([(self.plan, 1, stream)], self.reception.times)
        self.template = self.sender.template
        way = ReceiveWay(self.plan, DESTINATION_MAC, stream)
        self.receiver = ReceiveProgram(self.reception, [way])
        self.begin()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        for one in (self.sender, self.receiver, self.reception):
            one.close()

    def begin(self, *segments):
        self.reception.watch(TAG)
        self.sender.schedule(time.monotonic_ns() - 1, [segments or [BURST]])
        self.sender.renew(FOREVER)

    def send(self):
        verdict, frame = run_once(self.sender.program, self.template)
        return frame if verdict == XdpAction.REDIRECT.value else None

    def arrive(self, *frames):
        return [XdpAction(run_once(self.receiver.program, frame)[0]) for frame in frames]

    def counts(self):
        received = self.reception.received(0)
        names = ("arrived", "wrong_length", "wrong_mac", "corrupted", "readdressed", "duplicated", "stale")
        return {name: count for name in (*names, "reordered", "intact") if (count := getattr(received, name))}
