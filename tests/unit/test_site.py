"""The documentation site builds without a warning, has every page, and needs no network."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from browser import CHROMIUM, needs_browser

import lossratio
from lossratio.files.shipped import SUITES
from lossratio.results import installed_kinds
from lossratio.trials import DirectionCounters
from lossratio.values.records import docstrings_of_fields

pytestmark = pytest.mark.whole

pytest.importorskip("sphinx", reason="the documentation site needs the extra docs")

DOCS = Path(__file__).parents[2] / "docs"
FETCHED = re.compile(
    r"""<(?:script|img|iframe)\b[^>]*\bsrc="(?:https?:)?//|<link\b[^>]*\bhref="(?:https?:)?//|@import|url\(http"""
)
"""What a browser fetches by itself from another host."""


def build(source: Path, target: Path, builder: str = "html") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sphinx", "-b", builder, "--fail-on-warning", "--keep-going", "--quiet"]
    return subprocess.run([*command, str(source), str(target)], check=False, capture_output=True, text=True)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    target = tmp_path_factory.mktemp("site")
    run = build(DOCS, target)
    assert run.returncode == 0, run.stderr
    return target


def test_the_site_has_every_page(site):
    pages = {page.relative_to(DOCS).with_suffix(".html") for page in DOCS.rglob("*.md")}
    assert {page for page in pages if not (site / page).exists()} == set()


def test_the_page_of_keywords_leads_to_the_arguments_of_each(site):
    text = (site / "reference" / "keywords.html").read_text()
    assert 'href="libdoc.html#Find%20NDR%20And%20PDR"' in text
    assert "frame_size" in (site / "reference" / "libdoc.html").read_text()


def test_the_page_of_python_has_every_name_with_its_errors_and_every_field_of_results(site):
    text = (site / "reference" / "python.html").read_text()
    assert not [name for name in lossratio.__all__ if name != "__version__" and f"<h3>{name}<" not in text]
    assert "Raises" in text
    for kind in installed_kinds():
        fields = docstrings_of_fields(kind.result)
        assert fields
        assert not [field for field in fields if f"{field}<" not in text]
    assert not [field for field in docstrings_of_fields(DirectionCounters) if f"{field}<" not in text]


def test_the_page_of_suites_has_every_suite_with_the_keywords_of_its_tests(site):
    text = (site / "reference" / "suites.html").read_text()
    assert not [name for name in SUITES.names() if f">{name}</span>" not in text]
    assert "Find NDR And PDR, Measure MRR, Find Critical Load" in text


@needs_browser
def test_a_search_finds_pages_before_decisions_and_both_before_the_changelog(site, tmp_path):
    address = f"{(site / 'search.html').as_uri()}?q=generator"
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}"]
    # The time of the page goes on only while nothing is left to do, so the search has ended before it is over.
    command = [CHROMIUM, *options, "--virtual-time-budget=60000", "--dump-dom", address]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found = re.findall(r'<li class="kind-\w+"><a href="([^"]+)"', done.stdout)
    kinds = [2 if link.startswith("changelog") else 1 if link.startswith("decisions") else 0 for link in found]
    assert {*kinds} == {0, 1, 2}
    assert kinds == sorted(kinds)


def test_no_page_fetches_anything_from_another_host(site):
    pages, styles = list(site.rglob("*.html")), list(site.rglob("*.css"))
    assert pages
    assert styles
    for page in pages:
        assert not FETCHED.search(page.read_text()), page
    for style in styles:
        assert not re.search(r"@import|url\(\s*['\"]?(https?:)?//", style.read_text()), style


def test_broken_links_and_pages_that_no_list_names_fail_the_build(tmp_path):
    source = tmp_path / "docs"
    source.mkdir()
    (source / "conf.py").write_text((DOCS / "conf.py").read_text())
    (source / "index.md").write_text(
        "# Index\n\n[page](no-such-page.md), [heading](index.md#no-such-heading), ![picture](no-such-picture.svg)\n"
    )
    (source / "forgotten.md").write_text("# Forgotten\n")
    run = build(source, tmp_path / "site", builder="dummy")
    assert run.returncode != 0
    for fault in ("no-such-page.md", "no-such-heading", "no-such-picture.svg", "forgotten.md"):
        assert fault in run.stderr


def test_the_picture_of_the_readme_is_drawn_by_its_command(tmp_path):
    run = [sys.executable, "-m", "robot", "--output", "NONE", "--log", "NONE", "--report", "NONE"]
    run += ["--outputdir", str(tmp_path), str(DOCS / "pictures" / "search.robot")]
    subprocess.run(run, check=True, capture_output=True)
    picture = tmp_path / "search.svg"
    command = [sys.executable, DOCS / "pictures" / "export.py", tmp_path / "lossratio.html", tmp_path]
    subprocess.run([*command, "search.svg", "loss.svg"], check=True)
    drawn, committed = (
        re.findall(">([^<]+)<", path.read_text()) for path in (picture, DOCS / "pictures" / "search.svg")
    )
    assert drawn == committed, "make pictures draws another picture than the one in docs/pictures"


def test_the_other_pictures_of_the_first_page_are_drawn_by_their_commands(tmp_path):
    run = [sys.executable, "-m", "robot", "--output", "NONE", "--log", "NONE", "--report", "NONE"]
    subprocess.run([*run, "--outputdir", tmp_path, DOCS / "pictures" / "soak.robot"], check=True, capture_output=True)
    command = [sys.executable, DOCS / "pictures" / "export.py", tmp_path / "lossratio.html", tmp_path, "soak.svg"]
    subprocess.run(command, check=True)
    # A soak's numbers change when its estimate does, and its picture with `make pictures`.
    titles = [
        re.findall("<title>([^<]+)<", (where / "soak.svg").read_text())[0] for where in (tmp_path, DOCS / "pictures")
    ]
    assert titles[0] == titles[1]
    subprocess.run([sys.executable, DOCS / "pictures" / "trend.py", tmp_path / "trend.svg"], check=True)
    drawn, committed = ((where / "trend.svg").read_text() for where in (tmp_path, DOCS / "pictures"))
    assert drawn == committed, "make pictures draws another trend than the one in docs/pictures"
    shown = {name for page in DOCS.rglob("*.md") for name in re.findall(r"pictures/(\w+\.svg)", page.read_text())}
    assert shown == {path.name for path in (DOCS / "pictures").glob("*.svg")}


def test_the_picture_of_the_house_shows_the_table_of_rooms(tmp_path):
    picture = tmp_path / "house.svg"
    subprocess.run([sys.executable, str(DOCS / "pictures" / "house.py"), str(picture)], check=True)
    committed = (DOCS / "pictures" / "house.svg").read_text()
    assert picture.read_text() == committed, "make pictures draws another house than the one in docs/pictures"
