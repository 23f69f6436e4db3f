"""A Robot Framework library whose keywords raise an error of lossratio's."""

import signal

from lossratio import errors


def raise_error(name, message="something broke"):
    raise getattr(errors, name)(message)


def stop_by_force():
    """The first signal ends a keyword, and the second one ends Robot Framework itself."""
    try:
        signal.raise_signal(signal.SIGINT)
    finally:
        signal.raise_signal(signal.SIGINT)


def raise_own_error(name, message):
    raise type(name, (Exception,), {})(message)
