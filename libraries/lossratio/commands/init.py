"""The command ``lossratio init``: topology, suite and job of a new lab, from answers or from TRex's configuration."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import click
import yaml
from pydantic import Field

from lossratio.commands.parameters import FRAME_RATE, LocalPath, OneOf, argument, command, option
from lossratio.dut import BLACK_BOX, CABLE, dut_kinds
from lossratio.errors import TopologyError
from lossratio.input_file import shell_word
from lossratio.records import ForeignPart
from lossratio.topology import is_interface_name, load_topology
from lossratio.yaml_file import load_yaml_file

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*$")
_PCI = re.compile(
    r"(?:(?P<domain>[0-9a-fA-F]{4}):)?(?P<rest>[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])$"
)
_MAC = re.compile(r"([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}$")
_SIDES = ("west", "east")
_POLICED = "linux_bridge"
_POLICER = "    police=10 kfps"
_DEMAND = {"load": "11 kfps", "trials": 2}
"""The tester's self-test: it must send more than the policer passes."""


class _PortInfo(ForeignPart):
    """What TRex's configuration says about a port; MAC addresses are texts or lists of six numbers."""

    dest_mac: str | tuple[str, ...] | None = None
    src_mac: str | tuple[str, ...] | None = None
    ip: str | None = None
    default_gw: str | None = None


class _Threads(ForeignPart):
    socket: int
    threads: tuple[int, ...]


class _Platform(ForeignPart):
    master_thread_id: int
    latency_thread_id: int
    dual_if: tuple[_Threads, ...]


class _TrexFile(ForeignPart):
    interfaces: tuple[str, ...] = Field(min_length=2)
    port_limit: int | None = None
    port_info: tuple[_PortInfo, ...] = ()
    platform: _Platform | None = None
    prefix: str | None = None
    zmq_rpc_port: int | None = None
    zmq_pub_port: int | None = None


@dataclass
class _Lab:
    generator: dict[str, Any]
    ports: list[dict[str, Any]]
    """The fields of the TG's interfaces, with those on the path first."""
    next_hops: tuple[str | None, str | None] = (None, None)
    """The destination MAC addresses of frames from the west and from the east; None: not known."""
    remarks: list[str] = field(default_factory=list)


@command()
def init(
    directory: Path = argument(type=LocalPath(path_type=Path, file_okay=False), default=Path()),
    trex: Path | None = option("TRex's configuration, trex_cfg.yaml.", metavar="FILE"),
) -> None:
    """Write the topology, a suite and a job for a new lab to DIRECTORY.

    It asks a few questions. Press Enter to accept the answer in brackets.
    """
    from lossratio.runs import check_directory

    check_directory(directory, "lossratio init")
    lab_of_trex = None if trex is None else _trex_lab(trex)
    name = _ask("Name of the testbed", "lab1", _NAME.match, "letters, digits, '_', '.' and '-'")
    files_of_lab = tuple(directory / f"{name}{end}" for end in (".yaml", ".robot", "-job.yaml"))
    _check_new(files_of_lab)
    is_local = lab_of_trex is None and click.confirm(
        "Build it from network namespaces on this machine, to try it out?", default=True
    )
    tg = {} if is_local else _reach("the traffic generator", needs_one=True)
    lab = lab_of_trex or _asked_lab(is_local)
    dut, kind, ends = _asked_device(is_local)
    options = _options(kind, lab, is_local=is_local)
    job = _job(name)
    if is_local and kind == _POLICED:
        job["self_test"] = {**_DEMAND, "topologies": {name: "local-cable"}}

    remarks = "".join(f"# {remark}\n" for remark in lab.remarks)
    nodes = {"TG": _tg(tg, lab), "DUT1": _dut(dut, ends)}
    kept = {"testbed": "local"} if is_local else {}
    topology = {"format": "lossratio-topology/1", "name": name, **kept, "nodes": nodes}
    texts = (
        remarks + yaml.safe_dump(topology, sort_keys=False, width=120),
        _suite(name, kind, options),
        yaml.safe_dump(job, sort_keys=False, width=120),
    )
    directory.mkdir(parents=True, exist_ok=True)
    for file, text in zip(files_of_lab, texts, strict=True):
        file.write_text(text, encoding="utf-8")

    lab_file, _, job_file = files_of_lab
    load_topology(lab_file)
    for remark in lab.remarks:
        click.echo(remark)
    click.echo(f"Written: {', '.join(map(str, files_of_lab))}. Next:")
    click.echo(f"  lossratio check {shell_word(lab_file)}{'' if is_local else ' --connect'}")
    click.echo(f"  lossratio run --job {shell_word(job_file)}")


