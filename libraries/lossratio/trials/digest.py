"""Digests at the end of JSON objects: they show that an object was changed after it was written.

The last member of the object is ``"digest"``: the first 32 hexadecimal digits of the SHA-256 of all bytes before that
member. The digest of a line of a journal also covers the digest of the line before it, which makes the lines a chain.
"""

import hashlib

_DIGITS = 32
_BEFORE_DIGITS = b', "digest": "'
_AFTER_DIGITS = b'"}'
_LENGTH = len(_BEFORE_DIGITS) + _DIGITS + len(_AFTER_DIGITS)


class DigestError(ValueError):
    """A JSON object has no digest at its end, or a wrong one."""


class DigestMismatchError(DigestError):
    """A JSON object has a wrong digest at its end: the object was changed."""


def add_digest(text: bytes, before: str = "") -> tuple[bytes, str]:
    """Adds the digest to a JSON object with at least one member; returns the object with it, and the digest.

    In a chain it covers the digest of the object before it; empty: it is the first one.
    """
    start = text.removesuffix(b"}").rstrip()
    digest = _digest(start, before)
    return start + _BEFORE_DIGITS + digest.encode() + _AFTER_DIGITS, digest


def take_digest(text: bytes, before: str = "") -> tuple[bytes, str]:
    """Checks the digest at the end of a JSON object, and removes it.

    Args:
        text: The object, with its digest.
        before: Digest of the object before it in a chain, which the object's own digest covers; empty: it is the first
            one.

    Returns:
        The object without the digest, and the digest.

    Raises:
        DigestError: If there is no digest.
        DigestMismatchError: If the object was changed.
    """
    start = text[:-_LENGTH]
    digits = text[-_LENGTH:][len(_BEFORE_DIGITS) : -len(_AFTER_DIGITS)]
    if text != start + _BEFORE_DIGITS + digits + _AFTER_DIGITS:
        raise DigestError("there is no digest at its end")
    digest = _digest(start, before)
    if digits != digest.encode():
        raise DigestMismatchError("its digest does not match")
    return start + b"}", digest


def _digest(start: bytes, before: str) -> str:
    return hashlib.sha256(before.encode() + start).hexdigest()[:_DIGITS]
