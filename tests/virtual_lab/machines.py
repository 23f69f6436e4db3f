"""A laboratory of virtual machines: TG and DUTs with PCI cards, cables between them, and SSH with strict host keys."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import shlex
import shutil
import socket
import subprocess
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import paramiko
import yaml
from images import CannotBuildError, Image
from taps import TapInterfaces

QEMU = "qemu-system-x86_64"
PROCESSOR = os.environ.get("VIRTUAL_LAB_PROCESSOR", "Nehalem")
"""QEMU's name of the processors. Later ones are several times slower in software."""
BOOT_SECONDS = 1200.0
"""The longest that a machine may take until it can be logged in to: half a minute on a quiet host."""
_DIRECTORY = "virtual-lab-"
FIRST_SLOT = 16
"""The PCI slot of a machine's first card; the others follow."""


@dataclass(frozen=True)
class Card:
    """A PCI network card, and the cable that is plugged into it.

    A cable joins two cards, or a card and a TAP interface of the host.
    """

    model: str
    """QEMU's name of the model: ``vmxnet3``, ``virtio-net-pci`` or ``e1000e``."""
    cable: str


@dataclass(frozen=True)
class Plan:
    """A machine that a laboratory is to have."""

    image: Image
    cards: Sequence[Card]
    cpus: int = 1
    megabytes: int = 768
    """Its memory."""
    sockets: int = 1
    """Sockets that share its processors and its memory; each is a NUMA node."""
    parameters: str = ""
    """Further parameters of the kernel."""
    has_iommu: bool = False
    """Whether an IOMMU is between its cards and its memory, so that vfio-pci can have them."""
    programs: Sequence[Path] = ()
    """Directories of the host with programs that Debian does not have; see `Machine.mount_programs`."""


@dataclass(frozen=True)
class Ran:
    """A command that has ended on a machine."""

    status: int
    out: str
    """Its standard output and error."""


