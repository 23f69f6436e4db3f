"""What pip users get: the wheel holds the Robot resources and the traffic profiles beside the package."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest

import lossratio
from lossratio.dut.xdp import pack_device
from lossratio.files.shipped import SUITES
from lossratio.nodes import pack_program
from lossratio.results.identity import suite_identity
from lossratio.traffic.client import pack_agent

pytestmark = pytest.mark.whole

ROOT = Path(__file__).parents[2]
REPOSITORY = re.compile(r"https://github\.com/[\w./-]+(?=\"$)", re.MULTILINE)
"""In setup.py."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> zipfile.ZipFile:
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("setup.py", "pyproject.toml", "README.rst", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("libraries", "resources", "topologies", "tests/performance"):
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=ignored)
    command = [sys.executable, "-m", "pip", "wheel", "--verbose", "--no-deps", "--no-build-isolation"]
    command += ["--wheel-dir", str(target), str(source)]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    assert "Package would be ignored" not in printed
    (wheel,) = target.glob("*.whl")
    return zipfile.ZipFile(wheel)


@pytest.fixture(scope="module")
def wheel_contents(wheel) -> list[str]:
    return wheel.namelist()


@pytest.fixture(scope="module")
def metadata(wheel, wheel_contents) -> Message:
    (name,) = [name for name in wheel_contents if name.endswith(".dist-info/METADATA")]
    return message_from_bytes(wheel.read(name))


def test_the_wheel_holds_every_module_and_resource(wheel_contents):
    package = ROOT / "libraries" / "lossratio"
    modules = {
        str(path.relative_to(package.parent))
        for kind in ("py", "c", "h", "o", "sql")
        for path in package.rglob(f"*.{kind}")
    }
    linked = {"resources": "resources", "topologies": "topologies", "suites": "tests/performance"}
    data = {
        f"lossratio/{name}/{path.relative_to(ROOT / folder)}"
        for name, folder in linked.items()
        for pattern in ("*.resource", "*.robot", "*.yaml", "*.json")
        for path in (ROOT / folder).rglob(pattern)
    }
    assert {name.split("/")[1] for name in data} == set(linked)
    data.add("lossratio/commands/new_lab.robot")
    assert modules | data | {"LossRatio.py"} <= set(wheel_contents)


def test_the_wheel_has_the_version_that_results_and_records_of_runs_name(wheel_contents):
    assert f"robotframework_lossratio-{lossratio.__version__}.dist-info/METADATA" in wheel_contents


def test_every_packaged_resource_file_is_one_that_a_suite_or_the_documentation_uses():
    users = [ROOT / "README.rst", *(ROOT / "docs").rglob("*.md"), *(ROOT / "tests").rglob("*.robot")]
    text = "\n".join(path.read_text() for path in users)
    names = [path.relative_to(ROOT / "resources").as_posix() for path in (ROOT / "resources").rglob("*.resource")]
    assert [name for name in names if f"lossratio/resources/{name}" not in text] == []


def test_the_lowest_versions_that_are_tested_are_those_that_are_allowed():
    text = (ROOT / "pyproject.toml").read_text()
    block = text.partition("dependencies = [")[2].partition("]")[0]
    allowed = dict(re.findall(r'"([a-z0-9-]+)>=([0-9.]+)"', block))
    lock = dict(re.findall(r"^([a-z0-9-]+)==([0-9.]+)$", (ROOT / "tools" / "lowest-versions.txt").read_text(), re.M))
    assert lock.keys() == allowed.keys()
    assert all(f"{lock[name]}.".startswith(f"{least}.") for name, least in allowed.items())


def test_links_and_picture_of_the_readme_lead_into_the_repository_on_pypi(metadata):
    source = dict(line.split(", ") for line in metadata.get_all("Project-URL"))["Source"]
    text = metadata.get_payload()
    targets = re.findall(r"<([^<>\s]+)>`_", text) + re.findall(r"^\.\. image:: (.*)$", text, re.MULTILINE)
    ours = [target for target in targets if "/main/" in target]
    assert len(ours) > 10
    assert all(target.startswith("https://") for target in targets)
    assert [target for target in ours if not (ROOT / target.partition("/main/")[2]).exists()] == []
    owner = source.removeprefix("https://github.com/")
    assert all(f"/{owner}/" in target for target in ours)


def test_the_metadata_name_what_is_tested_and_typed(metadata):
    classifiers = metadata.get_all("Classifier")
    assert "Typing :: Typed" in classifiers
    assert "Programming Language :: Python :: 3.10" in classifiers
    assert metadata["Requires-Python"] == ">=3.10"
    assert metadata["Description-Content-Type"] == "text/x-rst"


