"""Writes the figures of `reference/csit-coverage.md`, as `lossratio csit coverage` finds them in a clone of CSIT.

Usage: csit.py CLONE
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from lossratio.runs import Coverage, CoverageVerdict, csit_coverage
from lossratio.shipped import SUITES

PAGE = Path(__file__).parent / "reference" / "csit-coverage.md"
WEEKLY = "csit-vpp-perf-ndrpdr-weekly-*"
PATTERNS = (
    WEEKLY,
    "csit-vpp-perf-soak-weekly-*",
    "csit-vpp-perf-mrr-weekly-*",
    "csit-dpdk-perf-mrr-weekly-*",
    "csit-trex-perf-ndrpdr-weekly-*",
)


def page(text: str, coverages: Mapping[str, Coverage]) -> str:
    """The page with its tables: coverage by pattern of jobs, and what differs in those of VPP's weekly list."""
    for name, table in (("jobs", jobs(coverages)), ("differences", differences(coverages[WEEKLY]))):
        pattern = rf"(?<=<!-- {name}, by docs/csit\.py -->\n).*?(?=<!-- end -->)"
        text = re.sub(pattern, table, text, count=1, flags=re.DOTALL)
    return text


def jobs(coverages: Mapping[str, Coverage]) -> str:
    """A row for each pattern of jobs: tests by verdict."""
    verdicts = list(CoverageVerdict)
    lines = [f"| jobs | tests | | {' | '.join(one.value for one in verdicts)} |", "| --- " * 7 + "|"]
    for pattern, coverage in coverages.items():
        tests = [judged for job in coverage.jobs.values() for judged in job.values()]
        counts = Counter(one.verdict for one in tests)
        share = f"{counts[CoverageVerdict.SAME] / len(tests):.1%}".replace("%", " % same")
        cells = " | ".join(f"{counts[one]:,}" for one in verdicts)
        lines.append(f"| `{pattern}` | {len(tests):,} | {share} | {cells} |")
    return "\n".join(lines) + "\n"


def differences(coverage: Coverage) -> str:
    """A row for each aspect that differs in tests: how many, and both values."""
    counts: Counter[tuple[str, str, str]] = Counter()
    for job in coverage.jobs.values():
        for judged in job.values():
            counts.update((aspect, *values) for aspect, values in judged.differences.items())

    lines = ["| tests | what differs | CSIT | here |", "| --- " * 4 + "|"]
    lines += [
        f"| {count} | {aspect} | {theirs} | {ours} |"
        for (aspect, theirs, ours), count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    ours = tuple(SUITES.path(name) for name in SUITES.names())
    found = {pattern: csit_coverage(Path(sys.argv[1]), ours, pattern) for pattern in PATTERNS}
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")
