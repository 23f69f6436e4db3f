"""Wrong values and broken lines of YAML files, one of each kind: each is refused with its place and the way out."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
import yaml
from document_kinds import yaml_kinds

import lossratio
from lossratio.errors import JobError, LossRatioError
from lossratio.files.yaml_file import plain_words
from lossratio.runs import load_job
from lossratio.runs.job_tests import job_tests
from lossratio.values.checked_arguments import shown_value
from lossratio.values.quantities import Plain, resolved

KINDS = {kind.name.removesuffix(".yaml"): kind for kind in yaml_kinds()}
VALUES = {
    "yes for a number": ("profile", "ttl: 64", "ttl: yes", "ipv4.ttl: must be a whole number, not 'yes'$"),
    "off for a number": ("profile", "seed: 5", "seed: off", "seed: must be a whole number, not 'off'"),
    "yes in a mix of sizes": (
        "profile",
        "{300: 3,",
        "{300: yes,",
        "yaml:13: mixes.mixed.300: must be a whole number, not 'yes'",
    ),
    "yes below the smallest number": ("topology", "port: 22", "port: no", "TG.port: must be a whole number, not 'no'"),
    "a number for a choice": (
        "topology",
        "testbed: lab",
        "testbed: 7",
        "must be 'lab', 'local' or 'simulated', not 7$",
    ),
    "a number beyond any integer": (
        "topology",
        "port: 22",
        "port: 1.0e+308",
        "TG.port: must be a whole number, not 1e",
    ),
    "a number in hexadecimal digits": ("profile", "seed: 5", "seed: 0x10", "seed: .* not '0x10': write 16"),
    "not a number": ("profile", "load_share: 1.0", "load_share: nan", "load_share: must be a finite number, not 'nan'"),
    "an empty path": ("topology", "~/.ssh/id_ed25519", "''", "key_file: the path is empty. Name a file, or leave"),
    "no day": (
        "annotations",
        "2026-08-01, note: New k",
        "soon, note: New k",
        "date: must be a day, such as 2026-08-01",
    ),
    "a number for a day": (
        "annotations",
        "2026-08-01, note: New k",
        "0, note: New k",
        "date: must be a day, .*, not 0",
    ),
    "a long value": ("topology", "lease: 1 min", f"lease: {'x' * 5000}", r"lease: 'x{95}\.\.\.' is not a duration"),
    "a number for a name": ("profile", "seed: 5", "seed: 5\n7: 8", r"yaml:15: 7: unknown field. The fields here"),
    "a name of a stream": ("profile", "seed: 5", "streams: [{name: '1'}]", "streams.0.name: must be a name of letters"),
    "no topology": ("job", "[lab.yaml]", '["a\\nb"]', r"topologies.0: there is no file '.*a\\nb'"),
    "no testbed": (
        "job",
        "testbeds: [lab7]",
        "testbeds: [lab8]",
        "yaml:4: tests.0.testbeds.0: no testbed .* 'lab8'. Its",
    ),
    "the same testbed twice": (
        "job",
        "[lab.yaml]",
        "[lab.yaml, lab.yaml]",
        "yaml:3: topologies.1: another topology is",
    ),
}
"""A kind of file, a part of it, what is in its place, and what the answer says."""
BROKEN = {
    "an open bracket": ("a: [1,\n  2\nb: 3\nc: 4", "3: .*a bracket that is opened on line 1 is not closed, or a comma"),
    "an open quote": ('a: 1\nb: "x\nc: 3', "3: .*a quote that is opened on line 2 is not closed"),
    "text after a bar": ("a: | text", "1: .*a text after | or > begins on the next line"),
    "an end in a field": ("a:\n  - *\n...\n", "2: .*a text that begins with &, \\* or % needs quotes"),
    "no value": ("a: {b: ]", "1: .*a value is missing before \\]"),
    "a NUL": ("a: 1\nb: \0", "2: not YAML: the character U\\+0000 is not allowed here$"),
    "no-break spaces": ("a:\n\u00a0 b: 1\n  c: 2", "2: not YAML: this line has no-break spaces"),
    "an incomplete tag": ("a: !<x", "1: not YAML: a value has a tag"),
    "an incomplete escape": (r'a: "\x4"', "1: not YAML: a % or ! begins something|not YAML: .*escape"),
    "UTF-16": (b"\xff\xfea\0", "1: not UTF-8: this file is in UTF-16; save it as UTF-8"),
    "a program": (b"\x7fELF\0\xff", "1: not UTF-8: this file is binary. Is it the right file"),
    "Latin-1": (b"a: 1\nb: \xe9", "2: not UTF-8: the byte 0xE9 is not part of a character; save the file as UTF-8"),
}
"""The text of a file, and what the answer says."""


READ = {
    "a word for a truth value as a text": ("topology", "username: tester", "username: on", "username='on'"),
    "a version as a text": ("annotations", "note: New kernel", "note: 6.10", "note='6.10'"),
    "a day as a text": ("topology", "name: lab7", "name: 2026-01-01", "name='2026-01-01'"),
    "a size as a text": ("job", "[64B, IMIX]", "[64, IMIX]", r"frame_sizes=\('64', 'IMIX'\)"),
    "a variable that is on": ("job", "GOALS: quick", "LATENCY: on", "{'LATENCY': 'on'}"),
    "an address of digits": ("topology", '"02:00:00:00:00:01"', "12:34:56:12:34:56", "'12:34:56:12:34:56'"),
    "a number that begins with 0": ("topology", "port: 22", "port: 0022", "port=22,"),
    "a truth value": ("topology", "sudo: true", "sudo: yes", "sudo=True"),
    "a number that is a fact": ("topology", "{slot: 3}", "{slot: 3, share: 1e-3}", "{'slot': 3, 'share': 0.001}"),
    "a truth value that is a fact": ("topology", "{slot: 3}", "{slot: true}", "{'slot': True}"),
    "a fact in quotes": ("topology", "{slot: 3}", "{slot: '3'}", "{'slot': '3'}"),
    "a fact beyond any number": ("topology", "{slot: 3}", "{slot: 1e999}", "{'slot': '1e999'}"),
    "a list of numbers": ("profile", "{first: 1, count: 3}", "{values: [3, 1]}", r"first=1, count=2.*values=\(3, 1\)"),
}
"""A kind of file, a part of it, what is in its place, and what it means: the field says it, not how the text looks."""


def refusal(read, path):
    """What a reader says about a file."""
    with pytest.raises(LossRatioError) as refused:
        read(path)
    return str(refused.value)


@pytest.mark.parametrize(("name", "part", "wrong", "answer"), VALUES.values(), ids=VALUES)
def test_a_wrong_value(name, part, wrong, answer, tmp_path):
    kind = KINDS[name]
    path = tmp_path / kind.name
    assert kind.text.count(part) >= 1
    path.write_text(kind.text.replace(part, wrong, 1))
    assert re.search(answer, refusal(kind.read, path), re.MULTILINE), refusal(kind.read, path)


@pytest.mark.parametrize(("name", "part", "other", "meaning"), READ.values(), ids=READ)
def test_a_text_without_quotes_is_what_its_field_needs(name, part, other, meaning, tmp_path):
    kind = KINDS[name]
    path = tmp_path / kind.name
    assert kind.text.count(part) >= 1
    path.write_text(kind.text.replace(part, other, 1))
    assert re.search(meaning, repr(kind.read(path)))


@pytest.mark.parametrize(("text", "answer"), BROKEN.values(), ids=BROKEN)
def test_a_broken_file(text, answer, tmp_path):
    path = tmp_path / "any.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    said = refusal(KINDS["goals"].read, path)
    assert re.search(f"any.yaml:{answer}", said), said
    assert len(said.splitlines()) == 1


def test_no_problem_is_in_the_words_of_the_parser():
    sources = "".join(map(inspect.getsource, (yaml.scanner, yaml.parser, yaml.composer)))
    problems = re.findall(r"\"((?:expected|found|could not|mapping|sequence|second|undefined)[^\"\n]+)\"", sources)
    assert len(problems) > 20
    for problem in problems:
        words = plain_words(yaml.MarkedYAMLError(problem=problem))
        assert words != problem
        assert re.search(r";|,|own|closed|missing", words), words


def test_a_frame_size_of_a_job_that_no_profile_of_its_tests_has_is_named_before_the_run(tmp_path):
    path = tmp_path / "job.yaml"
    (tmp_path / "mixed.yaml").write_text(KINDS["profile"].text)
    (tmp_path / "suite.robot").write_text(
        "*** Test Cases ***\n${FRAME_SIZE}-a\n    Measure MRR    ${FRAME_SIZE}    profile=${CURDIR}/mixed.yaml\n"
    )
    tests = "tests:\n- suites: [suite.robot]\n  frame_sizes: [{}]\n"
    text = f"format: lossratio-job/1\nname: x\ntopologies: [simulated]\n{tests}"
    path.write_text(text.format("64B, imix, mixed"))
    job = load_job(path)
    assert len(job_tests(job, job.testbeds[0])) == 3

    path.write_text(text.format("64B, mixde"))
    job = load_job(path)
    with pytest.raises(JobError) as refused:
        job_tests(job, job.testbeds[0])
    answer = "job.yaml:6: tests.0.frame_sizes.1: 'mixde' is neither a size, such as 64B, nor a mix of sizes. Known "
    assert answer in str(refused.value)
    assert "mixes: IMIX_v4_1, mixed. Did you mean 'mixed'?" in str(refused.value)


@pytest.mark.parametrize("name", KINDS)
def test_an_empty_file_of_each_kind_says_that_it_is_empty(name, tmp_path):
    path = tmp_path / "empty.yaml"
    path.write_text("")
    assert "but it is empty. Is it the right file?" in refusal(KINDS[name].read, path)


@pytest.mark.whole
def test_no_field_shows_a_regular_expression():
    library = Path(lossratio.__file__).parent
    fields = re.compile(r"\bField\([^()]*\bpattern=")
    assert [path for path in library.rglob("*.py") if fields.search(path.read_text())] == []


@pytest.mark.parametrize(
    ("value", "begins", "ends"),
    [
        ("x" * 300, "'xxx", "xxx...'"),
        ("it's " * 60, "\"it's it", '..."'),
        (b"x" * 300, "b'xxx", "xxx...'"),
        (Path("x" * 300), "the path 'xxx", "xxx...'"),
        (list(range(300)), "[0, 1, 2", "...]"),
        (10**300, "1000", "000..."),
    ],
    ids=["text", "text with a quote", "bytes", "path", "list", "number"],
)
def test_a_shortened_value_ends_as_it_would_end_whole(value, begins, ends):
    shown = shown_value(value)
    assert len(shown) == 100
    assert [shown.startswith(begins), shown.endswith(ends)] == [True, True], shown


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("12", 12),
        ("-1_000", -1000),
        ("6.10", 6.1),
        ("1.5e3", 1500.0),
        ("True", True),
        ("00123", "00123"),
        ("1234e56", "1234e56"),
        ("1_", "1_"),
        ("1__0", "1__0"),
        ("1_.5", "1_.5"),
        ("1.0e999", "1.0e999"),
        ("on", "on"),
        ("0x10", "0x10"),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_a_text_without_quotes_is_a_number_only_if_it_is_written_as_one(written, read):
    value = resolved({"any": [Plain(written)]})["any"][0]
    assert value == read
    assert isinstance(value, type(read))