@dataclass
class Machine:
    """A virtual machine that is switched on."""

    name: str
    plan: Plan
    directory: Path
    """The laboratory's: keys, sockets, consoles."""
    plugs: Sequence[str]
    """Of each card the cable, as QEMU's option ``-netdev`` has it: its kind, and where it ends."""
    port: int
    """Where its sshd is reached on the host's loopback interface."""
    is_borrowed: bool = False
    """Whether another process has switched it on, and will switch it off."""
    _process: subprocess.Popen[bytes] | None = None
    _client: paramiko.SSHClient | None = None

    def start(self) -> None:
        """Switches it on. QEMU ends with this process, however that ends."""
        if self.is_borrowed:
            return
        make_key(self._file("key"))
        self._file("port").write_text(str(self.port))
        parent_dies = ("setpriv", "--pdeathsig", "KILL")
        with self._file("log").open("wb") as log:
            command = [*parent_dies, *self._command()]
            # Ctrl-C is for the tests: they switch it off.
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def switch_off(self) -> None:
        """Takes its power away, and waits until it has gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    @property
    def host_key(self) -> str:
        """Its public host key; the machine gets the private one when it boots, so nobody asks the machine for it."""
        return " ".join(self._file("key.pub").read_text().split()[:2])

    @property
    def known_hosts_line(self) -> str:
        """Its line in a file of known hosts."""
        return f"[127.0.0.1]:{self.port} {self.host_key}"

    @property
    def console(self) -> str:
        """What its kernel and its init have said."""
        return self._file("console").read_text(errors="replace")

    def mac(self, number: int) -> str:
        """MAC address of a card."""
        return f"52:54:{sum(self.name.encode()) % 256:02x}:00:01:{number:02x}"

    def pci_address(self, number: int) -> str:
        """PCI address of a card."""
        return f"0000:00:{FIRST_SLOT + number:02x}.0"

    def interface(self, number: int) -> str:
        """Name that Linux gives to a card, after its slot."""
        return f"{'enp0s' if self.plan.has_iommu else 'ens'}{FIRST_SLOT + number}"

    def node(self, kind: str, **interfaces: Mapping[str, Any]) -> dict[str, Any]:
        """The machine as a node of a topology file, which gives each interface ``card``, and its further fields."""
        ports = {}
        for name, fields in interfaces.items():
            number = fields["card"]
            further = {key: value for key, value in fields.items() if key != "card"}
            pci = self.pci_address(number)
            ports[name] = {
                "name": self.interface(number),
                "pci_address": pci,
                "mac_address": self.mac(number),
                **further,
            }
        # Record: how a controller logs in.
        return {
            "type": kind,
            "host": "127.0.0.1",
            "port": self.port,
            "username": "root",
            "key_file": str(self.directory / "user.key"),
            "known_hosts": str(self.directory / "known_hosts"),
            "connect_timeout": "60 s",
            "interfaces": ports,
        }

    def run(self, *command: str, check: bool = True, seconds: float = 120.0) -> str:
        """Runs a command as root, and returns what it printed; it is an error if it failed."""
        return self.shell(shlex.join(command), check=check, seconds=seconds)

    def shell(self, script: str, *, check: bool = True, seconds: float = 120.0) -> str:
        """Runs a line of shell code as root, like `run`."""
        _, out, _ = self._logged_in().exec_command(f"exec 2>&1; {script}", timeout=seconds)
        text = out.read().decode(errors="replace")
        status = out.channel.recv_exit_status()
        assert status == 0 or not check, f"{self.name}: {script} ended with {status}: {text}"
        return text

    def wait_for_boot(self) -> None:
        """Waits until one can log in, from a new connection on."""
        self.forget_connection()
        wait_until(self._can_log_in, f"up: {self.name}", BOOT_SECONDS)

    def forget_connection(self) -> None:
        """Closes the connection that `run` keeps."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def boot_id(self) -> str:
        """A text that is another one after each boot."""
        return self.run("cat", "/proc/sys/kernel/random/boot_id").strip()

    def ask(self, command: str, **arguments: object) -> Any:
        """Has QEMU do something (its protocol QMP), such as ``system_reset``."""
        with socket.socket(socket.AF_UNIX) as line, line.makefile("rw") as monitor:
            line.settimeout(60.0)
            line.connect(str(self._file("qmp")))
            monitor.readline()
            for name, values in (("qmp_capabilities", {}), (command, arguments)):
                monitor.write(json.dumps({"execute": name, "arguments": values}) + "\n")
                monitor.flush()
                # Events come in between.
                while "return" not in (answer := json.loads(monitor.readline())):
                    assert "error" not in answer, answer
            return answer["return"]

    def cut_power(self) -> None:
        """What only its memory holds is lost, and it boots anew."""
        self.forget_connection()
        self.ask("system_reset")

    def reboot(self) -> None:
        """Its init ends all programs, and it boots anew."""
        self.shell("systemctl reboot", check=False)
        self.forget_connection()

    def write(self, path: str, text: str) -> None:
        """Writes a file."""
        self.shell(f"printf %s {shlex.quote(text)} >{path}")

    def copy(self, source: Path, path: str) -> None:
        """Copies a file of the host."""
        with self._logged_in().open_sftp() as files:
            files.put(str(source), path)

    def mount_programs(self) -> None:
        """Shows the programs of its plan in directories of the same names, which nobody can write to."""
        options = "trans=virtio,version=9p2000.L,ro,cache=loose"
        for home in self.plan.programs:
            self.shell(f"mkdir -p {home}; mountpoint -q {home} || mount -t 9p -o {options} {_tag(home)} {home}")

    @contextlib.contextmanager
    def unreachable(self) -> Iterator[None]:
        """Nobody reaches its sshd meanwhile, and no packet says why."""
        self.forget_connection()
        self.ask("set_link", name="control", up=False)
        try:
            yield
        finally:
            self.ask("set_link", name="control", up=True)

    def _file(self, kind: str) -> Path:
        return self.directory / f"{self.name}.{kind}"

    def _command(self) -> Iterator[str]:
        plan = self.plan
        yield from (QEMU, "-nodefaults", "-no-user-config", "-display", "none")
        yield from ("-machine", "q35" if plan.has_iommu else "pc")
        if plan.has_iommu:
            # It comes before the cards that are behind it.
            yield from ("-device", "intel-iommu")
        yield from ("-accel", "tcg", "-cpu", PROCESSOR, "-m", str(plan.megabytes))
        yield from ("-smp", f"{plan.cpus},sockets={plan.sockets}")
        share = plan.cpus // plan.sockets
        for node in range(plan.sockets):
            first = node * share
            memory = f"memory-backend-ram,id=memory{node},size={plan.megabytes // plan.sockets}M"
            yield from ("-object", memory)
            yield from ("-numa", f"node,nodeid={node},cpus={first}-{first + share - 1},memdev=memory{node}")
        yield from ("-kernel", str(plan.image.kernel), "-initrd", str(plan.image.initrd), "-append")
        # A host that is busy makes each step of the boot slow.
        patience = "systemd.default_timeout_start_sec=1200"
        name = f"systemd.hostname={self.name.lower()}"
        yield f"root=/dev/vda rw console=ttyS0 mitigations=off {patience} {name} {plan.parameters}"
        yield from ("-drive", f"file={plan.image.disk},format=raw,if=virtio,snapshot=on")
        yield from ("-serial", f"file:{self._file('console')}")
        yield from ("-qmp", f"unix:{self._file('qmp')},server=on,wait=off")
        yield from ("-fw_cfg", f"name=opt/io.systemd.credentials/tmpfiles.extra,file={self._credentials()}")
        for home in plan.programs:
            place = f"path={home},mount_tag={_tag(home)}"
            yield from ("-virtfs", f"local,{place},security_model=none,readonly=on")
        # It is reached at its sshd, and reaches nobody.
        yield from ("-netdev", f"user,id=control,restrict=on,hostfwd=tcp:127.0.0.1:{self.port}-:22")
        yield from ("-device", "virtio-net-pci,netdev=control,mac=52:54:00:00:00:02,addr=3,romfile=")

        for number, (card, plug) in enumerate(zip(plan.cards, self.plugs, strict=True)):
            yield from ("-netdev", f"{plug},id=cable{number}")
            place = f"id=card{number},mac={self.mac(number)},addr={FIRST_SLOT + number:#x},romfile="
            if plan.has_iommu and card.model.startswith("virtio"):
                place += ",iommu_platform=on,disable-legacy=on"
            yield from ("-device", f"{card.model},netdev=cable{number},{place}")

    def _credentials(self) -> Path:
        """Files that systemd writes at each boot: the host key, and who may log in."""
        files = {
            "/etc/ssh/ssh_host_ed25519_key": self._file("key"),
            "/root/.ssh/authorized_keys": self.directory / "user.key.pub",
        }
        lines = ["d /root/.ssh 0700 root root -"]
        for path, source in files.items():
            lines.append(f"f+~ {path} 0600 root root - {base64.b64encode(source.read_bytes()).decode()}")
        self._file("tmpfiles").write_text("\n".join(lines) + "\n")
        return self._file("tmpfiles")

    def _logged_in(self) -> paramiko.SSHClient:
        if self._client is None:
            client = paramiko.SSHClient()
            client.set_missing_host_key_policy(paramiko.RejectPolicy())
            client.load_host_keys(str(self.directory / "known_hosts"))
            key = str(self.directory / "user.key")
            seconds = {"timeout": 30.0, "banner_timeout": 120.0, "auth_timeout": 120.0}
            client.connect(
                "127.0.0.1", self.port, "root", key_filename=key, look_for_keys=False, allow_agent=False, **seconds
            )
            self._client = client
        return self._client

    def _can_log_in(self) -> bool:
        if self._process is not None:
            assert self._process.poll() is None, f"QEMU has ended: {self._file('log').read_text()}"
        # QEMU takes the connection before anybody in the machine listens.
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.settimeout(60.0)
            probe.connect(("127.0.0.1", self.port))
            if probe.recv(4) != b"SSH-":
                return False
            self.run("true")
            return True
        return False


