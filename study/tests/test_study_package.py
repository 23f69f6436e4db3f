"""What pip users get of the laboratory: one package with its command, and the checker of the tests as a whole file."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.whole

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "study" / "libraries" / "lossratio_study"
CHECKER = ROOT / "tests" / "unit" / "mlrsearch" / "checker.py"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", "build")
    shutil.copytree(ROOT / "study", source / "study", symlinks=True, ignore=ignored)
    copy = source / CHECKER.relative_to(ROOT)
    copy.parent.mkdir(parents=True)
    shutil.copy(CHECKER, copy)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(target)]
    subprocess.run([*command, str(source / "study")], check=True)
    (wheel,) = target.glob("lossratio_study-*.whl")
    return zipfile.ZipFile(wheel)


def test_the_wheel_holds_every_module_and_the_page(wheel):
    wanted = {str(path.relative_to(PACKAGE.parent)) for path in PACKAGE.rglob("*.py")}
    assert wanted | {"lossratio_study/page.html.jinja", "lossratio_study/py.typed"} <= set(wheel.namelist())
    assert {name.split("/")[0].partition("-")[0] for name in wheel.namelist()} == {"lossratio_study"}


def test_the_wheel_has_the_checker_of_the_tests(wheel):
    assert wheel.read("lossratio_study/checker.py") == CHECKER.read_bytes()


def test_the_wheel_adds_its_commands(wheel):
    (name,) = (name for name in wheel.namelist() if name.endswith(".dist-info/entry_points.txt"))
    text = wheel.read(name).decode()
    assert "[console_scripts]\nlossratio-study = lossratio_study.command:main\n" in text
    _, _, added = text.partition("[lossratio.command]\n")
    assert set(added.splitlines()) == {
        "csit-coverage = lossratio_study.csit_coverage:csit_coverage_command",
        "study = lossratio_study.command:study",
    }
