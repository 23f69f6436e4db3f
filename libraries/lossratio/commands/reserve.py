"""The commands ``lossratio reserve``, ``lossratio release`` and ``lossratio status``."""

from contextlib import ExitStack
from pathlib import Path

import click

from lossratio.commands.parameters import DURATION, argument, command, option
from lossratio.errors import TopologyError
from lossratio.nodes import NodeSession
from lossratio.testbed import Candidate, candidate, log_in
from lossratio.testbed.reservation import TOKEN_VARIABLE, Claim, Lease, clear, holder_of
from lossratio.topology import load_topology
from lossratio.units import format_duration


@command()
def reserve(
    file: Path = argument(),
    *,
    seconds: float = option("How long, e.g. 2h.", "--for", type=DURATION),
    wait: float | None = option("How long to wait for it at most, e.g. 2h.", type=DURATION),
    purpose: str = option("The reason, which other users see.", default=""),
) -> None:
    """Reserve the testbed of a topology FILE for some time, e.g. to work by hand."""
    with ExitStack() as undo:
        session, claim = _opened(file, undo, purpose=purpose, seconds=seconds)
        lease = Lease.take(session, claim, wait=wait or 0.0)
        lease.leave()
    click.echo(
        f"Reserved for {claim.owner}, for {format_duration(seconds)}. Runs may use it from a shell with this line:"
    )
    click.echo(f"export {TOKEN_VARIABLE}={lease.token}")


@command()
def release(
    file: Path = argument(),
    force: bool = option("Also if somebody else has it; the programs of that user there are ended."),
) -> None:
    """End the reservation of the testbed of a topology FILE."""
    with ExitStack() as undo:
        holder = clear(*_opened(file, undo), force=force)
    click.echo("It is free." if holder is None else f"Released. It was reserved for {holder}.")


@command()
def status(files: tuple[Path, ...] = argument("FILE...", required=True)) -> None:
    """Show who has reserved the testbeds of topology FILEs."""
    for file in files:
        with ExitStack() as undo:
            holder = holder_of(*_opened(file, undo))
        left = "" if holder is None else f"; ends in {format_duration(holder.left)} unless it is renewed"
        click.echo(f"{file}: {'free' if holder is None else f'reserved for {holder}{left}'}")


def _opened(
    file: Path, undo: ExitStack, *, purpose: str = "", seconds: float | None = None
) -> tuple[NodeSession, Claim]:
    """Logs in on the TG node of a testbed that can be reserved."""
    wanted: Candidate = candidate(file, load_topology(file), purpose=purpose, seconds=seconds)
    if wanted.claim is None:
        raise TopologyError(
            f"{file}: there is nothing to reserve: the testbed is simulated, is a local one that is not up, or has "
            f"'reservation: null'."
        )
    return undo.enter_context(log_in(wanted)), wanted.claim
