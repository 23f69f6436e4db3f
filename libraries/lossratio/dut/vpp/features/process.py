"""A process that every frame passes on its way from VPP and back, over two shared-memory interfaces."""

from dataclasses import replace
from typing import Literal

from lossratio.dut.vpp.features.feature import ROUTES, Feature, Needs, Ports, Steps, VppPort
from lossratio.dut.vpp.virtual_machine import Guest

MACS = ("02:fe:00:00:00:0a", "02:fe:00:00:00:0b")
"""MAC addresses of VPP's two interfaces to the process."""
CONNECTED = r"""
    % for name in options.process_interfaces
        show hardware-interfaces {{ name }} | \bup\b | {{ name }} is connected | 10
    % endfor
"""
"""A process is at the other ends of the interfaces to it. VPP tries to connect a memif every few seconds."""
SLEEPING = r"""
    % if not options.uses_af_xdp and west.link.startswith("host-")
        % for name in options.process_interfaces
            set interface rx-mode {{ name }} interrupt
        % endfor
    % endif
"""
"""If VPP's workers sleep, they do not poll these interfaces, because the process may need their CPU."""

TESTPMD = r"""
% if not options.is_contained and not options.guest
    --file-prefix lossratio --no-huge -m 512 --no-pci \
    % for number in (0, 1)
        % if options.process == "vhost"
            --vdev=net_virtio_user{{ number }},path={{ directory }}/vhost{{ number }}.sock,queues=1,queue_size=1024 \
        % else
            --vdev=net_memif{{ number }},role=client,socket-abstract=no,socket={{ directory }}/memif{{ number }}.sock \
        % endif
    % endfor
    -- --forward-mode=io --no-lsc-interrupt --total-num-mbufs=16384 --stats-period=86400
% endif
"""
"""A testpmd that forwards between the two interfaces, unless something else does."""


class Process(Feature):
    """testpmd in place of the container or virtual machine of FD.io CSIT's suites."""

    process: Literal["memif", "vhost"] | None = None
    """Interfaces through which every frame goes from VPP to a process (testpmd) and back: ``memif`` or ``vhost``
    (virtio at the process). With ``l2xc``, ``l2bd`` or ``ip4``."""

    needs = Needs(("l2xc", "l2bd", "ip4"), plugins={"memif": "", "vhost": "25.10"}, decides=ROUTES)
    # A router has a table for each side.
    steps = Steps(
        below=f"""
            % set mac = {MACS}[port.place]
            % set number = port.place + 1
            % set name = options.process_interfaces[port.place]
        """
        + r"""
            % if options.process == "memif"
                {{ memif(port.directory, number, mac, port.queues if options.is_contained else 0) }}
            % else
                create vhost-user socket {{ port.directory }}/vhost{{ number - 1 }}.sock server hwaddr {{ mac }} \
                | {{ name }}
                set interface state {{ name }} up
            % endif
            % if options.is_router
                ip table add {{ number }}
                set interface ip table {{ port.link }} {{ number }}
                set interface ip table {{ name }} {{ number }}
            % endif
        """,
        programs=TESTPMD,
        connected=SLEEPING,
        verified=CONNECTED,
    )

    @property
    def process_interfaces(self) -> tuple[str, str]:
        """VPP's names for interfaces of the option's kind."""
        if self.process == "vhost":
            return ("VirtualEthernet0/0/0", "VirtualEthernet0/0/1")
        return super().process_interfaces

    def above(self, port: VppPort) -> VppPort:
        """The port, with a table of its own in a router."""
        if self.is_router:
            return replace(port, table=port.place + 1)
        return port

    def pairs(self, ports: Ports) -> tuple[Ports, ...]:
        """Frames are forwarded twice: in front of the process, and behind it."""
        west, east = ports
        names = self.process_interfaces
        if self.is_router:
            macs = MACS[::-1]
        else:
            macs = (east.neighbour_mac, west.neighbour_mac)

        return (
            (
                west,
                replace(
                    east, link=names[0], interface=names[0], neighbour_mac=macs[0], table=west.table
                ),
            ),
            (
                replace(
                    west, link=names[1], interface=names[1], neighbour_mac=macs[1], table=east.table
                ),
                east,
            ),
        )


class Container(Feature):
    """A second VPP in place of testpmd, as in FD.io CSIT's suites."""

    container: bool = False
    """Whether a second VPP with the same number of cores takes the place of testpmd. It is a cross-connect in a
    container with its own namespaces for mounts, network, IPC and host name. Its memif interfaces have as many queues
    as the links (one if AF_XDP is used without ``queues``). With ``process=memif`` or ``srv6_proxy``."""

    requires = (
        (
            "container",
            "process=memif srv6_proxy",
            "container applies to what is behind memif; also set process=memif or srv6_proxy",
        ),
    )
    needs = Needs(plugins={"memif": ""}, tags=("docker",))
    steps = Steps(
        contained=r"""
            {{ memif(west.directory, 1, "02:fe:00:00:00:0c") }}
            {{ memif(west.directory, 2, "02:fe:00:00:00:0d") }}
            set interface l2 xconnect memif1/0 memif2/0
            set interface l2 xconnect memif2/0 memif1/0
        """
    )

    @property
    def is_contained(self) -> bool:
        """The value of the option."""
        return self.container


class VirtualMachine(Feature):
    """A virtual machine in place of the process, as in FD.io CSIT's suites."""

    vm: Guest | None = None
    """The program of a virtual machine that takes the place of the process: ``testpmd``, or ``vpp`` (a cross-connect).
    The machine has as many CPUs as VPP. With ``process=vhost``."""

    requires = (
        (
            "vm",
            "process=vhost",
            "vm applies to what is behind vhost-user interfaces; also set process=vhost",
        ),
    )
    needs = Needs(tags=("1vm",))

    @property
    def guest(self) -> Guest | None:
        """The value of the option."""
        return self.vm
