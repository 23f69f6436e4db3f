"""Topologies to build, runs to kill, and ways to see what a testbed is made of and whether anything of it is left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from processes import children_of
from waiting import is_running

from lossratio.nodes import NodeSession
from lossratio.topology import Topology

HERE = Path(__file__).parent
LIBRARIES = HERE.parents[2] / "libraries"
PYTHONPATH = os.pathsep.join(map(str, (LIBRARIES, HERE, HERE.parent)))
KINDS = ("net", "mnt", "pid", "ipc")


def make_topology(name="probe", duts=1, **changes):
    """A ring of one TG and some DUTs: TG, DUT1, DUT2 ... TG."""
    names = ["TG", *(f"DUT{n + 1}" for n in range(duts))]
    nodes = {}
    for n, node in enumerate(names):
        ports = {
            "east": {"name": f"{node.lower()}e", "link": f"link{n}"},
            "west": {"name": f"{node.lower()}w", "link": f"link{(n - 1) % len(names)}"},
        }
        nodes[node] = {"type": "DUT", "interfaces": ports}
    nodes["TG"].update(type="TG", generator={"kind": "afpacket"})
    fields = {"format": "lossratio-topology/1", "name": name, "testbed": "local", "nodes": nodes}
    return Topology.model_validate({**fields, **changes})


def namespaces_of(testbed):
    """Inodes of all namespaces that a testbed's nodes are made of."""
    namespaces = set()
    for name, node in testbed.topology.nodes.items():
        with NodeSession.connect(name, node) as session:
            for kind in KINDS:
                namespaces.add(session.run("readlink", f"/proc/self/ns/{kind}").stdout.strip())
    own = {os.readlink(f"/proc/self/ns/{kind}") for kind in KINDS}
    return namespaces - own


def processes_in(namespaces):
    """Process ids and start times of what is in any of the given namespaces."""
    processes = set()
    for process in Path("/proc").glob("[0-9]*"):
        for kind in KINDS:
            try:
                if os.readlink(process / "ns" / kind) in namespaces:
                    processes.add((int(process.name), start_time(process)))
            except OSError:
                continue
    return processes


def start_time(process):
    return int((process / "stat").read_text().rpartition(")")[2].split()[19])


def alive(processes):
    """Those of the given processes that still run; ids (also of namespaces) are used again, start times are not."""
    running = set()
    for pid, started in processes:
        try:
            if is_running(pid) and start_time(Path(f"/proc/{pid}")) == started:
                running.add((pid, started))
        except OSError:
            continue
    return running


def processes_with(text):
    """Processes whose environment holds a text, without the calling one."""
    pids = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if text.encode() in (process / "environ").read_bytes() and int(process.name) != os.getpid():
                pids.add(int(process.name))
        except OSError:
            continue
    return pids


_BUILD = """
import json, os, sys, time
from lossratio.testbed.local import LocalTestbed
from testbed_probes import make_topology, namespaces_of
topology = make_topology("killed")
print("starting", flush=True)
try:
    with LocalTestbed.up(topology{arguments}) as testbed:
        {then}
        time.sleep(1000)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
_USE = """
        from lossratio.nodes import NodeSession
        session = NodeSession.connect("TG", testbed.topology.nodes["TG"])
        session.run("sh", "-c", "setsid nohup sleep 1000 > /dev/null 2>&1 < /dev/null &")
        session.start("cat")
        if os.fork() == 0:
            # A child that has inherited everything, and outlives its parent for a while.
            time.sleep(2)
            os._exit(0)
        print(json.dumps([testbed.pid, str(testbed.directory), sorted(namespaces_of(testbed))]), flush=True)
"""


@dataclass
class Run:
    """Another process that has built a testbed, uses it, and waits for its end."""

    process: subprocess.Popen
    holder: int
    directory: Path
    namespaces: set[str]
    processes: set[tuple[int, int]]

    def is_gone(self):
        return not alive(self.processes) and not self.directory.exists()

    def init(self):
        return min({pid for pid, _ in self.processes}.intersection(children_of(self.holder)))

    def node(self):
        return min({pid for pid, _ in processes_in(self._net())}.intersection(children_of(self.init())))

    def _net(self):
        return {one for one in self.namespaces if one.startswith("net:")}


def start_building(user, state_home, then="", arguments=""):
    """Starts a run, and returns when it begins to build."""
    source = _BUILD.format(then=then, arguments=arguments)
    process = subprocess.Popen(
        user.command(sys.executable, "-c", source), stdout=subprocess.PIPE, text=True, env=user.environment(state_home)
    )
    assert process.stdout.readline() == "starting\n"
    return process


@contextmanager
def running(user, state_home):
    """A run that is up and in use."""
    process = start_building(user, state_home, _USE)
    try:
        holder, directory, namespaces = json.loads(process.stdout.readline())
        processes = processes_in(set(namespaces)) | {(holder, start_time(Path(f"/proc/{holder}")))}
        yield Run(process, holder, Path(directory), set(namespaces), processes)
    finally:
        process.kill()
        process.communicate()


class Caller:
    """The user who runs the tests."""

    def command(self, *argv):
        return list(argv)

    def environment(self, state_home):
        return {**os.environ, "PYTHONPATH": PYTHONPATH, "XDG_STATE_HOME": str(state_home), "HOME": str(state_home)}

    def run(self, state_home, source):
        """Runs Python source, and gives what it prints as JSON."""
        command = self.command(sys.executable, "-c", source)
        done = subprocess.run(command, capture_output=True, text=True, env=self.environment(state_home), timeout=240)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


class OrdinaryUser(Caller):
    """A user without any privilege, as root can make one: needs a way to Python where that is in root's home."""

    ID = 65534

    def command(self, *argv):
        script = []
        for n, hidden in enumerate(sorted(self._hidden())):
            saved = f"/run/saved{n}"
            needed = [path for path in self._needed() if hidden in path.parents]
            for m, path in enumerate(needed):
                script += [f"mkdir -p {saved}/{m}", f"mount --bind '{path}' {saved}/{m}"]
            script.append(f"mount -t tmpfs -o mode=755 tmpfs '{hidden}'")
            for m, path in enumerate(needed):
                script += [f"mkdir -p '{path}'", f"mount --bind {saved}/{m} '{path}'"]
        drop = f'exec setpriv --reuid={self.ID} --regid={self.ID} --clear-groups --bounding-set=-all -- "$@"'
        script = ["mount -t tmpfs tmpfs /run", *script, drop]
        return ["unshare", "--mount", "sh", "-c", " && ".join(script), "sh", *argv]

    def _needed(self):
        needed = []
        for path in sorted({Path(sys.base_prefix), Path(sys.prefix), LIBRARIES.parent}):
            if not any(other in path.parents for other in needed):
                needed.append(path)
        return needed

    def _hidden(self):
        for path in self._needed():
            for parent in reversed(path.parents):
                if not parent.stat().st_mode & 0o001:
                    yield parent
                    break
