"""Keywords that break a device under test, as no user would wish for."""

from __future__ import annotations

import threading
from datetime import timedelta

from robot.libraries.BuiltIn import BuiltIn


class DutFaults:
    """Works on the devices of the suite's testbed."""

    def kill_program_later(self, name: str, delay: timedelta) -> None:
        """Kills a program of the first device while something else goes on."""
        library = BuiltIn().get_library_instance("lossratio.keywords.LossRatio")
        (daemon,) = (daemon for daemon in library.session.testbed.duts[0].daemons if daemon.name == name)
        kill = f"kill -KILL $(cut -d ' ' -f 1 {daemon.directory}/{name}.pid)"
        threading.Timer(delay.total_seconds(), daemon.node.run, ("sh", "-c", kill)).start()

    def stop_forwarding(self, duration: timedelta | None = None) -> None:
        """Makes the first device, a bridge, drop everything, for so long or from now on."""
        library = BuiltIn().get_library_instance("lossratio.keywords.LossRatio")
        node = library.session.testbed.duts[0].node
        node.run("nft", "table bridge gap { chain forward { type filter hook forward priority -10; policy drop; }; }")
        if duration is not None:
            node.run("sh", "-c", f"sleep {duration.total_seconds()} && nft delete table bridge gap")
