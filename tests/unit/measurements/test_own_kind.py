"""A kind of measurement of another package, as the how-to adds it: measured, shown, compared, followed and resumed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from measurement_examples import PROFILE, ROOT, place, policed

from lossratio.errors import ReportError
from lossratio.history import History, TrendRequest, add_runs, analyse
from lossratio.measurements import measure
from lossratio.report import ReportFormat, compare, comparison_table, read_run, render
from lossratio.results import kind_names, kind_of, message, read_result
from lossratio.trials import read_journal

PAGE = (ROOT / "docs" / "how-to" / "add-a-kind-of-measurement.md").read_text()
KIND, KEYWORDS = re.findall(r"^```python\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
SUITE = """
*** Settings ***
Library           lossratio.keywords.LossRatio
Library           OurKeywords.py
Suite Setup       Set Up Testbed    {topology}    dut=linux_bridge    police=50 kfps
Suite Teardown    Tear Down Testbed

*** Test Cases ***
Worst
    Measure Worst Trial    64B    trials=3
"""


def install(directory: Path, module: str, text: str, entry: str) -> None:
    """Installs a package, by hand, as pip would."""
    metadata = directory / f"{module}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[lossratio.measurement]\n{entry}\n")
    (directory / f"{module}.py").write_text(text)


@pytest.fixture(scope="module")
def our_kinds(tmp_path_factory):
    directory = tmp_path_factory.mktemp("site")
    install(directory, "our_kinds", KIND, "worst = our_kinds:Worst")
    sys.path.insert(0, str(directory))
    import our_kinds

    yield our_kinds
    sys.path.remove(str(directory))


@pytest.fixture(scope="module")
def runs(our_kinds, tmp_path_factory):
    """Two runs with two trials each."""
    directory = tmp_path_factory.mktemp("runs")
    for name in ("a", "b"):
        with policed(police="50 kfps") as testbed:
            measure(our_kinds.Worst(), testbed, our_kinds.WorstRequest(PROFILE, trials=2), place(directory / name))
    return [directory / name for name in ("a", "b")]


def test_the_kind_is_found_by_its_entry_point(our_kinds):
    assert "worst" in kind_names()
    assert isinstance(kind_of("worst"), our_kinds.Worst)


def test_its_result_is_in_words_and_in_every_report(runs):
    run = read_run(runs[0])
    (result,) = run.results
    assert re.match(r"  worst trial +51,000 fps per interface", message(result))
    for report_format in ReportFormat:
        text = render(report_format, [run])
        assert "worst" in text
        assert "a test" in text
    assert ",worst,worst trial,measured," in render(ReportFormat.CSV, [run])
    assert 'name="worst trial aggregate fps"' in render(ReportFormat.JUNIT, [run])


def test_its_values_are_compared_and_followed(runs, tmp_path):
    table = comparison_table(compare([read_run(runs[0])], [read_run(runs[1])]))
    assert "worst trial" in table
    assert "not comparable" not in table
    history = History(tmp_path)
    add_runs(history, runs)
    found = analyse(history, TrendRequest())
    assert [trend.series.key.quantity for trend in found.trends] == ["worst trial"]


def test_it_is_resumed_from_its_journal(our_kinds, runs, tmp_path):
    (result,) = read_run(runs[0]).results
    journal = next((runs[0] / "trials").iterdir())
    (tmp_path / "trials").mkdir()
    lines = journal.read_bytes().splitlines(keepends=True)
    (tmp_path / "trials" / journal.name).write_bytes(b"".join(lines[:2]))
    with policed(police="50 kfps") as testbed:
        request = our_kinds.WorstRequest(PROFILE, trials=2)
        again = measure(our_kinds.Worst(), testbed, request, place(tmp_path, resume=tmp_path))
    assert len(again.trials) == 2
    assert again.trials[0] == result.trials[0]
    assert len(read_journal(tmp_path / "trials" / journal.name).entries) == 2


def test_a_suite_shows_it_on_the_console(our_kinds, tmp_path):
    (tmp_path / "OurKeywords.py").write_text(KEYWORDS)
    (tmp_path / "suite.robot").write_text(SUITE.format(topology=ROOT / "topologies" / "simulated.yaml"))
    command = [sys.executable, "-m", "robot", "--outputdir", str(tmp_path / "out"), str(tmp_path / "suite.robot")]
    path = os.pathsep.join([str(Path(our_kinds.__file__).parent), *filter(None, sys.path)])
    answer = subprocess.run(
        command, check=False, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert answer.returncode == 0, answer.stdout
    assert "trial   3" in answer.stdout
    assert "worst trial" in answer.stdout
    assert "worst trial" in (tmp_path / "out" / "lossratio.html").read_text()


def test_a_result_of_a_kind_that_is_not_installed_names_what_is_missing(runs, tmp_path):
    results = tmp_path / "results"
    results.mkdir()
    text = next((runs[0] / "results").iterdir()).read_text().replace('"worst"', '"gone"')
    (results / "a.json").write_text(re.sub(r',\s*"digest": "[0-9a-f]*"', "", text).replace("result/2", "result/1"))
    with pytest.raises(ReportError, match=r"a\.json cannot be read: .*'gone'.*entry point 'gone' of the group"):
        read_result(results / "a.json")


@pytest.mark.parametrize(
    ("module", "text", "complaint"),
    [
        ("no_import", "import nothing_of_that_name", "no_import 1.0.*cannot be loaded: ModuleNotFoundError"),
        ("no_kind", "Kind = 1", "no_kind 1.0.*is not a subclass of lossratio.results.Kind"),
        (
            "no_method",
            "from our_kinds import Worst, WorstResult\n"
            "from lossratio.measurements import MeasuredKind\n"
            "class Kind(MeasuredKind):\n    name = 'no_method'\n    result = WorstResult\n",
            "no_method 1.0.*lacks build, controller, inputs, progress",
        ),
    ],
)
def test_a_broken_package_is_one_error_that_names_it(our_kinds, runs, tmp_path, monkeypatch, module, text, complaint):
    install(tmp_path, module, text, f"{module} = {module}:Kind")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ReportError, match=complaint):
        kind_of(module)
    assert read_run(runs[0]).is_whole
