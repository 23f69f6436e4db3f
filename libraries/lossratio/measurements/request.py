"""The arguments of all measurements, declared once: a kind adds its fields, and everything else follows from them.

The fields determine the keyword's arguments, the method of an open testbed, the checks, and the settings in journals
and results.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from enum import Enum
from functools import cache
from os import PathLike
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, TypeVar, get_args

from pydantic import (
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    ValidationError,
    create_model,
    field_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema

from lossratio.errors import SearchError
from lossratio.trials import Integrity, Measurer
from lossratio.values import (
    LONGEST_TRIAL,
    LONGEST_WAIT,
    Choice,
    Duration,
    FrameRate,
    Record,
    counts_connections,
    docstrings_of_fields,
    format_exact_duration,
    in_words,
    names_near,
    quantity_of,
    require_types,
)

if TYPE_CHECKING:
    from lossratio.testbed import LoadRange, Ready, Testbed
    from lossratio.traffic import TrafficProfile
else:
    # The package imports paramiko, which takes a while, and which reports of results do not need.
    TrafficProfile = object

RequestT = TypeVar("RequestT", bound="Request")

NOT_IN_FILES = Field(exclude=True)
"""Marks a field that is not among the settings in journals and results: they have it elsewhere, or it is not data."""


class Audience(Enum):
    """Marks a field that only some users can set."""

    SCRIPTS = "scripts"
    """The field is not an argument of any keyword."""


def check_warm_up(duration: float | None) -> None:
    """Checks how long a warm-up is.

    Args:
        duration: Seconds; None: there is no warm-up.

    Raises:
        SearchError: If it is not positive, or is longer than any trial.
    """
    if duration is not None and not 0.0 < duration <= LONGEST_TRIAL:
        most, given = format_exact_duration(LONGEST_TRIAL), format_exact_duration(duration)
        raise SearchError(f"warm_up must be above 0 s and at most {most}, not {given}.")


class WarmUp(Record):
    """A warm-up before the first trial."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    duration: float
    """Seconds."""
    profile: TrafficProfile
    """The test traffic of the warm-up."""

    @field_validator("duration")
    @classmethod
    def _is_no_longer_than_a_trial(cls, duration: float) -> float:
        check_warm_up(duration)
        return duration


