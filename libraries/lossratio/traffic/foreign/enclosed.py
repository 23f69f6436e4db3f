"""Starts `lossratio.traffic.foreign.enclosed_program`, which runs another generator's Python file without rights."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from lossratio.traffic.foreign.packets import LENGTHS, ForeignFieldError, Layer, Made, Packet

_PROGRAM = Path(__file__).with_name("enclosed_program.py")
_SECONDS = 10
_PLACE = re.compile(rb'File "<profile>", line (\d+)')
"""A line of the profile in what Python's faulthandler writes."""


def run_enclosed(text: str) -> Any:
    """What a profile of TRex describes, which is run without rights.

    Returns:
        The streams of each of both ports, made of lists, texts, numbers, `Made` and `Packet`.

    Raises:
        ForeignFieldError: If the file fails, or needs rights, much memory or much time.
    """
    request = {"text": text, "lengths": LENGTHS, "seconds": _SECONDS}
    command = (sys.executable, "-I", "-S", "-B", str(_PROGRAM))
    with TemporaryFile() as output, TemporaryFile() as errors:
        with suppress(subprocess.TimeoutExpired):
            subprocess.run(
                command,
                input=json.dumps(request).encode(),
                stdout=output,
                stderr=errors,
                cwd="/",
                env={},
                timeout=2 * _SECONDS,
                check=False,
            )
        output.seek(0)
        errors.seek(0)
        try:
            answer = json.load(output, object_hook=_decoded)
        except (ValueError, TypeError, KeyError) as error:
            place = _PLACE.search(errors.read())
            problem = f"it took longer than {_SECONDS} s, or ended without a result"
            line = 1 if place is None else int(place[1])
            raise ForeignFieldError("the file", problem, line) from error

    if "problem" in answer:
        raise ForeignFieldError(**answer)
    return answer["value"]


def _decoded(entry: dict[str, Any]) -> Any:
    if "layers" in entry:
        layers = (Layer(name, dict(fields), line) for name, fields, line in entry["layers"])
        return Packet(tuple(layers), entry["payload"])
    if "kind" in entry:
        return Made(**{**entry, "named": dict(entry["named"])})
    return entry
