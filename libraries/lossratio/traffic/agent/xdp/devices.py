"""Programs of the generator on interfaces: whether they can be attached there, and how."""

from __future__ import annotations

import errno

from lossratio.bpf import Attachment, BpfError, Program, XdpMode, attached_program, may_send, program_info

from ..core.links import Link
from ..core.protocol import AgentError

_NATIVE_REFUSED = (errno.EOPNOTSUPP, errno.EINVAL, errno.ERANGE, errno.ENOMEM, errno.ENOSPC, errno.EBUSY)


def check_may_attach(port: Link) -> None:
    """Makes sure that an interface has no XDP program yet: somebody else's is never replaced."""
    number = attached_program(port.index)
    if number is None:
        return
    try:
        name = f"{number} ({program_info(number).name})"
    except BpfError:
        name = str(number)
    raise AgentError(
        "xdp_attached",
        f"Interface {port.name} has an XDP program already: {name}. It is not ours, or another agent's, and is left "
        f"alone. End its owner, or detach it (ip link set dev {port.name} xdp off), or use 'kind: afpacket'.",
    )


def check_can_send(port: Link) -> None:
    """Makes sure that an interface's driver sends redirected frames, as far as the kernel says so."""
    if may_send(port.index):
        return
    if port.kind == "veth":
        way_out = "the other end of this veth link needs GRO (ethtool -K OTHER_END gro on) or an XDP program"
    else:
        way_out = "take a card whose driver has ndo_xdp_xmit; some have it only while the card has an XDP program"
    raise AgentError(
        "no_xdp", f"The driver of {port.name} does not send frames of XDP programs: {way_out}. Or use 'kind: afpacket'."
    )


def attach(program: Program, port: Link) -> tuple[Attachment, XdpMode]:
    """Attaches a program to an interface, in its driver or else behind it, and returns how it was done, too."""
    check_may_attach(port)
    try:
        return Attachment(program, port.index, XdpMode.NATIVE), XdpMode.NATIVE
    except BpfError as error:
        if error.error_number not in _NATIVE_REFUSED:
            raise
        native = error
    try:
        return Attachment(program, port.index, XdpMode.GENERIC), XdpMode.GENERIC
    except BpfError as error:
        check_may_attach(port)
        raise AgentError(
            "no_xdp",
            f"No XDP program can be attached to {port.name}, neither in its driver ({native.message}) nor behind it "
            f"({error.message}). Offloads that join frames (ethtool -K {port.name} lro off), an MTU beyond a page, and "
            f"too few queues are in the way of XDP. Or use 'kind: afpacket'.",
        ) from error
