"""A virtual machine behind VPP's vhost-user interfaces: QEMU, a kernel of the node, and programs of the node.

As in FD.io CSIT's suites, the machine has no disk. It starts a kernel of the node, with the node's own testpmd or VPP
in its initial file system, and ends with that program.
"""

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lossratio.dut.base import Tool
from lossratio.dut.changes import Changes
from lossratio.dut.daemon import Daemon
from lossratio.dut.linux.cores import CoreChoice
from lossratio.dut.texts import filled, words
from lossratio.nodes import DutNode

QEMU = Tool("qemu-system-x86_64", "qemu-system-x86", title="QEMU")
"""The program that runs the machine."""
Guest = Literal["testpmd", "vpp"]
"""What forwards in the machine."""
STARTING_SECONDS = 300.0
"""Seconds that an emulated machine may take to start on a busy node; a machine with KVM takes a few."""
MEGABYTES = 4096
"""Its memory, as in CSIT."""
CARDS = ("0000:00:06.0", "0000:00:07.0")
# As in CSIT, without a boot ROM for each card.
_QEMU = """
qemu-system-x86_64 -nodefaults -no-user-config -nographic -no-reboot
-name lossratio,debug-threads=on
% if machine.is_emulated
    -machine pc,accel=tcg,usb=off,mem-merge=off -cpu max
% else
    -machine pc,accel=kvm,usb=off,mem-merge=off -cpu host
% endif
-smp {{ 1 + machine.workers }},sockets=1,cores={{ 1 + machine.workers }},threads=1
-m {{ megabytes }} -object memory-backend-memfd,id=memory,size={{ megabytes }}M,share=on
{{- ",hugetlb=on,hugetlbsize=2M" if machine.has_hugepages }}
-numa node,memdev=memory
-kernel {{ kernel | quoted }} -initrd {{ files }}
-append "console=ttyS0 quiet panic=-1 tsc=reliable hugepages=512"
-chardev stdio,id=console,signal=off -serial chardev:console
% for number in (0, 1)
    -chardev socket,id=socket{{ number }},path={{ machine.directory }}/vhost{{ number }}.sock
    -netdev vhost-user,id=link{{ number }},chardev=socket{{ number }},queues={{ machine.workers }}
    -device virtio-net-pci,netdev=link{{ number }},mac=52:54:00:00:01:0{{ number + 1 }},addr={{ number + 6 }}.0,romfile=
    {{- ",mq=on,vectors=%d,rx_queue_size=1024,tx_queue_size=1024" % (2 * machine.workers + 2) }}
    {{- ",csum=off,gso=off,guest_tso4=off,guest_tso6=off,guest_ecn=off" }}
% endfor
"""
"""The command that runs the machine."""
# Without --stats-period, testpmd ends when its standard input ends.
_GUESTS: Mapping[Guest, str] = {
    "testpmd": """
        dpdk-testpmd --lcores {{ range(1 + machine.workers) | join(",") }} --in-memory
        -a 0000:00:06.0 -a 0000:00:07.0 --
        --forward-mode=io --no-lsc-interrupt --stats-period=86400
        --nb-cores={{ machine.workers }} --rxq={{ machine.workers }} --txq={{ machine.workers }}
        --total-num-mbufs=32768 --mbuf-size=16384
    """,
    "vpp": "{{ machine.home | quoted }}/bin/vpp -c /startup.conf",
}
"""The commands of the programs in it, as in CSIT."""
_FORWARDS: Mapping[Guest, str] = {"testpmd": "packet forwarding", "vpp": "l2 xconnect east"}
"""What the program in it writes on the console as soon as it forwards."""
_FILES = "initial-files"
WRITER = Path(__file__).with_name("virtual_machine.sh.jinja")
"""The script that writes the initial file system, in the format that Linux reads (cpio), on a node."""
_NEEDED = ("sh", "mkdir", "mount", "insmod")
# Tables: programs in the path, which are copied with the libraries that they load, files, and patterns of further ones.
_PROGRAMS: Mapping[Guest, tuple[str, ...]] = {"testpmd": (*_NEEDED, "dpdk-testpmd"), "vpp": _NEEDED}
_PATHS: Mapping[Guest, str] = {"testpmd": "", "vpp": "{{ machine.home | quoted }}/bin/vpp"}
_IF_ANY: Mapping[Guest, tuple[str, ...]] = {
    "testpmd": tuple(
        f"/usr/lib*/*/dpdk/pmds-*/librte_{name}.so*"
        for name in ("bus_pci", "bus_vdev", "mempool_ring", "net_virtio")
    ),
    "vpp": (
        "{{ machine.home | quoted }}/lib*/vpp_plugins/dpdk_plugin.so",
        "{{ machine.home | quoted }}/lib*/*/vpp_plugins/dpdk_plugin.so",
    ),
}
_NEWEST_KERNEL = "ls -v /boot/vmlinuz-* 2>/dev/null | tail -n 1"
# Gives each virtual CPU, which is a QEMU thread of this name, a CPU of the node.
_PLACE = """
read -r pid start < "$1"; shift
number=0
for cpu in "$@"; do
    for task in /proc/"$pid"/task/*; do
        read -r name < "$task/comm"
        case $name in "CPU $number/"*) taskset -pc "$cpu" "${task##*/}" > /dev/null || exit;; esac
    done
    number=$((number + 1))
done
"""


