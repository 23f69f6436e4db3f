"""The command ``lossratio soak``."""

from __future__ import annotations

from pathlib import Path

import click

from lossratio.commands.parameters import FRAME_RATE, RATIO


@click.command()
@click.option(
    "--replay", "journal", metavar="JOURNAL", type=click.Path(path_type=Path), required=True, help="The trials."
)
@click.option(
    "--target-loss-ratio",
    metavar="RATIO",
    type=RATIO,
    help="E.g. 1e-7 or 0.1 %. Left out: the search's.",
)
@click.option("--min-load", metavar="RATE", type=FRAME_RATE, help="Smallest possible answer. Left out: the search's.")
@click.option("--max-load", metavar="RATE", type=FRAME_RATE, help="Largest possible answer. Left out: the search's.")
@click.option("--likelihood", type=click.Choice(["geometric", "poisson", "varying"]), help="Left out: the search's.")
@click.option("--weighting", type=click.Choice(["evidence", "equal"]), help="Left out: the search's.")
def soak(
    journal: Path,
    target_loss_ratio: float | None,
    min_load: float | None,
    max_load: float | None,
    likelihood: str | None,
    weighting: str | None,
) -> None:
    """Estimate the critical load again, from the trials in a JOURNAL, at this or another target loss ratio.

    Any search's journal will do; loads are per transmitting interface.
    """
    # Imported here because numpy and scipy take a while, and most other commands need neither.
    from lossratio.commands.replay_estimate import ReplayRequest, describe_estimate, estimate_from
    from lossratio.plrsearch import LikelihoodName, Weighting
    from lossratio.trials import NO_DIGESTS, read_journal

    request = ReplayRequest(
        target_loss_ratio,
        min_load,
        max_load,
        None if likelihood is None else LikelihoodName(likelihood),
        None if weighting is None else Weighting(weighting),
    )
    contents = read_journal(journal)
    if not contents.has_digests:
        click.echo(f"Note: {NO_DIGESTS}", err=True)
    for line in describe_estimate(estimate_from(contents, journal, request)):
        click.echo(line)