class Request(Record):
    """The settings of every measurement. A kind's own class adds more settings, and may change defaults."""

    model_config = ConfigDict(arbitrary_types_allowed=True, strict=True)

    unused: ClassVar[frozenset[str]] = frozenset()
    """The fields that a kind does not use. Its keyword does not have these arguments."""
    connects: ClassVar[bool] = False
    """Whether all its trials open connections."""
    watches: ClassVar[bool] = False
    """Whether losses during running traffic are located in time."""

    usual_profile: ClassVar[str] = "ethip4-udp"
    """The traffic profile of measurements that name no profile."""

    profile: Annotated[TrafficProfile, NOT_IN_FILES]
    """The test traffic."""
    max_load: Annotated[FrameRate | None, NOT_IN_FILES] = None
    """The largest load per interface; None: the smallest of the limits of generator, links and NICs."""
    min_load: Annotated[FrameRate | None, NOT_IN_FILES] = None
    """The smallest load per interface; None: 9001 frames per second as in FD.io CSIT, or a tenth of the maximum load if
    the maximum load is below 9001."""
    ramp: Annotated[Duration, Field(ge=0.0, le=LONGEST_WAIT, exclude=True)] = 0.0
    """Seconds before each trial in which the load grows from zero, and no frame is counted."""
    rest: Annotated[Duration, Field(ge=0.0, le=LONGEST_WAIT, exclude=True)] = 0.0
    """Minimum seconds without traffic before each trial, for a SUT that remembers the previous trial. They are part of
    the trial's time."""
    warm_up: Annotated[WarmUp | None, NOT_IN_FILES] = None
    """A warm-up at maximum load with its own traffic, before the first trial; None: there is none."""
    integrity: Annotated[Choice[Integrity], NOT_IN_FILES] = Integrity.DOUBT
    """What happens if frames do not come back as they were sent."""

    if not TYPE_CHECKING:

        def __init__(self, **values: Any) -> None:
            self._check_kinds_of(values)
            try:
                super().__init__(**values)
            except ValidationError as error:
                # An error about several fields has no location.
                first = {wrong["loc"][:1]: wrong for wrong in reversed(error.errors())}
                raise SearchError(
                    " ".join(_in_words(type(self), wrong) for wrong in first.values())
                ) from None

    @classmethod
    def _check_kinds_of(cls, values: Mapping[str, Any]) -> None:
        """Checks what the types of the fields cannot check: where the traffic comes from, and what the loads count.

        Raises:
            SearchError: If the profile is only named, or a measurement of frames is given connections per second.
        """
        profile = values.get("profile")
        if isinstance(profile, str | PathLike):
            raise SearchError(
                f"profile: {str(profile)!r} is the name of a traffic profile, but a request needs the profile "
                f"itself: profile=load_profile({str(profile)!r}, frame_size='64B')."
            )
        if "profile" in values:
            from lossratio.traffic import TrafficProfile as Profile

            what = "a traffic profile, such as load_profile('ethip4-udp', frame_size='64B')"
            require_types(SearchError, ("profile", profile, (Profile,), what))
        for name in () if cls.connects else ("max_load", "min_load"):
            load = values.get(name)
            is_text = isinstance(load, str) and counts_connections(load)
            if is_text or getattr(load, "counts_connections", False):
                raise SearchError(
                    f"{name} is in connections per second, but this measurement sends frames. Use frames per "
                    "second, for example '10 kfps'."
                )

    @property
    def most_load(self) -> float:
        """The largest load that its traffic allows, if the request names no load."""
        return math.inf

    def check(self, testbed: Testbed) -> None:
        """Checks, before any traffic, that the testbed can measure this. By default, it does nothing.

        Raises:
            LossRatioError: If it cannot.
        """

    def check_loads(self, testbed: Testbed, loads: LoadRange) -> None:
        """Checks the loads. By default, it does nothing.

        Raises:
            LossRatioError: If the traffic or a device has no room for trials at the largest load.
        """

    def look(self, testbed: Testbed, loads: LoadRange) -> tuple[str, ...]:
        """Checks the devices before the first trial. By default, it does nothing.

        Returns:
            Remarks for the readers of the result.

        Raises:
            LossRatioError: If no trial would show anything.
        """
        return ()

    @contextmanager
    def ready(self, testbed: Testbed, profile: TrafficProfile | None = None) -> Iterator[Ready]:
        """Makes a testbed ready for trials of this request, with its traffic and settings, and its measurer.

        A measurement within another measurement uses the request of the outer measurement, and so has all of its
        settings.

        Args:
            testbed: The testbed.
            profile: Other traffic; None: the request's traffic.

        Raises:
            LossRatioError: As `lossratio.testbed.Testbed.ready_for`.
        """
        # Imported here because other commands read results, and need no testbed.
        from lossratio.testbed import TrialSettings

        settings = TrialSettings(self.ramp, self.rest, self.integrity, self.connects, self.watches)
        with testbed.ready_for(profile or self.profile, settings) as ready:
            yield replace(ready, measurer=self.measurer(ready.measurer, testbed))

    def measurer(self, measurer: Measurer, testbed: Testbed) -> Measurer:
        """Performs the trials: by default, the testbed's own measurer."""
        return measurer

    def but(self: RequestT, **changes: Any) -> RequestT:
        """The same request with some fields changed.

        Raises:
            SearchError: If a value makes no sense.
        """
        return type(self)(
            **{name: getattr(self, name) for name in type(self).model_fields} | changes
        )

    @property
    def settings(self) -> Settings:
        """The settings for journals and results."""
        stated = self.model_dump()
        names = {name: name_in_files(name, field) for name, field in _in_files(type(self))}
        return settings_model(type(self)).model_validate(
            {in_files: stated[name] for name, in_files in names.items()}
        )

    def inputs(self) -> dict[str, Any]:
        """What trials depend on besides traffic and loads, as JSON data.

        It must be the same if a journal is continued.
        """
        settings = self.settings.model_dump(mode="json")
        if self.warm_up is not None:
            traffic = self.warm_up.profile.description_in_full()
            settings["warm_up"] = {"duration_s": self.warm_up.duration, "profile": traffic}
        return {"settings": settings}


