# SPDX-License-Identifier: Apache-2.0
"""Whether programs can receive and send on an interface, and how they are attached to it."""

from __future__ import annotations

import errno

from lossratio.bpf import Attachment, BpfError, Program, XdpMode, attached_program, may_send, program_info

from ..core.links import Link
from ..core.protocol import AgentError

_NATIVE_REFUSED = (errno.EOPNOTSUPP, errno.EINVAL, errno.ERANGE, errno.ENOMEM, errno.ENOSPC, errno.EBUSY)


def check_may_attach(port: Link) -> None:
    """Makes sure that an interface has no XDP program yet, because other people's programs are never replaced.

    Raises:
        AgentError: If it has one.
    """
    number = attached_program(port.index)
    if number is None:
        return
    try:
        name = f"{number} ({program_info(number).name})"
    except BpfError:
        name = str(number)
    raise AgentError(
        "xdp_attached",
        f"Interface {port.name} already has an XDP program: {name}. It belongs to another program or agent, and "
        f"lossratio leaves it there. Stop its owner, detach it (ip link set dev {port.name} xdp off), or use 'kind: "
        "afpacket'.",
    )


def check_can_send(port: Link) -> None:
    """Makes sure that an interface's driver sends redirected frames; before Linux 6.3, this is known of veth only.

    Raises:
        AgentError: If it does not, or the kernel does not say.
    """
    sends = may_send(port.index)
    is_veth = port.kind == "veth"
    if sends or (sends is None and is_veth):
        return
    if sends is None:
        raise AgentError(
            "no_xdp",
            f"This kernel does not say whether the driver of {port.name} sends frames of XDP programs. Use Linux 6.3 "
            "or later, or 'kind: afpacket'.",
        )

    if is_veth:
        way_out = "the other end of this veth link needs GRO (ethtool -K OTHER_END gro on) or an XDP program"
    else:
        way_out = "use a card whose driver has ndo_xdp_xmit; some have it only while the card has an XDP program"
    raise AgentError(
        "no_xdp", f"The driver of {port.name} does not send frames of XDP programs: {way_out}. Or use 'kind: afpacket'."
    )


def attach(program: Program, port: Link) -> tuple[Attachment, XdpMode]:
    """Attaches a program to an interface, in its driver or else behind it, and also returns how this was done.

    Raises:
        AgentError: If the interface takes no program.
    """
    check_may_attach(port)
    try:
        return Attachment(program, port.index, "native"), "native"
    except BpfError as error:
        if error.error_number not in _NATIVE_REFUSED:
            raise
        native = error

    try:
        return Attachment(program, port.index, "generic"), "generic"
    except BpfError as error:
        check_may_attach(port)
        raise AgentError(
            "no_xdp",
            f"No XDP program can be attached to {port.name}, neither in its driver "
            f"({native.message}) nor behind it ({error.message}). Common causes are "
            f"offloads that join frames (switch them off: ethtool -K {port.name} lro off), an MTU "
            "larger than a page, and too few queues. Correct that, or use 'kind: afpacket'.",
        ) from error
