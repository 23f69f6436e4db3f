"""Another process that wants the testbed: `contender.py PORT DIRECTORY OWNER HOLD SECONDS`.

While it has the testbed it holds a file that nobody else may make, and it notes when it came and went.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

from lossratio.nodes import NodeSession
from lossratio.testbed.reservation import Claim, Lease
from lossratio.topology import Node


def main() -> None:
    node, directory, owner, hold, seconds = sys.argv[1:]
    claim = Claim(f"{directory}/lossratio/testbed", sys.executable, float(seconds), owner)
    with NodeSession.connect("TG", Node.model_validate_json(node)) as session, Lease.take((session, claim), wait=300):
        # Fails if somebody else is inside.
        inside = os.open(f"{directory}/inside", os.O_CREAT | os.O_EXCL)
        with open(f"{directory}/visits", "a") as visits:
            visits.write(json.dumps(owner) + "\n")
        time.sleep(float(hold))
        os.close(inside)
        Path(directory, "inside").unlink()


main()