def _asked_device(is_local: bool) -> tuple[dict[str, Any], str, tuple[dict[str, str], ...]]:
    """How to reach the device, its kind, and its interfaces in the west and in the east."""
    dut = {}
    if not is_local:
        dut = _reach(
            "the device (press Enter for a black box, to which lossratio does not log in)",
            needs_one=False,
        )
        if not dut:
            return {}, BLACK_BOX, ({}, {})

    kinds = [kind for kind in dut_kinds() if kind != CABLE]
    usual = _POLICED if is_local else BLACK_BOX
    kind = click.prompt("Kind of the device", default=usual, type=OneOf(kinds))
    names = ("dut0", "dut1") if is_local else ("eth1", "eth2")
    return dut, kind, _interfaces("Its interface", names)


def _options(kind: str, lab: _Lab, *, is_local: bool) -> str:
    """The options of a device as in a suite, with four blanks before each."""
    if is_local and kind == _POLICED:
        # Without the policer, the generator reaches its limit before the bridge does, and the search has no upper
        # bound.
        return _POLICER
    if kind == BLACK_BOX:
        known = zip(("west_mac", "east_mac"), lab.next_hops, strict=True)
        return "".join(f"    {option}={mac}" for option, mac in known if mac is not None)
    return ""


def _tg(reach: dict[str, Any], lab: _Lab) -> dict[str, Any]:
    """The traffic generator's node. Its first two ports are on the path. The others have no link."""
    ports = {f"port{number}": dict(port) for number, port in enumerate(lab.ports)}
    # There may be more ports than sides.
    for port, side in zip(ports.values(), _SIDES, strict=False):
        port["link"] = side
    return {"type": "TG", **reach, "generator": lab.generator, "interfaces": ports}


def _dut(reach: dict[str, Any], ends: tuple[dict[str, str], ...]) -> dict[str, Any]:
    """The device's node, with an interface on each side."""
    sides = {side: {**end, "link": side} for side, end in zip(_SIDES, ends, strict=True)}
    return {"type": "DUT", **reach, "interfaces": sides}


def _suite(name: str, kind: str, options: str) -> str:
    """The suite of a lab."""
    template = files("lossratio.commands").joinpath("new_lab.robot").read_text(encoding="utf-8")
    tag = re.sub(r"[^a-z0-9]+", "", name.lower()) or "lab"
    # In a sentence, a comma separates what four blanks separate in a suite.
    device = f"{kind}{options}".replace("    ", ", ")
    words = {"NAME": name, "DEVICE": device, "KIND": kind, "OPTIONS": options, "TAG": tag}
    return re.sub("|".join(words), lambda found: words[found[0]], template)


def _asked_lab(is_local: bool) -> _Lab:
    rate = click.prompt(
        "The most frames per second that the generator can send per port",
        default="100 kfps",
        type=FRAME_RATE,
    )
    ports = _interfaces(
        "Interface of the traffic generator", ("tg0", "tg1") if is_local else ("eth1", "eth2")
    )
    catch_up = {"catch_up": "5 ms"} if is_local else {}
    return _Lab({"kind": "afpacket", "max_rate": float(rate), **catch_up}, list(ports))


