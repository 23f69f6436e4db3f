"""Files that break readers: one clear error each, and nothing waits or grows without an end."""

from __future__ import annotations

import itertools
import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from document_kinds import yaml_kinds
from waiting import PATIENCE

from lossratio.dut.linux.kernel_dut import parse_cpus
from lossratio.errors import LossRatioError, TopologyError
from lossratio.files.input_file import parse_json
from lossratio.report.run import read_run
from lossratio.results.repair import repair, unreadable_in
from lossratio.results.run_directory import read_result
from lossratio.topology import load_topology
from lossratio.trials.digest import add_digest
from lossratio.trials.journal import Journal
from lossratio.trials.journal_lines import FORMAT
from lossratio.trials.journal_reading import read_journal

KINDS = pytest.mark.parametrize("kind", yaml_kinds(), ids=lambda kind: kind.name)
READERS = pytest.mark.parametrize(
    "read",
    [*(kind.read for kind in yaml_kinds()), read_journal, read_result],
    ids=[*(kind.name for kind in yaml_kinds()), "journal", "result"],
)


def refusal(read, path: Path) -> str:
    with pytest.raises(LossRatioError) as refused:
        read(path)
    message = str(refused.value)
    message.encode()
    assert str(path) in message
    return message


@KINDS
def test_a_valid_document_is_read(kind, tmp_path):
    path = tmp_path / kind.name
    path.write_text(kind.text)
    assert kind.read(path)


def grown(first: str, more: str) -> str:
    """A document in which each value holds the one before nine times."""
    names = "abcdefghi"
    lines = (more.format(new=new, nine=", ".join([f"*{old}"] * 9)) for old, new in itertools.pairwise(names))
    return first.format() + "".join(lines)


BROKEN = {
    "deep flow": ("a: " + "[" * 100_000, "nested more than 50 levels deep"),
    "deep blocks": ("- " * 10_000, "nested more than 50 levels deep"),
    "deep pairs": ("? " * 10_000, "nested more than 50 levels deep"),
    "billion laughs": (grown("a: &a [x, x, x]\n", "{new}: &{new} [{nine}]\n"), "more than 5000 values"),
    "billion merges": (grown("a: &a {{x: 1}}\n", "{new}: &{new} {{<<: [{nine}]}}\n"), "more than 5000 values"),
    "long text many times": (f"a: &a {'x' * 100_000}\nb: [{'*a, ' * 5000}]", "more than 5000 values"),
    "alias of what it is in": ("a: &a [*a]", "refers to a value that contains it"),
    "merge of what it is in": ("a: &a {<<: *a}", "refers to a value that contains it"),
    "unknown alias": ("a: *b", "nothing is named &b, to which *b refers"),
    "huge number": ("nodes: " + "9" * 5000, "nodes"),
    "huge hexadecimal number": ("mtu: 0x" + "f" * 5000, "mtu: must be a whole number, not '0xfff"),
    "huge number in base 60": ("mtu: 1" + ":1" * 5000, "mtu: must be a whole number, not '1:1:1"),
    "no such day": ("a: 2026-02-30", "a: unknown field"),
    "text called a number": ("a: !!int x", "a value has a tag (!name), which has no meaning here"),
    "text called a time": ("a: !!timestamp x", "a value has a tag (!name), which has no meaning here"),
    "text that is a mapping": ("a: !!str {!!value =: x}", "a: unknown field"),
    "list called a mapping": ("a: !!map [x]", "the value is not of the type that its tag (!!name) says"),
    "foreign tag": ("a: !!python/object/apply:os.system [ls]", "a value has a tag (!name), which has no meaning here"),
    "half a surrogate pair": (r'a: "\ud800"', "the character U+D800 is not allowed in a text"),
    "NUL": (r'a: "x\0"', "the character U+0000 is not allowed in a text"),
    "terminal escape": (r'a: "\e[2J"', "the character U+001B is not allowed in a text"),
    "escape beyond Unicode": (r'a: "\UFFFFFFFF"', "not YAML"),
    "huge version": (f"%YAML {'9' * 5000}.1\n---\na: 1", "not YAML"),
    "list as a key": ("? [a]\n: b", "the name of a field must be a text, not a list or fields"),
    "key twice": ("a: 1\na: 2", "the name 'a' appears twice"),
    "key three times": ("a: 1\na: 2\na: 3", "first on line 1"),
    "number as a key": ("1: 2", ""),
    "nothing": ("", "must hold fields"),
    "only a comment": ("# nothing", "must hold fields"),
    "two documents": ("a: 1\n---\nb: 2", "a file can have only one document, and it ends before this line"),
    "tabs": ("a:\n\t- b", "not YAML"),
    "many unknown fields": ("".join(f"a{number}: 1\n" for number in range(1000)), "more problems"),
    "large": ("# " + "x" * (1 << 22), "it has more than 2 MiB"),
}


