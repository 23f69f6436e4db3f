"""Names of FD.io CSIT's suites and tests: checks our names, and derives the names in CSIT's dashboards.

A suite is called ``[1n1l-|2n1l-]{nic}-[driver-]{suite}-{type}``, as in ``2n1l-100ge2p1e810cq-avf-ethip4-ip4base-mrr``;
a test ``{frame size}-{cores}c-{suite}-{type}``, e.g. ``64B-1c-ethip4-ip4base-ndrpdr``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lossratio.errors import ReportError
from lossratio.results import TestIdentity

TEST_TYPES = ("ndrpdr", "mrr", "soak", "reconf")
"""Types of CSIT's tests, as at the end of names."""

_SUITE = re.compile(r"(?:[12]n1l-)?(?:\d+ge\d+p\d+)(?P<nic>[a-z0-9]+)-(?P<rest>.+)-(?P<type>[a-z]+)")
_TEST = re.compile(r"(?P<size>\d+b|imix(?:_v4_1)?)-(?P<cores>\d+)c-(?P<short>.+)-(?P<type>[a-z]+)")
_THREADS = re.compile(r"(?P<threads>\d+)t(?P<cores>\d+)c")


class CsitNameError(ReportError):
    """A name cannot be mapped to a name of CSIT; the message has that name and the expected form."""


@dataclass(frozen=True)
class CsitNames:
    """The names of a test in CSIT's results.

    Attributes:
        test_id: Suite and test in lower case, with ``_`` for spaces.
        name_short: The suite without NIC, driver and type, e.g. ``ethip4-ip4base``.
        name_long: NIC, frame size, threads and cores, and the short name, e.g. ``e810cq-64b-2t1c-ethip4-ip4base``.
        test_type: ``ndrpdr``, ``mrr``, ``soak`` or ``reconf``.
        path: Path of the file: the suite's path, and the test's name.
    """

    test_id: str
    name_short: str
    name_long: str
    test_type: str
    path: str


def csit_names(test: TestIdentity) -> CsitNames:
    """Derives the names of a test in CSIT's results.

    Raises:
        CsitNameError: If the test's suite, name or tags do not have CSIT's form.
    """
    suites = [part.replace(" ", "_") for part in test.suite.lower().split(".")]
    name = test.name.lower().replace(" ", "_")
    suite = _SUITE.fullmatch(suites[-1])
    if suite is None:
        raise CsitNameError(
            f"The suite {suites[-1]!r} has no name like CSIT's, e.g. '2n1l-100ge2p1e810cq-avf-ethip4-ip4base-ndrpdr'."
        )
    parts = _TEST.fullmatch(name)
    if parts is None:
        raise CsitNameError(f"The test {test.name!r} has no name like CSIT's, e.g. '64B-1c-ethip4-ip4base-ndrpdr'.")
    short = parts["short"]
    if suite["rest"] != short and not suite["rest"].endswith(f"-{short}"):
        raise CsitNameError(f"The test {test.name!r} does not have the name of its suite {suites[-1]!r} in it.")
    if parts["type"] not in TEST_TYPES or parts["type"] != suite["type"]:
        raise CsitNameError(
            f"The names of {test.full_name} do not end with one of CSIT's types: {', '.join(TEST_TYPES)}."
        )
    return CsitNames(
        test_id=".".join((*suites, name)),
        name_short=short,
        name_long=f"{suite['nic']}-{parts['size']}-{_threads(test, parts['cores'])}-{short}",
        test_type=parts["type"],
        path="/".join((*suites, f"{name}.info.json")),
    )


def _threads(test: TestIdentity, cores: str) -> str:
    """The tag with the number of worker threads and the number of cores."""
    for tag in test.tags:
        match = _THREADS.fullmatch(tag.lower())
        if match is not None and match["cores"] == cores:
            return match[0]
    raise CsitNameError(f"{test.full_name} has no tag like 2T{cores}C, which says how many worker threads there were.")
