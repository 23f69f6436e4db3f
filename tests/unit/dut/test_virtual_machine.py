"""Virtual machines behind vhost-user interfaces: their files, their command, and one that forwards real frames."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from dut_lab import NamespaceShell, hop
from waiting import is_running, wait_until

from lossratio.dut import create_dut
from lossratio.dut.changes import Changes
from lossratio.dut.daemon import Daemon, make_directory
from lossratio.dut.linux.cores import CoreChoice
from lossratio.dut.texts import filled
from lossratio.dut.vpp import Vpp
from lossratio.dut.vpp.virtual_machine import CARDS, WRITER, VirtualMachine
from lossratio.errors import DutError
from lossratio.nodes import DutNode
from lossratio.topology import VppStart

KERNEL = os.environ.get("VM_KERNEL", "")
"""A kernel whose modules are in ``lib/modules`` beside its directory."""
STAND_IN = Path(__file__).with_name("vpp_stand_in")
MACHINE = {"forwarding": "l2bd", "process": "vhost", "vm": "testpmd"}


def entries(archive: bytes) -> Iterator[tuple[str, int, bytes]]:
    """Name, mode and content of each entry of an archive, read by the format's description in Linux."""
    place = 0
    name = ""
    while name != "TRAILER!!!":
        assert archive[place : place + 6] == b"070701"
        fields = [int(archive[place + at : place + at + 8], 16) for at in range(6, 110, 8)]
        end = place + 110 + fields[11]
        name = archive[place + 110 : end - 1].decode()
        start = (end + 3) & ~3
        yield name, fields[1], archive[start : start + fields[6]]
        place = (start + fields[6] + 3) & ~3


def unpack(archive: bytes, directory: Path) -> dict[str, int]:
    """Unpacks an archive as Linux does: directories come before what is in them."""
    modes = {}
    for name, mode, content in entries(archive):
        path = directory / name
        if mode & 0o170000 == 0o120000:
            path.symlink_to(content.decode())
        elif mode & 0o170000 == 0o040000:
            path.mkdir(exist_ok=True)
        elif mode:
            path.write_bytes(content)
            path.chmod(mode & 0o777)
        modes[name] = mode
    return modes


def written(tmp_path: Path, **wanted) -> subprocess.CompletedProcess[str]:
    nothing = {"programs": [], "files": [], "if_any": [], "modules": [], "cards": CARDS}
    runs = {"guest": "testpmd", "command": "ls /dev", "workers": 1}
    places = {"archive": str(tmp_path / "archive"), "kernel": str(tmp_path / "boot/vmlinuz-7.1")}
    script = filled(WRITER.read_text(), **places, **nothing | runs | wanted)
    return subprocess.run(["sh", "-s"], input=script, capture_output=True, text=True, check=False)


needs_cpio = pytest.mark.skipif(shutil.which("cpio") is None, reason="needs cpio")


