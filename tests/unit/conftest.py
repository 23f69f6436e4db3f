"""Fixtures that more than one area of the unit tests needs."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import hypothesis
import pytest
from hypothesis.internal.conjecture import providers
from netns import NetnsLab, NetnsUnavailableError

from lossratio.commands.main import main

# How long an example takes says something about the machine, and nothing about the code. Where fifty examples are too
# few, a test says how many it needs.
# Each run draws the same examples, so that a change fails only by what it changes; `make chaos` draws new ones.
UNTIMED = {"deadline": None, "suppress_health_check": [hypothesis.HealthCheck.too_slow]}
hypothesis.settings.register_profile("lossratio", **UNTIMED, max_examples=50, derandomize=True)
hypothesis.settings.register_profile("whole", **UNTIMED, max_examples=300)
hypothesis.settings.load_profile("lossratio")

# Some versions of hypothesis also draw numbers and texts that occur in the modules that are loaded. The same examples
# would then depend on the tests that ran before, and on each line of the library.
_constants_of_modules = getattr(providers, "_get_local_constants", None)


def _constants() -> object:
    """No constants of modules where each run draws the same examples."""
    if hypothesis.settings.default.derandomize:
        return type(providers.GLOBAL_CONSTANTS)()
    return _constants_of_modules()


if _constants_of_modules is not None:
    providers._get_local_constants = _constants

# A run that was started in the background ignores Ctrl-C, and so would all programs that tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


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
        metadata = site / f"{name}-1.0.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        lines = [line for group, entries in entry_points.items() for line in (f"[{group}]", *entries)]
        (metadata / "entry_points.txt").write_text("\n".join(lines))
        for module, source in modules.items():
            monkeypatch.delitem(sys.modules, module, raising=False)
            (site / f"{module}.py").write_text(source)
        monkeypatch.syspath_prepend(site)

    return install


def private_namespaces() -> NetnsLab:
    """Private network namespaces; the test is skipped where they cannot be had."""
    try:
        return NetnsLab()
    except (NetnsUnavailableError, FileNotFoundError) as error:
        pytest.skip(f"network namespaces cannot be had here: {error}")


@pytest.fixture
def netns_lab() -> Iterator[NetnsLab]:
    """Private network namespaces, gone after the test."""
    with private_namespaces() as lab:
        yield lab


@pytest.fixture(scope="module")
def lasting_lab() -> Iterator[NetnsLab]:
    """Private network namespaces for all tests of a file."""
    with private_namespaces() as lab:
        yield lab
