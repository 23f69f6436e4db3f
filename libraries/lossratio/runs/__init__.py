"""Runs of Robot Framework: the night's job and plan, the reserved run, verdicts, resume."""

from lossratio.runs.csit_comparison import (
    Coverage,
    CoverageVerdict,
    csit_coverage,
    describe_coverage,
)
from lossratio.runs.directory import check_directory, new_directory
from lossratio.runs.expected_times import KnownTimes
from lossratio.runs.job import Testbed, load_job
from lossratio.runs.matrix import matrix
from lossratio.runs.plan import describe_plan, plan_job, plan_suites, write_argument_files
from lossratio.runs.robot_run import Limits, RunRequest
from lossratio.runs.run import RunOutcome, resume, run
from lossratio.runs.verdicts import TestVerdict
