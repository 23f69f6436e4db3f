"""Draws tests of FD.io CSIT's weekly jobs for VPP at random, to read CSIT's code for each, and says what differs here.

Usage: csit_draw.py CLONE [SEED]
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from lossratio.shipped import SUITES
from lossratio_study.csit_coverage import csit_coverage

DRAWN = 60

if __name__ == "__main__":
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 102
    ours = tuple(SUITES.path(name) for name in SUITES.names())
    coverage = csit_coverage(Path(sys.argv[1]), ours, "csit-vpp-perf-ndrpdr-weekly-*")
    tests = [(job, test, judged) for job, judgements in coverage.jobs.items() for test, judged in judgements.items()]
    for number in sorted(random.Random(seed).sample(range(len(tests)), DRAWN)):
        job, test, judged = tests[number]
        differs = "; ".join(f"{aspect}: {theirs} / {mine}" for aspect, (theirs, mine) in judged.differences.items())
        print(f"{number:4}  {judged.verdict.value:9}  {job.rpartition('master-')[2]}  {test.id}  {differs}".rstrip())
