"""Runs of Robot Framework: the night's job, the reserved run, verdicts, resume."""

from lossratio.runs.directory import new_directory
from lossratio.runs.job import load_job
from lossratio.runs.job_tests import expanded_tests
from lossratio.runs.robot_run import RunRequest, words_of
from lossratio.runs.run import RunOutcome, resume, run
from lossratio.runs.verdicts import TestVerdict
