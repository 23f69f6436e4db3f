"""Export of results for FD.io CSIT's dashboards, only where a number means the same there.

Rates are aggregates, bandwidths those of layer 1, and ``lower`` is the conditional throughput, as in CSIT's own files.
What would mean something else there, or could not be shown, is refused with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from pydantic import JsonValue

from lossratio.errors import ReportError
from lossratio.mlrsearch import NDR, PDR, IrregularReason, SearchGoal
from lossratio.records import Rate
from lossratio.report.csit_latency import csit_latencies
from lossratio.report.csit_model import (
    CsitBounds,
    CsitCriticalRate,
    CsitLoss,
    CsitMrr,
    CsitNdrPdr,
    CsitNumber,
    CsitRate,
    CsitReceiveRate,
    CsitReconf,
    CsitSamples,
    CsitSoak,
    CsitTestCase,
)
from lossratio.report.csit_names import CsitNames, csit_names
from lossratio.results import (
    GENERATOR_LIMIT,
    MRR_TRIAL_DURATION,
    Conditions,
    FrameLossResult,
    GoalReport,
    LatencyResult,
    MrrResult,
    ReconfigurationResult,
    Result,
    SoakResult,
    ThroughputResult,
    search_goal,
    write_whole,
)

_EFFECTIVE = (GENERATOR_LIMIT, str(IrregularReason.MAX_LOAD_IS_LOWER_BOUND))
"""Reasons of irregular results that CSIT publishes all the same: all that can be sent is forwarded."""


_SOAK_LOSS_RATIO = 1e-7


class CsitExportError(ReportError):
    """A result means something else in CSIT's files, or lacks what they need; the message says what."""


@dataclass(frozen=True)
class CsitExport:
    """A result as CSIT has it.

    Attributes:
        path: Where its file belongs, below the folder of a run.
        case: What is in the file.
    """

    path: str
    case: CsitTestCase

    def write(self, folder: Path) -> Path:
        """Writes the file below a folder.

        Raises:
            ReportError: If it cannot be written.
        """
        path = folder / self.path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, self.case.model_dump_json(indent=2, exclude_none=True).encode() + b"\n")
        except OSError as error:
            raise ReportError(f"Cannot write {path}: {error.strerror}.") from error
        return path


def csit_export(result: Result) -> CsitExport:
    """A result as CSIT has it.

    Raises:
        ReportError: If it cannot be exported; the message says why.
    """
    names = csit_names(result.test)
    if result.error is not None:
        raise CsitExportError(f"{result.test.full_name} failed, so there is no result to export: {result.error}")
    case = CsitTestCase(
        start_time=_time(result.started),
        end_time=_time(result.ended),
        duration=(result.ended - result.started).total_seconds(),
        passed=True,
        message="",
        hosts=_hosts(result.conditions),
        dut_type=_dut(result)[0],
        dut_version=_dut(result)[1],
        tg_type=_generator(result)[0],
        tg_version=_generator(result)[1],
        tags=result.test.tags,
        telemetry=_telemetry(result),
        test_documentation=result.test.documentation,
        test_id=names.test_id,
        test_name_short=names.name_short,
        test_name_long=names.name_long,
        test_type=names.test_type,
        result=_result(result, names),
    )
    return CsitExport(names.path, case)


def _result(result: Result, names: CsitNames) -> CsitNdrPdr | CsitMrr | CsitSoak | CsitReconf:
    if isinstance(result, ThroughputResult):
        return _ndrpdr(result, names)
    if isinstance(result, MrrResult):
        return _mrr(result, names)
    if isinstance(result, FrameLossResult):
        raise CsitExportError(f"{result.test.full_name} is a frame loss rate over load, which CSIT does not have.")
    if isinstance(result, LatencyResult):
        raise CsitExportError(f"{result.test.full_name} is a latency alone; CSIT has it as a part of NDR and PDR only.")
    return _soak(result, names) if isinstance(result, SoakResult) else _reconf(result, names)


def _soak(result: SoakResult, names: CsitNames) -> CsitSoak:
    _check_type(result, names, "soak")
    found = result.critical_load
    if found is None or result.target_loss_ratio != _SOAK_LOSS_RATIO:
        raise CsitExportError(f"CSIT's soak tests have a target loss ratio of 1e-7; {result.test.full_name} has not.")
    if found.misfit:
        raise CsitExportError(f"The critical load of {result.test.full_name} is irregular: {found.reason}.")
    mean, stdev = found.mean.per_interface_fps, found.stdev.per_interface_fps
    lower, upper = (result.conditions.rate(max(0.0, mean + sign * stdev)) for sign in (-1, 1))
    return CsitSoak(critical_rate=CsitCriticalRate(lower=_rate(lower), upper=_rate(upper)))


