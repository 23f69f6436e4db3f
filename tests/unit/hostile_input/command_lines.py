"""What people give to the command and to keywords, checked against hostile values."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Mapping
from unittest import mock

import click
from hostile_documents import HOSTILE_TEXTS
from hypothesis import strategies as st
from robot.running.arguments.typeinfo import TypeInfo

from lossratio.commands.main import commands, main
from lossratio.dut.linux.kernel_dut import parse_cpus
from lossratio.dut.plugins import dut_kinds, parse_options
from lossratio.errors import LossRatioError
from lossratio.keywords.arguments import CONVERTERS
from lossratio.traffic.frame_sizes import parse_frame_size
from lossratio.values import units
from lossratio.values.exit_status import ExitStatus

PARSERS = (
    *(units.parse_frame_rate, units.parse_bit_rate, units.parse_ratio, units.parse_bytes, units.parse_duration),
    *(parse_frame_size, parse_cpus),
)
COMMANDS = (
    *("check", "compare", "list", "report", "run", "trend"),
    *("lab release", "lab reserve", "lab self-test", "lab status"),
    *("archive fetch", "archive replay", "archive repair", "csit export"),
)
"""Not among them: those that run a command that they are given, compute for long, or stop what runs on this machine."""
PATHS = ("/dev/zero", "/dev/null", "/proc/self/mem", "absent", "absent.yaml", ".")


def check_value(text: str) -> None:
    """Parsers and converters refuse what they cannot read with a ValueError, whose text Robot Framework shows."""
    for parse in PARSERS:
        with contextlib.suppress(ValueError):
            parse(text)
    for kind in CONVERTERS:
        for value in (text, {"loss_ratio": text}, {text: text}):
            with contextlib.suppress(ValueError):
                TypeInfo.from_type_hint(kind).convert(value, custom_converters=dict(CONVERTERS))


def check_arguments(arguments: Mapping[str, object]) -> None:
    """Options of DUTs are refused with one clear error."""
    for kind in (*dut_kinds(), *arguments):
        with contextlib.suppress(LossRatioError):
            parse_options(kind, arguments)


def check_command(data: st.DataObject) -> None:
    """A command ends with an exit status, and never with a traceback."""
    name = data.draw(st.sampled_from(COMMANDS))
    command = commands.get_command(click.Context(commands), name)
    texts = st.sampled_from(PATHS) | st.sampled_from(HOSTILE_TEXTS) | st.text(max_size=10)
    texts = texts.filter(lambda text: "\0" not in text)
    words = name.split()
    for parameter in command.params:
        if isinstance(parameter, click.Argument):
            words += data.draw(st.lists(texts, min_size=int(parameter.required), max_size=2))
        elif data.draw(st.booleans()):
            choices = st.sampled_from(list(parameter.type.choices)) if hasattr(parameter.type, "choices") else texts
            words += [parameter.opts[0], *([] if parameter.is_flag else [data.draw(texts | choices)])]
    if "--connect" in words:
        words.remove("--connect")
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(sys, "argv", ["lossratio", *words]),
    ):
        status: object = 0
        try:
            main()
        except SystemExit as end:
            status = end.code
    assert status in (None, *ExitStatus), status
    assert "Traceback" not in err.getvalue()
