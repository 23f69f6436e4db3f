"""The page of a run as a browser shows it: headless Chromium, where it is installed."""

import json
from base64 import b64decode
from dataclasses import replace
from io import BytesIO
from unicodedata import normalize

import pytest
from browser import browser, faults_for_readers, needs_browser
from report_examples import mrr, throughput
from waiting import wait_until

from lossratio.report import render
from lossratio.report.run import read_run
from lossratio.results.machines import NodeFacts
from lossratio.results.run_directory import RunDirectory
from lossratio.simulation.constant_capacity import SharpKnee

pytestmark = [needs_browser, pytest.mark.whole]

PICTURES = """(() => {
    const svgs = [...document.querySelectorAll("svg")];
    const boxes = svgs.map(svg => svg.getBoundingClientRect());
    const beyond = svgs.flatMap(svg => {
        const frame = svg.getBoundingClientRect();
        return [...svg.querySelectorAll("text")].filter(text => {
            const box = text.getBoundingClientRect();
            return box.right > frame.right + 1 || box.left < frame.left - 1 || box.bottom > frame.bottom + 1;
        }).map(text => text.textContent);
    });
    return {
        pictures: boxes.length,
        smallest: Math.min(...boxes.map(box => Math.min(box.width, box.height))),
        wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
        requests: performance.getEntriesByType("resource").filter(entry => !entry.name.startsWith("blob:")).length,
        beyond,
    };
})()"""
ACTIONS = """
const table = document.querySelector("table.overview");
const form = document.querySelector("form.filters");
const names = () => [...table.tBodies[0].rows].map(row => row.cells[0].textContent + " " + row.cells[3].textContent);
const sort = column => table.tHead.rows[0].cells[column].querySelector("button").click();
const set = (name, value) => {
    const field = form.elements[name];
    if (field.type === "checkbox") field.checked = value; else field.value = value;
    form.dispatchEvent(new Event("input"));
};
const open = async id => {
    const details = document.getElementById(id);
    details.open = true;
    return details;
};
"""
EVIL = "<script>window.injected = true</script><img src=x onerror='window.injected = true'></script>"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    directory = RunDirectory(tmp_path_factory.mktemp("run"))
    evil = throughput(trials=12, name=EVIL)
    nodes = {**evil.conditions.nodes, EVIL: NodeFacts(os=EVIL, kernel=EVIL)}
    evil = evil.model_copy(update={"conditions": evil.conditions.model_copy(update={"nodes": nodes})})
    for result in (throughput(), throughput(SharpKnee(capacity=1e7), name="limit"), mrr(), evil):
        directory.write(result)
    return read_run(directory.path)


@pytest.fixture(scope="module")
def chromium():
    with browser() as started:
        yield started


@pytest.fixture
def page(run, chromium, tmp_path):
    """The page, opened."""
    file = tmp_path / "lossratio.html"
    file.write_text(render("html", [run]))
    chromium.faults.clear()
    chromium.open(file)
    chromium.run(ACTIONS)
    yield chromium
    assert chromium.faults == []
    assert chromium.run("window.injected ?? null") is None


def test_pictures_are_within_the_page_and_nothing_is_loaded(page):
    page.run("Promise.all([...document.querySelectorAll('details.test')].map(details => open(details.id)))")
    seen = page.run(PICTURES)
    assert seen["pictures"] == 6
    assert seen["smallest"] > 100
    assert (seen["wide"], seen["requests"], seen["beyond"]) == (0, 0, [])


def test_the_overview_sorts_and_filters(page):
    ascending, descending = page.run("sort(1), names()"), page.run("sort(1), names()")
    assert [name.split()[-1] for name in ascending[:3]] == ["NDR", "PDR", "MRR"]
    assert descending[0] == ascending[2]
    # Rows without a number to quote come last, however the rest is sorted.
    assert ascending[3:] == descending[3:]
    assert page.run("table.tHead.rows[0].cells[1].getAttribute('aria-sort')") == "descending"
    assert [name.split()[-1] for name in page.run("set('text', 'mrr'), names()")] == ["MRR"]
    assert {name.split()[-1] for name in page.run("set('text', ''), set('goal', 'PDR'), names()")} == {"PDR"}
    assert page.run("location.hash") == "#?goal=PDR&sort=-2"
    odd = page.run("set('goal', ''), set('only', true), names()")
    assert {name.split()[0] for name in odd} >= {"limit", "<script>window.injected"}
    assert len(odd) == 5
    assert len(page.run("set('only', false), names()")) == 7
    assert len(page.run("set('tags', '64b'), names()")) == 7