def _reconf(result: ReconfigurationResult, names: CsitNames) -> CsitReconf:
    _check_type(result, names, "reconf")
    if result.loss is None:
        raise CsitExportError(f"{result.test.full_name} has no result to export.")
    lost = CsitNumber(value=result.loss.lost_frames, unit="packets")
    time = CsitNumber(value=result.loss.lost_time_s, unit="s")
    return CsitReconf(aggregate_rate=_rate(result.loss.load), loss=CsitLoss(packet=lost, time=time))


def _ndrpdr(result: ThroughputResult, names: CsitNames) -> CsitNdrPdr:
    _check_type(result, names, "ndrpdr")
    forward, reverse = (csit_latencies(result.latency, result.conditions, way) for way in (0, 1))
    return CsitNdrPdr(
        ndr=_bounds(result, NDR), pdr=_bounds(result, PDR), latency_forward=forward, latency_reverse=reverse
    )


def _bounds(result: ThroughputResult, wanted: SearchGoal) -> CsitBounds:
    """The result of the goal that is the same as one of CSIT's."""
    report = next((each for each in result.goals if _is_same(each, wanted)), None)
    if report is None or report.result is None:
        raise CsitExportError(f"{result.test.full_name} has no goal with the attributes of CSIT's {wanted.name}.")
    found = report.result
    if found.conditional_throughput is None or not (found.regular or found.reason in _EFFECTIVE):
        raise CsitExportError(f"{wanted.name} of {result.test.full_name} is irregular: {found.reason}.")
    upper = found.relevant_upper_bound if found.regular else None
    return CsitBounds(lower=_rate(found.conditional_throughput), upper=None if upper is None else _rate(upper))


def _is_same(report: GoalReport, wanted: SearchGoal) -> bool:
    goal = search_goal(report.goal)
    names = ("loss_ratio", "exceed_ratio", "final_trial_duration", "duration_sum", "width")
    return all(getattr(goal, name) == getattr(wanted, name) for name in names)


def _mrr(result: MrrResult, names: CsitNames) -> CsitMrr:
    _check_type(result, names, "mrr")
    if result.mrr is None or any(trial.duration_s != MRR_TRIAL_DURATION for trial in result.trials):
        raise CsitExportError(f"CSIT's MRR has trials of {MRR_TRIAL_DURATION:g} s, and {result.test.full_name} others.")
    mrr = result.mrr
    rates = [value.forwarding_rate for value in mrr.values]
    return CsitMrr(
        receive_rate=CsitReceiveRate(
            rate=CsitSamples(
                values=tuple(rate.aggregate_fps for rate in rates),
                avg=mrr.mean.aggregate_fps,
                stdev=mrr.stdev.aggregate_fps,
                unit="pps",
            ),
            bandwidth=CsitSamples(
                values=tuple(rate.aggregate_l1_bps for rate in rates),
                avg=mrr.mean.aggregate_l1_bps,
                stdev=mrr.stdev.aggregate_l1_bps,
                unit="bps",
            ),
        )
    )


def _check_type(result: Result, names: CsitNames, expected: str) -> None:
    if names.test_type != expected:
        raise CsitExportError(f"{result.test.full_name} is called {names.test_type}, and its result is {expected}.")


def _rate(rate: Rate) -> CsitRate:
    return CsitRate(
        rate=CsitNumber(value=rate.aggregate_fps, unit="pps"),
        bandwidth=CsitNumber(value=rate.aggregate_l1_bps, unit="bps"),
    )


def _hosts(conditions: Conditions) -> tuple[str, ...]:
    """The addresses of the nodes; a node of this machine is known by its name."""
    nodes = conditions.testbed.topology.get("nodes")
    described = nodes if isinstance(nodes, Mapping) else {}
    hosts = {str((node or {}).get("host") or name) for name, node in described.items() if isinstance(node, Mapping)}
    return tuple(sorted(hosts)) or tuple(sorted(conditions.nodes))


def _dut(result: Result) -> tuple[str, str]:
    """Kind and version of the DUT; the version of one that Linux is itself is the kernel's."""
    conditions = result.conditions
    for name, dut in conditions.duts.items():
        kind = str(dut.get("kind") or "")
        node = conditions.nodes.get(str(dut.get("node") or name))
        version = dut.get("version") or (None if node is None else node.kernel)
        if kind and version:
            return kind.upper(), str(version)
    raise CsitExportError(f"{result.test.full_name} does not say what kind and version its DUT was.")


def _generator(result: Result) -> tuple[str, str]:
    """Kind and version of the generator; lossratio's own ones have its version."""
    generator = result.conditions.generator
    kind = str(generator.get("kind") or "")
    version = generator.get("version") or (None if kind == "trex" else result.conditions.controller.lossratio_version)
    if not (kind and version):
        raise CsitExportError(f"{result.test.full_name} does not say what kind and version its generator was.")
    return kind.upper(), str(version)


def _telemetry(result: Result) -> tuple[JsonValue, ...]:
    trials = result.telemetry if isinstance(result, ThroughputResult) else ()
    return tuple(trial.model_dump(mode="json") for trial in trials)


def _time(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}Z"
