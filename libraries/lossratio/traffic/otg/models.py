"""The models of the Open Traffic Generator, as snappi has them: it reads and writes them, and checks both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lossratio.errors import TopologyError, TrafficError


class ModelError(TrafficError):
    """Data that are not what the models say."""


def load_snappi() -> Any:
    """Imports snappi, which takes half a second.

    Raises:
        TopologyError: If it is missing; says how to get it.
    """
    try:
        import snappi
    except ImportError as error:
        raise TopologyError(
            f"The Open Traffic Generator needs snappi, and {error}. It is the extra 'otg': "
            "pip install 'robotframework-lossratio[otg]', or from a checkout pip install '.[otg]'."
        ) from error
    return snappi


def checked(kind: str, data: Any) -> dict[str, Any]:
    """JSON data as a model, e.g. ``Config``, has them: checked, and with defaults.

    Raises:
        ModelError: If they are no such model.
        TopologyError: If snappi is missing.
    """
    snappi = load_snappi()
    model = getattr(snappi, kind)()
    try:
        if not isinstance(data, Mapping):
            raise TypeError(f"a {kind} is a JSON object")
        read: dict[str, Any] = model.deserialize(data).serialize(model.DICT)
    # It raises whatever comes up.
    except Exception as error:
        raise ModelError(f"{kind}: {' '.join(str(error).split())[:500]}") from error
    return read
