"""The page as a browser shows it: headless Chromium, where it is installed."""

import re
import shutil
import subprocess

import pytest
from report_examples import mrr, throughput

from lossratio.report.listener import ReportFormat, render
from lossratio.report.run import read_run
from lossratio.results.run_directory import RunDirectory
from lossratio.simulation.constant_capacity import SharpKnee

BROWSER = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
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


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    directory = RunDirectory(tmp_path_factory.mktemp("run"))
    for result in (throughput(), throughput(SharpKnee(capacity=1e7), name="limit"), mrr()):
        directory.write(result)
    return render(ReportFormat.HTML, [read_run(directory.path)])


@pytest.mark.skipif(BROWSER is None, reason="no Chromium is installed")
def test_a_browser_shows_the_pictures_within_the_page_and_loads_nothing(page, tmp_path):
    probed = tmp_path / "probed.html"
    probed.write_text(page.replace("</body>", f"{PROBE}</body>"))
    command = [BROWSER, *OPTIONS, f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", probed.as_uri()]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True).stdout
    (title,) = re.findall("<title>(.*)</title>", answer)[:1]
    assert '"pictures":6,' in title
    assert float(re.search(r'"smallest":([\d.]+)', title)[1]) > 100
    assert '"wide":0,' in title
    assert '"requests":0,' in title
    assert '"beyond":[]' in title
