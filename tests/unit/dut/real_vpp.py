"""The real VPP, where the environment variable `VPP_HOME` says that there is one, and what it lacks."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from lossratio.dut import parse_options

HOME = os.environ.get("VPP_HOME", "")
needs_vpp = [pytest.mark.vpp, pytest.mark.skipif(not HOME, reason="needs a VPP: set VPP_HOME")]


def skip_without_plugins(options: dict[str, Any]) -> None:
    """Skips a test of the real VPP if that lacks plugins for these options, and names them."""
    home = options.get("home", HOME)
    if is_real(home):
        skip_without(home, *_needed(options))


def is_real(home: str) -> bool:
    """Whether a VPP is the real one: others stand in for it."""
    return bool(HOME) and home == HOME


def skip_without(home: str, *plugins: str) -> None:
    """Skips a test of the real VPP if that lacks plugins, and names them."""
    if not is_real(home):
        return

    _, there = _version_and_plugins()
    missing = sorted(set(plugins) - there)
    if missing:
        pytest.skip(f"{HOME} lacks VPP's plugin {' and '.join(missing)}")


@cache
def _version_and_plugins() -> tuple[str, frozenset[str]]:
    """The version of the real VPP, and its plugins."""
    told = subprocess.run([f"{HOME}/bin/vpp", "--version"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"\bv(\d+\.\d+)", told)
    assert version is not None, told
    files = [file for place in ("lib*", "lib*/*") for file in Path(HOME).glob(f"{place}/vpp_plugins/*_plugin.so")]
    assert files, f"{HOME} has no plugins"
    return version[1], frozenset(file.name.removesuffix("_plugin.so") for file in files)


def _needed(options: dict[str, Any]) -> Iterator[str]:
    """The plugins that this version of VPP needs for options."""
    version, _ = _version_and_plugins()
    parsed = parse_options("vpp", options)
    for feature in parsed.features:
        yield from (plugin for plugin, since in feature.needs.plugins.items() if since <= version)
    if parsed.sockets == "af_xdp":
        yield "af_xdp"
