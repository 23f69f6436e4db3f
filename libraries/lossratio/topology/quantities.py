"""Types of fields in topology files: quantities with units, and the strictness that all models share."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema

from lossratio.units import parse_bit_rate, parse_duration, parse_frame_rate

_QUANTITY = {"anyOf": [{"type": "number"}, {"type": "string"}]}
BitRate = Annotated[float, BeforeValidator(parse_bit_rate), WithJsonSchema(_QUANTITY)]
FrameRate = Annotated[float, BeforeValidator(parse_frame_rate), WithJsonSchema(_QUANTITY)]
Duration = Annotated[float, BeforeValidator(parse_duration), WithJsonSchema(_QUANTITY)]


class FileModel(BaseModel):
    """A part of a topology file; a field that it does not have is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)
