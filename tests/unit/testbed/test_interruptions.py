"""What has to be done to its end is, although somebody presses Ctrl-C."""

from __future__ import annotations

import signal
import threading

import pytest

from lossratio.testbed.undo import put_off_interruption

SIGNALS = (signal.SIGINT, signal.SIGTERM)


@pytest.fixture(autouse=True)
def _keep_handlers():
    before = [signal.getsignal(number) for number in SIGNALS]
    yield
    assert [signal.getsignal(number) for number in SIGNALS] == before


def work(done, *numbers, failure=None):
    """Does three parts of something, and fails then if it is to; so many signals come, one after each part."""
    with put_off_interruption():
        for part in range(3):
            done.append(part)
            if part < len(numbers):
                signal.raise_signal(numbers[part])
        if failure is not None:
            raise failure


def test_the_first_signal_waits_for_the_end():
    done = []
    with pytest.raises(KeyboardInterrupt):
        work(done, signal.SIGINT)
    assert len(done) == 3


def test_it_is_heard_also_when_the_block_fails():
    failure = OSError("The node does not answer.")
    with pytest.raises(KeyboardInterrupt) as caught:
        work([], signal.SIGINT, failure=failure)
    assert caught.value.__context__ is failure


def test_the_second_one_is_heard_at_once():
    done = []
    with pytest.raises(KeyboardInterrupt):
        work(done, signal.SIGINT, signal.SIGINT)
    assert len(done) == 2


def test_each_goes_to_the_handler_that_was_there():
    heard = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        with put_off_interruption():
            signal.raise_signal(signal.SIGTERM)
            assert heard == []
        assert heard == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_without_a_signal_nothing_happens():
    with put_off_interruption():
        assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler


def test_in_another_thread_handlers_stay_as_they_are():
    seen = []

    def look():
        with put_off_interruption():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]
