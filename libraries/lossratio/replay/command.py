"""The command ``lossratio soak``."""

from __future__ import annotations

from pathlib import Path

import click

from lossratio.errors import SearchError
from lossratio.units import parse_frame_rate, parse_ratio


@click.command()
@click.option(
    "--replay", "journal", metavar="JOURNAL", type=click.Path(path_type=Path), required=True, help="The trials."
)
@click.option(
    "--target-loss-ratio", metavar="RATIO", help="E.g. 1e-7 or 0.1 %. Left out: that of the journal's search."
)
@click.option("--min-load", metavar="RATE", help="Smallest load that can be the answer. Left out: the search's.")
@click.option("--max-load", metavar="RATE", help="Largest load that can be the answer. Left out: the search's.")
@click.option("--likelihood", type=click.Choice(["geometric", "poisson", "varying"]), help="Left out: the search's.")
@click.option("--weighting", type=click.Choice(["evidence", "equal"]), help="Left out: the search's.")
def soak(
    journal: Path,
    target_loss_ratio: str | None,
    min_load: str | None,
    max_load: str | None,
    likelihood: str | None,
    weighting: str | None,
) -> None:
    """Estimate the critical load again, from the trials in a JOURNAL, at this or another target loss ratio.

    Any search's journal will do; loads are per transmitting interface.
    """
    # Imported here because numpy and scipy take a while, and most other commands need neither.
    from lossratio.plrsearch import LikelihoodName, Weighting
    from lossratio.replay.estimate import ReplayRequest, describe_estimate, replay

    try:
        request = ReplayRequest(
            None if target_loss_ratio is None else parse_ratio(target_loss_ratio),
            None if min_load is None else parse_frame_rate(min_load),
            None if max_load is None else parse_frame_rate(max_load),
            None if likelihood is None else LikelihoodName(likelihood),
            None if weighting is None else Weighting(weighting),
        )
    except ValueError as error:
        raise SearchError(str(error)) from error
    for line in describe_estimate(replay(journal, request)):
        click.echo(line)
