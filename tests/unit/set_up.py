"""What all tests need that draw examples, start programs or have namespaces: those here, and those of `otg`."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import hypothesis
import pytest
from hypothesis.internal.conjecture import providers
from netns import NetnsLab, NetnsUnavailableError

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
