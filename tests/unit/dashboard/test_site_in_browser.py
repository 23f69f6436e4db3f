"""The site as a browser shows it, from its folder: every view, hostile names, and the same statistics as in Python."""

import json
import math
import re
from datetime import timedelta

import numpy as np
import pytest
from at_least_one import at_least_one
from browser import browser, faults_for_readers, needs_browser
from history_examples import START, nightly
from report_examples import mrr, throughput

from lossratio.dashboard import SiteRequest, write_site
from lossratio.history import History
from lossratio.history.entries import entries_of
from lossratio.report import Run, compare
from lossratio.report.comparison import Sample, Verdict, adjusted, difference
from lossratio.results import Outcome
from lossratio.simulation.constant_capacity import SharpKnee

pytestmark = [needs_browser, pytest.mark.whole]
EVIL = "<script>window.injected = 1</script><img src=x onerror='window.injected = 2'></script>&amp;\"'"
HELPERS = """
const pause = (time = 20) => new Promise(done => setTimeout(done, time));
const ready = async () => {
  for (let step = 0; step < 400 && document.documentElement.dataset.ready === undefined; step += 1) await pause();
};
const open = async address => {
  delete document.documentElement.dataset.ready;
  location.hash = address;
  await ready();
};
const rows = () => {
  const cells = row => [...row.cells].map(cell => cell.textContent);
  return [...document.querySelectorAll("main tbody tr")].map(cells);
};
const set = async (name, value) => {
  const field = document.querySelector("form.filters").elements[name];
  if (field.type === "checkbox") field.checked = value; else field.value = value;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  await pause(200);
};
const seen = {};
"""


@pytest.fixture(scope="module")
def chromium():
    with browser() as running:
        yield running