class VirtualLab:
    """Machines by name, and their cables. All of it has gone at the end of a ``with`` block, or of the process."""

    def __init__(self, plans: Mapping[str, Plan], borrowed: Path | None = None) -> None:
        """Switches the machines on, and waits until all have booted.

        Args:
            plans: The machines by name.
            borrowed: The directory of a laboratory of the same plans, which another process keeps up; None: none.
        """
        remove_remains()
        self.is_borrowed = borrowed is not None
        if borrowed is not None:
            self.directory = borrowed
            ports = {name: int((borrowed / f"{name}.port").read_text()) for name in plans}
        else:
            self.directory = Path(tempfile.mkdtemp(prefix=f"{_DIRECTORY}{os.getpid()}-"))
            make_key(self.directory / "user.key")
            ports = {name: free_port() for name in plans}

        self.taps = TapInterfaces.of(self.directory, _cables_to_the_host(plans))
        self.machines = {
            name: Machine(name, plan, self.directory, self._plugs(name, plans), ports[name], self.is_borrowed)
            for name, plan in plans.items()
        }
        try:
            if not self.is_borrowed:
                self.taps.make()
            for machine in self.machines.values():
                machine.start()
            lines = [machine.known_hosts_line for machine in self.machines.values()]
            (self.directory / "known_hosts").write_text("\n".join(lines) + "\n")
            if not self.is_borrowed:
                self.taps.hide()
            for machine in self.machines.values():
                machine.wait_for_boot()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> VirtualLab:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getitem__(self, name: str) -> Machine:
        return self.machines[name]

    def close(self) -> None:
        """Switches all machines off."""
        for machine in self.machines.values():
            machine.forget_connection()
            machine.switch_off()
        if not self.is_borrowed:
            self.taps.remove()
            shutil.rmtree(self.directory)

    def topology(self, name: str, nodes: Mapping[str, Any], **fields: Any) -> Path:
        """Writes a topology file of nodes, see `Machine.node`; further fields are the file's."""
        path = self.directory / f"{name}.yaml"
        content = {"format": "lossratio-topology/1", "name": name, "nodes": nodes, **fields}
        path.write_text(yaml.safe_dump(content, sort_keys=False))
        return path

    def plug(self, cable: str, *, is_in: bool) -> None:
        """Pulls a cable out at both ends, or plugs it in."""
        for machine in self.machines.values():
            for number, card in enumerate(machine.plan.cards):
                if card.cable == cable:
                    machine.ask("set_link", name=f"card{number}", up=is_in)

    @contextlib.contextmanager
    def unplugged(self, cable: str) -> Iterator[None]:
        """A cable that is pulled out."""
        self.plug(cable, is_in=False)
        try:
            yield
        finally:
            self.plug(cable, is_in=True)

    def _plugs(self, name: str, plans: Mapping[str, Plan]) -> list[str]:
        plugs = []
        for number, card in enumerate(plans[name].cards):
            if card.cable in self.taps.names:
                plugs.append(f"tap,ifname={self.taps.names[card.cable]},script=no,downscript=no")
                continue
            ends = [
                (other, at)
                for other, plan in plans.items()
                for at, its in enumerate(plan.cards)
                if its.cable == card.cable
            ]
            assert len(ends) == 2, f"the cable {card.cable} has {len(ends)} ends"
            own = (name, number)
            far = ends[1 - ends.index(own)]
            near_end = f"local.type=unix,local.path={self._socket(*own)}"
            plugs.append(f"dgram,{near_end},remote.type=unix,remote.path={self._socket(*far)}")
        return plugs

    def _socket(self, machine: str, number: int) -> Path:
        return self.directory / f"{machine}.plug{number}"


