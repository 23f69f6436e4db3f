"""The process that delays frames of an XDP device goes on where a link has no room."""

from __future__ import annotations

import errno

import pytest

from lossratio.dut.xdp.device import device

IN, OUT = "dut0", "dut1"


class Port:
    """An interface with room for all frames but one."""

    def __init__(self, name: str, no_room_for: bytes, error_number: int) -> None:
        self.name = name
        self._no_room_for, self._error_number = no_room_for, error_number
        self.sent: list[bytes] = []

    def setsockopt(self, *_: object) -> None: ...

    def bind(self, _: object) -> None: ...

    def send(self, frame: bytes) -> None:
        if frame == self._no_room_for:
            raise OSError(self._error_number, "refused")
        self.sent.append(frame)


class NoMoreFramesError(Exception):
    """The test is over."""


@pytest.fixture
def sent(monkeypatch):
    """Frames that leave a device, which cannot send the second of three."""

    def sent(error_number):
        ports = [Port(name, b"second", error_number) for name in (IN, OUT)]
        made = iter(ports)
        frames = iter((b"first", b"second", b"third"))
        waits = []

        def select(readable, _writable, _broken, seconds):
            waits.append(seconds)
            if len(waits) > 3:
                raise NoMoreFramesError
            return [readable[0]], [], []

        monkeypatch.setattr(device.socket, "socket", lambda *_: next(made))
        monkeypatch.setattr(device.select, "select", select)
        monkeypatch.setattr(device, "_receive", lambda port: [next(frames)])
        delay = device.Delay([IN, OUT], 0.0)
        with pytest.raises(NoMoreFramesError):
            delay.work()
        assert waits == [None] * 4
        assert not ports[0].sent
        return ports[1].sent

    return sent


def test_a_frame_for_which_the_link_has_no_room_is_lost_and_the_device_goes_on(sent):
    assert sent(errno.ENOBUFS) == [b"first", b"third"]


def test_other_errors_end_the_device(sent):
    with pytest.raises(OSError, match="refused"):
        sent(errno.ENETDOWN)
