"""Suites to run with ``lossratio run``."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[3]
SIMULATED = ROOT / "topologies" / "simulated.yaml"


def write_suite(directory, tests, settings="", name="suite"):
    file = directory / f"{name}.robot"
    # The folder is a project, so the suite has the name of its file.
    (directory / "robot.toml").touch()
    libraries = "Library    lossratio.keywords.LossRatio\nLibrary    raising.py"
    file.write_text(f"*** Settings ***\n{libraries}\n{settings}\n*** Test Cases ***\n{tests}")
    return file