def walk(chromium, site, script, *, width=1200):
    """What a script in the page notes while it walks through the site's views, without a fault on the console."""
    chromium.faults.clear()
    chromium.open(site.page, width=width)
    seen = chromium.run(f"(async () => {{{HELPERS}{{{script}}} return seen;}})()")
    assert chromium.faults == []
    assert chromium.run("window.injected ?? null") is None
    return seen


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A lab of two testbeds, of which one has names that would be markup."""
    folder = tmp_path_factory.mktemp("site")
    history = History(folder / "history")
    for day in range(8):
        run = {"run": "nightly" if day != 7 else EVIL}
        entries = []
        for cores, size in ((1, 64), (2, 64), (2, 1518)):
            value = 1e6 * cores**0.9 * (1.0 + 0.001 * (day % 3)) * (0.9 if day > 3 and cores == 1 else 1.0)
            name = {"test": f"Suite.{size}B-{cores}c-l2-ndrpdr", "frame_size_bytes": float(size)}
            build = {"build": f"vpp 24.{'02' if day < 4 else '06'}", "measured_as": "same"}
            entries.append(nightly(day, value, **name, **run, **build))
        entries.append(nightly(day, 2e6 + day, test=f"Suite.{EVIL}", tags=(EVIL,), build=EVIL, testbed=EVIL, **run))
        entries.append(nightly(day, None, test="Suite.latency", quantity="latency", outcome="failed", **run))
        history.add(entries)
    known = {"changes": [{"date": "2026-01-07", "note": EVIL, "test": "*script*"}]}
    (history.path / "annotations.yaml").write_text(json.dumps(known))
    broken = history.path / "testbed=lab-1" / "date=2026-01-03" / "<img src=x onerror='window.injected = 3'>.parquet"
    broken.write_bytes(b"damaged")
    return write_site(history, folder / "site", SiteRequest(EVIL, runs="runs/{run}"))


VIEWS = """
  seen.home = rows().map(row => [row[0], row[7], row[6], row[1], row[2], row[3], row[4]]);
  seen.heads = [...document.querySelectorAll("main thead th")].slice(0, 3).map(head => head.textContent);
  seen.problems = document.querySelector("#problems").textContent;
  seen.title = document.querySelector("h1").textContent;
  const ground = () => getComputedStyle(document.body).backgroundColor;
  const theme = document.querySelector("button.theme");
  theme.click(); seen.light = ground(); theme.click(); seen.dark = ground(); theme.click();
  await set("text", "1c"); seen.listed = rows().map(row => row[0]);
  await set("text", "/(64|1518)B-2c/"); seen.expression = rows().length;
  await set("text", "/(/"); seen.broken = rows().length; await set("text", "");
  await set("odd", true); seen.odd = rows().map(row => row[2]); await set("odd", false);
  seen.address = location.hash;
  document.querySelectorAll("main thead button")[1].click();
  seen.sorted = rows().map(row => row[1]);
  const named = one => one.hidden || one.textContent.trim() || one.getAttribute("aria-label") || one.closest("label");
  seen.unnamed = [...document.querySelectorAll("input, select, button, a")].filter(one => !named(one)).length;
  const boxes = [...document.querySelectorAll("main tbody input")].slice(0, 2);
  boxes.forEach(box => box.click());
  [...document.querySelectorAll("main button")].find(button => button.textContent.includes("together")).click();
  await pause(); await ready(); seen.overlay = document.querySelectorAll("main svg.chart path.line").length;
  seen.wide = {};
  const test = site.tests.find(test => test.name.includes("64B-1c"));
  const evil = site.tests.find(test => test.name.includes("script"));
  const views = ["coverage", "compare", "latency", "scaling", "sizes", "runs", "nothing", "test/nothing"];
  for (const view of ["", `test/${test.id}`, `test/${evil.id}`, ...views]) {
    await open(`#/${view}`);
    const key = view.replace(test.id, "one").replace(evil.id, "evil");
    seen.wide[key] = document.documentElement.scrollWidth - document.documentElement.clientWidth;
    const count = what => document.querySelectorAll(what).length;
    seen[key || "again"] = {
      text: document.querySelector("main").textContent, rows: rows(), charts: count("main svg.chart"),
      circles: count("main circle.measured, main path.doubtful"), worse: count("main circle.worse"),
      images: count("main img, main script"),
      labels: [...document.querySelectorAll("main svg.chart text")].map(label => label.textContent),
    };
  }
  await open(`#/test/${test.id}?axis=build`);
  const labels = document.querySelector("main svg.chart").querySelectorAll("text");
  seen.axis = [...labels].map(label => label.textContent);
  await open("#/runs");
  document.querySelector("main tbody a").click();
  await pause(); await ready();
  seen.run = { text: document.querySelector("main").textContent };
  seen.run.link = document.querySelector("ul.links a").getAttribute("href");
  await open("#/runs");
  document.querySelectorAll("main tbody tr")[2].querySelector("a").click();
  await pause(); await ready();
  seen.third = document.querySelector("main").textContent;
  location.hash = "#/compare?a=lab-1&aWhat=build%20vpp%2024.02&b=lab-1&bWhat=build%20vpp%2024.06";
  await pause(); await ready();
  seen.builds = rows();
  await set("odd", true); seen.changed = rows().length;
  const side = document.querySelector("form.filters").elements.bWhat;
  side.focus(); await set("bWhat", "newest"); await pause(100);
  seen.focus = document.activeElement.name; seen.kept = document.activeElement.value; seen.compared = location.hash;
