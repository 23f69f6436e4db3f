"""Suggestions for misspelt names, and what takes the place of names that were removed."""

import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches

from lossratio.values.checked_arguments import shown_value

_NEAR = 0.75
"""Minimum similarity of two names, as measured by `difflib` (0 to 1), for suggesting one instead of the other."""
_SHORTEST_PART = 3
_OTHER_NAMES = {
    "vlan": "dot1q",
    "vlans": "dot1q",
    "qinq": "dot1ad",
    "duration": "timeout",
    "markdown": "md",
}
"""Names from other tools, in lower case, that resemble names of something else, each with the name that is meant."""


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The name that is meant by one that is misspelt, shortened, extended, or has swapped letters; None: none is near.

    A name that is only a bit similar is not suggested: a wrong suggestion is worse than none.
    """
    known = {each.casefold(): each for each in names}
    asked = name.casefold()
    other = _OTHER_NAMES.get(asked)
    if other in known:
        return known[other]
    close = get_close_matches(asked, known, n=1, cutoff=_NEAR)
    if close:
        return known[close[0]]

    for folded, each in known.items():
        if sorted(folded) == sorted(asked):
            return each
    if len(asked) < _SHORTEST_PART:
        return None
    for folded, each in known.items():
        if folded.startswith(asked) or asked in re.split("[-_ ]", folded):
            return each
    return known.get(re.split("[-_ ]", asked)[0])


# Table: what takes the place of a name that was removed.
REMOVED = {
    "--addresses": "set 'addresses: lab' in the topology file, or use lossratio between",
    "--any-of": "give --topology several times",
    "--as-before": "to save time, measure with --in-place or with the goals quick",
    "--join": "add two nodes of kind linux to the lab, and name them with --tg",
    "--record": "set the generator's 'max_rate' in the topology file to the limit that is found",
    "--results": "after the run, send it with lossratio archive send DIR --results URL",
    "--run-timeout": "begin the command with timeout --signal INT, e.g. timeout --signal INT 9h",
    "--suite-timeout": "begin the command with timeout --signal INT, e.g. timeout --signal INT 9h",
    "--trex": "write these values into the topology file (docs/how-to/use-trex.md)",
    "--webhook": "send alerts with a 'command', such as curl with 'input: json'",
    "email": "send alerts with a 'command', such as apprise or mail",
    "headers": "use curl as a 'command' with 'runs_on: controller'",
    "matrix": "write your testbeds into the matrix of your CI system's file",
    "memory_rest": "compare a search with one with rest=15 s",
    "modifier": "use a traffic profile with a broadcast_share or random addresses",
    "modifier_commands": "run your own command alongside the tests",
    "plan": "write your testbeds into the matrix of your CI system's file",
    "record": "set the generator's 'max_rate' in the topology file to the limit that is found",
    "repeat": "call the keyword several times",
    "self_test": "set 'max_rate' of the topology's generator to the limit that lossratio lab self-test finds",
    "snmp": "use snmpget as a 'command' with 'runs_on: controller'",
    "url": "use curl as a 'command' with 'runs_on: controller'",
    "webhook": "send alerts with a 'command', such as curl with 'input: json'",
}
"""What takes the place of options, arguments, fields and commands of earlier versions, by their names."""


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """What took a name's place, or else whether the nearest name is meant, after a blank; empty if nothing is known."""
    if name in REMOVED:
        return f" Earlier versions had {name!r}. Instead, {REMOVED[name]}."
    meant = nearest(name, names)
    if meant is not None:
        return f" Did you mean {meant!r}?"
    return ""


def none_of(words: Collection[str], value: object) -> str:
    """What is wrong with a value that is none of some words, and whether the nearest one is meant, as a sentence."""
    meant = did_you_mean(str(value), words)
    return f"must be {' or '.join(words)}, not {shown_value(value)}.{meant}"


def names_near(name: str, names: Iterable[str]) -> str:
    """The end of a sentence that lists the valid names, with the question whether the nearest one is meant."""
    return f"{', '.join(names := list(names))}.{did_you_mean(name, names)}"
