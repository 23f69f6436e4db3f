from __future__ import annotations

import textwrap

from bench_examples import ROOT

import lossratio.bench
from lossratio.report.run_directory import read_result


def test_the_example_of_the_documentation_runs(tmp_path, monkeypatch):
    _, _, example = lossratio.bench.__doc__.partition("::\n")
    topology = str(ROOT / "topologies" / "simulated.yaml")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(textwrap.dedent(example).replace("topologies/local.yaml", topology), names)  # noqa: S102
    assert names["result"].goals[0].result.regular
    assert read_result(tmp_path / "results" / "results" / "mine.my_search.json") == names["result"]
