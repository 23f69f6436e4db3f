"""How many UDP connections per second the embedded generator opens and verifies, and what a trial costs beyond that.

On the local testbed, through a router without state (the tester's own limit), and through some with the kernel's table
of connections: unsent and lost ones at rising rates, the overhead of trials, and the time for a million.
"""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median

import click

from lossratio.testbed.live import open_testbed
from lossratio.traffic import load_profile
from lossratio.trials import Exchange, Integrity, TrialInput

TOPOLOGY = Path(__file__).parent.parent / "topologies" / "local.yaml"
RATES = (20e3, 50e3, 100e3, 150e3, 200e3, 300e3)
ROUTERS = {
    "without state": {},
    "firewall=conntrack": {"firewall": "conntrack"},
    "nat=masquerade": {"nat": "masquerade"},
}
SECONDS = 0.5


@click.command(help=__doc__)
@click.option("--topology", default=TOPOLOGY, type=click.Path(path_type=Path), help="The testbed to measure on.")
@click.option("--trials", default=5, show_default=True, help="Trials at each rate.")
def main(topology: Path, trials: int) -> None:
    """Measures, and prints a table."""
    profile = load_profile("ethip4-udp-connections", frame_size=64)
    for name, options in ROUTERS.items():
        testbed = open_testbed(topology, dut="linux_router", options=options)
        try:
            with testbed.ready_for(profile, integrity=Integrity.OFF) as ready:
                settle = 2.0 * ready.conditions.timing.wait_after_s
                click.echo(f"{name}, {trials} trials of {SECONDS:g} s, answers at the same rate")
                click.echo(f"{'opened/s':>10} {'unsent':>8} {'lost':>8} {'overhead ms':>12}")
                for rate in RATES:
                    trial = TrialInput(SECONDS, rate, exchange=Exchange())
                    outputs = [ready.measurer.measure(trial) for _ in range(trials)]
                    over = [((one.elapsed or 0.0) - 2.0 * SECONDS - settle) for one in outputs if not one.repeats]
                    unsent = sum(one.unsent_frames or 0 for one in outputs) / (trials * SECONDS * rate)
                    lost = sum(one.lost_frames or 0 for one in outputs) / (trials * SECONDS * rate)
                    shown = f"{1e3 * median(over):12.1f}" if over else f"{'-':>12}"
                    click.echo(f"{rate:10,.0f} {unsent:8.2%} {lost:8.2%} {shown}")
                if not options:
                    began = time.monotonic()
                    output = ready.measurer.measure(TrialInput(1e6 / 150e3, 150e3, exchange=Exchange()))
                    seconds = time.monotonic() - began
                    (counters,) = output.directions
                    click.echo(f"a million: {counters.received_frames:,} opened and verified in {seconds:.1f} s")
        finally:
            testbed.close()


if __name__ == "__main__":
    main()
