"""How the tests themselves are spread over processes."""

from __future__ import annotations

import pytest


@pytest.mark.netns
def test_what_needs_the_machine_for_itself_runs_in_one_process(request):
    if not request.config.getoption("loadgroup", default=False):
        pytest.skip("these tests are not spread over processes: --numprocesses auto --dist loadgroup")
    assert request.node.nodeid.endswith("@netns")
