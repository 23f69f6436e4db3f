"""The command ``lossratio import``: topology files from labs of other tools."""

from pathlib import Path

import click

from lossratio.commands.parameters import OneOf, argument, command, option
from lossratio.errors import TopologyError
from lossratio.topology import import_lab, load_topology, read_containerlab, read_netlab

_READERS = {"containerlab": read_containerlab, "netlab": read_netlab}


@command("import")
def import_command(
    tool: str = argument(type=OneOf(list(_READERS))),
    file: Path = argument(),
    *,
    tg: str | None = option("The node of the lab that the generator is on.", metavar="NODE"),
    join: tuple[str, ...] = option(
        "A node that a namespace with the generator is joined to; given twice for two nodes.", metavar="NODE"
    ),
    duts: tuple[str, ...] = option("A node that the path goes through; in this order.", "--dut", metavar="NODE"),
    addresses: str = option(
        "Addresses of test traffic: for benchmarking, or the lab's own.",
        type=OneOf(["benchmark", "lab"]),
        default="benchmark",
    ),
    output: Path | None = option("The topology file to write.", metavar="FILE"),
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
