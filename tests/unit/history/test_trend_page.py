"""The page of trends: as text, and as headless Chromium shows it."""

import re
from dataclasses import replace
from datetime import timedelta
from html import unescape

import numpy as np
import pytest
from browser import browser, faults_for_readers, needs_browser
from history_examples import START, entry

from lossratio.report.history.analysis import TrendRequest, analyse
from lossratio.report.history.page_of_trends import address_of_run, date_ticks, draw_trend, trend_page
from lossratio.report.history.store import History
from lossratio.report.history.trend_formats import trend_text

EVIL = "<script>window.injected = true</script><img src=x onerror='window.injected = true'></script>"


def history_of(path, nights, tests=("64B-ndrpdr", EVIL, "reset", "killed")):
    """A history whose first test got worse, and whose last one failed in the end."""
    randomness = np.random.default_rng(1)
    entries = []
    for night in range(nights):
        for place, test in enumerate(tests):
            is_failed = test == "killed" and night == nights - 1
            value = 1e6 * randomness.normal(1.0, 0.003) * (0.9 if place == 0 and night > nights - 5 else 1.0)
            made = entry(night, None if is_failed else value, test=test, outcome="failed" if is_failed else "measured")
            made |= {"run": f"night {night}", "tags": ["64b", EVIL], "frame_size_bytes": 64.0}
            if test == "reset":
                seconds = {"value": value / 1e6, "lower_bound": None, "upper_bound": None}
                made |= {"quantity": "reset time", "unit": "s", "lower_is_better": True, **seconds}
            entries.append(made)
    History(path).add(entries)
    (path / "testbed=lab-1" / "date=2026-01-01" / "damaged.parquet").write_bytes(b"PAR1 no more")
    return analyse(History(path), TrendRequest(last=nights))


@pytest.mark.parametrize("days", [0.2, 1.0, 3.0, 12.0, 40.0, 100.0, 400.0, 1500.0, 9000.0])
def test_no_date_of_an_axis_is_there_twice(days):
    low = START.timestamp() / 86_400
    ticks, words = date_ticks(low, low + days, 8)
    labels = [words(tick) for tick in ticks]
    assert 2 <= len(labels) <= 9
    assert len(set(labels)) == len(labels)
    assert all(low <= tick <= low + days for tick in ticks)


def test_addresses_of_runs():
    assert address_of_run(None, {"a": "runs/a.html"})("a") == "runs/a.html"
    assert address_of_run(None, {})("a") is None
    assert address_of_run("https://lab/runs/", {})("night 1") == "https://lab/runs/night%201/lossratio.html"
    assert address_of_run("https://lab/{run}.html", {})("<1>") == "https://lab/%3C1%3E.html"


@pytest.mark.whole
def test_a_page_has_a_line_for_a_damaged_file_and_shows_the_rest(tmp_path):
    page = trend_page(history_of(tmp_path, 12), "lab")
    assert page.count("damaged.parquet") == 1
    assert "4 series · testbed lab-1" in page
    assert "<script>window" not in page


@pytest.mark.whole
@pytest.mark.parametrize("nights", [12, 2], ids=["alarms", "too few results"])
def test_a_page_begins_with_the_sentence_of_the_console(nights, tmp_path):
    analysis = history_of(tmp_path, nights)
    page = trend_page(analysis, "lab")
    said = re.search(r'<p class="sentence">(.*?)</p>', page)[1]
    assert unescape(said) == trend_text(analysis).splitlines()[0]
    assert page.index(said) < page.index('class="about"')


@pytest.mark.whole
def test_too_few_results_are_no_failure(tmp_path):
    page = trend_page(history_of(tmp_path, 2, ("64B-ndrpdr",)), "lab")
    assert set(re.findall(r'class="(\w+)">too few results', page)) == {"undecided"}
    assert re.search(r"\.undecided::before \{ color: var\(--faint\)", page)


@pytest.mark.whole
def test_a_picture_of_many_results_stays_small(tmp_path):
    analysis = history_of(tmp_path, 60, ("64B-ndrpdr",))
    (trend,) = analysis.trends
    series = trend.series
    values = np.resize(series.values, 1500)
    columns = {
        "started": [START + timedelta(days=day) for day in range(1500)],
        "value": values,
        "outcome": series["outcome"][:1] * 1500,
        "doubts": series["doubts"][:1] * 1500,
        "lower_bound": values,
        "upper_bound": 1.005 * values,
    }
    long = replace(series, columns=columns)
    picture = draw_trend(replace(trend, series=long, steps=()), ())
    assert len(picture) < 250_000
    # One of them is in the legend.
    assert picture.count("<circle") == 1501
    assert ">2029-" in picture


@pytest.mark.whole
@needs_browser
def test_a_browser_shows_series_with_their_results_and_links(tmp_path):
    file = tmp_path / "trend.html"
    file.write_text(trend_page(history_of(tmp_path / "history", 30), "lab", address_of_run("https://lab/runs", {})))
    with browser() as chromium:
        chromium.open(file)
        rows = "[...document.querySelector('table.overview').tBodies[0].rows]"
        assert chromium.run(f"{rows}.map(row => row.cells[2].textContent.split('failed')[0])")[:2] == [
            "regression",
            "no value any more",
        ]
        assert chromium.run(
            f"{rows}.filter(row => row.cells[0].textContent === 'reset')[0].cells[1].textContent"
        ).endswith(" s")
        chromium.run("document.querySelectorAll('details.test').forEach(details => { details.open = true; })")
        results = "document.querySelectorAll('#series-1 tbody tr').length"
        pictures = "document.querySelectorAll('main svg[role=img]').length"
        assert (chromium.run(results), chromium.run(pictures)) == (20, 4)
        assert chromium.run("document.querySelector('#series-1 tbody a').href") == (
            "https://lab/runs/night%2029/lossratio.html"
        )
        assert faults_for_readers(chromium) == []
        chromium.size(400, 800)
        assert chromium.run("document.documentElement.scrollWidth") <= 400
        assert chromium.run("window.injected ?? null") is None
        assert chromium.faults == []
