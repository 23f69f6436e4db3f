"""The keywords that measure: a kind's request gives arguments, types and documentation."""

import inspect
from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import reduce
from operator import or_
from pathlib import Path
from types import MappingProxyType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from pydantic.fields import FieldInfo
from robot.api import logger
from robot.libraries.BuiltIn import BuiltIn

from lossratio.errors import SearchError
from lossratio.keywords.arguments import DEFAULT_PROFILE, FrameRate, FrameSize, Share, seconds, typed_keyword
from lossratio.keywords.session import Doubts, Keywords, Session, describe_profile, measured
from lossratio.measurements import AfterThroughput, Audience, MeasuredKind, Request, measure, warm_up_like
from lossratio.measurements.back_to_back import BackToBack
from lossratio.measurements.confirmation import Confirmation, ConfirmationRequest, ConfirmationResult
from lossratio.measurements.connection_capacity import ConnectionCapacity
from lossratio.measurements.connection_mrr import ConnectionMrr
from lossratio.measurements.connection_rate import ConnectionRate, ConnectionRateRequest, ConnectionRateResult
from lossratio.measurements.connection_soak import ConnectionSoak
from lossratio.measurements.connection_teardown import ConnectionTeardown
from lossratio.measurements.frame_loss import FrameLossRate
from lossratio.measurements.mrr import MaximumReceiveRate
from lossratio.measurements.recovery import Recovery
from lossratio.measurements.reset import Reset, ResetRequest, ResetResult, command_reset
from lossratio.measurements.soak import Soak, SoakPreset, SoakRequest, SoakResult, warm_start_from
from lossratio.measurements.throughput import GoalSet, require_lower_bounds
from lossratio.mlrsearch import SearchGoal
from lossratio.quantities import DURATION, FRAME_RATE, RATIO, Quantity, quantity_of
from lossratio.records import docstrings_of_fields
from lossratio.results import TestResult
from lossratio.shipped import did_you_mean
from lossratio.traffic import load_profile

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
RequestT = TypeVar("RequestT", bound=Request)
ResultT = TypeVar("ResultT", bound=TestResult)
Kind = type[MeasuredKind[Any, Any, Any, ResultT]]

_TYPES: Mapping[Quantity, type] = MappingProxyType({DURATION: timedelta, FRAME_RATE: FrameRate, RATIO: Share})
"""Types of Robot Framework's arguments, whose documentation names the units that users may write."""
_SMALLEST = FrameSize("64B")
CONNECTIONS_PROFILE = "ethip4-udp-connections"
"""Traffic of which each frame opens a connection."""
_WARM_UP = {"warm_up": timedelta, "warm_up_profile": str}
_OTHERS = "The other arguments are described under `Arguments of measurements`."


def asks(request: type[Request], without: str = "") -> Callable[[FunctionT], FunctionT]:
    """Adds the fields of a request to the arguments of a keyword, whose method takes them by any name.

    The keyword's documentation is the method's, or else the request's, with a table of the fields that no other
    request has before the examples.
    """
    left_out = {"profile", "warm_up", *request.unused, *without.split()}
    fields = {
        name: field
        for name, field in request.model_fields.items()
        if name not in left_out and Audience.SCRIPTS not in field.metadata
    }
    types = {name: _type_of(field) for name, field in fields.items()}
    types |= {"bidirectional": bool, **({} if "warm_up" in request.unused else _WARM_UP)}
    defaults = {name: field.default for name, field in fields.items()}
    for name, field in fields.items():
        if field.default is not None and quantity_of(field.annotation, field.metadata) is DURATION:
            defaults[name] = timedelta(seconds=field.default)

    def mark(method: FunctionT) -> FunctionT:
        signature = inspect.signature(method)
        own = [parameter for parameter in signature.parameters.values() if parameter.kind is not parameter.VAR_KEYWORD]
        more = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults.get(name)) for name in types]
        vars(method)["__signature__"] = signature.replace(parameters=[*own, *more])
        known = {name: hint for name, hint in vars(method)["robot_types"].items() if name not in ("self", "fields")}
        vars(method)["robot_types"] = known | types
        text, bar, examples = inspect.cleandoc(method.__doc__ or request.__doc__ or "").partition("\n| ")
        about = docstrings_of_fields(request)
        rows = [
            f"| ``{name}`` | {' '.join(about.get(name, '').split()).replace('None:', 'Left out:')} |"
            for name in fields
            if name not in Request.model_fields
        ]
        table = "\n".join(("| =Argument= | =What it is= |", *rows))
        method.__doc__ = f"{text.rstrip()}\n\n{table}\n\n{_OTHERS}\n{bar}{examples}"
        return method

    return mark


