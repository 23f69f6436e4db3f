"""Sets up the DUTs of a path, and puts them back."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from contextlib import ExitStack

from lossratio.dut import DestinationMacs, Dut, DutOptions, create_dut
from lossratio.dut.linux import NodeDut, ProgramDut
from lossratio.errors import DutError, NodeError
from lossratio.nodes import NodeSession
from lossratio.testbed.interruptions import put_off_interruption
from lossratio.testbed.last_will import LastWill, execute_last_wills
from lossratio.testbed.neighbours import address_path
from lossratio.testbed.testbed import DutRequest
from lossratio.topology import TrafficPath


def checked_duts(
    request: DutRequest | None, paths: Sequence[TrafficPath], sessions: Mapping[str, NodeSession]
) -> tuple[tuple[Dut[DutOptions], ...], ...]:
    """Makes the DUTs of parallel paths, and checks that they can be set up.

    It touches nothing but what dead controllers left.

    Args:
        request: What they are to be; None: they stay as they are, and are none of ours.
        paths: The paths.
        sessions: The log-ins, by node.

    Returns:
        The DUTs of each path, from west to east.

    Raises:
        DutError: If one cannot be set up.
    """
    if request is None:
        return ((),) * len(paths)
    options = request.options.model_dump()
    duts = tuple(
        tuple(create_dut(request.kind, sessions[hop.node_name], hop, options) for hop in path.hops) for path in paths
    )
    _check_cores(duts)
    for dut in itertools.chain(*duts):
        if isinstance(dut, NodeDut):
            execute_last_wills(sessions[dut.hop.node_name])
        dut.check()
    return duts


def _check_cores(duts: Sequence[Sequence[Dut[DutOptions]]]) -> None:
    """Refuses programs that would forward on the same cores, and so halve each other's throughput."""
    for dut in itertools.chain(*duts[1:]):
        if isinstance(dut, ProgramDut):
            raise DutError(
                f"{dut.hop.node_name}: a {dut.kind} for each of {len(duts)} parallel links would forward on the same "
                "cores, and measure how they share them. Take one link, or a DUT in the kernel."
            )


def set_up_duts(
    duts: tuple[Dut[DutOptions], ...],
    sessions: Mapping[str, NodeSession],
    west_mac: str,
    east_mac: str,
    undo: ExitStack,
) -> DestinationMacs | None:
    """Sets up all DUTs of one path.

    Args:
        duts: The DUTs, from west to east.
        sessions: The log-ins, by node.
        west_mac: MAC address of the TG's west port.
        east_mac: MAC address of its east port.
        undo: Puts them back in the end.

    Returns:
        What frames must carry when they leave the TG; None if nobody knows, as there are no DUTs of ours.

    Raises:
        DutError: If one cannot be set up.
    """
    if not duts:
        return None
    addressing = address_path(duts, west_mac, east_mac)
    for dut, neighbours in zip(duts, addressing.neighbours, strict=True):
        session = sessions[dut.hop.node_name]
        if isinstance(dut, NodeDut):
            dut.node.will = LastWill(session)
        undo.callback(_put_back, dut, session)
        dut.set_up(neighbours.west, neighbours.east)
    return addressing.from_tg


def keep_last_wills(duts: tuple[Dut[DutOptions], ...]) -> None:
    """Makes sure that the DUTs would be put back if this process died, after a connection may have been lost."""
    for dut in duts:
        if isinstance(dut, NodeDut) and isinstance(dut.node.will, LastWill):
            dut.node.will.keep()


def leave_to_last_wills(duts: tuple[Dut[DutOptions], ...]) -> None:
    """Has the DUTs put back when this process ends, if it does not come to that itself."""
    for dut in duts:
        if isinstance(dut, NodeDut) and isinstance(dut.node.will, LastWill):
            dut.node.will.execute_at_end()


def _put_back(dut: Dut[DutOptions], session: NodeSession) -> None:
    """Tears a DUT down, also if the connection to it was lost, or Ctrl-C is pressed a second time meanwhile."""
    with put_off_interruption():
        leave_to_last_wills((dut,))
        try:
            session.restore()
        except NodeError as error:
            # A connection that is lost says nothing about the DUT.
            raise NodeError(f"{dut.hop.node_name} cannot be put back to how it was: {error}") from error
        dut.tear_down()
