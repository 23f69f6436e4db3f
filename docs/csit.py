"""Writes the figures of `reference/csit-coverage.md`, as `lossratio csit-coverage` finds them in a clone of CSIT.

It also writes `study/tests/csit_weekly.json`: facts about the tests of VPP's weekly jobs, and how ours compare, so
that a test without the clone notices a suite that becomes another test.

Usage: csit.py CLONE
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lossratio.files.shipped import SUITES
from lossratio.runs.job_tests import expanded_tests
from lossratio_study.csit_coverage import Coverage, CoverageVerdict, csit_coverage
from lossratio_study.csit_suites import CsitSuites, nodes_of

PAGE = Path(__file__).parent / "reference" / "csit-coverage.md"
FACTS = Path(__file__).parents[1] / "study" / "tests" / "csit_weekly.json"
_NAME = re.compile(r"^\w+-(?:\d+c-)?")
_NODES = re.compile(r"-(\d)n\w?-")
WEEKLY = "csit-vpp-perf-ndrpdr-weekly-*"
PATTERNS = (
    WEEKLY,
    "csit-vpp-perf-soak-weekly-*",
    "csit-vpp-perf-mrr-weekly-*",
    "csit-dpdk-perf-mrr-weekly-*",
    "csit-trex-perf-ndrpdr-weekly-*",
    "csit-vpp-perf-mrr-daily-*",
    "*",
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


def facts(root: Path, coverage: Coverage, ours: tuple[Path, ...]) -> Iterator[dict[str, Any]]:
    """For each suite of CSIT in some jobs: what it is about, our suite of that name, what differs, and its tests."""
    theirs = CsitSuites(root)
    files = {
        (_NAME.sub("", test.name), nodes): test.source.stem
        for test in expanded_tests(ours)
        if "vpp" in test.tags
        for nodes in ((nodes_of(test),) if nodes_of(test) else (2, 3))
    }
    differs: dict[tuple[str, int, str], set[str]] = {}
    counts: dict[tuple[str, int, str], Counter[tuple[str, str, str]]] = {}
    for job, tests in coverage.jobs.items():
        nodes = int(_NODES.findall(job)[-1])
        for test, judged in tests.items():
            key = (test.dut, nodes, test.suite)
            differs.setdefault(key, set()).update(judged.differences.keys() - {"cores", "frame size"})
            counts.setdefault(key, Counter())[test.frame_size, test.cores, judged.verdict.value] += 1

    for key, points in sorted(counts.items()):
        if (described := theirs.of(*key)) is not None:
            known = {"suite": key, "ours": files.get((f"{key[2]}-ndrpdr", key[1]), ""), "differs": sorted(differs[key])}
            about = {"frames": described.frames, "ports": described.ports, "setup": described.setup}
            tests = [[*point, count] for point, count in sorted(points.items())]
            yield {**known, **about, "tags": sorted(described.tags), "tests": tests}


if __name__ == "__main__":
    shipped = tuple(SUITES.path(name) for name in SUITES.names())
    clone = Path(sys.argv[1])
    found = {pattern: csit_coverage(clone, shipped, pattern) for pattern in PATTERNS}
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), found), encoding="utf-8")
    lines = ",\n".join(json.dumps(one) for one in facts(clone, found[WEEKLY], shipped))
    FACTS.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
