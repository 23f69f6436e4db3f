"""What pip users get: the wheel holds the Robot resources and the traffic profiles beside the package."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import lossratio

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel_contents(tmp_path_factory) -> list[str]:
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("setup.py", "pyproject.toml", "README.rst", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("libraries", "resources", "topologies", "tests/performance"):
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
        shutil.copytree(ROOT / name, source / name, symlinks=True, ignore=ignored)
    command = [sys.executable, "-m", "pip", "wheel", "--verbose", "--no-deps", "--wheel-dir", str(target), str(source)]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
    assert "Package would be ignored" not in printed
    (wheel,) = target.glob("*.whl")
    return zipfile.ZipFile(wheel).namelist()


def test_the_wheel_holds_every_module_and_resource(wheel_contents):
    package = ROOT / "libraries" / "lossratio"
    modules = {str(path.relative_to(package.parent)) for path in package.rglob("*.py")}
    linked = {"resources": "resources", "topologies": "topologies", "suites": "tests/performance"}
    data = {
        f"lossratio/{name}/{path.relative_to(ROOT / folder)}"
        for name, folder in linked.items()
        for pattern in ("*.resource", "*.robot", "*.yaml", "*.json")
        for path in (ROOT / folder).rglob(pattern)
    }
    assert {name.split("/")[1] for name in data} == set(linked)
    assert modules | data <= set(wheel_contents)


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
