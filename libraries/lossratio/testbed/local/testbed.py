"""Local testbeds: builds them, finds running ones, and takes them down."""

import json
import os
import pwd
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from lossratio.errors import TopologyError
from lossratio.files import shell_word
from lossratio.nodes.holder import ADDRESS, LinkEnd, Plan
from lossratio.testbed.local import state
from lossratio.testbed.local.requirements import (
    TestbedUnavailableError,
    find_tools,
    is_privileged,
    why_unavailable,
)
from lossratio.topology import Node, Port, RealGenerator, Topology, XdpGenerator

_BUILD_TIMEOUT = 30.0
_END_TIMEOUT = 30.0
_SOURCE_ROOT = Path(__file__).parents[3]
_START = "import sys; sys.path.insert(0, sys.argv[1]); from lossratio.nodes.holder.main import main; main()"


class Holder:
    """A holder, which builds its testbed."""

    def __init__(self, process: subprocess.Popen[bytes], control: socket.socket) -> None:
        self.pid = 0
        """Its process id; 0: the testbed is not up yet."""
        self.nodes: dict[str, state.Access] = {}
        """How to reach the nodes, by name."""
        self._process = process
        self._control = control

    def build(self, plan: Plan, name: str) -> None:
        """Builds the testbed, and waits until it is up.

        Raises:
            TopologyError: If it cannot be built, or is not up in time.
            TestbedUnavailableError: If no testbed can be built on this machine.
        """
        self._control.sendall(plan.to_json().encode() + b"\n")
        self._control.settimeout(_BUILD_TIMEOUT)
        try:
            with self._control.makefile() as lines:
                line = lines.readline()
        except TimeoutError as cause:
            raise TopologyError(
                f"Testbed {name} was not up within {_BUILD_TIMEOUT:g} s. Try again when this machine has less work "
                "to do."
            ) from cause

        message: dict[str, Any] = json.loads(line) if line else {"error": "its holder was killed"}
        if "error" in message:
            why = why_unavailable()
            if why is None:
                raise TopologyError(f"Testbed {name} cannot be built: {message['error']}.")
            raise TestbedUnavailableError(f"No local testbed can be built: {why}.")

        built = message["result"]
        self.pid = int(built["pid"])
        self.nodes = {name: state.Access(**access) for name, access in built["nodes"].items()}

    def let_go(self) -> None:
        """Lets the holder outlive this process."""
        self._control.sendall(b"keep\n")
        _wait_for_end_of(self._control)

    def close(self) -> None:
        """Ends the holder, unless it may outlive this process, and waits for its end."""
        with suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)
            _wait_for_end_of(self._control)
        self._control.close()
        self._process.kill()
        self._process.wait()


@contextmanager
def launch(plan: Plan, name: str) -> Iterator[Holder]:
    """Starts a holder, and waits until its testbed is up. If the block fails, the testbed is taken down again."""
    control, theirs = socket.socketpair()
    try:
        with theirs, open(Path(plan.directory, "holder.log"), "ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-I", "-c", _START, str(_SOURCE_ROOT)],
                stdin=theirs.fileno(),
                stdout=log,
                stderr=log,
                pass_fds=(plan.lock,),
                # Not in the terminal's process group: Ctrl-C is for the run, which then ends the holder properly.
                start_new_session=True,
                env={**os.environ, "LC_ALL": "C"},
            )
    except BaseException:
        # Even an interrupt must not leave the other end of the holder's input open.
        control.close()
        raise
    finally:
        os.close(plan.lock)

    holder = Holder(process, control)
    try:
        holder.build(plan, name)
        yield holder
    except BaseException:
        # No testbed stays behind, not even after an interrupt. The holder may already be allowed to outlive this
        # process.
        if holder.pid:
            with suppress(ProcessLookupError):
                os.kill(holder.pid, signal.SIGTERM)
        holder.close()
        raise


def _wait_for_end_of(control: socket.socket) -> None:
    control.settimeout(_END_TIMEOUT)
    while control.recv(4096):
        pass


