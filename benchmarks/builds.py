"""How often bisections name the right revision, and comparisons the right verdict, and how much they measure for it.

The noise is simulated; beside the bisection there is what five measurements at each midpoint and at both ends would be.
"""

from __future__ import annotations

from collections import Counter

import click
import numpy as np

from lossratio.builds import Bisection, Build, BuildComparison

EFFECTS = ((-0.10, 0.003), (-0.05, 0.01), (-0.03, 0.01), (0.02, 0.01))


@click.command(help=__doc__)
@click.option("--repetitions", default=200, show_default=True)
@click.option("--revisions", multiple=True, type=int, default=(8, 64, 512), show_default=True)
def main(repetitions: int, revisions: tuple[int, ...]) -> None:
    """Prints both tables."""
    random = np.random.default_rng(1)
    click.echo("bisection")
    heads = ("revisions", "change", "noise", "right", "mean", "95 %", "five each", "right")
    click.echo("  ".join(f"{head:>9}" for head in heads))
    for count in revisions:
        for change, noise in EFFECTS:
            right, counts = zip(*(bisected(random, count, change, noise) for _ in range(repetitions)), strict=True)
            plain, five = zip(*(five_each(random, count, change, noise) for _ in range(repetitions)), strict=True)
            columns = (f"{count}", f"{change:.1%}", f"{noise:.1%}", f"{np.mean(right):.1%}", f"{np.mean(counts):.1f}")
            more = (f"{np.percentile(counts, 95):.0f}", f"{np.mean(five):.0f}", f"{np.mean(plain):.1%}")
            click.echo("  ".join(f"{column:>9}" for column in (*columns, *more)))
    click.echo("\ncomparison (least change 1 %)")
    click.echo(f"{'change':>7}  {'noise':>6}  {'mean':>6}  verdicts")
    for change, noise in ((0.0, 0.003), (0.0, 0.01), (0.0, 0.03), *EFFECTS, (-0.05, 0.03)):
        verdicts, counts = zip(*(compared(random, change, noise) for _ in range(repetitions)), strict=True)
        shares = ", ".join(f"{verdict} {number / repetitions:.1%}" for verdict, number in Counter(verdicts).items())
        click.echo(f"{change:>7.1%}  {noise:>6.1%}  {np.mean(counts):>6.1f}  {shares}")


def bisected(random: np.random.Generator, revisions: int, change: float, noise: float) -> tuple[bool, int]:
    """Bisects once: whether it was right, and the number of measurements."""
    first = int(random.integers(1, revisions + 1))
    search = Bisection([str(number) for number in range(revisions + 1)], limit=1000)
    while (revision := search.next_revision()) is not None:
        mean = 1.0 + change * (int(revision) >= first)
        search.record(revision, mean * (1.0 + noise * random.standard_normal()))
    result = search.result()
    return result.candidates == (str(first),), result.measurements


def five_each(random: np.random.Generator, revisions: int, change: float, noise: float) -> tuple[bool, int]:
    """Measures both ends and every midpoint five times: whether that was right, and the number of measurements."""
    first = int(random.integers(1, revisions + 1))

    def measured(revision: int) -> float:
        return float(np.mean((1.0 + change * (revision >= first)) * (1.0 + noise * random.standard_normal(5))))

    low, high, steps = 0, revisions, 2
    border = 0.5 * (measured(low) + measured(high))
    while high - low > 1:
        middle, steps = (low + high) // 2, steps + 1
        changed = (measured(middle) > border) == (change > 0)
        low, high = (low, middle) if changed else (middle, high)
    return high == first, 5 * steps


def compared(random: np.random.Generator, change: float, noise: float) -> tuple[str, int]:
    """Compares once: the verdict, and the number of measurements."""
    comparison = BuildComparison()
    while (build := comparison.next_build()) is not None:
        mean = 1.0 + change * (build is Build.B)
        comparison.record(mean * (1.0 + noise * random.standard_normal()))
    result = comparison.result()
    return result.verdict.value, result.measurements


if __name__ == "__main__":
    main()