@dataclass(frozen=True)
class VirtualMachine:
    """A virtual machine with two cards, each of which is the other end of a vhost-user interface."""

    node: DutNode
    """The node that it runs on."""
    guest: Guest
    """What forwards in it."""
    home: str
    """Directory of VPP on the node."""
    directory: str
    """Directory of VPP's sockets, and of its own files."""
    workers: int
    """Number of virtual CPUs that forward; one more does everything else. Each card has this many queues."""
    kernel: str | None = None
    """Path of its kernel; None: the node's newest one."""
    is_emulated: bool = False
    """Whether QEMU emulates its CPUs; otherwise, they are the node's own, through KVM."""
    has_hugepages: bool = False
    """Whether its memory is in the node's hugepages."""

    def check(self) -> None:
        """Checks that the node can run it.

        Raises:
            DutError: If the node has no KVM, an unsuitable architecture, or no kernel for it.
        """
        architecture = self.node.run("uname", "-m").strip()
        if architecture != "x86_64":
            raise self.node.error(
                f"the virtual machine needs a node with x86_64, but this one has {architecture}. Leave out vm, or "
                "use another node."
            )
        self.find_kernel()
        if self.is_emulated:
            return
        if self.node.attempt("test", "-r", "/dev/kvm", "-a", "-w", "/dev/kvm").exit_status:
            raise self.node.error(
                "the virtual machine needs KVM, but this user cannot open /dev/kvm. Add the user to the group kvm, "
                "or give 'vpp: {vm_emulated: true}' in the topology file: then QEMU emulates the CPUs, which is "
                "slow."
            )

    def find_kernel(self) -> str:
        """The path of its kernel.

        Raises:
            DutError: If there is none, or this user cannot read it.
        """
        path = self.kernel or self.node.run("sh", "-c", _NEWEST_KERNEL).strip()
        if not path:
            raise self.node.error(
                "the virtual machine needs a kernel, but there is no /boot/vmlinuz-*. Install one (Debian: "
                "linux-image-amd64), or give 'vpp: {vm_kernel: PATH}' in the topology file."
            )
        if self.node.attempt("test", "-r", path).exit_status != 0:
            raise self.node.error(
                f"the virtual machine needs the kernel {path}, but this user cannot read it. Give 'vpp: "
                f"{{vm_kernel: PATH}}' in the topology file."
            )
        return path

    def start(
        self, changes: Changes, cores: CoreChoice, is_connected: Callable[[], bool]
    ) -> Daemon:
        """Starts it, and waits until the program in it has its cards, and forwards.

        On a busy node, an emulated machine takes some ten seconds between these two events.

        Args:
            changes: What has been changed on the node.
            cores: CPUs of the node for its virtual CPUs.
            is_connected: Whether both cards are in use.

        Raises:
            DutError: If it cannot be made or started, ends, or takes too long.
        """
        self.write_files(changes)
        daemon = Daemon(self.node, self.directory, "virtual-machine", self.command)

        def is_ready() -> bool:
            asked = ("grep", "-q", _FORWARDS[self.guest], daemon.program.log)
            return is_connected() and self.node.attempt(*asked).exit_status == 0

        daemon.start(changes, is_ready, STARTING_SECONDS)
        cpus = map(str, (cores.main, *cores.workers))
        self.node.run("sh", "-c", _PLACE, "place", daemon.program.pid, *cpus)
        return daemon

    def write_files(self, changes: Changes) -> None:
        """Writes its initial file system into its directory.

        Raises:
            DutError: If a program, a library or a kernel module is missing.
        """
        paths = words(_PATHS[self.guest], machine=self)
        patterns = [filled(pattern, machine=self) for pattern in _IF_ANY[self.guest]]
        command = shlex.join(words(_GUESTS[self.guest], machine=self))

        script = filled(
            WRITER.read_text(encoding="utf-8"),
            archive=f"{self.directory}/{_FILES}",
            kernel=self.find_kernel(),
            programs=_PROGRAMS[self.guest],
            files=paths,
            if_any=patterns,
            modules=["uio_pci_generic"],
            guest=self.guest,
            cards=CARDS,
            command=command,
            workers=self.workers,
        )
        changes.run("sh", "-s", stdin=script)

    @property
    def command(self) -> tuple[str, ...]:
        """The command that runs it, with its console as standard output, until the program in it ends."""
        kernel = self.find_kernel()
        files = f"{self.directory}/{_FILES}"
        return words(_QEMU, machine=self, megabytes=MEGABYTES, kernel=kernel, files=files)
