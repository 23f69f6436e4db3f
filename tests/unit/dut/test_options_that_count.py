"""Which options of a device distinguish series: all that differ from their defaults, but for what is tested."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BeforeValidator, Field

from lossratio.dut import DutOptions
from lossratio.dut.plugins import built_in_kinds, parse_options
from lossratio.results.device import GIVEN, Device, Role, in_words, options_that_count, what_differs
from lossratio.values.units import parse_frame_rate


def counted(kind, **options):
    return options_that_count(parse_options(kind, options))


@pytest.mark.parametrize("kind", built_in_kinds(), ids=lambda kind: kind.kind)
def test_without_options_nothing_counts(kind):
    assert options_that_count(kind.options_type()) == {}


@pytest.mark.parametrize("rate", ["50 kfps", "50kpps", "50000", 50_000, 50e3, "0.05 Mfps"])
def test_the_spelling_of_a_value_does_not_count(rate):
    assert counted("linux_router", police=rate) == {"police": 50_000}


@pytest.mark.parametrize(
    ("kind", "default"),
    [("testpmd", {"burst": "32", "mode": "io"}), ("black_box", {"hold": "500 ms", "rest": "0"}), ("ovs", {"rules": 1})],
)
def test_a_default_that_is_given_does_not_count(kind, default):
    assert counted(kind, **default) == {}


@pytest.mark.parametrize(
    ("kind", "tonight"),
    [("vpp", {"home": "/builds/1"}), ("grout", {"home": "/builds/1"}), ("l3fwd", {"program": "/builds/1/l3fwd"})],
)
def test_a_build_is_what_is_tested_and_does_not_count(kind, tonight):
    assert counted(kind, **tonight) == {}


@pytest.mark.parametrize(("option", "other"), [("object", "pinned"), ("pinned", "object")])
def test_a_program_of_ones_own_is_another_device_whatever_its_path(option, other):
    assert counted("xdp", **{option: "/builds/1"}) == counted("xdp", **{option: "/builds/2"}) == {option: GIVEN}
    assert counted("xdp", **{option: "/builds/1"}) != counted("xdp", **{other: "/builds/1"})


class Foreign(DutOptions):
    """The options of another package's kind."""

    address: str
    rate: Annotated[float, BeforeValidator(parse_frame_rate)] = "50 kfps"
    ports: frozenset[str] = frozenset()
    limits: dict[str, Any] = Field(default_factory=dict)
    build: Annotated[Path | None, Role.TESTED] = None
    version: Annotated[str, Role.TESTED] = "1"
    image: Annotated[str, Role.TESTED]


def of_another_package(**options):
    return options_that_count(Foreign(address="a", image="i", **options))


def test_options_of_another_package_follow_the_same_rule():
    assert of_another_package() == {"address": "a"}
    assert of_another_package(rate="50kpps") == {"address": "a"}
    assert of_another_package(rate="60 kfps") == {"address": "a", "rate": 60_000}
    assert of_another_package(version="2") == {"address": "a"}
    assert of_another_package(build="/1") == of_another_package(build="/2") == {"address": "a", "build": GIVEN}


def test_the_order_of_what_has_none_does_not_count():
    one = of_another_package(ports={"x", "y", "z"}, limits={"a": 1.0, "b": 2})
    other = of_another_package(ports={"z", "y", "x"}, limits={"b": 2.0, "a": 1})
    assert one == other
    assert [in_words(Device(kind="k", options=options), {}) for options in (one, other)] == [
        'k, address=a, limits={"a":1,"b":2}, ports=["x","y","z"]'
    ] * 2


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("linux_router, police=50000", "linux_router, police=60000", "police 50000 -> 60000"),
        ("linux_router", "linux_router, police=60000", "police none -> 60000"),
        ("linux_router, police=1", "linux_bridge", "linux_router -> linux_bridge, police 1 -> none"),
        ("vpp, testbed nic=Intel-X710", "vpp, testbed nic=Intel-E810CQ", "testbed nic Intel-X710 -> Intel-E810CQ"),
        ("vpp", "vpp", ""),
    ],
)
def test_a_difference_in_words(before, after, said):
    assert what_differs(before, after) == said


@pytest.mark.parametrize("value", ["a, b", 'say "x"', "a=b", ""])
def test_words_of_different_values_differ(value):
    texts = {in_words(Device(kind="k", options={"name": one}), {}) for one in (value, 50000, None, "a", "b")}
    assert len(texts) == 5