def test_an_address_restores_a_view_and_opens_a_section(page):
    page.run("location.hash = '#?goal=PDR&sort=2'")
    wait_until(lambda: {name.split()[-1] for name in page.run("names()")} == {"PDR"})
    page.run("document.getElementById('test-1').open = false, location.hash = '#test-1'")
    wait_until(lambda: page.run("document.getElementById('test-1').open"))
    wait_until(lambda: "Conditions" in page.run("document.getElementById('test-1').textContent"))


def test_banners_of_nodes_are_text(page):
    evil = "[...document.querySelectorAll('details.test')].find(details => details.textContent.includes('<script>'))"
    shown = page.run(f"open({evil}.id).then(details => details.querySelector('.body').textContent)")
    assert EVIL in shown
    assert json.dumps(EVIL) in shown


def test_readers_of_screens_find_nothing_serious(run, chromium, tmp_path):
    file = tmp_path / "lossratio.html"
    # One search is enough: to look at the contrast of all parts of a page takes long.
    file.write_text(render("html", [replace(run, results=run.results[:2])]))
    chromium.open(file)
    chromium.run(ACTIONS)
    chromium.run("Promise.all([...document.querySelectorAll('main > details')].map(details => open(details.id)))")
    assert faults_for_readers(chromium) == []
    theme = "document.querySelector('button.theme').click()"
    chromium.run(f"{theme}, {theme}")
    assert faults_for_readers(chromium, "color-contrast") == []
    chromium.run(theme)
    chromium.size(400, 800)
    assert chromium.run("document.documentElement.scrollWidth") <= 400


def test_colours_are_light_dark_and_those_of_print(page):
    ground = "getComputedStyle(document.body).backgroundColor"
    theme = "document.querySelector('button.theme').click()"
    assert [page.run(f"{theme}, {ground}") for _ in range(2)] == ["rgb(255, 255, 255)", "rgb(24, 24, 23)"]
    page.send("Emulation.setEmulatedMedia", media="print")
    assert page.run(ground) == "rgb(255, 255, 255)"
    assert page.run("getComputedStyle(document.querySelector('form.filters')).display") == "none"
    page.send("Emulation.setEmulatedMedia", media="")
    page.run(theme)


@pytest.mark.whole
def test_a_screen_of_1200_pixels_shows_all_columns_of_the_overview_and_whole_notes(page):
    page.run("Promise.all([...document.querySelectorAll('main > details')].map(details => open(details.id)))")
    page.size(1200, 900)
    shown = "[...document.querySelectorAll('pre, div.wide:has(table.overview)')]"
    cut = f"{shown}.filter(one => one.scrollWidth > one.clientWidth)"
    assert page.run(f"{cut}.map(one => one.textContent.slice(0, 80))") == []


def test_a_phone_shows_test_value_and_verdict(page):
    page.run("Promise.all([...document.querySelectorAll('main > details')].map(details => open(details.id)))")
    page.size(390, 800)
    assert page.run("document.documentElement.scrollWidth") <= 390
    heads = "[...table.tHead.rows[0].cells].map(cell => [cell.textContent, cell.getBoundingClientRect().right])"
    (_, _), (value, value_ends), (verdict, verdict_ends) = page.run(heads)[:3]
    assert (value, verdict) == ("number to quote", "result")
    assert value_ends < verdict_ends <= 390
    # Pictures scroll by themselves, and stay readable.
    size = "svg => 11 * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width"
    sizes = page.run(f"[...document.querySelectorAll('main svg[role=img]')].map({size})")
    assert sizes
    assert min(sizes) >= 10


def test_paper_cuts_nothing(page):
    pypdf = pytest.importorskip("pypdf", reason="pypdf is not installed")
    page.run("Promise.all([...document.querySelectorAll('main > details')].map(details => open(details.id)))")
    page.send("Emulation.setEmulatedMedia", media="print")
    shown = "[...document.querySelectorAll('th, td, pre, h1, h2')].filter(part => part.offsetParent !== null)"
    texts = page.run(f"{shown}.map(part => part.innerText)")
    page.send("Emulation.setEmulatedMedia", media="")
    assert {"number to quote", "aggregate bandwidth", "time of trials"} <= set(texts)
    # The browser leaves out what is behind a scroll bar, or beside the paper.
    printed = pypdf.PdfReader(
        BytesIO(b64decode(page.send("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)["data"]))
    )
    # Fonts join letters such as "ff".
    paper = normalize("NFKC", "".join("".join(sheet.extract_text().split()) for sheet in printed.pages))
    assert [text for text in texts if "".join(text.split()) not in paper] == []
