"""Fixtures that more than one area of the unit tests needs."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest
from added_packages import put_package
from set_up import lasting_lab, netns_lab  # noqa: F401 (fixtures)

from lossratio.commands.main import main


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds how long readers of files are attacked with hostile documents; see hostile_input/test_fuzzing.py."""
    # Without a time, the same documents are tried on each machine.
    parser.addoption("--fuzz-seconds", type=float, default=0.0, help="How long hostile documents are tried.")
    parser.addoption("--fuzz-seed", type=int, default=0, help="The seed of the first hostile documents.")


class Finished(NamedTuple):
    """A command that has ended: its exit status, standard output and standard error."""

    status: int
    out: str
    err: str


@pytest.fixture
def lossratio(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., Finished]:
    """Runs the command ``lossratio`` in the test's own directory."""

    def run(*arguments: object) -> Finished:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["lossratio", *map(str, arguments)])
        status = 0
        before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            main()
        except SystemExit as end:
            status = end.code or 0
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
        return Finished(status, *capfd.readouterr())

    return run


@pytest.fixture
def plain_path() -> Iterator[Path]:
    """An own directory whose path has no blank, wherever temporary files are: for stand-ins of /sys and /run."""
    with TemporaryDirectory(prefix="lossratio-", dir="/tmp") as directory:
        yield Path(directory)


@pytest.fixture
def install_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Installs version 1.0 of a package as pip would: its entry points by group, and the text of its modules."""

    def install(name: str, entry_points: Mapping[str, Sequence[str]], **modules: str) -> None:
        site = tmp_path / "site-packages"
        put_package(site, name, entry_points, **modules)
        for module in modules:
            monkeypatch.delitem(sys.modules, module, raising=False)
        monkeypatch.syspath_prepend(site)

    return install
