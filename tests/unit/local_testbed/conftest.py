from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from local_testbeds import WHY_NOT

sys.path.insert(0, str(Path(__file__).parent))

from testbed_probes import Caller, OrdinaryUser, make_topology

from lossratio.testbed.local import LocalTestbed

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items):
    for item in items:
        if WHY_NOT is not None and item.path.parent == HERE and item.get_closest_marker("netns"):
            item.add_marker(pytest.mark.skip(reason=WHY_NOT))


@pytest.fixture(autouse=True)
def state_home(monkeypatch):
    """A state directory of the test's own, that other users may reach."""
    path = Path(tempfile.mkdtemp(prefix="lossratio-state-"))
    path.chmod(0o777)
    monkeypatch.setenv("XDG_STATE_HOME", str(path))
    yield path
    shutil.rmtree(path)


@pytest.fixture
def testbed():
    with LocalTestbed.up(make_topology()) as testbed:
        yield testbed


@pytest.fixture(params=["caller", "ordinary user"])
def user(request):
    """The user who runs the testbed: the user of the tests, and an ordinary user where that is root."""
    if request.param == "caller":
        return Caller()
    if os.geteuid() != 0:
        pytest.skip("the tests are run by an ordinary user already")
    if shutil.which("setpriv") is None:
        pytest.skip("no setpriv to become an ordinary user with")
    return OrdinaryUser()
