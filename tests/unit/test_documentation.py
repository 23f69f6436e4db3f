"""The documentation is true: its examples run, and it names every field there is."""

from __future__ import annotations

import re
import runpy
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any

import click
import pytest
from examples import examples_in

from lossratio.commands.main import SUBJECTS, commands
from lossratio.measurements.throughput.goals import PRESETS
from lossratio.simulation import Recorded
from lossratio.topology import (
    GENERATORS,
    CountersHook,
    DescribeHook,
    Hook,
    Hooks,
    Interface,
    Node,
    Reservation,
    Topology,
    generator_settings,
    load_topology,
)
from lossratio.traffic import load_profile, profile_names
from lossratio.traffic.headers import Headers, Ipv4, Ipv6, MplsLabel, PortHeader, VlanTag, Vxlan
from lossratio.traffic.profile import ProfileFile, Reverse
from lossratio.traffic.ranges import AddressRange
from lossratio_otg.generator import OtgTester

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
README = (ROOT / "README.rst").read_text()
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
RECORDS = sorted((ROOT / "benchmarks" / "records").glob("*.md"))
PAGES = [ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted(DOCS.rglob("*.md")), *RECORDS]
OWN_COMMAND = "doubts"
"""The command of the page about commands of other packages."""
PAGES_WITH_FIGURES = [page for page in PAGES if "<!-- figure " in page.read_text()]


def blocks(path: Path, language: str) -> list[str]:
    return examples_in(path.read_text(), language)


@pytest.mark.whole
def test_the_example_measurer_finds_its_own_limit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in blocks(DOCS / "how-to" / "measure-from-python.md", "python")[2:]:
        exec(block, names)  # noqa: S102
    (ndr, *_) = names["result"].values()
    assert ndr.regular
    assert ndr.relevant_lower_bound <= 1_234_567 <= ndr.relevant_upper_bound
    assert (tmp_path / "search.jsonl").exists()


@pytest.mark.whole
def test_the_first_scripts_measure(tmp_path, monkeypatch):
    scripts = blocks(DOCS / "how-to" / "measure-from-python.md", "python")[:2]
    monkeypatch.chdir(tmp_path)
    for script in scripts:
        assert re.findall(r"^from (lossratio\S*)", script, re.M) == ["lossratio"]
        names: dict[str, object] = {}
        exec(script.replace('"local"', '"simulated"'), names)  # noqa: S102
        assert all(report.result.regular for report in names["result"].goals)
    assert (tmp_path / "trials.csv").read_text().startswith(",number,")


def test_the_converter_of_public_records_makes_records_that_are_replayed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pastrami").mkdir()
    (tmp_path / "pastrami" / "router.txt").write_text(
        "[[100, 5], [1000, 1000, 5], [1000, 990, 15]]\n[[200, 15], [2000, 1000, 1015], [2000, 1900, 1115]]\n"
    )
    page = DOCS / "how-to" / "study-searches.md"
    converter, _ = blocks(page, "python")
    exec(converter, {})  # noqa: S102
    assert Recorded(tmp_path / "pastrami" / "router.jsonl").lossy(0.02) == {100.0: 0.0, 200.0: 1.0}
    (example,) = blocks(page, "json")
    (tmp_path / "example.jsonl").write_text(example)
    assert Recorded(tmp_path / "example.jsonl").lossy(0.0) == {450_000.0: 1.0}


def test_the_example_topology_is_usable(tmp_path):
    (example,) = blocks(DOCS / "reference" / "topology.md", "yaml")
    (tmp_path / "lab.yaml").write_text(example)
    assert load_topology(tmp_path / "lab.yaml").path().hops


