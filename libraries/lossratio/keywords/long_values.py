"""Shortens wrong values of arguments in the messages of Robot Framework.

If a value cannot be converted, Robot Framework repeats it as a whole, and a result is dozens of lines long. A converter
cannot change that, but a listener can change the message.
"""

import re

from lossratio.checked_arguments import shortened

_MARK = "cannot be converted to "
_VALUE = re.compile(
    rf"(Argument '[^'\n]*' got value ')(.*?)('(?: \([\w. ]+\))? that {_MARK})", re.DOTALL
)


def with_short_values(message: str) -> str:
    """A message of Robot Framework, in which a value that cannot be converted is one short line."""
    if _MARK not in message:
        return message
    return _VALUE.sub(_shorter, message)


def _shorter(found: re.Match[str]) -> str:
    before, value, after = found.groups()
    return before + shortened(" ".join(value.split())) + after
