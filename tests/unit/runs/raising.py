"""A Robot Framework library whose keyword raises an error of lossratio's."""

from lossratio import errors


def raise_error(name, message="something broke"):
    raise getattr(errors, name)(message)


def raise_own_error(name, message):
    raise type(name, (Exception,), {})(message)