@pytest.mark.whole
def test_the_example_suites_pass_on_the_simulated_testbed(tmp_path):
    for number, block in enumerate(blocks(DOCS / "how-to" / "write-a-suite.md", "robotframework")):
        (tmp_path / f"suite_{number}.robot").write_text(block)
    topology = DOCS.parent / "topologies" / "simulated.yaml"
    variables = ["--variable", f"TOPOLOGY:{topology}", "--variable", "GOALS:quick"]
    command = [sys.executable, "-m", "robot", *variables, "--outputdir", str(tmp_path / "out"), str(tmp_path)]
    run = subprocess.run(command, check=False, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout


def test_the_example_traffic_profile_is_usable(tmp_path):
    example, classes, trunk, *others = blocks(DOCS / "reference" / "traffic-profiles.md", "yaml")
    (tmp_path / "classes.yaml").write_text(classes)
    assert load_profile(tmp_path / "classes.yaml", frame_size=64).name == "two-classes"
    (tmp_path / "trunk.yaml").write_text(trunk)
    assert load_profile(tmp_path / "trunk.yaml", frame_size=64).growth == (-4, 4)
    (tmp_path / "mine.yaml").write_text(example)
    profile = load_profile(tmp_path / "mine.yaml", frame_size="downloads")
    assert (profile.load_factor, profile.flows) == (1.4, 5000)
    growths = {}
    for number, other in enumerate(others):
        (tmp_path / f"{number}.yaml").write_text(other)
        read = load_profile(tmp_path / f"{number}.yaml", frame_size=128)
        growths[read.name] = read.growth
    assert growths == {"mpls-edge": (4, -4), "vxlan-edge": (50, -50)}


REFERENCES = {
    "traffic-profiles": [
        *(ProfileFile, Headers, MplsLabel, Ipv4, Ipv6, PortHeader, Vxlan, Reverse, VlanTag, AddressRange)
    ],
    "topology": [Topology, Node, Interface, Reservation, *generator_settings().values(), OtgTester],
    "hooks": [Hooks, Hook, CountersHook, DescribeHook],
}
"""The models of files whose fields each page has."""


@pytest.mark.parametrize("page", REFERENCES)
def test_a_reference_names_every_field(page):
    text = (DOCS / "reference" / f"{page}.md").read_text()
    fields = {(model.__name__, field) for model in REFERENCES[page] for field in model.model_fields}
    assert len(fields) > 15
    assert {field for field in fields if not re.search(rf"`{field[1]}`|`{{{field[1]}:", text)} == set()


def test_the_profiles_in_the_reference_exist():
    section = (DOCS / "reference" / "traffic-profiles.md").read_text().partition("## A file")[0]
    named = set(re.findall(r"`(?:profile=)?((?:eth|dot1)[\w-]+)`", section))
    assert len(named) > 15
    assert named - {"ethip4-ip4dst40"} <= {*profile_names()}


def test_the_reference_has_the_settings_of_all_generators():
    names = {model.__name__ for model in generator_settings().values()}
    assert {"XdpGenerator", "AutoGenerator", "TrexGenerator"} <= names
    assert generator_settings().keys() == {*(entry.name for entry in GENERATORS.own), "simulated"}


def test_the_readme_can_be_read_in_two_minutes():
    assert len(README.splitlines()) <= 61


@pytest.fixture(scope="module")
def console():
    """The script that fills the pages with what the console shows."""
    return runpy.run_path(str(DOCS / "console.py"))


@pytest.mark.whole
def test_the_page_of_the_search_shows_the_search_of_its_picture(console):
    result, lines = console["search_of_the_pictures"]()
    text = console["search_text"](result, lines)
    page = console["PAGE"].read_text()
    assert console["page_with"](page, text) == page, "run: make pictures"
    assert f"This search has {len(result.trials)} trials." in page
    picture = (DOCS / "pictures" / "search.svg").read_text()
    assert f"over {len(result.trials)} trials." in picture, "run: make pictures"


@pytest.mark.whole
def test_the_readme_shows_a_demo_in_the_form_that_it_has_today(console, lossratio, monkeypatch):
    monkeypatch.setattr("lossratio.testbed.local.why_unavailable", lambda: "not installed: sshd")
    demo_output = lossratio("demo").out
    form = re.compile(r"[\d.,]+")

    def shape(lines):
        return [" ".join(form.sub("#", line).split()) for line in lines]

    shown = README.partition(".. filled in by docs/console.py\n\n::\n\n")[2].partition("\n.. end\n")[0]
    real = demo_output.replace("Simulated instead of real", "As it should be")
    today = console["demo_text"](real.replace("simulated policer", "policer"))
    assert [*map(str.split, shape(shown.splitlines()))] == [*map(str.split, shape(today.splitlines()))]
    with pytest.raises(ValueError, match="simulated here"):
        console["demo_text"](demo_output)


def test_the_page_about_results_explains_the_demo_of_the_readme(console):
    page = console["READING"].read_text()
    assert console["page_with"](page, console["reading_text"](README)) == page, "run: make pictures"
    with pytest.raises(ValueError, match="shows no PDR with its bounds"):
        console["reading_text"](README.replace("between the bounds", "NOT between the bounds"))


def test_targets_of_links_in_the_readme_exist():
    targets = re.findall(r"<([\w./-]+)>`_", README) + re.findall(r"^\.\. image:: (.*)$", README, flags=re.MULTILINE)
    assert len(targets) > 10
    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_the_commands_of_the_readme_can_be_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("my-lab").mkdir()
    Path("my-lab/lab1.yaml").touch()
    Path("my-lab/lab1.robot").write_text("*** Test Cases ***\n")
    lines = re.findall(r"^    lossratio (.*)$", README, flags=re.MULTILINE)
    assert lines
    for line in lines:
        name, command, arguments = command_in(line)
        assert command is not None, line
        assert isinstance(command.make_context(name, arguments), click.Context)


def command_in(line: str) -> tuple[str, click.Command | None, list[str]]:
    """The command of a line behind ``lossratio``, with its name and its arguments."""
    first, *arguments = shlex.split(line)
    name = f"{first} {arguments.pop(0)}" if first in SUBJECTS and arguments else first
    return name, commands.get_command(click.Context(commands), name), arguments


def commands_on(page: Path) -> Iterator[str]:
    """What stands behind ``lossratio`` in the shell examples of a page, and in the code between its words."""
    text = page.read_text()
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE):
        if language not in ("", "sh", "console"):
            continue
        yield from re.findall(r"(?:^|[$;&] |sudo )lossratio ([^|>;&#\n]*)", block.replace("\\\n", " "), re.MULTILINE)
    for code in re.findall(r"`([^`]+)`", re.sub(r"^ *```.*?^ *```$", "", text, flags=re.DOTALL | re.MULTILINE)):
        if code.removeprefix("sudo ").startswith("lossratio "):
            yield " ".join(code.removeprefix("sudo ").split()[1:])