def _type_of(field: FieldInfo) -> Any:
    """The type of a field for Robot Framework, None left out of it."""
    parts = get_args(field.annotation) if get_origin(field.annotation) in (Union, UnionType) else (field.annotation,)
    types = []
    for part in (part for part in parts if part is not type(None)):
        own = getattr(part, "__metadata__", ())
        quantity = quantity_of(None, [*field.metadata, *own])
        plain = get_args(part)[0] if own else part
        types.append(plain if quantity is None else _TYPES.get(quantity, plain))
    return reduce(or_, types)


def request_of(
    session: Session, request: type[RequestT], frame_size: str, profile: str, fields: dict[str, Any]
) -> RequestT:
    """The request that a keyword was asked for."""
    name, is_named, _ = profile.partition("=")
    if is_named and name.isidentifier():
        # Robot Framework hands a named argument that a keyword does not have over as a positional one.
        known = [*inspect.signature(request).parameters, *_WARM_UP, "bidirectional", "frame_size", "doubts", "resume"]
        raise SearchError(f"There is no argument {name!r}.{did_you_mean(name, known)}")
    traffic = load_profile(profile, frame_size=frame_size, bidirectional=fields.pop("bidirectional", None))
    length, warm_up_profile = (fields.pop(name, None) for name in _WARM_UP)
    if (length, warm_up_profile) != (None, None):
        fields["warm_up"] = warm_up_like(traffic, seconds(length), warm_up_profile)
    if issubclass(request, AfterThroughput) and fields.get("throughput") is None:
        fields["throughput"] = session.throughput_of(traffic)
    return request(profile=traffic, **fields)


def _measured(
    session: Session, kind: Kind[ResultT], request: Request, doubts: Doubts | None, resume: Path | None
) -> ResultT:
    what = f"{kind.title}: {describe_profile(request.profile)}"
    return measured(session, what, lambda testbed, *place: measure(kind(), testbed, request, *place), doubts, resume)


def measurement_keyword(name: str, kind: Kind[ResultT], default_profile: str | None = None) -> Callable[..., ResultT]:
    """A keyword that measures; its arguments, their types and its documentation come from the kind's request.

    Where all trials open connections, so do the frames of the default profile, unless another one is named.
    """
    usual = default_profile or (CONNECTIONS_PROFILE if kind.request.connects else DEFAULT_PROFILE)

    @asks(kind.request)
    @typed_keyword(name)
    def method(
        self: Keywords,
        frame_size: FrameSize,
        profile: str = usual,
        *,
        doubts: Doubts | None = None,
        resume: Path | None = None,
        **fields: Any,
    ) -> ResultT:
        request = request_of(self.session, kind.request, frame_size, profile, fields)
        return _measured(self.session, kind, request, doubts, resume)

    return method


def reset_of(command: str | None, keyword: str | None) -> dict[str, Any]:
    """The fields of a reset by a command on this machine, or by a keyword; none where there is neither."""
    if command is not None and keyword is not None:
        raise SearchError("A reset is a command or a keyword; give one of them.")
    if command is not None:
        return {"reset": command_reset(command), "reset_name": f"command: {command}"}
    if keyword is not None:
        return {"reset": lambda: BuiltIn().run_keyword(keyword), "reset_name": f"keyword: {keyword}"}
    return {}