class LocalTestbed(AbstractContextManager["LocalTestbed"]):
    """A running local testbed: for each node, namespaces on this machine with an sshd on the loopback interface.

    Build one with `LocalTestbed.up`, preferably in a ``with`` statement. `find` and `LocalTestbed.use` join a testbed
    that is kept running.
    """

    def __init__(self, directory: Path, known: state.State, holder: Holder | None = None) -> None:
        self.name = known.topology.name
        self.topology = _resolved(directory, known)
        """The topology, complete with how its nodes are reached."""
        self.pid = known.pid
        """Process id of the holder; the testbed ends with the holder."""
        self.keep = known.keep
        """Whether it outlives the run that built it."""
        self.directory = directory
        """Its private directory, with the user's key, the logs, and an ``ssh_config`` for the nodes."""
        self._known = known
        self._holder = holder

    @classmethod
    def up(cls, topology: Topology, *, keep: bool = False) -> "LocalTestbed":
        """Builds a testbed, whose topology has ``testbed: local``.

        With `keep`, it stays until `LocalTestbed.down`; otherwise, it always ends with this process.

        Raises:
            TestbedUnavailableError: If this machine cannot have a local testbed; the message has the reason and the
                remedy.
            TopologyError: If the topology is not a local testbed, or a testbed of this name is already kept running.
        """
        _check(topology)
        if keep and find(topology.name) is not None:
            raise TopologyError(
                f"Testbed {topology.name} is already up. Remove it first: lossratio lab down."
            )

        tools = find_tools()
        directory, lock = state.create_directory(topology.name)
        username = _username()
        mtu = {} if topology.mtu is None else {"mtu": topology.mtu}
        others = tuple(name for name in topology.nodes if name != topology.tg_name)
        links = [(_end(one), _end(other)) for one, other in topology.links().values()]
        # Record: what the holder makes.
        plan = Plan(
            nodes=tuple(topology.nodes),
            links=tuple(links),
            tools=tools,
            directory=str(directory),
            lock=lock,
            runner=os.getpid(),
            user=username,
            home=_home(),
            privileged=is_privileged(),
            keep=keep,
            **mtu,
            take_xdp_frames=others if _has_xdp(topology) else (),
        )

        with launch(plan, topology.name) as holder:
            known = state.State(
                topology=topology, pid=holder.pid, keep=keep, username=username, nodes=holder.nodes
            )
            state.write_state(directory, known)
            testbed = cls(directory, known, holder)
            _write_ssh_config(testbed)
            if keep:
                holder.let_go()

        return testbed

    @classmethod
    def use(cls, topology: Topology) -> "LocalTestbed":
        """Joins this topology's testbed that is kept running, or builds one.

        Raises:
            TopologyError: If the running testbed has another description, or none can be built.
            TestbedUnavailableError: If no testbed can be built on this machine.
        """
        running = find(topology.name)
        if running is None:
            return cls.up(topology)
        if running._known.topology != topology:
            raise TopologyError(
                f"Testbed {topology.name} is up, but its file has changed since it was built. Remove the testbed "
                "first: lossratio lab down."
            )
        return running

    def __exit__(self, *exception: object) -> None:
        self.release()

    @property
    def is_up(self) -> bool:
        """Whether its holder is alive."""
        return state.is_locked(self.directory)

    def release(self) -> None:
        """Takes the testbed down, unless it is kept running."""
        if not self.keep:
            self.down()

    def down(self) -> None:
        """Takes the testbed down, and waits until nothing is left of it. Does nothing if it is already down."""
        with suppress(ProcessLookupError):
            self._end(os.pidfd_open(self.pid))
        if self._holder is not None:
            self._holder.close()
        # This also removes the directory of the holder that has ended.
        state.running()

    def _end(self, holder: int) -> None:
        try:
            # The lock shows whether the process id is still the holder's.
            for number in (signal.SIGTERM, signal.SIGKILL):
                if not self.is_up:
                    return
                signal.pidfd_send_signal(holder, number)
                if select.select([holder], [], [], _END_TIMEOUT)[0]:
                    return
        finally:
            os.close(holder)
        raise TopologyError(
            f"Testbed {self.name} does not end: process {self.pid} could not be killed."
        )


def find(name: str) -> LocalTestbed | None:
    """Finds this user's testbed that is kept running, by the name of its topology."""
    return next((testbed for testbed in status() if testbed.keep and testbed.name == name), None)


