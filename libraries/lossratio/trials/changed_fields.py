"""Fields that had other values when frames came back, in words, and how to make a measurement expect them."""

from collections.abc import Mapping, Sequence
from typing import Protocol

LOOK_AT_DUT = (
    "Look at the DUT. If it changes frames on purpose, declare the change in the traffic profile, or measure with "
    "'integrity=off'."
)
"""What to do if frames came back changed in an unknown way."""
LOOK_FOR_COPIES = (
    "Look for a loop, a mirror port, or a bridge that floods. If the DUT copies frames on purpose, measure with "
    "'integrity=off'."
)
"""What to do if frames came back more than once."""
LOOK_FOR_WAYS = (
    "Look for a bridge that floods, a wrong route, or a wrong cable (lossratio check FILE --connect --probe). If the "
    "DUT changes addresses on purpose, declare the change in the traffic profile, or measure with 'integrity=off'."
)
"""What to do if frames came back at the wrong port, or with other addresses."""
FRAGMENTED = (
    "The network cuts these packets into fragments, because an MTU on the way is smaller than they are. Send smaller "
    "frames, or raise that MTU."
)
"""What to do if the first fragments of packets came back."""
_MOST_FIELDS = 4
_OF_FRAGMENTS = ("IPv4 more fragments", "IPv4 fragment offset")
"""The fields that only fragments have: more of them follow, or some came before."""
_MARKS = (
    "For a device that marks frames, give the profile 'is_marked: true' in its 'ipv4' or 'ipv6' header "
    "(as ethip4-ip4base-marked has). To compare the mark, too, give it 'received' with its 'dscp'. All other bytes are "
    "compared in both cases."
)
_TAGS = (
    "For a trunk on one side and an access port on the other, give each direction of the profile the tags of the port "
    "that it leaves from ('reverse' has 'headers'); for another priority, 'is_marked: true' in the tag."
)
_WAYS = {
    "DSCP": _MARKS,
    "ECN": _MARKS,
    "VLAN tag": _TAGS,
    "VLAN": _TAGS,
    "VLAN priority": _TAGS,
    "ethertype": "For an edge of MPLS or of VXLAN tunnels, give each direction of the profile the headers of the port "
    "that it leaves from ('reverse' has 'headers'), or say what is 'received'.",
    "destination MAC address": "The device must send frames to the address of the port that they come back to: look at "
    "its next hops; or give the profile 'any_mac: true'.",
    " address": "For a device that translates addresses, measure with 'integrity=off'; a black box has the option "
    "'translates', and 'lossratio between' has --translates.",
}
"""How to expect a change, by the end of the field's name; the first match counts."""


class Change(Protocol):
    """A field that had another value when a frame came back."""

    @property
    def name(self) -> str:
        """The field's name, with its header's."""

    @property
    def after(self) -> str:
        """Its value in the returned frame."""

    @property
    def in_words(self) -> str:
        """Its values."""


def fields_in_words(changes: Sequence[Change]) -> str:
    """The fields that differ: ``only the IPv4 DSCP differs: 0 before, 10 after``."""
    if len(changes) == 1:
        return f"only the {changes[0].name} differs: {changes[0].in_words}"
    shown = ", ".join(f"{change.name} ({change.in_words})" for change in changes[:_MOST_FIELDS])
    more = " and more fields" if len(changes) > _MOST_FIELDS else ""
    return f"{shown}{more} differ"


def ways_to_expect(changes: Sequence[Change]) -> list[str]:
    """How to make a measurement expect changes: a sentence for each kind for which this is possible."""
    found = (_way_to_expect(change.name) for change in changes)
    return [*dict.fromkeys(way for way in found if way is not None)]


def changes_in_words(changes: Mapping[str, Sequence[Change]]) -> str:
    """Which fields of single frames differ, by direction, and what to do about it; empty if none are known."""
    seen = "; ".join(
        f"{name}: {fields_in_words(fields)}" for name, fields in changes.items() if fields
    )
    if not seen:
        return ""
    seen = f"In single frames: {seen}."
    every = {change.name: change for fields in changes.values() for change in fields}
    if any(_is_fragment(change) for change in every.values()):
        return f"{seen} {FRAGMENTED}"
    return " ".join([seen, *ways_to_expect([*every.values()]), LOOK_AT_DUT])


def _way_to_expect(name: str) -> str | None:
    return next((way for end, way in _WAYS.items() if name.endswith(end)), None)


def _is_fragment(change: Change) -> bool:
    return change.name in _OF_FRAGMENTS and change.after != "0"
