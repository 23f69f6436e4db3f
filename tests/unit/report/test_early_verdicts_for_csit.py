"""Searches with early verdicts are exported nowhere as CSIT's."""

import pytest
from report_examples import counted_trial, throughput_of

from lossratio.measurements import CsitExportError
from lossratio.measurements.throughput.view import ThroughputView
from lossratio.mlrsearch import NDR


def with_early_verdicts(goal):
    result = throughput_of([counted_trial(50_000.0)], (goal,))
    return result.model_copy(update={"settings": {**result.settings, "early_verdict": True}})


def test_with_early_verdicts_nothing_is_exported_as_csits():
    with pytest.raises(
        CsitExportError, match="measured with early verdicts, but CSIT's trials run for their whole duration"
    ):
        ThroughputView().csit(with_early_verdicts(NDR))