def _tag(home: Path) -> str:
    """Name that a machine knows a directory of programs by; it must be short."""
    return f"programs-{zlib.crc32(str(home).encode()):08x}"


def _cables_to_the_host(plans: Mapping[str, Plan]) -> Sequence[str]:
    """The cables that only one card is plugged into."""
    cables = [card.cable for plan in plans.values() for card in plan.cards]
    return [cable for cable in cables if cables.count(cable) == 1]


def require_qemu() -> None:
    """Checks that machines can be switched on here.

    Raises:
        CannotBuildError: If QEMU is missing.
    """
    if shutil.which(QEMU) is None:
        raise CannotBuildError(f"{QEMU} is missing (Debian package qemu-system-x86)")


def remove_remains() -> None:
    """Removes the directories of laboratories whose process was killed; their machines have ended with it."""
    for directory in Path(tempfile.gettempdir()).glob(f"{_DIRECTORY}*"):
        pid = directory.name.removeprefix(_DIRECTORY).partition("-")[0]
        if pid.isdecimal() and not Path(f"/proc/{pid}").exists():
            # Their cables are gone, too: nobody else has made this namespace.
            TapInterfaces.of(directory, ()).remove()
            shutil.rmtree(directory, ignore_errors=True)


def make_key(path: Path) -> None:
    """Makes a private key without passphrase, and its public key beside it."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "virtual-lab", "-f", str(path)], check=True)


def free_port() -> int:
    """A TCP port of the loopback interface that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_until(condition: Callable[[], object], what: str, seconds: float = 300.0) -> None:
    """Waits until a condition holds; the error says what did not happen."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds:g} s {what}"
        time.sleep(0.2)
