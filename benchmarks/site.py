"""How long the site over a large history takes to write, and its views to open in Chromium.

python benchmarks/site.py --results 100000
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from itertools import product
from pathlib import Path
from statistics import median

import click
import numpy as np
from browser import CHROMIUM, browser
from steps import timed

from lossratio.dashboard import SiteRequest, write_site
from lossratio.history.entries import Entry
from lossratio.history.store import History
from lossratio.results import LatencyPoint

START = datetime(2022, 1, 1, 3, 0, tzinfo=timezone.utc)
SIZES = {"64B": 64.0, "128B": 128.0, "512B": 512.0, "1518B": 1518.0, "IMIX": 353.83}
CORES = (1, 2, 4)
BODIES = (
    "eth-l2bdbase",
    "ethip4-ip4base",
    "ethip6-ip6base",
    "ethip4-ip4scale20k",
    "ethip4udp-nat44",
    "ethip4vxlan-l2bd",
)
_NAMES = """(async () => {
    const jobs = await readJobs();
    const build = encodeURIComponent(`build ${jobs[0].builds[0]}`);
    const [a, b] = site.testbedNames.concat(site.testbedNames);
    return [`test/${site.tests[0].id}`, `run/${jobs[0].id}`, `compare?a=${a}&aWhat=${build}&b=${b}&bWhat=${build}`];
})()"""


@click.command()
@click.option("--results", default=100_000, show_default=True, help="Results in the history.")
@click.option("--nights", default=200, show_default=True, help="Nights of the history, evenly over four years.")
@click.option("--testbeds", default=2, show_default=True, help="Testbeds.")
@click.option("--output", type=click.Path(path_type=Path), help="Keep history and site in this folder.")
def main(results: int, nights: int, testbeds: int, output: Path | None) -> None:
    """Writes a history and its site, twice, and opens the views."""
    with tempfile.TemporaryDirectory() as folder:
        place = output or Path(folder)
        history = History(place / "history")
        tests = max(1, round(results / nights / testbeds / 2))
        click.echo(f"{tests * 2 * testbeds * nights} results of {tests} tests on {testbeds} testbeds, {nights} nights")
        click.echo(f"{'step':<40}{'elapsed s':>10}{'CPU s':>10}")
        if not history.path.exists():
            timed("write the history", lambda: write(history, tests, nights, testbeds))
        request = SiteRequest("benchmark")
        site = timed("write the site", lambda: write_site(history, place / "site", request))
        again = timed("write it again", lambda: write_site(history, place / "site", request))
        sizes = [path.stat().st_size for path in (place / "site" / "data").iterdir()]
        click.echo(
            f"{site.written} files, {sum(sizes) / 1e6:.1f} MB, the largest {max(sizes) / 1e6:.2f} MB; again "
            f"{again.written} files; {site.alarms} alarms"
        )
        open_views(site.page)


def open_views(page: Path) -> None:
    """Opens each view in a tab of its own, and prints how long it takes; the median of three times."""
    if CHROMIUM is None:
        click.echo("not opened: no Chromium is installed")
        return
    with browser() as chromium:
        chromium.open(page)
        names = chromium.run(_NAMES)
        for view in ("", "coverage", "compare", "latency", "scaling", "sizes", "runs", *names):
            times = [chromium.open(page, fragment=f"/{view}") for _ in range(3)]
            click.echo(f"open {view or 'trends':<35}{median(times):>10.2f}")
        assert chromium.faults == [], chromium.faults


def write(history: History, tests: int, nights: int, testbeds: int) -> None:
    """Adds a run for each night and testbed: NDR and PDR of each test, with latency; one in fifty results is odd."""
    randomness = np.random.default_rng(1)
    names = list(_names(tests))
    shape = np.array([cores**0.93 / (1.0 + size / 3000.0) for _, size, _, cores in names])
    means = randomness.uniform(0.9, 1.1, (testbeds, tests)) * 9e6 * shape
    for night in range(nights):
        started = START + timedelta(days=night * 4 * 365 / nights)
        means *= np.where(randomness.random(means.shape) < 0.01, randomness.uniform(0.9, 1.1, means.shape), 1.0)
        for testbed in range(testbeds):
            values = randomness.normal(means[testbed], 0.005 * means[testbed])
            odd = randomness.random(tests)
            history.add(
                Entry(
                    testbed=f"lab-{testbed + 1}",
                    test=name,
                    quantity=quantity,
                    started=started + timedelta(seconds=60 * number),
                    seconds=55.0,
                    value=None if odd[number] < 0.005 else share * value,
                    lower_bound=None if odd[number] < 0.005 else share * value,
                    upper_bound=None if odd[number] < 0.005 else 1.005 * share * value,
                    outcome="failed" if odd[number] < 0.005 else "measured",
                    reason="The agent was lost." if odd[number] < 0.005 else None,
                    doubts=("drift",) if odd[number] > 0.985 else (),
                    lossratio_version="0.2.0",
                    measured_as="same",
                    generator="trex",
                    run=f"nightly-{night:04}",
                    run_started=started,
                    tags=tags,
                    frame_size_bytes=size,
                    build=f"vpp {22 + night * 4 // nights}.{2 + night % 2 * 4:02}",
                    latency=latency_of(6.0 + value % 3.0),
                )
                for number, ((name, size, tags, _), value) in enumerate(zip(names, values.tolist(), strict=True))
                for quantity, share in (("NDR", 0.98), ("PDR", 1.0))
            )


def latency_of(middle: float) -> tuple[LatencyPoint, ...]:
    """Latencies at two loads, of both directions."""
    return tuple(
        LatencyPoint(f"{share} % of PDR", way, middle * factor, 1.4 * middle * factor, 2 * middle * factor, 9 * middle)
        for (share, factor), way in product(((10, 1.0), (50, 1.5), (90, 3.0)), ("west>east", "east>west"))
    )


def _names(tests: int) -> Iterator[tuple[str, float, tuple[str, ...], int]]:
    for number in range(tests):
        body = BODIES[number // (len(SIZES) * len(CORES)) % len(BODIES)]
        (label, size), cores = list(product(SIZES.items(), CORES))[number % (len(SIZES) * len(CORES))]
        variant = number // (len(SIZES) * len(CORES) * len(BODIES))
        yield (
            f"Performance.VPP{variant or ''}.{label}-{cores}c-{body}-ndrpdr",
            size,
            (label.lower(), f"{cores}c", body),
            cores,
        )


if __name__ == "__main__":
    main()
