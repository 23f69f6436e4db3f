"""Makes a SUT model from data, such as the field ``sut`` of a topology file."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter, ValidationError

from lossratio.simulation import constant_capacity as constant, varying_capacity as varying
from lossratio.simulation.recorded import Recorded
from lossratio.simulation.sut import Sut
from lossratio.values import did_you_mean, in_words

# Table: the models of SUTs by their names.
SUT_MODELS: Mapping[str, type] = MappingProxyType(
    {
        "background_loss": constant.BackgroundLoss,
        "buffer": constant.Buffer,
        "capacity_drift": varying.CapacityDrift,
        "capacity_step": varying.CapacityStep,
        "connection_table": constant.ConnectionTable,
        "constant_loss": constant.ConstantLoss,
        "device": varying.Device,
        "loss_inversion": constant.LossInversion,
        "performance_spectrum": varying.PerformanceSpectrum,
        "policer": constant.Policer,
        "rare_stalls": varying.RareStalls,
        "recorded": Recorded,
        "sharp_knee": constant.SharpKnee,
        "smooth_knee": constant.SmoothKnee,
        "two_states": varying.TwoStates,
    }
)
"""All models by their names in files."""


def sut_from(data: Mapping[str, Any]) -> Sut:
    """Builds a SUT model from data: ``{"model": "policer", "rate": "50 kfps"}``.

    Raises:
        ValueError: If there is no such model, or fields are wrong; the message names all of them.
    """
    arguments = dict(data)
    name = arguments.pop("model", None)
    if not isinstance(name, str) or name not in SUT_MODELS:
        raise ValueError(
            f"There is no SUT model {name!r}. The models are {_list(SUT_MODELS)}.{did_you_mean(str(name), SUT_MODELS)}"
        )

    known = [field.name for field in fields(SUT_MODELS[name])]
    try:
        sut: Sut = TypeAdapter(SUT_MODELS[name]).validate_python(arguments)
    except ValidationError as error:
        faults = "; ".join(
            _fault(item["loc"], item["type"], in_words(item), known) for item in error.errors()
        )
        end = "" if faults.endswith("?") else "."
        raise ValueError(
            f"The SUT model {name!r} does not accept this: {faults}{end} Its fields are {_list(known)}."
        ) from error

    return sut


def _fault(location: tuple[int | str, ...], kind: str, message: str, known: Iterable[str]) -> str:
    where = ".".join(str(part) for part in location)
    if kind == "unexpected_keyword_argument":
        return f"there is no field {where!r}.{did_you_mean(where, known)}".rstrip(".")
    if kind == "missing":
        return f"{where} is missing"
    if where:
        return f"{where}: {message}"
    return message


def _list(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
