"""The command ``lossratio import``: topology files from labs of other tools."""

from __future__ import annotations

from pathlib import Path

import click

from lossratio.errors import TopologyError
from lossratio.topology import import_lab, load_topology, read_containerlab, read_netlab

_READERS = {"containerlab": read_containerlab, "netlab": read_netlab}


@click.command(name="import")
@click.argument("tool", type=click.Choice(list(_READERS)))
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--tg", metavar="NODE", help="The node of the lab that the generator is on.")
@click.option(
    "--join",
    metavar="NODE",
    multiple=True,
    help="A node that a namespace with the generator is joined to; given twice for two nodes.",
)
@click.option("--dut", "duts", metavar="NODE", multiple=True, help="A node that the path goes through; in this order.")
@click.option(
    "--addresses",
    type=click.Choice(["benchmark", "lab"]),
    default="benchmark",
    show_default=True,
    help="Addresses of test traffic: those for benchmarking, or those of the lab.",
)
@click.option("--output", metavar="FILE", type=click.Path(path_type=Path), help="The topology file to write.")
def import_command(
    tool: str,
    file: Path,
    tg: str | None,
    join: tuple[str, ...],
    duts: tuple[str, ...],
    addresses: str,
    output: Path | None,
) -> None:
    """Write a topology file for the lab in FILE, which another TOOL made."""
    if len(join) > 2:
        raise TopologyError("--join names one node or two: the generator has two ports.")
    text = import_lab(_READERS[tool](file), file, tg=tg, join=join, duts=duts, lab_addresses=addresses == "lab")
    if output is None:
        click.echo(text, nl=False)
        return
    if output.exists():
        raise TopologyError(f"{output} is there already. Remove it, or name another file with --output.")
    output.write_text(text)
    load_topology(output)
    click.echo("\n".join(line[2:] for line in text.splitlines() if line.startswith("# ")))
    click.echo(f"Written: {output}. Next: lossratio check {output} --connect")
