"""Syntax trees of source files, parsed once for all tests of a process."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

READS_ALL_MODULES = pytest.mark.xdist_group("syntax trees")
"""Tests that read the whole library: one process parses it for all of them."""


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file that does not change."""
    return ast.parse(path.read_text())