def status() -> list[LocalTestbed]:
    """All running testbeds of this user, including those of other runs; removes files of killed testbeds."""
    return [LocalTestbed(directory, known) for directory, known in state.running()]


def describe(testbed: LocalTestbed) -> str:
    """Describes a running testbed, and how to log in on its nodes, in a few lines."""
    if testbed.keep:
        stays = "stays until you remove it"
    else:
        stays = "ends with its run"

    lines = [f"Testbed {testbed.name} is up and {stays}; its holder is process {testbed.pid}."]
    lines += [
        f"  {name}: ssh -F {shell_word(testbed.directory / 'ssh_config')} {shell_word(name)}"
        for name in testbed.topology.nodes
    ]
    return "\n".join(lines)


def _check(topology: Topology) -> None:
    if topology.testbed != "local":
        raise TopologyError(
            f"Topology {topology.name} is not a local testbed: its file has 'testbed: {topology.testbed}'. "
            "Name a file with 'testbed: local'."
        )
    for ports in topology.links().values():
        for port in ports:
            if port.interface.name is None:
                raise TopologyError(
                    f"Topology {topology.name}: interface {port} of a local testbed has no name. Give it a 'name' in "
                    "the file."
                )


def _has_xdp(topology: Topology) -> bool:
    """Whether frames come from XDP programs, which need root."""
    return is_privileged() and isinstance(topology.nodes[topology.tg_name].generator, XdpGenerator)


def _end(port: Port) -> LinkEnd:
    return LinkEnd(port.node_name, str(port.interface.name), port.interface.mac_address)


def _username() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return "nobody"


def _home() -> str:
    with suppress(RuntimeError):
        if Path.home().is_dir():
            return str(Path.home())
    return "/"


def _resolved(directory: Path, known: state.State) -> Topology:
    topology = known.topology
    # DUTs that are programs have the last processors, and never the first one; senders avoid these.
    _, *others = sorted(os.sched_getaffinity(0))
    if _has_xdp(topology):
        device_cpus = tuple(others[max(0, len(others) - len(topology.dut_names)) :])
    else:
        device_cpus = ()

    nodes: dict[str, Node] = {}

    for name, node in topology.nodes.items():
        generator = node.generator
        if isinstance(generator, XdpGenerator):
            generator = generator.model_copy(update={"device_cpus": device_cpus})
        if (
            isinstance(generator, RealGenerator)
            and generator.any_python
            and "python" not in generator.model_fields_set
        ):
            # The nodes are this machine, and this Python is known to have numpy.
            generator = generator.model_copy(update={"python": sys.executable})

        as_user = {
            "host": ADDRESS,
            "username": known.username,
            "key_file": directory / "id_ed25519",
            "sudo": False,
        }
        reached = {**as_user, **known.nodes[name].model_dump(), "known_hosts": None}
        nodes[name] = node.model_copy(update={**reached, "generator": generator})

    return topology.model_copy(update={"nodes": nodes})


def _write_ssh_config(testbed: LocalTestbed) -> None:
    known_hosts = testbed.directory / "known_hosts"
    nodes = testbed.topology.nodes
    known_hosts.write_text(
        "".join(f"[{node.host}]:{node.port} {node.host_key}\n" for node in nodes.values())
    )
    blocks = [
        f"Host {name}\n HostName {node.host}\n Port {node.port}\n User {node.username}\n"
        f" IdentityFile {_in_ssh_config(node.key_file)}\n IdentitiesOnly yes\n"
        f" UserKnownHostsFile {_in_ssh_config(known_hosts)}\n"
        for name, node in nodes.items()
    ]
    (testbed.directory / "ssh_config").write_text("".join(blocks))


def _in_ssh_config(path: Path | None) -> str:
    """A path as ssh reads it from its configuration, where blanks separate paths, and ``%`` begins a variable."""
    return '"' + str(path).replace("%", "%%") + '"'


def reachable(topology: Topology, undo: ExitStack) -> Topology:
    """The topology, complete with how its nodes are reached; a local testbed that is not up is built if possible."""
    if topology.testbed != "local":
        return topology
    return undo.enter_context(LocalTestbed.use(topology)).topology
