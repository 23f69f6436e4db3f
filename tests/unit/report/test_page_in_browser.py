"""The page as a browser shows it: headless Chromium, where it is installed."""

import json
import re
import shutil
import subprocess
from html import unescape

import pytest
from report_examples import mrr, throughput

from lossratio.report import page as page_module
from lossratio.report.listener import ReportFormat, render
from lossratio.report.run import read_run
from lossratio.results.run_directory import RunDirectory
from lossratio.simulation.constant_capacity import SharpKnee

BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")
OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1200,2000",
)
PROBE = """
<script>
addEventListener("load", () => {
    const boxes = [...document.querySelectorAll("svg")].map(svg => svg.getBoundingClientRect());
    const beyond = [...document.querySelectorAll("svg")].flatMap(svg => {
        const frame = svg.getBoundingClientRect();
        return [...svg.querySelectorAll("text")].filter(text => {
            const box = text.getBoundingClientRect();
            return box.right > frame.right + 1 || box.left < frame.left - 1 || box.bottom > frame.bottom + 1;
        }).map(text => text.textContent);
    });
    document.title = JSON.stringify({
        pictures: boxes.length,
        smallest: Math.min(...boxes.map(box => Math.min(box.width, box.height))),
        wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
        requests: performance.getEntriesByType("resource").length,
        beyond: beyond,
    });
});
</script>
"""


ACTIONS = """
<script>
const faults = [];
addEventListener("error", event => faults.push(event.message));
addEventListener("unhandledrejection", event => faults.push(String(event.reason)));
addEventListener("load", async () => {
    const table = document.querySelector("table.overview");
    const form = document.querySelector("form.filters");
    const name = row => row.cells[0].textContent + " " + row.cells[2].textContent;
    const names = () => [...table.tBodies[0].rows].filter(row => !row.hidden).map(name);
    const sort = column => table.tHead.rows[0].cells[column].querySelector("button").click();
    const set = (name, value) => {
        const field = form.elements[name];
        if (field.type === "checkbox") field.checked = value; else field.value = value;
        form.dispatchEvent(new Event("input"));
    };
    const seen = {};
    sort(3); seen.ascending = names();
    sort(3); seen.descending = names();
    seen.state = table.tHead.rows[0].cells[3].getAttribute("aria-sort");
    set("text", "mrr"); seen.text = names(); set("text", "");
    set("goal", "PDR"); seen.goal = names(); set("goal", "");
    set("odd", true); seen.odd = names(); set("odd", false);
    seen.all = names().length;
    const ground = () => getComputedStyle(document.body).backgroundColor;
    const theme = document.querySelector("button.theme");
    theme.click(); seen.light = ground();
    theme.click(); seen.dark = ground();
    theme.click();
    const first = document.querySelector("details.test");
    first.open = false;
    location.hash = "#" + first.id;
    await new Promise(done => setTimeout(done, 600));
    seen.opened = first.open;
    seen.section = first.querySelector(".body").textContent.includes("Conditions");
    seen.injected = window.injected ?? null;
    seen.faults = faults;
    document.title = JSON.stringify(seen);
});
</script>
"""


def shown(page, probe, directory):
    """The JSON that a probe in the page leaves as its title."""
    probed = directory / "probed.html"
    # Before the page's own script, so that it sees its errors, too.
    probed.write_text(page.replace("<body>", f"<body>{probe}"))
    command = [BROWSER, *OPTIONS, f"--user-data-dir={directory / 'profile'}", "--virtual-time-budget=8000"]
    answer = subprocess.run(
        [*command, "--dump-dom", probed.as_uri()], capture_output=True, text=True, timeout=100, check=True
    )
    return json.loads(unescape(re.findall("<title>(.*)</title>", answer.stdout)[0]))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    directory = RunDirectory(tmp_path_factory.mktemp("run"))
    evil = "<script>window.injected = true</script><img src=x onerror='window.injected = true'>"
    for result in (
        throughput(),
        throughput(SharpKnee(capacity=1e7), name="limit"),
        mrr(),
        throughput(trials=12, name=evil),
    ):
        directory.write(result)
    return read_run(directory.path)


@needs_browser
def test_a_browser_shows_the_pictures_within_the_page_and_loads_nothing(run, tmp_path):
    seen = shown(render(ReportFormat.HTML, [run]), PROBE, tmp_path)
    assert seen["pictures"] == 8
    assert seen["smallest"] > 100
    assert (seen["wide"], seen["requests"], seen["beyond"]) == (0, 0, [])


@needs_browser
@pytest.mark.parametrize("is_large", [False, True], ids=["plain", "compressed"])
def test_the_overview_sorts_and_filters_and_sections_open(run, is_large, tmp_path, monkeypatch):
    if is_large:
        monkeypatch.setattr(page_module, "_MANY_BYTES", 0)
    seen = shown(render(ReportFormat.HTML, [run]), ACTIONS, tmp_path)
    assert seen["faults"] == []
    assert seen["injected"] is None
    assert [name.split()[-1] for name in seen["ascending"][:3]] == ["NDR", "PDR", "MRR"]
    assert seen["descending"][0] == seen["ascending"][2]
    # Rows without a number to quote come last, however the rest is sorted.
    assert seen["ascending"][3:] == seen["descending"][3:]
    assert seen["state"] == "descending"
    assert [name.split()[-1] for name in seen["text"]] == ["MRR"]
    assert {name.split()[-1] for name in seen["goal"]} == {"PDR"}
    assert {name.split()[0] for name in seen["odd"]} >= {"limit", "<script>window.injected"}
    assert len(seen["odd"]) == 5
    assert seen["all"] == 7
    assert (seen["light"], seen["dark"]) == ("rgb(255, 255, 255)", "rgb(24, 24, 23)")
    assert (seen["opened"], seen["section"]) == (True, True)
