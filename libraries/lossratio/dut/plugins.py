"""Kinds of DUTs by name: the built-in kinds, and the kinds of other packages.

Another package adds a kind by an entry point of the group ``lossratio.dut``. The name of the entry point is the kind,
and its object is a subclass of `lossratio.dut.Dut`.
"""

import runpy
from collections.abc import Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lossratio.dut.base import Dut, DutOptions
from lossratio.errors import DutError
from lossratio.files import plugin_group
from lossratio.nodes import CommandRunner
from lossratio.topology import Hop, Port
from lossratio.values import in_words, names_near

_KINDS = plugin_group(
    "lossratio.dut",
    what="kind of DUT",
    error=DutError,
    base="lossratio.dut.Dut",
    room="lossratio.dut",
    own={
        "none": "cable:Cable",
        "black_box": "black_box:BlackBox",
        "frr": "frr:FrrRouter",
        "grout": "grout:Grout",
        "l3fwd": "l3fwd:L3fwd",
        "linux_bridge": "linux_bridge:LinuxBridge",
        "linux_router": "linux_router:LinuxRouter",
        "ovs": "ovs:OpenVswitch",
        "testpmd": "testpmd:Testpmd",
        "vpp": "vpp:Vpp",
        "xdp": "xdp:XdpDevice",
    },
)
"""All kinds."""


def dut_kinds() -> tuple[str, ...]:
    """Names of all kinds, in alphabetical order."""
    return _KINDS.names()


def built_in_kinds() -> tuple[type[Dut[DutOptions]], ...]:
    """The classes of lossratio's own kinds, in the order of their names."""
    return tuple(entry.load() for entry in sorted(_KINDS.own, key=attrgetter("name")))


def load_kind(kind: str) -> type[Dut[DutOptions]]:
    """Imports the class of a kind.

    Raises:
        DutError: If none or several have its name, or its package is broken.
    """
    return _KINDS.load_class(kind, Dut)


def types_of_options() -> dict[str, Any]:
    """The types in which options of lossratio's own kinds may be given, by option, from the generated stub.

    To import all kinds for their options takes a tenth of the import of the keyword library.
    """
    stub = runpy.run_path(str(Path(__file__).with_name("option_values.pyi")))
    return dict(stub["OptionValues"].__annotations__)


def parse_options(kind: str, options: Mapping[str, Any]) -> DutOptions:
    """Checks options, such as ``{"police": "50 kfps"}``, against the options of a kind.

    Raises:
        DutError: If options are unknown or wrong (the message names all of them), or there is no such kind.
    """
    model = load_kind(kind).all_options()
    try:
        return model.model_validate(dict(options))
    except ValidationError as cause:
        errors = cause.errors()
        problems = "; ".join(_problem(item) for item in errors)
        unknown = [str(item["loc"][0]) for item in errors if item["type"] == "extra_forbidden"]
        known = names_near("".join(unknown[:1]), model.model_fields or ["none"])
        raise DutError(
            f"DUT {kind} cannot be set up: {problems}. Its options are: {known}"
        ) from cause


def create_dut(
    kind: str, session: CommandRunner, hop: Hop, options: Mapping[str, Any]
) -> Dut[DutOptions]:
    """Makes the object of a DUT, without touching a node.

    Raises:
        DutError: If its kind is unknown, or an option wrong.
    """
    return load_kind(kind)(session, hop, parse_options(kind, options))


def make_reflector(session: CommandRunner, port: Port) -> Dut[DutOptions]:
    """Makes the object of a reflector: a path's far end, which sends frames back. Its node is not touched yet."""
    # Imported here, because kinds are imported when they are needed.
    from lossratio.dut.xdp import Reflector

    return Reflector(session, port)


def _problem(item: Any) -> str:
    option = ".".join(str(part) for part in item["loc"])
    if item["type"] == "extra_forbidden":
        return f"it has no option {option!r}"
    message = in_words(item)
    if option:
        return f"{option}: {message}"
    return message