def check_refusal(kind, path, broken):
    """Checks that a kind of file is refused with one clear error."""
    text, problem = BROKEN[broken]
    path.write_text(text)
    message = refusal(kind.read, path)
    assert problem in message
    assert len(message) < 10_000
    assert "\x1b" not in message


@pytest.mark.whole
@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_document_is_refused_with_one_clear_error(broken, tmp_path):
    kind = yaml_kinds()[0]
    check_refusal(kind, tmp_path / kind.name, broken)


@pytest.mark.whole
@KINDS
def test_every_kind_of_document_is_refused_like_that(kind, tmp_path):
    for broken in ("deep flow", "billion laughs", "huge number", "terminal escape", "nothing", "key twice", "large"):
        check_refusal(kind, tmp_path / kind.name, broken)


@pytest.mark.parametrize(
    ("data", "problem"),
    [(b"\xff\xfea\0:\0 \0001\0", "1: not UTF-8"), (b"a: 1\nb: \xe9\n", "2: not UTF-8"), (b"a: \0\n", "not YAML")],
    ids=["UTF-16", "Latin-1", "NUL"],
)
@KINDS
def test_a_file_in_another_encoding_is_refused_with_its_line(kind, data, problem, tmp_path):
    path = tmp_path / kind.name
    path.write_bytes(data)
    assert problem in refusal(kind.read, path)


@KINDS
def test_a_byte_order_mark_does_not_matter(kind, tmp_path):
    path = tmp_path / kind.name
    path.write_text("\ufeff" + kind.text)
    assert kind.read(path)