def _trex_lab(file: Path) -> _Lab:
    # TRex's file is a list with one mapping. The rewrite keeps every field in its line and column.
    first = re.compile(r"^-( ?)", re.MULTILINE)
    config = load_yaml_file(
        file, _TrexFile, TopologyError, rewrite=lambda text: first.sub(r" \1", text, count=1)
    )
    used = [
        (place, port)
        for place, port in enumerate(config.interfaces[: config.port_limit])
        if port != "dummy"
    ]
    if len(used) < 2:
        raise TopologyError(
            f"{file}: interfaces: a path needs two ports, but TRex has {len(used)} ('dummy' does not count). Add "
            "ports to this file."
        )

    generator: dict[str, Any] = {"kind": "trex"}
    if config.platform is not None:
        generator["master_core"] = config.platform.master_thread_id
        generator["latency_core"] = config.platform.latency_thread_id
        generator["cores"] = [
            entry.model_dump(mode="json") for entry in config.platform.dual_if[:1]
        ]

    named = {
        "prefix": config.prefix,
        "rpc_port": config.zmq_rpc_port,
        "publisher_port": config.zmq_pub_port,
    }
    generator |= {ours: value for ours, value in named.items() if value is not None}
    lab = _Lab(generator, [])
    infos = [
        config.port_info[place] if place < len(config.port_info) else _PortInfo()
        for place, _ in used
    ]

    for (place, port), info in zip(used, infos, strict=True):
        match = _PCI.match(port)
        if match is None:
            generator["software"] = True
            lab.ports.append({"name": port})
            continue
        question = f"MAC address of TRex's port {place} ({port})"
        mac = _mac(info.src_mac) or _ask(question, None, _MAC.match, "02:00:00:00:00:01")
        lab.ports.append(
            {"pci_address": f"{match['domain'] or '0000'}:{match['rest']}", "mac_address": mac}
        )

    lab.next_hops = (_next_hop(infos[0], infos[1]), _next_hop(infos[1], infos[0]))
    if any(info.default_gw for info in infos):
        lab.remarks.append(
            f"{file.name} has gateways (default_gw): set them as 'gateway' of the TG's interfaces."
        )
    return lab


def _mac(value: str | tuple[str, ...] | None) -> str | None:
    if isinstance(value, tuple):
        return ":".join(f"{int(byte, base=0):02x}" for byte in value)
    return value and value.strip().lower()


def _next_hop(port: _PortInfo, opposite: _PortInfo) -> str | None:
    """The destination of a port's frames; None: the opposite port, as behind a bridge."""
    mac = _mac(port.dest_mac)
    if mac == _mac(opposite.src_mac):
        return None
    return mac


def _reach(what: str, *, needs_one: bool) -> dict[str, Any]:
    """How to reach a node; empty: there is no way."""
    answer = click.prompt(
        f"Where is {what}? A host name, netns:NAME or container:NAME",
        default=None if needs_one else "",
        show_default=False,
    ).strip()
    if not answer:
        return {}
    way, colon, name = answer.partition(":")
    if colon and way in ("netns", "container"):
        return {way: name}
    user = click.prompt("User to log in as", default="root")
    return {"host": answer, "username": user, **({} if user == "root" else {"sudo": True})}


def _interfaces(what: str, usual: tuple[str, str]) -> tuple[dict[str, str], ...]:
    return tuple(
        {
            "name": _ask(
                f"{what} in the {side}", name, is_interface_name, "a name in Linux such as eth1"
            )
        }
        for side, name in zip(_SIDES, usual, strict=True)
    )


def _ask(question: str, usual: str | None, accepts: Callable[[str], Any], form: str) -> str:
    while True:
        answer = str(click.prompt(question, default=usual)).strip()
        if accepts(answer):
            return answer
        click.echo(f"{answer!r} cannot be used. Enter {form}.", err=True)


def _job(name: str) -> dict[str, Any]:
    return {
        "format": "lossratio-job/1",
        "name": name,
        "description": "Goals like those of FD.io CSIT. GOALS: quick takes a tenth of the time, to try things out.",
        "topologies": [f"{name}.yaml"],
        "tests": [
            {"suites": [f"{name}.robot"], "include": ["ndrpdr"], "frame_sizes": ["64B", "IMIX"]}
        ],
        "variables": {"GOALS": "csit"},
    }


def _check_new(paths: Iterable[Path]) -> None:
    """Refuses to overwrite files: they are written all or not at all."""
    existing = [str(path) for path in paths if path.exists()]
    if existing:
        raise TopologyError(
            f"These files already exist: {', '.join(existing)}. Remove them, or choose another name or directory."
        )
