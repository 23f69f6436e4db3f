"""The Open Traffic Generator's models, as in snappi."""

from collections.abc import Mapping
from typing import Any

from lossratio.errors import TopologyError, TrafficError


class ModelError(TrafficError):
    """Data that do not fit the models."""


def load_snappi() -> Any:
    """Imports snappi, which takes half a second.

    Raises:
        TopologyError: If it is not installed; the message says how to get it.
    """
    try:
        import snappi
    except ImportError as error:
        raise TopologyError(
            f"The Open Traffic Generator needs the Python package snappi ({error}). Install it: pip install snappi."
        ) from error
    return snappi


def checked(kind: str, data: Any) -> dict[str, Any]:
    """JSON data in the form of a model, e.g. ``Config``: checked, and with defaults.

    Raises:
        ModelError: If they do not fit the model.
        TopologyError: If snappi is not installed.
    """
    model = getattr(load_snappi(), kind)()
    try:
        if not isinstance(data, Mapping):
            raise TypeError(f"a {kind} must be a JSON object")
        read: dict[str, Any] = model.deserialize(data).serialize(model.DICT)
    # It may raise anything.
    except Exception as error:
        raise ModelError(f"{kind}: {' '.join(str(error).split())[:500]}") from error
    return read