class AfterThroughput(Request):
    """The settings of a measurement that needs the throughput."""

    unused = frozenset({"min_load", "ramp", "warm_up"})

    throughput: Annotated[FrameRate | None, NOT_IN_FILES] = None
    """The throughput without loss of the same traffic, per interface. Scripts must give it. If a suite does not, its
    last search must have had the same traffic and a goal without loss: the keyword takes the result of that search."""

    @property
    def known_throughput(self) -> float:
        """The throughput, frames per second per interface.

        Raises:
            SearchError: If it is not known.
        """
        if self.throughput is None:
            raise SearchError(
                "The throughput of this traffic is not known, but this measurement needs it (RFC 2544, section 26). "
                "Give it, for example throughput='1 Mfps'. A search for the goal RFC2544 finds it."
            )
        return self.throughput

    def inputs(self) -> dict[str, Any]:
        """The settings, and the throughput."""
        return {"throughput_fps": self.throughput, **super().inputs()}


class Settings(Record):
    """The settings of a measurement in its result: the fields of its request, with the units in their names."""


class SettingsOf(Generic[RequestT]):
    """The type of a result's field with the settings of a request: ``SettingsOf[MyRequest]``."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        (request,) = get_args(source)
        return handler.generate_schema(settings_model(request))


@cache
def settings_model(request: type[Request]) -> type[Settings]:
    """The class of the settings of a request in results: names end in the unit."""
    about = docstrings_of_fields(request)
    fields: dict[str, Any] = {
        name_in_files(name, field): (field.rebuild_annotation(), Field(description=about.get(name)))
        for name, field in _in_files(request)
    }
    return create_model(
        f"{request.__name__.removesuffix('Request')}Settings", __base__=Settings, **fields
    )


def name_in_files(name: str, field: FieldInfo) -> str:
    """The name of a field of a request in files: the unit is at its end."""
    quantity = quantity_of(field.annotation, field.metadata)
    if quantity is None or name.endswith(quantity.suffix):
        return name
    return name + quantity.suffix


def _in_files(request: type[Request]) -> list[tuple[str, FieldInfo]]:
    return [(name, field) for name, field in request.model_fields.items() if not field.exclude]


_BOUNDS = {"gt": "above {}", "ge": "at least {}", "lt": "below {}", "le": "at most {}"}


def _in_words(request: type[Request], wrong: Mapping[str, Any]) -> str:
    """A pydantic error as a sentence with the field, its bounds, the value, and a description of the field."""
    if not wrong["loc"]:
        return f"{wrong['ctx']['error']}."

    name = str(wrong["loc"][0])
    value = wrong["input"]
    field = request.model_fields.get(name)
    if field is None:
        return (
            f"{request.__name__} has no {name!r}; it has {names_near(name, request.model_fields)}"
        )

    text = " ".join(docstrings_of_fields(request).get(name, "").replace("``", "'").split())
    about = f" The documentation of {name!r} says: {text}" if text else ""
    quantity = quantity_of(field.annotation, field.metadata)
    write = repr if quantity is None else quantity.write
    # A field that may be None has no bounds of its own: pydantic's error has them.
    bounds = " and ".join(
        words.format(write(getattr(item, bound)))
        for item in field.metadata
        for bound, words in _BOUNDS.items()
        if getattr(item, bound, None) is not None
    )
    is_outside = wrong["type"] in (
        "greater_than",
        "greater_than_equal",
        "less_than",
        "less_than_equal",
    )
    if is_outside and bounds:
        if isinstance(value, timedelta):
            value = value.total_seconds()
        given = repr(value)
        if isinstance(value, int | float):
            given = write(value)
        return f"{name} must be {bounds}, not {given}.{about}"

    said = in_words(wrong)
    if wrong["type"] in ("value_error", "assertion_error"):
        return f"{name}: {said}.{about}"
    end = "" if said.endswith("?") else "."
    if wrong["type"] == "missing":
        return f"{name} is missing.{about}"
    return f"{name} {said}{end}{about}"
