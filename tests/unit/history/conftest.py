"""Runs to be added to a history."""

from datetime import timedelta

import pytest

from lossratio.results.run_directory import RunDirectory


@pytest.fixture
def a_run(tmp_path):
    """Writes the run of a certain night, and gives its directory."""
    from report_examples import mrr, throughput

    def write(night):
        run = RunDirectory(tmp_path / f"run-{night}")
        later = timedelta(days=night)
        for result in (throughput(), mrr()):
            moved = {"started": result.started + later, "ended": result.ended + later}
            run.write(result.model_copy(update=moved))
        return run.path

    return write
