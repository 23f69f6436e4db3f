"""FD.io CSIT's test case model, version 1.5.1, as far as our results have what it holds."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

CSIT_VERSION: Literal["1.5.1"] = "1.5.1"


class CsitRecord(BaseModel):
    """A part of a CSIT test case."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class CsitNumber(CsitRecord):
    """A number with its unit."""

    value: float
    unit: Literal["pps", "bps", "packets", "s"]


class CsitRate(CsitRecord):
    """An aggregate rate, in packets per second and as bandwidth on the wire (layer 1)."""

    rate: CsitNumber
    bandwidth: CsitNumber


class CsitBounds(CsitRecord):
    """NDR or PDR: lower is the conditional throughput."""

    lower: CsitRate
    upper: CsitRate | None = None


class CsitLatency(CsitRecord):
    """Latency of one direction at one load, in microseconds."""

    min: float
    avg: float
    max: float
    hdrh: str
    unit: Literal["us"] = "us"


class CsitLatencies(CsitRecord):
    """Latency of one direction at shares of PDR in per cent; 0 is the minimum load."""

    pdr_0: CsitLatency
    pdr_10: CsitLatency
    pdr_50: CsitLatency
    pdr_90: CsitLatency


class CsitNdrPdr(CsitRecord):
    """Result of a search for NDR and PDR."""

    type: Literal["ndrpdr"] = "ndrpdr"
    ndr: CsitBounds
    pdr: CsitBounds
    latency_forward: CsitLatencies | None = None
    latency_reverse: CsitLatencies | None = None


class CsitSamples(CsitRecord):
    """Values of repeated trials, with mean and population standard deviation."""

    values: tuple[float, ...]
    avg: float
    stdev: float
    unit: Literal["pps", "bps"]


class CsitReceiveRate(CsitRecord):
    """Aggregate receive rates, in packets per second and as bandwidth on the wire."""

    rate: CsitSamples
    bandwidth: CsitSamples


class CsitMrr(CsitRecord):
    """Result of a measurement of the maximum receive rate."""

    type: Literal["mrr"] = "mrr"
    receive_rate: CsitReceiveRate


class CsitCriticalRate(CsitRecord):
    """Critical rate: its mean less and plus a standard deviation."""

    lower: CsitRate
    upper: CsitRate


class CsitSoak(CsitRecord):
    """Result of a soak test."""

    type: Literal["soak"] = "soak"
    critical_rate: CsitCriticalRate


class CsitLoss(CsitRecord):
    """Loss while the SUT was reconfigured."""

    packet: CsitNumber
    time: CsitNumber


class CsitReconf(CsitRecord):
    """Result of a reconfiguration test."""

    type: Literal["reconf"] = "reconf"
    aggregate_rate: CsitRate
    loss: CsitLoss


class CsitTestCase(CsitRecord):
    """A test case."""

    version: Literal["1.5.1"] = CSIT_VERSION
    start_time: str = Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")
    end_time: str = Field(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")
    duration: float
    passed: bool
    message: str
    hosts: tuple[str, ...] = Field(min_length=1)
    dut_type: str
    dut_version: str
    tg_type: str
    tg_version: str
    tags: tuple[str, ...]
    telemetry: tuple[JsonValue, ...]
    test_documentation: str
    test_id: str
    test_name_short: str
    test_name_long: str
    test_type: str
    result: CsitNdrPdr | CsitMrr | CsitSoak | CsitReconf