def test_version_changelog_and_citation_agree():
    command = [sys.executable, str(ROOT / "tools" / "release.py"), "--check"]
    assert subprocess.run(command, capture_output=True, text=True, check=False).stdout == "They agree.\n"


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A small checkout, and the tool for releases in it."""
    for name in ("tools/release.py", "libraries/lossratio/version.py", "CHANGELOG.md", "CITATION.cff", "setup.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    setup = tmp_path / "setup.py"
    setup.write_text(REPOSITORY.sub("https://github.com/OWNER/lossratio", setup.read_text()))
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "action.md").write_text("  - uses: OWNER/lossratio@main\n")
    (tmp_path / "changelog.d").mkdir()
    (tmp_path / "changelog.d" / "README.md").write_text("How.\n")
    for key in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{key}_NAME", "somebody")
        monkeypatch.setenv(f"GIT_{key}_EMAIL", "somebody@example.com")
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", "--all")
    return tmp_path, runpy.run_path(str(tmp_path / "tools" / "release.py"))


def git(place, *arguments):
    return subprocess.run(["git", "-C", str(place), *arguments], capture_output=True, text=True, check=True).stdout


def test_a_release_is_one_command(checkout):
    place, tool = checkout
    tool["release"]("somebody/robotframework-lossratio")
    assert tool["problems"]() == []
    assert "uses: somebody/robotframework-lossratio@main" in (place / "docs" / "action.md").read_text()
    assert 'REPOSITORY = "https://github.com/somebody/robotframework-lossratio"\n' in (place / "setup.py").read_text()
    assert git(place, "tag") == f"v{lossratio.__version__}\n"
    assert git(place, "status", "--short") == ""


def test_nothing_is_written_for_a_release_that_is_none(checkout):
    place, tool = checkout
    (place / "libraries" / "lossratio" / "version.py").write_text('__version__ = "9.1.0"\n')
    (place / "docs" / "action.md").write_text("  - uses: another/lossratio@main\n")
    (place / "changelog.d" / "soak.shapes.md").write_text("Soak tests know more shapes.\n")
    with pytest.raises(SystemExit) as refused:
        tool["release"]()
    version, cited, page, fragments, address = str(refused.value).split("\n")
    assert version == f"The version is 9.1.0; the changelog's newest is {lossratio.__version__}."
    assert cited == "CITATION.cff lacks the line 'version: 9.1.0'."
    assert page == "docs/action.md: the repository is OWNER/lossratio in setup.py, and another/lossratio here."
    assert "soak.shapes.md" in fragments
    assert "make release REPOSITORY=" in address
    assert git(place, "tag") == ""


def test_files_that_import_a_library_under_the_gpl_may_be_used_under_it():
    text = (ROOT / "REUSE.toml").read_text()
    listed = set(re.findall(r'^    "(.*\.py)",$', text, re.MULTILINE))
    importing = re.compile(r"^\s*(?:from|import) scapy|importorskip\(\"scapy|\"trex\.stl\.api\"", re.MULTILINE)
    paths = [path for name in ("libraries", "tests", "benchmarks", "otg") for path in (ROOT / name).rglob("*.py")]
    # This file has the patterns.
    users = {str(path.relative_to(ROOT)) for path in paths if importing.search(path.read_text())} - {
        "tests/unit/test_packaging.py"
    }
    assert users <= listed
    assert all((ROOT / name).exists() for name in listed)
    # REUSE-IgnoreStart
    expressions = set(re.findall(r'SPDX-License-Identifier = "(.*)"', text))
    # REUSE-IgnoreEnd
    names = {name for expression in expressions for name in expression.split(" OR ")}
    assert {path.stem for path in (ROOT / "LICENSES").iterdir()} == names
    assert (ROOT / "LICENSE").read_bytes() == (ROOT / "LICENSES" / "Apache-2.0.txt").read_bytes()


def test_files_that_are_sent_to_nodes_name_their_licence():
    # REUSE.toml stays behind.
    keeper = pack_program("testbed/reservation/keeper", "lossratio-keeper", "main")
    packed = [pack_agent(), pack_device(), keeper]
    texts = (path.read_text() for path in (ROOT / "libraries").rglob("*.py"))
    assert sum(len(re.findall(r"(return|=) pack_program\(", text)) for text in texts) == len(packed)
    sources = {name: text for program in packed for name, text in program.sources.items() if not name.endswith(".o")}
    assert len(sources) > 50
    lacking = [
        # REUSE-IgnoreStart
        name
        for name, text in sources.items()
        if text and "# SPDX-License-Identifier: Apache-2.0" not in text[:99]
        # REUSE-IgnoreEnd
    ]
    assert lacking == []


def test_suites_of_an_installed_wheel_have_the_names_of_those_in_a_checkout(wheel, tmp_path):
    wheel.extractall(tmp_path)
    program = (
        "from lossratio.files.shipped import SUITES\n"
        "from lossratio.results.identity import suite_identity\n"
        "for name in SUITES.names():\n"
        "    print(suite_identity(SUITES.path(name), {}, ''))\n"
    )
    command = [sys.executable, "-c", program]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    here = [suite_identity(SUITES.path(name), {}, "") for name in SUITES.names()]
    assert done.stdout.splitlines() == here
    assert "Linux Router" in here