@pytest.mark.whole
def test_each_command_on_a_page_has_the_options_that_the_page_gives_it():
    lines = [(page.name, line) for page in PAGES if page.name != "CHANGELOG.md" for line in commands_on(page)]
    assert len(lines) > 100
    wrong = []
    for page, line in lines:
        name, command, arguments = command_in(line.replace("…", "VALUE"))
        if name.startswith("-") or name in SUBJECTS or name in ("COMMAND", OWN_COMMAND):
            continue
        known = {
            option for given in (command.params if command else []) for option in (*given.opts, *given.secondary_opts)
        }
        given = {word.partition("=")[0] for word in takewhile("--".__ne__, arguments) if word.startswith("--")}
        if command is None or not given <= known | {"--help"}:
            wrong.append((page, line))
    assert wrong == []


@cache
def prose_of(page: Path) -> str:
    return re.sub(r"^ *```.*?^ *```$|`[^`\n]*`", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


@pytest.mark.whole
def test_targets_of_links_in_pages_exist():
    linked = [(page, target) for page in PAGES for target in re.findall(r"\]\(([^)\s]+)\)", prose_of(page))]
    paths = [(page, target.partition("#")[0]) for page, target in linked if "://" not in target]
    assert len(paths) > 200
    assert [(page.name, path) for page, path in paths if not (page.parent / path).exists()] == []


@cache
def anchors_in(page: Path) -> set[str]:
    """The anchors that GitHub and the documentation site give the headings of a page."""
    seen: Counter[str] = Counter()
    anchors = set()
    for heading in re.findall(r"^#+ (.*)$", re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL), re.MULTILINE):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-")
        anchors.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
        seen[anchor] += 1
    return anchors | set(re.findall(r'(?:id|name)="([^"]+)"', page.read_text()))


