from __future__ import annotations

import pytest
from archive_examples import measure


@pytest.fixture(scope="session")
def run(tmp_path_factory):
    return measure(tmp_path_factory.mktemp("runs") / "tonight")