"""


@pytest.fixture(scope="module")
def seen(chromium, site):
    return walk(chromium, site, VIEWS)


def test_no_view_has_a_fault_and_names_are_text_everywhere(seen):
    assert seen["title"] == EVIL
    assert "<img src=x" in seen["problems"]
    for view in ("again", "test/evil", "coverage", "runs", "run"):
        assert "<script>window.injected = 1</script>" in seen[view]["text"]
    assert all(seen[view]["images"] == 0 for view in ("again", "test/evil", "coverage", "compare", "runs"))
    assert "no such view" in seen["nothing"]["text"]
    assert "no such test" in seen["test/nothing"]["text"]


def test_lists_sort_filter_and_keep_both_in_the_address(seen):
    assert len(seen["home"]) == 5
    assert seen["heads"] == ["test", "newest", "verdict"]
    assert seen["home"][0][:3] == ["Suite.64B-1c-l2-ndrpdr", "lab-1", "NDR"]
    assert seen["home"][0][4].startswith("regression")
    assert seen["home"][0][5:] == ["-9.98 %", "2026-01-05"]
    assert seen["listed"] == ["Suite.64B-1c-l2-ndrpdr"]
    assert (seen["expression"], seen["broken"]) == (2, 0)
    assert [words.split(" (")[0] for words in seen["odd"]] == ["regression: 1.0008 Mfps to 900.90 kfps"]
    assert seen["address"] == "#/"
    assert seen["sorted"] == ["900.90 kfps", "1.8679 Mfps", "1.8679 Mfps", "2.0000 Mfps", "failed"]
    assert (seen["light"], seen["dark"]) == ("rgb(255, 255, 255)", "rgb(24, 24, 23)")
    assert seen["unnamed"] == 0


def test_a_test_has_its_trend_known_changes_and_latency_side_by_side(seen):
    one = seen["test/one"]
    assert one["charts"] == 2
    assert one["circles"] == 16
    assert one["worse"] == 1
    assert "regression: 1.0008 Mfps to 900.90 kfps" in one["text"]
    assert "over cores" in one["text"]
    assert "over frame sizes" not in one["text"]
    assert seen["overlay"] == 2
    assert {"24.02", "24.06"} <= set(seen["axis"])
    assert not any(label.startswith("2026-") for label in seen["axis"])


def test_sweeps_show_scaling_with_efficiency_and_bandwidth(seen):
    scaling = {row[0]: row for row in seen["scaling"]["rows"]}
    assert scaling["2"][1] == "1.8679 Mfps"
    # The value of one core has fallen by a tenth, so two cores have more than twice as much.
    assert scaling["2"][3] == f"{100 * 2**0.9 / (0.9 * 2):.1f} %"
    sizes = [row[:3] for row in seen["sizes"]["rows"]]
    assert sizes == [["64 B", "1.8679 Mfps", "1.2553 Gbit/s"], ["1518 B", "1.8679 Mfps", "22.983 Gbit/s"]]
    assert seen["latency"]["rows"][0][4:8] == ["12 µs", "7 µs", "9 µs", "30 µs"]


def test_ticks_are_round_numbers_none_of_which_is_a_negative_throughput(seen):
    ticks = [label for label in seen["latency"]["labels"] if re.fullmatch(r"-?[\d.]+", label)]
    assert ticks
    assert all(len(tick) <= 5 and float(tick) >= 0.0 for tick in ticks)


def test_builds_are_compared_and_testbeds_are_no_regression(seen):
    verdicts = {row[0]: row[2].split(":")[0] for row in seen["builds"]}
    assert verdicts["Suite.64B-1c-l2-ndrpdr"] == "regression"
    assert verdicts["Suite.64B-2c-l2-ndrpdr"] == "no change"
    assert "not a regression of a build" in seen["compare"]["text"]
    assert seen["changed"] == 1


def test_the_keyboard_stays_where_it_was_and_the_address_follows(seen):
    assert (seen["focus"], seen["kept"]) == ("bWhat", "newest")
    assert seen["compared"] == "#/compare?a=lab-1&aWhat=build%20vpp%2024.02&b=lab-1&bWhat=newest&odd=yes"


def test_a_run_links_to_its_page_and_names_others_of_its_name(seen):
    assert seen["run"]["link"].startswith("runs/%3Cscript%3E")
    assert [row[5] for row in seen["runs"]["rows"]][:3] == ["0", "1", "0"]
    assert "6 other runs of this testbed have the same name" in seen["third"]


@pytest.mark.whole
def test_every_view_fits_a_phone(chromium, site):
    assert set(walk(chromium, site, VIEWS, width=400)["wide"].values()) == {0}


def samples():
    """Pairs of samples: all sizes and tests, ties, no spread, zeros."""
    randomness = np.random.default_rng(7)
    for before, after in (
        (1, 1),
        (1, 2),
        (1, 3),
        (4, 1),
        (2, 2),
        (2, 3),
        (3, 9),
        (5, 5),
        (5, 8),
        (6, 12),
        (9, 9),
        (10, 30),
    ):
        for shift, spread in ((0.0, 0.01), (0.02, 0.01), (0.1, 0.0005), (0.0, 0.0)):
            yield (
                randomness.normal(1e6, 1e6 * spread, before),
                randomness.normal(1e6 * (1 + shift), 1e6 * spread, after),
            )
    yield np.array([1.0, 2, 2, 3, 3]), np.array([2.0, 3, 3, 4, 4, 4])
    yield np.repeat(5.0, 6), np.repeat(5.0, 6)
    yield np.zeros(5), np.arange(5.0)
    yield np.zeros(3), np.zeros(3)
    yield np.array([1e6] * 5), np.array([1e6] * 4 + [1e6 + 1])


def test_differences_are_those_of_python(chromium, site):
    pairs = [(before.tolist(), after.tolist()) for before, after in samples()]
    script = f"seen.all = {json.dumps(pairs)}.map(([a, b]) => difference(a, b));"
    script += "seen.all.forEach(one => { one.change = String(one.change); });"
    script += "seen.adjusted = adjusted(seen.all.map(one => one.p).filter(p => p !== null));"
    answer = walk(chromium, site, script)
    expected = [difference(Sample(tuple(before)), Sample(tuple(after))) for before, after in pairs]
    for theirs, ours in zip(answer["all"], expected, strict=True):
        assert float(theirs["change"].replace("Infinity", "inf")) == pytest.approx(ours.change, rel=1e-12, abs=1e-15)
        assert theirs["test"] == ours.test
        assert theirs["p"] == (None if ours.p_value is None else pytest.approx(ours.p_value, rel=1e-9, abs=1e-200))
        assert theirs["interval"] == (
            None if ours.interval is None else pytest.approx(ours.interval, rel=1e-9, abs=1e-13)
        )
    assert answer["adjusted"] == pytest.approx(
        adjusted([one.p_value for one in expected if one.p_value is not None]), rel=1e-9
    )
    assert {one.test for one in expected} == {None, "no spread", "Student", "Welch", "Mann-Whitney"}
    assert any(math.isinf(one.change) for one in expected)


def changed(result, factor, later, *, error=None):
    """A result at another time, with its values multiplied."""
    goals = []
    for goal in result.goals:
        value = goal.result.conditional_throughput
        scaled = value.model_copy(update={name: number * factor for name, number in value.model_dump().items()})
        goals.append(
            goal.model_copy(update={"result": goal.result.model_copy(update={"conditional_throughput": scaled})})
        )
    times = {"started": result.started + later, "ended": result.ended + later}
    return result.model_copy(update={"goals": tuple(goals), "error": error, **times})


def limited(result):
    """A result whose upper bounds the generator made."""
    reason = {"regular": False, "reason": "unsent frames, not lost ones, made the upper bound"}
    goals = [goal.model_copy(update={"result": goal.result.model_copy(update=reason)}) for goal in result.goals]
    return result.model_copy(update={"goals": tuple(goals), "outcome": Outcome.IRREGULAR})


def at_maximum_load(name, capacity, most, later):
    """An MRR at 400 kfps behind a generator that sends no more than some of it."""
    result = mrr(SharpKnee(capacity=capacity), trials=2, max_rate=most)
    test = result.test.model_copy(update={"name": f"64B-1c-{name}-mrr"})
    return result.model_copy(update={"test": test, "started": result.started + later, "ended": result.ended + later})


def test_verdicts_are_those_of_compare(chromium, tmp_path):
    same, slower, gone, starved = (throughput(name=f"64B-{number}c-l2-ndrpdr") for number in (1, 2, 4, 8))
    randomness = np.random.default_rng(3)
    history, runs = History(tmp_path / "history"), []
    for number in range(6):
        later, is_after = timedelta(days=number), number >= 3
        spread = randomness.normal(1.0, 0.002, 2)
        results = [changed(same, spread[0], later), changed(slower, spread[1] * (0.95 if is_after else 1.0), later)]
        results.append(limited(changed(starved, spread[1] * 0.6, later)) if is_after else changed(starved, 1.0, later))
        # Slower, behind a generator that does not send all; and one that sends half.
        results.append(at_maximum_load("slow", 300e3 - 50e3 * is_after + 1e3 * number, 350e3, later))
        results.append(at_maximum_load("starved", 1e7, (200e3 if is_after else 400e3) + 5e3 * number, later))
        results.append(at_maximum_load("level", 300e3 - 50e3 * is_after, 400e3, later))
        runs.append(Run(tmp_path / f"run-{number}", (*results, *(() if is_after else (changed(gone, 1.0, later),)))))
        history.add(entries_of(runs[-1]))
    expected = compare(runs[:3], runs[3:])
    site = write_site(history, tmp_path / "site", SiteRequest("lab"))
    script = """
      const jobs = (await readJobs()).sort((a, b) => a.started - b.started);
      const rows = async job => rowsOf(await lossratio.load(`job-${job.id}`), job.testbed);
      const side = async jobs => (await Promise.all(jobs.map(rows))).flat();
      seen.all = compareSides(await side(jobs.slice(0, 3)), await side(jobs.slice(3)), site.rules);
    """
    answer = walk(chromium, site, script)
    theirs = {(one["test"], one["quantity"]): one for one in answer["all"]}
    assert len(theirs) == len(expected.quantities) == 11
    for ours in expected.quantities:
        one = theirs[ours.test, ours.quantity]
        # The page has no caveats of an MRR.
        note = ours.note.partition("; A, 3 of 3 no frame")[0]
        assert (one["verdict"], one["note"]) == (ours.verdict.value, note)
        assert one["p"] == (None if ours.p_value is None else pytest.approx(ours.p_value, rel=1e-9))
        assert one["a"] == list(ours.before.values)
    by_test = {ours.test.rpartition(".")[2]: ours for ours in expected.quantities}
    assert by_test["64B-1c-starved-mrr"].verdict is Verdict.NOT_COMPARABLE
    assert "as measured" in by_test["64B-1c-slow-mrr"].note
    assert by_test["64B-1c-level-mrr"].verdict is Verdict.SEEMS_WORSE
    seen = {ours.verdict.value for ours in expected.quantities}
    assert seen == {"no change", "regression", "seems worse", "not comparable"}


def test_four_years_of_nights_are_drawn(chromium, tmp_path):
    history = History(tmp_path / "history")
    days = range(0, 4 * 365, 10)
    first = START.replace(year=2021)
    history.add(
        nightly(0, 1e6 + day, testbed="lab-1", run=f"night-{day}", started=first + timedelta(days=day)) for day in days
    )
    site = write_site(history, tmp_path / "site", SiteRequest("lab"))
    seen = walk(
        chromium,
        site,
        """
        await open(`#/test/${site.tests[0].id}`);
        seen.points = document.querySelectorAll("main svg circle").length;
        seen.ticks = [...document.querySelectorAll("main svg.chart text")].map(text => text.textContent);
        await set("period", "90");
        seen.recent = document.querySelectorAll("main div.pair > div:first-child circle").length;
        """,
    )
    assert seen["points"] == 2 * len(days)
    ticks = [tick for tick in seen["ticks"] if re.fullmatch(r"20\d\d-01-01", tick)]
    assert ticks == [f"{year}-01-01" for year in range(2021, 2026)] * 2
    assert seen["recent"] == 10


@pytest.mark.parametrize(
    ("theme", "views"), [("light", ("coverage", "compare", "scaling", "runs")), ("dark", ("", "test"))]
)
def test_screen_readers_find_nothing_serious(chromium, site, theme, views):
    test = next(path.stem.partition("-")[2] for path in sorted((site.page.parent / "data").glob("test-*.js")))
    for view in at_least_one(views):
        chromium.open(site.page, fragment=f"/{view}/{test}" if view == "test" else f"/{view}")
        chromium.run(f"document.documentElement.dataset.theme = '{theme}'")
        # Charts of the site have the colours of the theme; to invert them as pictures would undo it.
        charts = "[...document.querySelectorAll('svg.chart')].every(one => getComputedStyle(one).filter === 'none')"
        assert chromium.run(charts)
        assert faults_for_readers(chromium) == [], view