@READERS
def test_a_path_that_is_no_regular_file_is_refused_at_once(read, tmp_path, monkeypatch):
    # The path of a socket has at most 107 bytes.
    monkeypatch.chdir(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        for name in ("pipe", "loop", "socket", "missing", "x" * 300, "a\0b"):
            with pytest.raises(LossRatioError, match=r"Cannot read .*\."):
                read(tmp_path / name)
    assert "Is a directory" in refusal(read, tmp_path)
    assert "it is a pipe, a socket or a device" in refusal(read, Path("/dev/zero"))


@READERS
def test_a_file_that_may_not_be_read_is_refused(read, tmp_path):
    path = tmp_path / "secret.yaml"
    path.write_text("a: 1")
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("root reads every file")
    assert "Permission denied" in refusal(read, path)


def test_aliases_and_merge_keys_may_be_used_as_far_as_people_do(tmp_path):
    path = tmp_path / "lab.yaml"
    path.write_text(yaml_kinds()[0].text)
    ports = load_topology(path).nodes["TG"].interfaces
    assert (ports["port1"].name, ports["port1"].speed) == ("eth2", ports["port0"].speed)


def test_many_long_names_do_not_make_a_long_error(tmp_path):
    path = tmp_path / "lab.yaml"
    path.write_text("format: lossratio-topology/1\n" + "".join(f"{chr(97 + n) * 10_000}: 1\n" for n in range(20)))
    assert len(refusal(load_topology, path)) < 5000


JSON_LINES = {
    "deep": ("[" * 100_000, "nested too deep"),
    "name twice": ('{"input": {}, "input": {}}', "the name 'input' appears twice"),
    "no number": ('{"input": {"duration": NaN, "load": 1}, "output": {}}', "NaN is not a number"),
    "infinite": ('{"input": {"duration": 1e999, "load": 1}, "output": {"loss_ratio": 0}}', "not a trial"),
    "huge number": (
        '{"input": {"duration": 1' + "0" * 400 + ', "load": 1}, "output": {"loss_ratio": 0}}',
        "not a trial",
    ),
    "huger number": ('{"a": 1' + "0" * 5000 + "}", "not a trial"),
    "terminal escape": (r'{"\u001b[2J": 1}', "has control characters"),
    "half a surrogate pair": (r'{"input": {"\ud800": 1}}', "surrogates not allowed"),
    "list for an object": ('{"input": [1], "output": [1]}', "not a trial"),
    "text for a number": ('{"input": {"duration": "1", "load": 1}, "output": {"loss_ratio": 0}}', "not a trial"),
}


@pytest.mark.parametrize(("line", "problem"), JSON_LINES.values(), ids=JSON_LINES)
def test_a_journal_with_a_hostile_line_is_refused(line, problem, tmp_path):
    path = tmp_path / "t.jsonl"
    # With digests that fit, as only the line's contents are to be refused.
    header, digest = add_digest(json.dumps({"format": FORMAT, "search": {}}).encode())
    path.write_bytes(header + b"\n" + add_digest(line.encode(), digest)[0] + b"\n")
    assert problem in refusal(read_journal, path)


@pytest.mark.parametrize(
    "text", ["", "[" * 100_000, "{", "null", '{"kind": "mrr"}', '{"format": NaN}', r'{"format": "\ud800"}', "\ufeff{}"]
)
def test_a_hostile_result_is_refused(text, tmp_path):
    path = tmp_path / "t.json"
    path.write_text(text)
    refusal(read_result, path)


@pytest.mark.parametrize("name", ["trials/x.jsonl", "results/x.json"])
def test_a_pipe_in_the_directory_of_a_run_holds_nobody_up(tmp_path, name):
    path = tmp_path / name
    path.parent.mkdir()
    os.mkfifo(path)
    assert "it is a pipe" in str(*unreadable_in(tmp_path))
    with pytest.raises(LossRatioError, match="it is a pipe"):
        read_run(tmp_path)
    try:
        problems = [str(repaired.damage) for repaired in repair(tmp_path)]
    except LossRatioError as error:
        problems = [str(error)]
    assert "it is a pipe" in " ".join(problems)


def test_a_journal_is_not_begun_in_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(LossRatioError, match="Cannot read the journal"):
        Journal.open(tmp_path / "pipe", {})


@pytest.mark.whole
def test_the_command_shows_one_line_and_no_traceback(tmp_path):
    path = tmp_path / "lab.yaml"
    path.write_text("a: " + "[" * 100_000)
    done = subprocess.run(
        [sys.executable, "-m", "lossratio", "check", str(path)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 2
    assert re.fullmatch(
        r"Error: .*lab\.yaml:1: not YAML: nested more than 50 levels deep; use fewer levels\n", done.stderr
    ), done.stderr


def test_a_refused_file_is_an_error_of_its_kind(tmp_path):
    path = tmp_path / "lab.yaml"
    path.write_text("a: *b")
    with pytest.raises(TopologyError):
        load_topology(path)


def lab(**changes: object) -> dict:
    """A topology with some values changed; each is named by its place, with `__` between keys."""
    data = yaml.safe_load(yaml_kinds()[0].text)
    for place, value in changes.items():
        *way, last = place.split("__")
        at = data
        for key in way:
            at = at[key]
        at[last] = value
    return data


BAD_NAMES = ["-j", "../../../etc", "/etc", ".", "..", "a b", "a\tb", "a\nb", "", "x" * 16, "ü" * 8, "eth0:1"]


@pytest.mark.whole
@pytest.mark.parametrize("name", BAD_NAMES)
def test_names_that_the_kernel_refuses_are_refused_in_a_topology(name, tmp_path):
    path = tmp_path / "lab.yaml"
    path.write_text(yaml.safe_dump(lab(nodes__TG__interfaces__port0__name=name)))
    message = refusal(load_topology, path)
    assert "nodes.TG.interfaces.port0.name: " in message
    assert "cannot be the name of an interface" in message


@pytest.mark.netns
def test_the_kernel_itself_refuses_these_names_but_for_a_leading_dash(netns_lab):
    netns_lab.namespace("tg")
    script = 'for name; do ip link add name "$name" type bridge 2>/dev/null && echo "$name"; done; true'
    made = netns_lab.run("tg", "sh", "-c", script, "sh", *BAD_NAMES, "a.b-c_d", "ü" * 7, "x" * 15).stdout
    assert made.splitlines() in ([*there, "a.b-c_d", "ü" * 7, "x" * 15] for there in ([], ["-j"]))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("nodes__TG__host", "-oProxyCommand=x"),
        ("nodes__TG__host", "a b"),
        ("nodes__TG__host", "a/b"),
        ("nodes__TG__username", "-l"),
        ("nodes__TG__username", "a\nb"),
        ("nodes__TG__generator__directory", "opt"),
        ("nodes__TG__generator__directory", "/opt\n/x"),
        ("nodes__TG__generator__python", "-c"),
        ("nodes__TG__generator__python", "A=1"),
        ("nodes__TG__generator__python", ""),
        ("nodes__TG__generator__prefix", "../x"),
        ("nodes__TG__interfaces__port0__link", "a\nb"),
        ("nodes__TG__interfaces__port0__model", "a\nb"),
        ("nodes__DUT1__uio_driver", "../../x"),
        ("nodes__DUT1__uio_driver", "-x"),
        ("nodes__DUT1__interfaces__east__driver", "a/b"),
        ("nodes__DUT1__interfaces__east__pci_address", "0000:3b:00.0/../x"),
        ("reservation__directory", "tmp"),
        ("reservation__name", "../x"),
        ("name", "../x"),
        ("name", "x" * 300),
    ],
)
def test_words_of_commands_and_parts_of_paths_are_checked(place, value, tmp_path):
    path = tmp_path / "lab.yaml"
    path.write_text(yaml.safe_dump(lab(**{place: value})))
    assert f": {place.replace('__', '.')}" in refusal(load_topology, path)


@pytest.mark.parametrize("name", ["-x", "a b", "../x", "a\nb", "*", "x" * 200])
def test_the_name_of_a_node_is_checked(name, tmp_path):
    data = lab()
    data["nodes"][name] = data["nodes"].pop("DUT1")
    path = tmp_path / "lab.yaml"
    path.write_text(yaml.safe_dump(data))
    assert "nodes." in refusal(load_topology, path)


@pytest.mark.parametrize("cpus", ["0-99999999999", "8192", "1-", "-1", "²", "1" * 5000])
def test_numbers_of_cpus_that_no_machine_has_are_refused_at_once(cpus):
    with pytest.raises(ValueError, match="are not CPU numbers"):
        parse_cpus(cpus)


@pytest.mark.whole
def test_a_long_value_does_not_make_a_long_error(tmp_path):
    path = tmp_path / "lab.yaml"
    path.write_text(yaml.safe_dump(lab(nodes__TG__connect_timeout="x" * 100_000)))
    assert len(refusal(load_topology, path)) < 2000


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (b"hello\n", "broken at line 1, column 1"),
        (b'{"a": 1', "broken at line 1, column 8"),
        (b'{"a": 1}x', "broken at line 1, column 9"),
        (b'{"a": "\xff"}', "its byte 8 is not UTF-8 text"),
    ],
)
def test_broken_json_is_told_by_its_place_in_words_of_our_own(text, where):
    with pytest.raises(ValueError, match=f"^{where}$"):
        parse_json(text)