class MeasurementKeywords(Keywords):
    """A keyword for each kind of measurement whose request says it all."""

    measure_mrr = measurement_keyword("Measure MRR", MaximumReceiveRate)
    measure_frame_loss_rate = measurement_keyword("Measure Frame Loss Rate", FrameLossRate)
    measure_back_to_back_frames = measurement_keyword("Measure Back-To-Back Frames", BackToBack)
    find_connection_table_capacity = measurement_keyword("Find Connection Table Capacity", ConnectionCapacity)
    measure_connection_mrr = measurement_keyword("Measure Connection MRR", ConnectionMrr)
    find_critical_connection_rate = measurement_keyword("Find Critical Connection Rate", ConnectionSoak)
    measure_connection_teardown_rate = measurement_keyword("Measure Connection Teardown Rate", ConnectionTeardown)
    measure_system_recovery = measurement_keyword("Measure System Recovery", Recovery)

    @asks(ConnectionRateRequest, without="goals warm_up_duration fail_fast hints early_verdict memory_rest")
    @typed_keyword()
    def find_connection_rate(  # noqa: D102 (the request has it)
        self,
        *own_goals: SearchGoal,
        frame_size: FrameSize,
        profile: str = CONNECTIONS_PROFILE,
        goals: GoalSet | None = None,
        must_find: bool = True,
        doubts: Doubts | None = None,
        resume: Path | None = None,
        **fields: Any,
    ) -> ConnectionRateResult:
        wanted = own_goals or (() if goals is None else goals.goals)
        asked = {"goals": wanted, **fields} if wanted else fields
        request = request_of(self.session, ConnectionRateRequest, frame_size, profile, asked)
        result = _measured(self.session, ConnectionRate, request, doubts, resume)
        if must_find:
            require_lower_bounds(result)
        return result

    @asks(ResetRequest)
    @typed_keyword()
    def measure_reset_time(  # noqa: D102 (the request has it)
        self,
        frame_size: FrameSize,
        profile: str = DEFAULT_PROFILE,
        *,
        command: str | None = None,
        keyword: str | None = None,
        doubts: Doubts | None = None,
        resume: Path | None = None,
        **fields: Any,
    ) -> ResetResult:
        request = request_of(self.session, ResetRequest, frame_size, profile, fields | reset_of(command, keyword))
        return _measured(self.session, Reset, request, doubts, resume)

    @asks(ConfirmationRequest, without="load")
    @typed_keyword()
    def confirm_critical_load(  # noqa: D102 (the request has it)
        self,
        load: FrameRate,
        frame_size: FrameSize = _SMALLEST,
        profile: str = DEFAULT_PROFILE,
        *,
        doubts: Doubts | None = None,
        resume: Path | None = None,
        **fields: Any,
    ) -> ConfirmationResult:
        request = request_of(self.session, ConfirmationRequest, frame_size, profile, {"load": load, **fields})
        logger.info(request.plan(request.planned_trials), also_console=True)
        return _measured(self.session, Confirmation, request, doubts, resume)

    @asks(SoakRequest, without="warm_start")
    @typed_keyword()
    def find_critical_load(  # noqa: D102 (the request has it)
        self,
        frame_size: FrameSize,
        profile: str = DEFAULT_PROFILE,
        *,
        preset: SoakPreset | None = None,
        warm_start: bool = False,
        doubts: Doubts | None = None,
        resume: Path | None = None,
        **fields: Any,
    ) -> SoakResult:
        request = request_of(self.session, SoakRequest, frame_size, profile, fields)
        if warm_start:
            request = request.but(warm_start=warm_start_from(self.session.last_result, request.profile))
        return _measured(self.session, Soak, request if preset is None else request.preset(preset), doubts, resume)