@needs_cpio
@pytest.mark.netns
def test_programs_run_with_nothing_but_their_files(tmp_path):
    done = written(tmp_path, programs=["sh", "ls", "insmod"])
    assert (done.returncode, done.stderr) == (0, "")
    root = tmp_path / "root"
    root.mkdir()
    modes = unpack((tmp_path / "archive").read_bytes(), root)
    assert modes["."] == 0o040755
    assert list(modes)[-1] == "TRAILER!!!"

    inside = ["unshare", "--user", "--map-root-user", "chroot", str(root), shutil.which("sh") or "", "-c"]
    ran = subprocess.run([*inside, "ls /; exec insmod --version"], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert {"init", "dev", "proc", "run", "sys"} <= set(ran.stdout.split())
    assert "kmod version" in ran.stdout


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"programs": ["no-such-program"]}, "needs the program no-such-program, which is missing"),
        ({"files": ["/nowhere/*.so"]}, r"needs /nowhere/\*\.so, which is missing"),
        ({"modules": ["uio_pci_generic"]}, r"vmlinuz-7\.1 has no module uio_pci_generic \(.+\): name another kernel"),
    ],
)
def test_what_is_missing_is_named(tmp_path, wanted, message):
    if "modules" in wanted and shutil.which("modprobe", path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None:
        pytest.skip("needs modprobe (Debian: kmod)")
    done = written(tmp_path, **wanted)
    assert done.returncode == 1
    assert re.search(message, done.stderr)


@needs_cpio
def test_files_that_need_not_be_there_may_be_missing(tmp_path):
    assert written(tmp_path, if_any=["/nowhere/*.so"]).returncode == 0


@needs_cpio
def test_links_remain_links_so_that_a_library_is_there_once(plain_path):
    (plain_path / "librte_bus.so.23.0").touch()
    (plain_path / "librte_bus.so.23").symlink_to("librte_bus.so.23.0")
    (plain_path / "librte_bus.so").symlink_to(plain_path / "librte_bus.so.23")
    assert written(plain_path, if_any=[str(plain_path / "librte_*")]).returncode == 0
    modes = {Path(name).name: mode for name, mode, _ in entries((plain_path / "archive").read_bytes())}
    assert {name for name in modes if "librte" in name} == {"librte_bus.so", "librte_bus.so.23", "librte_bus.so.23.0"}
    assert modes["librte_bus.so"] == modes["librte_bus.so.23"] == 0o120777
    assert modes["librte_bus.so.23.0"] == 0o100644


@needs_cpio
def test_the_modules_are_those_of_the_kernel_in_their_order(plain_path, monkeypatch):
    programs = plain_path / "bin"
    programs.mkdir()
    modules = [plain_path / f"{name}.ko" for name in ("uio", "uio_pci_generic")]
    for module in modules:
        module.write_text(module.name)
    said = "".join(f"insmod {module} \\n" for module in modules)
    (programs / "modprobe").write_text(f'#!/bin/sh\necho "$@" > {plain_path}/asked\nprintf "{said}builtin virtio\\n"\n')
    (programs / "modprobe").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")

    assert written(plain_path, modules=["uio_pci_generic"]).returncode == 0
    asked = (plain_path / "asked").read_text().split()
    assert asked == ["--dirname", str(plain_path), "--set-version", "7.1", "--show-depends", "uio_pci_generic"]
    contents = {name: content for name, _, content in entries((plain_path / "archive").read_bytes())}
    loaded = [contents[name].decode() for name in sorted(contents) if name.startswith("modules/")]
    assert loaded == ["uio.ko", "uio_pci_generic.ko"]


def machine(node: DutNode, **changed) -> VirtualMachine:
    return replace(VirtualMachine(node, "testpmd", "/opt/vpp", "/tmp/vpp", 2, "/boot/vmlinuz-7.1"), **changed)


class Shell:
    """Answers as a node does; commands that are not among its answers succeed, or fail."""

    name = "DUT1"

    def __init__(self, answers: dict[str, str], failing: tuple[str, ...] = ()) -> None:
        self.answers = answers
        self.failing = failing

    def run(self, *command, **_):
        from lossratio.nodes import CommandResult

        text = " ".join(command)
        status = int(any(part in text for part in self.failing))
        answer = next((said for part, said in self.answers.items() if part in text), "")
        return CommandResult(command, status, answer, "")


@pytest.mark.parametrize(
    ("answers", "failing", "changed", "message"),
    [
        ({"uname": "aarch64\n"}, (), {}, "needs a node with x86_64, but this one has aarch64"),
        ({"uname": "x86_64\n"}, (), {"kernel": None}, r"no /boot/vmlinuz-\*.*linux-image-amd64.*vm_kernel"),
        ({"uname": "x86_64\n"}, ("vmlinuz",), {}, r"kernel /boot/vmlinuz-7\.1, but this user cannot read it"),
        ({"uname": "x86_64\n"}, ("/dev/kvm",), {}, "group kvm, or give 'vpp: {vm_emulated: true}'"),
    ],
)
def test_a_node_that_cannot_run_it_is_an_error_with_the_way_out(answers, failing, changed, message):
    with pytest.raises(DutError, match=message):
        machine(DutNode(Shell(answers, failing)), **changed).check()


def test_an_emulated_machine_needs_no_kvm():
    machine(DutNode(Shell({"uname": "x86_64\n"}, ("/dev/kvm",))), is_emulated=True).check()


@pytest.mark.parametrize(
    ("changed", "there", "not_there"),
    [
        ({}, ["accel=kvm", "-cpu host", "-smp 3,", "queues=2 ", "vectors=6"], ["hugetlb=on", "tcg"]),
        ({"is_emulated": True}, ["accel=tcg", "-cpu max"], ["kvm", "-cpu host"]),
        ({"has_hugepages": True}, ["hugetlb=on,hugetlbsize=2M"], []),
    ],
)
def test_its_command_has_csits_cards_memory_and_cpus(changed, there, not_there):
    command = " ".join(machine(DutNode(Shell({})), **changed).command)
    csits = ["memory-backend-memfd", "size=4096M,share=on", "rx_queue_size=1024,tx_queue_size=1024", "mem-merge=off"]
    for part in (*csits, "addr=6.0", "addr=7.0", "/tmp/vpp/vhost0.sock", "/tmp/vpp/vhost1.sock", *there):
        assert part in command
    for part in not_there:
        assert part not in command


class Recorder(Changes):
    """Keeps what is written."""

    def __init__(self, node: DutNode) -> None:
        super().__init__(node)
        self.given: list[str] = []

    def run(self, *command: str, undo=None, stdin=None, **_):
        if command == ("sh", "-s"):
            self.given.append(stdin)
        return ""


def script_of(guest: str) -> str:
    node = DutNode(Shell({}))
    changes = Recorder(node)
    machine(node, guest=guest).write_files(changes)
    (given,) = changes.given
    return given


def test_testpmd_forwards_in_it_with_as_many_cores_and_queues_as_it_has_workers():
    script = script_of("testpmd")
    assert "dpdk-testpmd --lcores 0,1,2 --in-memory" in script
    assert "--forward-mode=io" in script
    assert "--nb-cores=2 --rxq=2 --txq=2" in script
    assert "for program in sh mkdir mount insmod dpdk-testpmd; do" in script
    assert "startup.conf" not in script


def test_a_vpp_in_it_connects_both_cards():
    script = script_of("vpp")
    # Without /dev/shm, the real VPP ends by a signal.
    assert "mkdir /dev/shm\n" in script.partition("/opt/vpp/bin/vpp -c /startup.conf\n")[0]
    assert "exec /forward" in script
    assert "corelist-workers 1-2" in script
    for card, name in zip(CARDS, ("west", "east"), strict=True):
        assert f"dev {card} {{ name {name} num-rx-queues 2 }}" in script
    assert "set interface l2 xconnect west east\nset interface l2 xconnect east west\nshow mode\n" in script
    assert "for path in /opt/vpp/bin/vpp; do" in script


def test_it_takes_the_place_of_testpmd_and_needs_vhost_user():
    options = Vpp.all_options()(**MACHINE)
    assert options.has_programs
    assert not options.has_testpmd
    with pytest.raises(ValueError, match="also set process=vhost"):
        Vpp.all_options()(**{**MACHINE, "process": "memif"})
    with pytest.raises(ValueError, match="also set process=vhost"):
        Vpp.all_options()(forwarding="l2bd", vm="vpp")


@pytest.mark.whole
def test_its_memory_is_among_the_hugepages_that_cards_need(dut_lab):
    plain, with_machine = (
        Vpp(dut_lab.shell, hop(), Vpp.all_options()(**{**MACHINE, "vm": guest})).hugepages_needed
        for guest in (None, "testpmd")
    )
    assert with_machine - plain == 4096


QEMU = """#!/bin/sh
[ "$1" = --version ] && echo "QEMU emulator version 7" && exit
echo "$@" > {place}/asked
echo "io packet forwarding - ports=2"
exec sleep 1000
"""
MODPROBE = "#!/bin/sh\nexit 0\n"


class ShellWithPrograms(NamespaceShell):
    """A node that has further programs in front of its own."""

    programs: Path

    def run(self, *command, **options):
        words = (
            word.replace("PATH=", f"PATH={self.programs}:", 1) if word.startswith("PATH=") else word for word in command
        )
        return super().run(*words, **options)


@needs_cpio
@pytest.mark.netns
def test_it_is_started_behind_vpp_and_ends_with_it(dut_lab, plain_path):
    for name, text in (("qemu-system-x86_64", QEMU.format(place=plain_path)), ("modprobe", MODPROBE)):
        (plain_path / name).write_text(text)
        (plain_path / name).chmod(0o755)
    (plain_path / "vmlinuz-7.1").touch()
    shell = ShellWithPrograms(dut_lab.lab, "dut")
    shell.programs = plain_path

    start = VppStart(vm_kernel=str(plain_path / "vmlinuz-7.1"), vm_emulated=True)
    options = {"home": str(STAND_IN), "process": "vhost", "vm": "testpmd"}
    dut = create_dut("vpp", shell, replace(hop(), vpp=start), options)
    dut.set_up(*dut_lab.macs)
    try:
        vpp, qemu = dut.daemons
        assert (plain_path / "asked").read_text() == " ".join(qemu.command[1:]) + "\n"
        assert f"path={vpp.directory}/vhost1.sock" in (plain_path / "asked").read_text()
        assert Path(vpp.directory, "initial-files").stat().st_size > 1_000_000
        pid = int(Path(qemu.program.pid).read_text().split()[0])
    finally:
        dut.tear_down()
    wait_until(lambda: not is_running(pid))
    assert not Path(vpp.directory).exists()


@pytest.mark.netns
@pytest.mark.skipif(not os.access(KERNEL, os.R_OK), reason="needs a kernel for the machine: set VM_KERNEL")
@pytest.mark.skipif(shutil.which("qemu-system-x86_64") is None, reason="needs qemu-system-x86_64")
@pytest.mark.skipif(shutil.which("dpdk-testpmd") is None, reason="needs dpdk-testpmd")
def test_every_frame_goes_through_a_virtual_machine(dut_lab):
    # In the place of VPP, a testpmd of the node joins each interface to a vhost-user socket.
    node = DutNode(dut_lab.shell)
    changes = Changes(node)
    try:
        directory = make_directory(changes, "vm")
        outer = ("env", f"RUNTIME_DIRECTORY={directory}", "dpdk-testpmd", "--lcores=0,1", "--file-prefix=outer")
        memory = ("--no-huge", "-m", "256", "--no-pci")
        links = [f"--vdev=net_af_packet{number},iface=dut{number},framecnt=4096" for number in (0, 1)]
        sockets = [f"--vdev=net_vhost{number},iface={directory}/vhost{number}.sock" for number in (0, 1)]
        devices = (links[0], sockets[0], sockets[1], links[1])
        mode = ("--", "--no-lsc-interrupt", "--total-num-mbufs=16384", "--stats-period=86400")
        testpmd = Daemon(node, directory, "testpmd", (*outer, *memory, *devices, *mode))
        testpmd.start(changes, Path(f"{directory}/vhost1.sock").exists)

        inner = machine(node, directory=directory, workers=1, kernel=KERNEL, is_emulated=True)
        log = Path(directory, "virtual-machine.log")
        qemu = inner.start(
            changes, CoreChoice(0, (1,), 0, shared=False), lambda: "TX offloads" in log.read_text(errors="replace")
        )
        assert placed(qemu) == {"CPU 0/TCG": "0", "CPU 1/TCG": "1"}

        for entry in ("west", "east"):
            wait_until(lambda side=entry: dut_lab.flood(side, "02:00:00:00:00:99", frames=10).received == 10)
            flooded = dut_lab.flood(entry, "02:00:00:00:00:99", frames=100)
            assert (flooded.sent, flooded.received) == (100, 100)

        dut_lab.kill(qemu)
        assert dut_lab.flood("west", "02:00:00:00:00:99", frames=10).received == 0
    finally:
        changes.roll_back()


def placed(daemon: Daemon) -> dict[str, str]:
    """The CPUs that each of a machine's virtual CPUs may use."""
    pid = Path(daemon.program.pid).read_text().split()[0]
    found = {}
    for task in Path("/proc", pid, "task").iterdir():
        name = (task / "comm").read_text().strip()
        if name.startswith("CPU "):
            found[name] = re.search(r"Cpus_allowed_list:\s*(\S+)", (task / "status").read_text())[1]
    return found
