"""The set-up, the helpers and the fixtures of lossratio's own tests."""

import sys
from pathlib import Path

import lossratio.agent

sys.path.extend(str(Path(__file__).parents[2] / "tests" / folder) for folder in ("unit", "unit/traffic"))

from set_up import lasting_lab, netns_lab  # noqa: F401 (fixtures)

# The name of the agent on a TG, for the program that runs there.
sys.modules["lossratio_agent"] = lossratio.agent
