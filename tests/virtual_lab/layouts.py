"""The laboratories that tests share, and their topology files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from images import CannotBuildError, Recipe
from machines import Card, Machine, Plan, VirtualLab, require_qemu, wait_until

PATIENT = {"max_rate": "6 kfps", "catch_up": "5 s", "settle": "4 s"}
"""Parameters of a generator whose machine stands still for a while now and then."""
FOR_DPDK = "intel_iommu=on iommu=pt hugepages=540 modules_load=vfio-pci"
"""Parameters of the kernel of a machine whose programs drive cards. Those take 1024 MB in hugepages of 2 MB."""
VMXNET3, VIRTIO, E1000E = "vmxnet3", "virtio-net-pci", "e1000e"


def pair_of_machines(recipe: Recipe = Recipe(), **plan: Any) -> VirtualLab:  # noqa: B008 - it is frozen
    """A TG and a DUT with six cables: two between cards of vmxnet3, one of virtio, one of e1000e, two of virtio.

    The DUT has what programs of DPDK need: two processors, an IOMMU, hugepages and a driver.

    Args:
        recipe: What both boot.
        plan: Further fields of the DUT's plan.

    Raises:
        CannotBuildError: If a program or Debian's packages cannot be had here.
    """
    models = (VMXNET3, VMXNET3, VIRTIO, E1000E, VIRTIO, VIRTIO)
    cards = [Card(model, cable) for model, cable in zip(models, "abcdef", strict=True)]
    for_dpdk = {"cpus": 2, "megabytes": 2304, "has_iommu": True, "parameters": FOR_DPDK}
    lab = laboratory(recipe, {"TG": cards, "DUT1": cards}, DUT1={**for_dpdk, **plan})
    set_up(lab["TG"])
    return lab


@contextmanager
def for_tests(build: Callable[..., VirtualLab], **arguments: Any) -> Iterator[VirtualLab]:
    """A laboratory for tests, which are skipped where it cannot be had.

    Args:
        build: What makes it.
        arguments: The arguments of this function.
    """
    try:
        lab = build(**arguments)
    except CannotBuildError as error:
        pytest.skip(f"no laboratory of virtual machines here: {error}")
    with lab:
        yield lab


def machine_on_taps(recipe: Recipe = Recipe(), **plan: Any) -> VirtualLab:  # noqa: B008 - it is frozen
    """A DUT whose TG is the host, with two cables to cards of vmxnet3 and two to cards of virtio.

    The TG costs no emulated processor. The DUT has what programs of DPDK need.

    Args:
        recipe: What it boots.
        plan: Further fields of its plan.

    Raises:
        CannotBuildError: If a program, Debian's packages or root cannot be had here.
    """
    if os.geteuid() != 0:
        raise CannotBuildError("only root can make TAP interfaces")
    cards = [Card(model, cable) for model, cable in zip((VMXNET3, VMXNET3, VIRTIO, VIRTIO), "abcd", strict=True)]
    parameters = FOR_DPDK.replace("hugepages=540", "hugepages=700")
    return laboratory(
        recipe,
        {"DUT1": cards},
        DUT1={"cpus": 2, "megabytes": 3072, "has_iommu": True, "parameters": parameters, **plan},
    )


def laboratory(recipe: Recipe, cards: Mapping[str, Sequence[Card]], **plans: Mapping[str, Any]) -> VirtualLab:
    """Machines with these cards, and with further fields of their plans.

    If ``VIRTUAL_LAB`` is the directory of a laboratory that ``up.py`` keeps up, with machines of the same names, these
    are its.

    Raises:
        CannotBuildError: If a program or Debian's packages cannot be had here.
    """
    require_qemu()
    image = recipe.image()
    plans_of_all = {name: Plan(image, own, **plans.get(name, {})) for name, own in cards.items()}
    return VirtualLab(plans_of_all, _borrowed(plans_of_all))


def _borrowed(plans: Mapping[str, Plan]) -> Path | None:
    """Where the laboratory is that another process keeps up; None: there is none with machines of these names."""
    directory = os.environ.get("VIRTUAL_LAB")
    if directory is None:
        return None
    there = {file.stem for file in Path(directory).glob("*.port")}
    return Path(directory) if there == set(plans) else None


def set_up(machine: Machine) -> None:
    """Sets the cards of a TG up, which lossratio leaves to the owner of the TG."""
    for number, _ in enumerate(machine.plan.cards):
        machine.run("ip", "link", "set", "dev", machine.interface(number), "up")


def wait_for_links(machine: Machine) -> None:
    """Waits for the links of interfaces that are up. An e1000e card needs over ten seconds for it."""
    wait_until(lambda: "NO-CARRIER" not in machine.run("ip", "link"), f"links of {machine.name}")


def topologies(lab: VirtualLab, generator: str = "afpacket") -> Mapping[str, Path]:
    """The topology files of `pair_of_machines`: ``vmxnet3``; ``mixed``: virtio west, e1000e east; ``virtio``."""
    west_cards = {"vmxnet3": 0, "mixed": 2, "virtio": 4}
    return {name: lab_file(lab, name, generator, west, west + 1) for name, west in west_cards.items()}


def lab_file(
    lab: VirtualLab,
    name: str,
    generator: str,
    west: int,
    east: int,
    fields: Mapping[str, Any] | None = None,
    **of_dut: Any,
) -> Path:
    """A topology file of TG and DUT1, which are joined by the cables of two cards; with further fields of the DUT.

    What `PATIENT` allows for happens to emulated machines.

    Args:
        lab: The laboratory.
        name: What the file is called.
        generator: The generator's kind.
        west: Number of the western card, at both machines.
        east: Number of the eastern card.
        fields: Further fields of the file.
        **of_dut: Further fields of the DUT.
    """
    nodes = _nodes(lab, generator, west, east)
    nodes["DUT1"] |= of_dut
    return lab.topology(f"{name}-{generator}", nodes, **(fields or {}))


def closed_lab_file(lab: VirtualLab, name: str, west: int, east: int, generator: str = "afpacket") -> Path:
    """The same, with a DUT that is a black box: the tests set it up."""
    nodes = _nodes(lab, generator, west, east)
    nodes["DUT1"] = _closed(nodes["DUT1"])
    return lab.topology(f"{name}-{generator}", nodes)


def bonded_lab_file(lab: VirtualLab, bond: str, east: int) -> Path:
    """A TG that sends from a bond of its first cards in the west, and from another card in the east."""
    nodes = _nodes(lab, "afpacket", 0, east)
    west = nodes["TG"]["interfaces"]["west"]
    west["name"] = bond
    del west["pci_address"]
    nodes["DUT1"] = _closed(nodes["DUT1"])
    return lab.topology("bonded", nodes)


def tap_lab_file(lab: VirtualLab, name: str, west: int, **of_dut: Any) -> Path:
    """A topology file of `machine_on_taps`: the TG is a namespace of the host.

    Args:
        lab: The laboratory.
        name: What the file is called.
        west: Number of the western card; the eastern one is the next.
        **of_dut: Further fields of the DUT.
    """
    tester = _host(lab, "TG", west) | {"generator": {"kind": "afpacket", **PATIENT}}
    return lab.topology(name, {"TG": tester, "DUT1": _on_taps(lab, "DUT", west) | of_dut})


def turned_tap_lab_file(lab: VirtualLab, name: str, west: int, **of_tester: Any) -> Path:
    """The same machine as the TG, with further fields: the DUT is the namespace of the host."""
    nodes = {"TG": _on_taps(lab, "TG", west) | of_tester, "DUT1": _host(lab, "DUT", west)}
    return lab.topology(name, nodes)


def two_ended_lab_file(lab: VirtualLab) -> Path:
    """A TG of two nodes, with the cable between their first cards as the path."""
    nodes = {}
    for name, port in (("TG", "west"), ("DUT1", "east")):
        nodes[name] = lab[name].node("TG", **{port: {"card": 0, "link": "cable"}})
    nodes["TG"]["generator"] = {"kind": "afpacket", **PATIENT}
    return lab.topology("two-ended", nodes)


def _on_taps(lab: VirtualLab, kind: str, west: int) -> dict[str, Any]:
    """The machine of `machine_on_taps`, with two neighbouring cards."""
    return lab["DUT1"].node(kind, west={"card": west, "link": "west"}, east={"card": west + 1, "link": "east"})


def _host(lab: VirtualLab, kind: str, west: int) -> dict[str, Any]:
    """The host, with the other ends of the cables of these cards."""
    cables = {"west": lab["DUT1"].plan.cards[west].cable, "east": lab["DUT1"].plan.cards[west + 1].cable}
    interfaces = {port: {"name": lab.taps.names[cable], "link": port} for port, cable in cables.items()}
    return {"type": kind, "netns": lab.taps.netns, "interfaces": interfaces}


def _nodes(lab: VirtualLab, generator: str, west: int, east: int) -> dict[str, dict[str, Any]]:
    ports = {"west": {"card": west, "link": "west"}, "east": {"card": east, "link": "east"}}
    tg = lab["TG"].node("TG", **ports)
    tg["generator"] = {"kind": generator, **PATIENT}
    return {"TG": tg, "DUT1": lab["DUT1"].node("DUT", **ports)}


def _closed(node: Mapping[str, Any]) -> dict[str, Any]:
    """A node that nobody logs in to."""
    return {name: node[name] for name in ("type", "interfaces")}
