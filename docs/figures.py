"""Fills the measured figures of pages in, from the records of benchmarks.

Usage: figures.py

A page marks a figure as `<!-- figure NAME -->...<!-- end -->`. `FIGURES` says where it stands in the records, and how
the page writes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parent
RECORDS = DOCS.parent / "benchmarks" / "records"

_MARKED = re.compile(r"(<!-- figure ([^>]+?) -->)(.*?)(?=<!-- end -->)", re.DOTALL)
_NUMBER = r"([\d.,]*\d)"


@dataclass(frozen=True)
class Figure:
    """A figure of a page."""

    record: str
    """The file of the record."""
    words: str
    """What stands around the numbers there, as a regular expression in which `#` is a number."""
    form: str | Callable[..., str]
    """How the page writes the numbers: a format, or a function of them."""
    after: str = ""
    """Words of the record behind which the numbers stand; empty: its beginning."""

    def text(self) -> str:
        """What the page has.

        Raises:
            LookupError: If the record does not have it.
        """
        record = " ".join((RECORDS / self.record).read_text(encoding="utf-8").split())
        start = record.find(self.after)
        found = re.compile(self.words.replace("#", _NUMBER)).search(record, max(start, 0))
        if start < 0 or found is None:
            raise LookupError(f"benchmarks/records/{self.record} does not have: {self.after} {self.words}")
        numbers = [float(number.replace(",", "")) for number in found.groups()]
        return self.form.format(*numbers) if isinstance(self.form, str) else self.form(*numbers)


def _range(form: str, *numbers: float) -> str:
    """The smallest and the largest of some numbers."""
    least, most = (form.format(number) for number in (min(numbers), max(numbers)))
    return least if least == most else f"{least} to {most}"


def _ranged(form: str) -> Callable[..., str]:
    return lambda *numbers: _range(form, *numbers)


def _ratios(form: str, *pairs: float) -> str:
    """The first number divided by the second, the third by the fourth, and so on."""
    shares = [above / below for above, below in zip(pairs[::2], pairs[1::2], strict=True)]
    return _range(form, *shares)


def _share(form: str) -> Callable[..., str]:
    return lambda *pairs: _ratios(form, *pairs)


def _answers(as_before: float, changed: float, unsure: float, time: float) -> str:
    """Cells of a row: the shares of the answers in per cent, and the time."""
    shares = " | ".join(f"{100.0 * share:.1f} %" for share in (as_before, changed, unsure))
    return f"{shares} | {time:.2f}"


def _of_change(name: str) -> Figure:
    """The answers about simulated SUTs after a change, and the time with the searches that follow."""
    cells = r" \| #±[\d.]+" * 3 + r" \| [\d.]+ \| #"
    return Figure("as-before.md", rf"\| {name}{cells}", _answers, after="Simulated SUTs")


_RECORDED = r"\| interpolated {} \| either {}"
_ANY = r"\| [\d.]+ \([\d., ]+\) "
_THIS = r"\| # \([\d., ]+\) "

# Table: by the names that pages use.
FIGURES = {
    "time of NDR and PDR": Figure("other-searches.md", r"lossratio, held-out \| #/#/#", _ranged("{:.0f}")),
    "time of RFC 2544": Figure("other-searches.md", r"lossratio, held-out \| [^|]+ \| #/#/#", _ranged("{:.0f}")),
    "time of TST009": Figure("other-searches.md", r"lossratio, held-out \| [^|]+ \| [^|]+ \| #/#/#", _ranged("{:.0f}")),
    "time beside the peer": Figure("mlrsearch.md", r"\| default \| # ±[^|]+\| # ±[^|]+\| # ±", _ranged("{:.2f}")),
    "time beside a bisection": Figure(
        "other-searches.md",
        r"\| lossratio \| #/.*? \| #/.*?RFC 2544 bisection \| #/.*?TST009 bisection \| - \| #/",
        lambda ours, our_tst, bisection, tst: _range("{:.0f}", bisection / ours, tst / our_tst),
        after="Who is best on what",
    ),
    "time on routers, NDR with PDR": Figure(
        "search-time.md",
        rf"\| interpolated {_ANY * 2}{_THIS}.*?\| either {_ANY * 2}{_THIS}",
        _ranged("{:.2f}"),
        after="four starts in each",
    ),
    "time on routers, NDR or PDR": Figure(
        "search-time.md",
        rf"\| interpolated {_THIS * 2}.*?\| either {_THIS * 2}",
        _ranged("{:.2f}"),
        after="four starts in each",
    ),
    "time on routers, one trial": Figure(
        "search-time.md",
        rf"\| interpolated {_ANY * 4}{_THIS}.*?\| either {_ANY * 4}{_THIS}",
        _ranged("{:.2f}"),
        after="four starts in each",
    ),
    "time with hints, NDR with PDR": Figure(
        "hints.md",
        r"\| unchanged \| [^|]+ \| [^|]+ \| [\d.]+/#±[\d.]+ \| [\d.]+/#",
        _ranged("{:.2f}"),
        after="Earlier trials as a prior",
    ),
    "time with hints, quick NDR": Figure(
        "hints.md", r"\| unchanged \| [\d.]+/#±[\d.]+ \| [\d.]+/#", _ranged("{:.2f}"), after="Earlier trials as a prior"
    ),
    "time with hints, routers": Figure(
        "hints.md", r"\| interpolated \| [^|]+ \| [^|]+ \| [\d.]+/#", "{:.2f}", after="Recorded routers: every fourth"
    ),
    "changes of 1 % that hints hide": Figure(
        "hints.md",
        r"changes of 1 % seen less often, points \| \d \| # \| # \| # \| # \| #",
        lambda *points: f"{max(points):.0f}",
    ),
    "half of the evidence": Figure("evidence.md", r"half of it \| \d+ \| # ± #", "{:.2f} ± {:.2f}"),
    "records with a zone": Figure("evidence.md", r"with a zone, on # of", "{:.0f}"),
    "time with a zone": Figure("evidence.md", r"`end_at_coin` \| \d+ \| #", "{:.2f}"),
    "time to the end": Figure("evidence.md", r"to the end \| \d+ \| #", "{:.2f}"),
    **{
        f"as before, {name}": _of_change(name)
        for name in ("unchanged", "1 %", "2 %", "5 %", "rare loss", "NDR alone", "slower share", "two bands")
    },
    "error of back-to-back frames": Figure("rfc2544.md", r"10 each \| #, # and # frame", _ranged("{:.0f}")),
    "error of recovery": Figure("rfc2544.md", r"load has dropped \| 20 \| # ms", "{:.1f} ms"),
    "error of reset": Figure(
        "rfc2544.md", r"by time stamps \| 20 \| # ms.*by time stamps \| 20 \| # ms", _ranged("{:.1f}")
    ),
    "time of all tests of RFC 2544": Figure(
        "rfc2544.md", r"frame sizes took # s and # s", lambda *seconds: _range("{:.0f}", *(s / 60.0 for s in seconds))
    ),
    "rate of afpacket": Figure(
        "generator-in-kernel.md", r"less than 0.1 % unsent \(two searches\); both ways, each \| # and #", "{1:,.0f}"
    ),
    "rate of xdp": Figure(
        "generator-in-kernel.md",
        r"less than 0.1 % unsent \(two searches\); both ways, each \| [^|]+ \| # and #",
        "{0:,.0f}",
    ),
    "pacing of afpacket": Figure(
        "generator-in-kernel.md", r"at 1,000,000 frames/s, 50 % and 99 % \| # and #;", "{:.0f} and {:.0f} µs"
    ),
    "pacing of xdp": Figure(
        "generator-in-kernel.md", r"at 1,000,000 frames/s, 50 % and 99 % \| [^|]+ \| # and #;", "{:.2f} and {:.0f} µs"
    ),
    "two senders": Figure("generator-in-kernel.md", r"from one CPU \(#, #, # times\)", _ranged("{:.1f}")),
    "connections per second": Figure("connections.md", r"the tester's own limit \| #", "{:,.0f}"),
    "bytes of a connection": Figure("connections.md", r"and # bytes for each of them", "{:.0f}"),
    "limit of connections": Figure("connections.md", r"`most_connections=61234` \| # \| # \| #, 3 of 3", "{2:,.0f}"),
    "limit of connections, rate": Figure("connections.md", r"`most_connections=61234` \| #", "{:,.0f}"),
    "trends of 10,000 series": Figure("many-testbeds.md", r"\| 10,000 \| # \| # \|", "{1:.0f} s"),
    "noisy, verdicts of the same": Figure("builds.md", r"\| 400 \| the same \| # same", "{:.0f}"),
    "noisy, measurements for slower": Figure("builds.md", r"\| 400 \| 5 % slower \| [^|]+ \| #", "{:.0f}"),
    "5 % slower": Figure(
        "builds-in-place.md",
        r"\| 11 \| [^|]+ \| 16 \| # \|.*?\| 26 \| # \|.*?\| 16 \| # \|.*?\| 40 \| #,.*?\| 16 \| # \|",
        lambda *seconds: f"{', '.join(f'{s:.0f}' for s in sorted(seconds)[:-1])} and {max(seconds):.0f} s",
    ),
    "1 % slower, found": Figure(
        "builds-in-place.md",
        r"1 % slower \| none \| # slower.*?1 % slower [^|]*\| [^|]+ \| # slower",
        _ranged("{:.0f}"),
    ),
    "1 % slower, minutes": Figure(
        "builds-in-place.md",
        r"1 % slower \| none \| [^|]+ \| #, .*?1 % slower [^|]*\| [^|]+ \| [^|]+ \| #, ",
        lambda *seconds: _range("{:.0f} min", *(s / 60.0 for s in seconds)),
    ),
    "bisection, right": Figure("bisections.md", r"2 % / 1 % \| # %", "{:.0f} %"),
    "bisection, measurements": Figure("bisections.md", r"2 % / 1 % \| # % \| #", "{1:.0f}"),
    "latency by two clocks": Figure(
        "two-ends.md", r"stated # to # µs on average .right to # µs", "{:.0f} to {:.0f} µs ± {:.1f} µs"
    ),
    "latency by one clock": Figure("two-ends.md", r"the averages were # to # µs", "{:.0f} to {:.0f} µs"),
    "connections per second inside the kernel": Figure(
        "connections-in-kernel.md", r"One trial of # at #/s: all established", "{1:,.0f}"
    ),
    "connections in one trial": Figure(
        "connections-in-kernel.md", r"One trial of # at #/s: all established", "{0:,.0f}"
    ),
    "trials with early verdicts": Figure("early-verdicts.md", r"Of # trials of 0.25 s", "{:,.0f}"),
    "flows by bits": Figure("integrity.md", r"held # of # flows, and never the others", "{:.0f} of {:.0f}"),
    "time to compare": Figure("integrity.md", r"frames per direction are compared, in some # ms", "{:.0f} ms"),
    "rate with integrity": Figure(
        "integrity.md", r"through the bridge, 64 B \| # \| # \| # \|", "{0:,.0f} to {2:,.0f}"
    ),
    "call of an XDP program": Figure(
        "generator-in-kernel.md", r"A call takes # µs, and not # ms", "{:.0f} µs instead of {:.0f} ms"
    ),
    "found for 1,561,500": Figure(
        "devices-in-kernel.md", r"Searches found # to # for #, half of them", "{0:,.0f} instead of {2:,.0f}"
    ),
    "capacity with a cpumap": Figure(
        "devices-in-kernel.md", r"the capacity went from # to # million", "{:.2f} to {:.2f} million"
    ),
    "cost of comparing": Figure(
        "generator-in-kernel.md",
        r"counting only # million frames/s, everything compared and timed # million",
        lambda counted, compared: f"{100.0 * (1.0 - compared / counted):.0f} % of {counted} million",
    ),
    "too low with a memory": Figure(
        "changing-suts.md", r"had a regular result for RFC 2544's goal, # % below", "{:.0f} %"
    ),
    "judge a lab": Figure("trends.md", r"busy cores: # s to read and judge", "{:.1f} s"),
    "draw a lab": Figure("trends.md", r"judge them, # s to draw", "{:.1f} s"),
    "searches that digests compare": Figure("changing-suts.md", r"Digests compare all of # searches", "{:,.0f}"),
    "false alarms of trends": Figure("trends.md", r"\| 2 \(default\) \| [\d.]+ % \| # %", "{:.2f} %"),
    "request to TRex": Figure(
        "trex.md", r"a request to TRex takes # ms, a request for the state of a port # ms", "{:.1f} to {:.1f} ms"
    ),
    "trial with TRex": Figure("trex.md", r"a trial took # ms at least before, and # ms now", "{1:.0f} ms"),
    "NDR with stalls": Figure(
        "unsent-frames.md",
        r"policed to # frames per second had an NDR of #\.",
        "{:,.0f} frames/s had an NDR of {:,.0f}",
    ),
    "what small stalls move": Figure("unsent-frames.md", r"below its truth by # to # %", "{1:.2f} %"),
    "VPP without priority": Figure("vpp-startup.md", r"found up to #\.", "{:,.0f}"),
    "VPP with priority": Figure("vpp-startup.md", r"(29,\d+) to #\. VPP on cards", "{:,.0f} to {:,.0f}"),
}
"""All figures that pages take from records."""


def page(text: str) -> str:
    """A page with its figures as the records have them.

    Raises:
        LookupError: If a figure is not in `FIGURES`, or not in its record.
    """
    return _MARKED.sub(_filled, text)


def figures_of(text: str) -> Iterator[tuple[str, str]]:
    """The name and the present text of each figure of a page."""
    for found in _MARKED.finditer(text):
        yield found[2], found[3]


def _filled(found: re.Match[str]) -> str:
    if found[2] not in FIGURES:
        raise LookupError(f"docs/figures.py has no figure {found[2]!r}.")
    return f"{found[1]}{FIGURES[found[2]].text()}"


def pages() -> list[Path]:
    """All pages."""
    return sorted(DOCS.rglob("*.md"))


if __name__ == "__main__":
    for path in pages():
        path.write_text(page(path.read_text(encoding="utf-8")), encoding="utf-8")
