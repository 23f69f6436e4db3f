"""A process that every frame passes on its way from VPP and back, over two shared-memory interfaces."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

from lossratio.dut.vpp.features.feature import Command, Feature, Needs, Ports, Shown, VppPort
from lossratio.dut.vpp.virtual_machine import Guest
from lossratio.topology import WEST

MACS = ("02:fe:00:00:00:0a", "02:fe:00:00:00:0b")
"""MAC addresses of VPP's two interfaces to the process."""
_CONTAINED_MACS = ("02:fe:00:00:00:0c", "02:fe:00:00:00:0d")
"""MAC addresses of the interfaces of a VPP that takes the place of the process."""
MEMIFS = ("memif1/0", "memif2/0")
"""Names of these interfaces, if they are memif."""
VHOSTS = ("VirtualEthernet0/0/0", "VirtualEthernet0/0/1")
"""Names of these interfaces, if they are vhost-user."""
_CONNECTING_SECONDS = 10.0
"""VPP tries to connect a memif every few seconds."""


class Process(Feature):
    """testpmd in place of the container or virtual machine of FD.io CSIT's suites."""

    process: Literal["memif", "vhost"] | None = None
    """Interfaces through which every frame goes from VPP to a process (testpmd) and back: ``memif`` or ``vhost``
    (virtio at the process). With ``l2xc``, ``l2bd`` or ``ip4``."""

    needs = Needs(("l2xc", "l2bd", "ip4"), plugins={"memif": "", "vhost": "25.10"})

    def below(self, port: VppPort) -> tuple[VppPort, Sequence[Command]]:
        """The interface that the frames of a port go to; a router has a table for each side."""
        number = int(port.side is not WEST)
        name = Process._names(self)[number]
        if self.process == "memif":
            made = list(memif_commands(port.directory, number, is_client=self.is_contained))
        else:
            path = f"{port.directory}/vhost{number}.sock"
            made = [
                Command(
                    f"create vhost-user socket {path} server hwaddr {MACS[number]}", answer=name
                )
            ]
            made.append(Command(f"set interface state {name} up"))

        if not self.is_router:
            return port, made

        made.append(Command(f"ip table add {number + 1}"))
        made += [
            Command(f"set interface ip table {interface} {number + 1}")
            for interface in (port.link, name)
        ]
        return replace(port, table=number + 1), made

    def pairs(self, ports: Ports) -> tuple[Ports, ...]:
        """Frames are forwarded twice: in front of the process, and behind it."""
        west, east = ports
        names = Process._names(self)
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

    def programs(self, directory: str) -> Iterator[tuple[str, ...]]:
        """The arguments of testpmd, without those about its CPUs."""
        if not self.is_contained and self.guest is None:
            yield forwarder(MEMIF if self.process == "memif" else _VIRTIO, directory)

    def connected(self, ports: Ports) -> Iterator[Command]:
        """If VPP's workers sleep, they do not poll these interfaces, because the process may need their CPU."""
        return sleeping(self, ports, Process._names(self))

    def verified(self, ports: Ports) -> Iterator[Shown]:
        """Both interfaces have a process at their other end."""
        return map(is_connected, Process._names(self))

    def _names(self) -> tuple[str, str]:
        if self.process == "memif":
            return MEMIFS
        return VHOSTS


MEMIF = (
    "--vdev=net_memif{number},role=client,socket-abstract=no,socket={directory}/memif{number}.sock"
)
_VIRTIO = (
    "--vdev=net_virtio_user{number},path={directory}/vhost{number}.sock,queues=1,queue_size=1024"
)


class Container(Feature):
    """A second VPP in place of testpmd, as in FD.io CSIT's suites."""

    container: bool = False
    """Whether a second VPP with the same number of cores takes the place of testpmd: a cross-connect in a container
    with its own namespaces for mounts, network, IPC and host name. With ``process=memif`` or ``srv6_proxy``."""

    needs = Needs(plugins={"memif": ""}, tags=("docker",))

    @property
    def is_contained(self) -> bool:
        """The value of the option."""
        return self.container

    def problem(self) -> str | None:
        """A container needs interfaces to it."""
        if getattr(self, "process", None) == "memif" or getattr(self, "srv6_proxy", None):
            return None
        return "container applies to what is behind memif; also set process=memif or srv6_proxy"

    def contained(self, ports: Ports) -> Iterator[Command]:
        """Both interfaces, which it connects."""
        for number in range(len(MEMIFS)):
            yield from memif_commands(ports[0].directory, number, _CONTAINED_MACS)
        for one, other in (MEMIFS, MEMIFS[::-1]):
            yield Command(f"set interface l2 xconnect {one} {other}")


class VirtualMachine(Feature):
    """A virtual machine in place of the process, as in FD.io CSIT's suites."""

    vm: Guest | None = None
    """The program of a virtual machine that takes the place of the process: ``testpmd``, or ``vpp`` (a cross-connect).
    The machine has as many CPUs as VPP. With ``process=vhost``."""

    needs = Needs(tags=("1vm",))

    @property
    def guest(self) -> Guest | None:
        """The value of the option."""
        return self.vm

    def problem(self) -> str | None:
        """A virtual machine needs interfaces to it."""
        if getattr(self, "process", None) == "vhost":
            return None
        return "vm applies to what is behind vhost-user interfaces; also set process=vhost"


def memif_commands(
    directory: str, number: int, macs: tuple[str, str] = MACS, *, is_client: bool = False
) -> Iterator[Command]:
    """The commands that make one of the two interfaces, with its socket in a directory.

    One of the two ends must be the client, which makes the memory.
    """
    yield Command(f"create memif socket id {number + 1} filename {directory}/memif{number}.sock")
    role = "slave" if is_client else "master"
    yield Command(
        f"create interface memif id 0 socket-id {number + 1} hw-addr {macs[number]} {role}"
    )
    yield Command(f"set interface state {MEMIFS[number]} up")


def forwarder(device: str, directory: str) -> tuple[str, ...]:
    """Arguments of a testpmd that forwards between two devices, with their sockets in a directory."""
    devices = (device.format(number=number, directory=directory) for number in (0, 1))
    environment = ("--file-prefix", "lossratio", "--no-huge", "-m", "512", "--no-pci", *devices)
    mode = (
        "--forward-mode=io",
        "--no-lsc-interrupt",
        "--total-num-mbufs=16384",
        "--stats-period=86400",
    )
    return (*environment, "--", *mode)


def sleeping(options: Feature, ports: Ports, names: Iterable[str]) -> Iterator[Command]:
    """The commands that keep workers from polling interfaces, if they sleep until frames come."""
    if not options.uses_af_xdp and ports[0].link.startswith("host-"):
        yield from (Command(f"set interface rx-mode {name} interrupt") for name in names)


def is_connected(name: str) -> Shown:
    """A process is at the other end of an interface."""
    return Shown(
        f"show hardware-interfaces {name}", r"\bup\b", f"{name} is connected", _CONNECTING_SECONDS
    )