@pytest.mark.whole
def test_anchors_of_links_in_pages_exist():
    found = []
    for page in PAGES:
        for path, anchor in re.findall(r"\]\((?!\w+:)([^)\s#]*)#([^)\s]+)\)", prose_of(page)):
            target = (page.parent / path if path else page).resolve()
            found.append((page.name, path, anchor, anchor in anchors_in(target)))
    assert len(found) > 100
    assert [link for *link, is_there in found if not is_there] == []


def test_each_command_in_a_page_is_on_a_line_of_its_own():
    lines = [(page.name, line) for page in PAGES for block in blocks(page, "console") for line in block.splitlines()]
    assert len(lines) > 100
    assert [(name, line) for name, line in lines if " $ " in line] == []


def test_targets_of_make_in_pages_exist():
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
    text = "\n".join([README, CONTRIBUTING, (DOCS / "index.md").read_text()])
    named = set(re.findall(r"(?:`|\$ |^    )make ([a-z]+)", text, flags=re.MULTILINE))
    assert len(named) > 5
    assert named <= set(targets)


def test_the_commands_for_contributors_name_files_that_exist():
    lines = re.findall(r"^\$ (\.venv/.*)$", CONTRIBUTING, flags=re.MULTILINE)
    paths = re.findall(r"\b(?:tests|topologies|benchmarks)/[\w./-]+", " ".join(lines))
    assert paths
    assert {path for path in paths if not (ROOT / path).exists()} == set()


def test_the_goals_of_the_methodology_page_are_presets():
    text = (DOCS / "methodology" / "mlrsearch.md").read_text()
    section = text[text.index("## When to choose which goals") : text.index("## How fast it is")]
    rows = re.findall(r"^\| (`.*?) \|", section, flags=re.MULTILINE)
    assert set(re.findall(r"`(\w+)`", " ".join(rows))) == {*PRESETS, "quick", "coarse"}


AVOIDED = re.compile(
    r"\b(tells?|told|let expect|whoever|what was there|test bed|rig|master|slave|blacklist|whitelist)\b",
    flags=re.IGNORECASE,
)
"""Words that are ambiguous in benchmarking, or in English."""


def test_pages_avoid_ambiguous_words():
    found = {page.name: AVOIDED.findall(prose_of(page)) for page in PAGES}
    assert {name: words for name, words in found.items() if words} == {}


def test_a_decision_is_read_in_a_minute():
    text = re.sub(r"<!--.*?-->", "", (DOCS / "decisions.md").read_text())
    decisions = re.split(r"^### ", text, flags=re.MULTILINE)[1:]
    assert len(decisions) > 30
    assert [decision.splitlines()[0] for decision in decisions if len(decision.split()) > 150] == []
    assert [
        path for path in re.findall(r"`((?:study/)?benchmarks/[\w./-]+)[`\s]", text) if not (ROOT / path).exists()
    ] == []


def problem_of_record(text: str) -> str | None:
    """Why a record does not answer one question in 300 words, after the commands that repeat it; None: it does."""
    question, *lines = re.sub(r"```.*?```", "", text, flags=re.DOTALL).splitlines()
    if not (question.startswith("# ") and question.endswith("?")):
        return "its title is no question"
    if len(re.findall(r"[^\s|-]\S*", "\n".join(lines))) > 300:
        return "it has more than 300 words"
    first, *_ = examples_in(text, "console")
    if "## " in text.partition("```console")[0]:
        return "a section comes before its commands"
    programs = re.findall(
        r"^\$ .*?((?:study/)?benchmarks/\w+\.py|lossratio study|-m pytest)", first, flags=re.MULTILINE
    )
    if len(programs) != first.count("$ "):
        return "a command is of no program of ours"
    missing = [name for name in programs if name.endswith(".py") and not (ROOT / name).exists()]
    return f"there is no {missing[0]}" if missing else None


