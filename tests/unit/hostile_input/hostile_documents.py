"""Strategies of hypothesis for files that break readers: valid documents with something changed, and anything else."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any

import yaml
from hypothesis import strategies as st

HOSTILE_TEXTS = (
    *(
        "",
        " ",
        "-",
        "-j",
        "--help",
        ".",
        "..",
        "../../../etc",
        "/",
        "~",
        "~x/y",
        "a b",
        "a\nb",
        "*",
        "[",
        "${X}",
        "%s",
        "{0}",
    ),
    *("0", "-1", "1e999", "1e-999", "9" * 90, "1e308 Gpps", "nan", "inf", "0x1F", "\u0661", "\U0001d7d7", "1_0", "٣ s"),
    *(
        "0 %",
        "1000 %",
        "-1 s",
        "0 s",
        "1 d",
        "99999999 d",
        "1:2:3",
        "64B",
        "IMIX",
        "imix",
        "1e300B",
        "0B",
        "10 kpps",
        "²",
    ),
    *(
        "x" * 16,
        "x" * 300,
        "é" * 8,
        "\u2028",
        "\ufeff",
        "\u202e",
        "😀",
        "NULL",
        "yes",
        "198.18.0.1",
        "::1",
        "host:22",
        "a/b",
    ),
    *(
        "2026-08-01",
        "9999-12-31",
        "0001-01-01T00:00:00+23:59",
        "lab7",
        "TG",
        "left",
        "NDR",
        "1-",
        "0-4095",
        "0-9999999999",
    ),
)
HOSTILE_NUMBERS = (
    0,
    -1,
    1,
    2,
    3,
    255,
    65535,
    65536,
    2**31,
    2**32,
    2**63,
    2**64,
    10**90,
    -(10**90),
    0.1,
    -0.0,
    1e308,
    1e-320,
)
_SNIPPETS = (
    *("&a [*a]", "*a", "<<: *a", "!!int x", "!!python/object:os.system x", "!!binary =", "!!set {a}", "!!omap [a: 1]"),
    *(
        '"\\ud800"',
        '"\\0"',
        '"\\U0011FFFF"',
        "'",
        '"',
        "[",
        "{",
        "}",
        "]",
        ": ",
        "- ",
        "? ",
        "|",
        ">",
        "%YAML 9.9",
        "---",
        "...",
        "\t",
    ),
    *(
        "[" * 200,
        "- " * 200,
        "9" * 5000,
        "1" + ":1" * 200,
        "0b" + "1" * 5000,
        "\0",
        "\x1b",
        "2026-99-99",
        "NaN",
        "-Infinity",
    ),
    *(
        '{"a": 1, "a": 2}',
        "1e999",
        "\\ud800",
        "\n",
        "\r",
        "\x85",
        "\u2028",
        "&a ",
        "null",
        ".nan",
        ".inf",
        "=",
        "@",
        "`",
    ),
)

scalars = st.one_of(
    st.sampled_from([None, True, False, math.inf, math.nan, date(2026, 8, 1), *HOSTILE_TEXTS, *HOSTILE_NUMBERS]),
    st.text(max_size=20),
    st.integers(),
    st.floats(),
)
values = st.one_of(scalars, st.lists(scalars, max_size=3), st.dictionaries(scalars, scalars, max_size=3))


def places(data: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The ways to all values of a document."""
    yield way
    for key in data if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ():
        yield from places(data[key], (*way, key))


@st.composite
def changed(draw: st.DrawFn, document: Any) -> Any:
    """A document with one to four of its values replaced, taken out, renamed, or put somewhere else."""
    data = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 4))):
        ways = [way for way in places(data) if way]
        if not ways:
            break
        *way, last = draw(st.sampled_from(ways))
        holder = data
        for key in way:
            holder = holder[key]
        action = draw(st.sampled_from(["replace", "remove", "rename", "move", "repeat", "wrap"]))
        if action == "replace":
            holder[last] = draw(values)
        elif action == "remove":
            del holder[last]
        elif action == "rename" and isinstance(holder, dict):
            holder[draw(scalars)] = holder.pop(last)
        elif action == "move":
            part = data
            for key in draw(st.sampled_from(ways)):
                part = part[key] if isinstance(part, (dict, list)) else part
            holder[last] = copy.deepcopy(part)
        elif action == "repeat" and isinstance(holder, list):
            holder.extend(copy.deepcopy([holder[last]] * draw(st.integers(1, 50))))
        elif action == "wrap":
            for _ in range(draw(st.sampled_from([1, 2, 100]))):
                holder[last] = [holder[last]]
    return data


@st.composite
def damaged(draw: st.DrawFn, text: str) -> bytes:
    """A text with snippets put in, parts taken out or repeated, bytes changed, or in another encoding."""
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 40)))
        put = draw(
            st.one_of(st.sampled_from(_SNIPPETS), st.just(""), st.just(text[start:end] * 2), st.text(max_size=5))
        )
        text = text[:start] + put + text[end:]
    encoding = draw(st.sampled_from(["utf-8"] * 8 + ["utf-8-sig", "utf-16", "latin-1"]))
    data = bytearray(text.encode(encoding, "replace"))
    for _ in range(draw(st.sampled_from([0] * 4 + [1, 3]))):
        if data:
            data[draw(st.integers(0, len(data) - 1))] = draw(st.integers(0, 255))
    return bytes(data)


def yaml_documents(text: str) -> st.SearchStrategy[bytes]:
    """Documents that are nearly the valid one of a kind that people write, and some that are anything."""
    nearly = changed(yaml.safe_load(text)).map(lambda data: yaml.safe_dump(data, allow_unicode=True, sort_keys=False))
    return st.one_of(nearly.map(str.encode), nearly.flatmap(damaged), damaged(text), st.binary(max_size=200))


def _with_text_keys(data: Any) -> Any:
    if isinstance(data, dict):
        return {str(key): _with_text_keys(value) for key, value in data.items()}
    return [_with_text_keys(item) for item in data] if isinstance(data, list) else data


def json_documents(lines: list[str], seal: Callable[[bytes], bytes]) -> st.SearchStrategy[bytes]:
    """The same for JSON, one document in each line; digests fit most of them."""

    def written(documents: list[Any]) -> str:
        return "".join(json.dumps(_with_text_keys(document), default=str) + "\n" for document in documents)

    documents = [json.loads(line) for line in lines]
    nearly = changed(documents).map(lambda data: written(data if isinstance(data, list) else [data]))
    text = written(documents)
    sealed = nearly.map(str.encode).map(seal)
    return st.one_of(
        sealed, nearly.flatmap(damaged).map(seal), damaged(seal(text.encode()).decode()), st.binary(max_size=200)
    )
