"""Texts with placeholders, which become commands."""

import jinja2
import pytest

from lossratio.dut.linux.nftables import table_name
from lossratio.dut.texts import filled, lines, words

TEXT = r"""
    % if mtu
        set interface mtu packet {{ mtu }} {{ link }}
    % endif
    create tunnel src {{ local }} \
    dst {{ remote }} | tunnel(0|1)
    set {{ name | literally }} | | 300
"""


def test_a_line_has_columns_and_a_backslash_continues_it():
    assert list(lines(TEXT, mtu=0, local="192.0.2.1", remote="192.0.2.2", name="a.7")) == [
        ["create tunnel src 192.0.2.1 dst 192.0.2.2", "tunnel(0|1)"],
        [r"set a\.7", "", "300"],
    ]


def test_a_misspelt_name_is_an_error():
    with pytest.raises(jinja2.UndefinedError, match="'remote' is undefined"):
        filled(TEXT, mtu=0, local="192.0.2.1", name="a")


def test_words_are_those_of_a_shell():
    text = "run {{ path | quoted }} -append 'two words'\n% for number in (0, 1)\n    --card={{ number }}\n% endfor\n"
    assert words(text, path="/a b/c") == ("run", "/a b/c", "-append", "two words", "--card=0", "--card=1")


@pytest.mark.parametrize(
    ("interface", "name"),
    [("eth0.100", "eth0.100"), ("wan+1", "wan-1"), ("größe", "gr--e"), ("0000:3b:00.0", "0000-3b-00.0")],
)
def test_a_table_has_a_name_that_nft_reads(interface, name):
    assert table_name(interface) == f"lossratio-{name}"