def test_records_answer_one_question_each_and_begin_with_the_commands_that_repeat_them():
    assert RECORDS
    problems = {page.name: problem_of_record(page.read_text()) for page in RECORDS}
    assert {name: problem for name, problem in problems.items() if problem} == {}


def test_the_file_lists_for_contributors_name_files_that_exist():
    rows = re.findall(r"^\|.*\|$", (ROOT / "CONTRIBUTING.md").read_text(), re.M)
    files = [file for row in rows for file in re.findall(r"`([^`]+/[^`]+)`", row)]
    assert len(files) > 15
    assert not [file for file in files if not (ROOT / file).exists()]


@pytest.fixture(scope="module")
def figures() -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "figures.py"))


def test_the_figures_of_pages_are_those_of_the_records(figures):
    texts = {page.name: page.read_text() for page in PAGES_WITH_FIGURES}
    assert len(texts) > 5
    assert {name for name, text in texts.items() if figures["page"](text) != text} == set()
    # Such a line would be HTML as a whole.
    whole_line = re.compile(r"^\s*<!-- (?:figure .*?|end) -->.*\S", flags=re.MULTILINE)
    assert {name for name, text in texts.items() if whole_line.search(text)} == set()


def test_each_figure_from_a_record_is_on_a_page(figures):
    used = {name for page in PAGES_WITH_FIGURES for name, _ in figures["figures_of"](page.read_text())}
    assert used == set(figures["FIGURES"])


def test_a_page_whose_record_changes_has_other_figures(tmp_path):
    for file in ("figures.py", "nightly.md"):
        (tmp_path / "docs" / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(DOCS / file, tmp_path / "docs" / file)
    record = tmp_path / "benchmarks" / "records" / "many-testbeds.md"
    record.parent.mkdir(parents=True)
    text = (ROOT / "benchmarks" / "records" / "many-testbeds.md").read_text()
    record.write_text(text.replace("| 7.2 |", "| 61.3 |"))
    page = runpy.run_path(str(tmp_path / "docs" / "figures.py"))["page"]
    assert "61 s<!-- end --> (" in page((DOCS / "nightly.md").read_text())
    record.write_text(text.replace("| 10,000 |", "| 10,001 |"))
    with pytest.raises(LookupError, match=r"records/many-testbeds.md does not have"):
        page((DOCS / "nightly.md").read_text())


def test_what_was_measured_is_filled_in():
    measured = re.compile(
        r"of the time (?:of|that|without)|were missed|was found in|median errors|load averages? of|searches took"
        r"|times as much as"
    )
    by_commands = re.compile(r"```.*?```|<!-- (?!figure|end)[^>]*-->.*?<!-- end -->", re.DOTALL)
    pages = {page: by_commands.sub("", page.read_text()) for page in DOCS.rglob("*.md") if page.stem != "decisions"}
    paragraphs = [
        (page, paragraph) for page, text in pages.items() for paragraph in re.split(r"\n\n|\n(?=[-|#])", text)
    ]
    said = [
        (page, text) for page, text in paragraphs if measured.search(" ".join(text.split())) and re.search(r"\d", text)
    ]
    assert len(said) > 5
    assert [(page.name, text) for page, text in said if "<!-- figure " not in text] == []


def test_the_messages_that_troubleshooting_quotes_are_those_of_the_library():
    text = " ".join((DOCS / "how-to" / "troubleshooting.md").read_text().split())
    seen = re.findall(r"\*\*What you see\.\*\* (.*?) \*\*Why", text)
    quoted = [words for symptom in seen for words in re.findall(r"\*([^*]+)\*|`(Simulated[^`]+)`", symptom)]
    parts = {part.strip(" :.") for words in quoted for part in "".join(words).split("...")} - {""}
    assert len(parts) > 15
    sources = [path.read_text() for path in (ROOT / "libraries").rglob("*") if path.suffix in {".py", ".jinja"}]
    library = re.sub(r'"\s*\n\s*f?"', "", "\n".join(sources)).lower()
    assert [part for part in sorted(parts) if part.lower() not in library] == []
