from __future__ import annotations

import re

from robot.libdocpkg import LibraryDocumentation

from lossratio.results.kinds import built_in_kinds

LIBRARY = LibraryDocumentation("lossratio.keywords.LossRatio")
KEYWORDS = {keyword.name: keyword for keyword in LIBRARY.keywords}


def test_every_kind_has_its_keyword():
    assert [kind.name for kind in built_in_kinds() if kind.keyword not in KEYWORDS] == []


def test_the_names_that_suites_use_are_there_and_others_are_those_of_kinds():
    names = {
        "Call Hook",
        "Collect Telemetry",
        "Confirm Critical Load",
        "Find Conditional Throughput",
        "Find Connection Rate",
        "Find Connection Table Capacity",
        "Find Critical Load",
        "Find NDR And PDR",
        "Find Tester Limit",
        "MRR Should Be At Least",
        "Measure Back-To-Back Frames",
        "Measure Connection MRR",
        "Measure Connection Teardown Rate",
        "Measure Frame Loss Rate",
        "Measure Latency",
        "Measure MRR",
        "Measure Reconfiguration Loss",
        "Measure Reset Time",
        "Measure System Recovery",
        "Reconfigure DUTs",
        "Release Testbed",
        "Reserve Testbed",
        "Run RFC 2544",
        "Set Up Testbed",
        "Start Traffic",
        "Stop Traffic",
        "Tear Down Testbed",
        "Throughput Should Be At Least",
        "Throughput Should Not Have Regressed",
        "Use Hook",
        "Write Report",
    }
    assert names <= KEYWORDS.keys()
    assert KEYWORDS.keys() - names <= {kind.keyword for kind in built_in_kinds()}


def test_every_argument_is_typed_and_documented():
    arguments = [(keyword, argument) for keyword in KEYWORDS.values() for argument in keyword.args if argument.name]
    assert len(arguments) > 100
    assert [(keyword.name, argument.name) for keyword, argument in arguments if argument.type is None] == []
    described = {keyword.name: LIBRARY.doc + keyword.doc for keyword in KEYWORDS.values()}
    assert [
        (keyword.name, argument.name)
        for keyword, argument in arguments
        if f"``{argument.name}``" not in described[keyword.name]
    ] == []


def test_every_keyword_has_a_first_line_that_stands_alone():
    first_lines = {keyword.name: keyword.short_doc for keyword in KEYWORDS.values()}
    assert {name for name, line in first_lines.items() if not re.fullmatch(r"[A-Z][^\n]+\.", line)} == set()


def test_types_of_our_own_are_documented():
    types = {type_doc.name: type_doc.doc for type_doc in LIBRARY.type_docs}
    assert "kpps" in types["FrameRate"]
    assert "IMIX_v4_1" in types["FrameSize"]
    for preset in ("NDR", "PDR", "RFC2544", "TST009", "QUICK_NDR", "QUICK_PDR"):
        assert f"``{preset}``" in types["SearchGoal"]


def test_editors_complete_the_options_of_a_device_with_their_types_and_others_are_taken_too():
    (keyword,) = (keyword for keyword in LIBRARY.keywords if keyword.name == "Set Up Testbed")
    assert {"police", "forwarding", "cores", "west_mac"} <= set(keyword.args.named_only)
    assert str(keyword.args.types["mode"]) == "Literal['io', 'mac', '5tswap', 'csum'] | str"
    assert keyword.args.var_named == "options"


def test_each_keyword_is_in_one_group_that_the_introduction_names():
    introduction, keywords = LIBRARY.doc, LIBRARY.keywords
    groups = {keyword.name: list(keyword.tags) for keyword in keywords}
    assert {len(tags) for tags in groups.values()} == {1}
    assert all(f"``{tag}``" in introduction for (tag,) in groups.values())
    assert groups["Find NDR And PDR"] == groups["Measure Reconfiguration Loss"] == ["Measurement"]
    assert groups["Throughput Should Be At Least"] == ["Check"]
    assert groups["Set Up Testbed"] == ["Testbed"]
