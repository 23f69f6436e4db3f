"""Trials of a DUT that was not as it was set up are reported, and never continued."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace

import pytest
from measurement_examples import PROFILE, InFrontOfTestbed, place, policed

from lossratio.errors import DutError
from lossratio.measurements.mrr import MrrRequest, measure_mrr
from lossratio.results.model import Outcome
from lossratio.results.run_directory import read_result
from lossratio.trials.journal_reading import read_journal

BRIEF = MrrRequest(profile=PROFILE, max_load=20e3, trials=3, trial_duration=0.1)


class TamperedTestbed(InFrontOfTestbed):
    """A testbed whose DUT is found to be another one after each measurement."""

    @contextmanager
    def ready_for(self, profile, *settings):
        with self.testbed.ready_for(profile, *settings) as ready:
            yield replace(ready, is_verified=lambda: False)
        raise DutError("DUT1 is not as it was set up.")


def test_its_trials_are_in_the_result_and_a_run_that_is_resumed_measures_anew(tmp_path):
    testbed = policed(police="10 kfps")
    with pytest.raises(DutError, match="not as it was set up"):
        measure_mrr(TamperedTestbed(testbed), BRIEF, place(tmp_path))
    failed = read_result(tmp_path / "results" / "a_suite.a_test.json")
    assert (failed.outcome, failed.mrr, len(failed.trials)) == (Outcome.FAILED, None, 3)
    assert read_journal(tmp_path / "trials" / "a_suite.a_test.jsonl").entries == ()
    progress = []
    resumed = measure_mrr(testbed, BRIEF, place(tmp_path / "again", resume=tmp_path), progress.append)
    assert (resumed.outcome, len(progress)) == (Outcome.MEASURED, 3)
