from __future__ import annotations

from dataclasses import replace

import pytest
from bench_examples import PROFILE, place, policed

from lossratio.bench.mrr import MrrRequest, measure_mrr
from lossratio.errors import SearchError
from lossratio.report.run_directory import RunDirectory

REQUEST = MrrRequest(PROFILE, trials=1)


@pytest.fixture
def earlier(tmp_path):
    """A run with a result of another version of the device."""
    measure_mrr(policed(police="50 kfps"), REQUEST, place(tmp_path, "first"))
    run = RunDirectory(tmp_path)
    (result,) = run.results()
    duts = {"DUT1": {**result.conditions.duts["DUT1"], "version": "24.02"}}
    run.write(result.model_copy(update={"conditions": result.conditions.model_copy(update={"duts": duts})}))
    return tmp_path


def test_a_run_is_not_continued_with_another_version_of_a_device(earlier):
    message = r"DUT1 \(linux_bridge\) was version 24\.02, and is None now.*--force"
    with pytest.raises(SearchError, match=message):
        measure_mrr(policed(police="50 kfps"), REQUEST, place(earlier, "second", resume=earlier))
    assert not (earlier / "results" / "a_suite.second.json").exists()


def test_who_insists_continues_it_and_the_result_says_so(earlier):
    insisting = replace(place(earlier, "second", resume=earlier), forced="DUT1 is another one")
    result = measure_mrr(policed(police="50 kfps"), REQUEST, insisting)
    assert "resumed by force, although DUT1 is another one" in result.remarks


def test_a_new_run_beside_it_minds_nothing(earlier):
    measure_mrr(policed(police="50 kfps"), REQUEST, place(earlier, "second"))
