from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from lossratio.values import units


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("10 kpps", 10e3),
        ("10kfps", 10e3),
        ("1.5 Mpps", 1.5e6),
        (".5 Mfps", 0.5e6),
        ("64000", 64e3),
        ("10 K", 10e3),
        ("1e6", 1e6),
        ("9_001 fps", 9001.0),
        (250.0, 250.0),
    ],
)
def test_frame_rates_are_read_as_people_write_them(text, rate):
    assert units.parse_frame_rate(text) == rate


@pytest.mark.parametrize(
    "text", ["", "fast", "10 kppps", "-5 kpps", "0", "10 %", "nan", "1e999", "10 mpps", "10G", "10 G"]
)
def test_text_that_is_no_frame_rate_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match="10 kfps"):
        units.parse_frame_rate(text)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("fps", 50_250.0, "50.250 kfps"),
        ("s", 0.0125, "0.0125 s"),
        ("s", 0.0, "0 s"),
        ("frames", 12_345, "12,345 frames"),
        ("frames", 9_999, "9999 frames"),
        ("frames", 14_880_952.0, "14,880,952 frames"),
    ],
)
def test_values_are_written_with_their_unit(name, value, text):
    assert units.Unit(name).format(value) == text


def test_a_rounding_error_is_no_standard_deviation():
    assert units.Unit("s").format(2.5121e-15) == "0 s"
    assert units.Unit("s").format(1.25e-7) == "1.25e-07 s"


def test_a_unit_says_which_change_is_for_the_better():
    assert [units.FRAMES_PER_SECOND.is_better(change) for change in (-0.1, 0.1, math.inf)] == [False, True, True]
    seconds = units.Unit("s", lower_is_better=True)
    assert [seconds.is_better(change) for change in (-0.1, 0.1, math.inf)] == [True, False, False]


def test_other_quantities_are_read_as_people_write_them():
    assert units.parse_bit_rate("25 Gbps") == 25e9
    assert units.parse_bit_rate("100 Mbit/s") == 100e6
    assert units.parse_ratio("0.5 %") == pytest.approx(0.005)
    assert units.parse_ratio("0.005") == 0.005
    assert units.parse_ratio(0) == 0.0
    assert units.parse_bytes("64B") == units.parse_bytes(64) == units.parse_bytes("64 bytes") == 64
    assert units.parse_duration("2 min") == 120.0
    assert units.parse_duration("500ms") == 0.5
    assert units.parse_duration(30) == 30.0


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (units.parse_bit_rate, "10 Gpps"),
        (units.parse_bit_rate, "_1 Gbps"),
        (units.parse_bytes, "1__5"),
        (units.parse_ratio, "half"),
        (units.parse_ratio, "nan"),
        (units.parse_ratio, "1e999"),
        (units.parse_bytes, "64.5B"),
        (units.parse_bytes, "IMIX"),
        (units.parse_duration, "soon"),
        (units.parse_duration, "0 s"),
        (units.parse_duration, "-1 s"),
        (units.parse_duration, "inf"),
    ],
)
def test_text_that_is_no_quantity_of_its_kind_is_refused_with_an_example(parse, text):
    with pytest.raises(ValueError, match=f"'{text}'.*write it like"):
        parse(text)


@pytest.mark.parametrize("parse", [units.parse_frame_rate, units.parse_ratio, units.parse_duration])
@pytest.mark.parametrize("value", [None, True, [], {"a": 1}, math.nan, math.inf, 10**400, -(10**400), "9" * 5000])
def test_other_values_of_yaml_in_place_of_a_quantity_are_refused(parse, value):
    with pytest.raises(ValueError, match=r"write it like"):
        parse(value)


@given(st.floats(1e-3, 1e12))
def test_a_rate_written_for_people_is_read_back_to_four_digits(rate):
    assert units.parse_frame_rate(units.format_frame_rate(rate)) == pytest.approx(rate, rel=1e-4)
    assert units.parse_bit_rate(units.format_bit_rate(rate)) == pytest.approx(rate, rel=1e-4)


def test_what_rounding_leaves_of_a_time_is_none():
    assert units.format_precise_time(3.1776e-15) == "0 ms"
    assert units.format_precise_time(1.2345e-8) == "1.2345e-05 ms"


@pytest.mark.parametrize(("seconds", "text"), [(0.012345, "12.345 ms"), (9.9, "9900 ms"), (150.2467, "150.25 s")])
def test_long_times_are_written_in_seconds(seconds, text):
    assert units.format_precise_time(seconds) == text


def test_bandwidth_counts_what_ethernet_adds_on_the_wire():
    # RFC 2544 era figure: 64-byte frames at 14,880,952 per second fill a 10 Gbit/s link.
    assert units.l1_bandwidth(14_880_952.38, 64) == pytest.approx(10e9)


@pytest.mark.parametrize(
    ("least", "most", "text"),
    [(0.0, 1.0247e-5, "0 to 1.1e-05"), (2.99e-6, 5.74e-6, "2.9e-06 to 5.8e-06"), (0.12, 1.0, "0.12 to 1")],
)
def test_limits_are_rounded_outwards(least, most, text):
    assert units.format_limits(least, most) == text


def test_a_large_upper_limit_has_no_exponent():
    assert [units.format_most(most) for most in (8.21, 99.9, 132.0, 25_301.0)] == ["8.3", "100", "140", "26,000"]


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_written_limits_hold_those_that_were_computed(one, other):
    least, most = sorted((one, other))
    written = [float(end) for end in units.format_limits(least, most).split(" to ")]
    assert written[0] <= least <= most <= written[-1]


@pytest.mark.parametrize(
    ("number", "more", "words"),
    [
        (0, ("value",), "0 values"),
        (1, ("value",), "1 value"),
        (2, ("value",), "2 values"),
        (1, ("search", "searches"), "1 search"),
        (12_345, ("search", "searches"), "12,345 searches"),
    ],
)
def test_one_of_something_has_no_plural(number, more, words):
    assert units.counted(number, *more) == words


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (0.05, "rose by 5.00 %"),
        (-0.025, "fell by 2.50 %"),
        (math.inf, "rose from zero"),
        (-1.0, "fell by 100.00 %"),
        (-0.999_987, "fell by 99.999 %"),
        (75_069.566_7, "rose by 7,506,957 %"),
    ],
)
def test_a_change_in_words_has_its_direction(change, words):
    assert units.change_in_words(change) == words


@pytest.mark.parametrize("change", [0.05263, -0.12345, 0.2, 1.5, -1e-6])
def test_a_change_is_rounded_alike_in_a_sentence_and_in_a_table(change):
    size = units.format_change_size(change)
    assert units.change_in_words(change).endswith(f" by {size}")
    assert units.format_change(change).lstrip("+-") == size


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (-0.00997, "-0.997 %"),
        (-0.01, "-1.00 %"),
        (0.0499999, "+4.99999 %"),
        (0.05 - 1e-17, "+5.00 %"),
        (0.2, "+20.00 %"),
    ],
)
def test_a_change_below_a_whole_percentage_does_not_look_like_one(change, text):
    assert units.format_change(change) == text


def test_control_characters_are_escaped_and_lines_are_kept():
    assert units.printable("a\n\tb\x1b[31m\x9bc\0") == "a\n\tb\\x1b[31m\\x9bc\\x00"
    assert units.printable("\u202ecba\u2066") == "\\u202ecba\\u2066"


def test_the_end_of_a_list_says_how_many_are_left_out():
    assert [units.and_more(number) for number in (0, 1, 2000)] == ["", ", and 1 more", ", and 2,000 more"]


def test_a_duration_in_a_sentence_has_a_blank_before_each_unit():
    assert [units.format_duration(seconds) for seconds in (0.4, 192.0, 7200.0)] == ["0 s", "3 min 12 s", "2 h"]


def test_a_range_whose_ends_are_written_alike_is_one_value():
    assert units.range_in_words("75.000 kfps", "75.001 kfps") == "75.000 kfps to 75.001 kfps"
    assert units.range_in_words("75.000 kfps", "75.000 kfps") == "75.000 kfps"
    assert units.format_limits(0.5, 0.5) == "0.5"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (604_800.0, "7 days"),
        (86_400.0, "1 day"),
        (90_000.0, "25 h"),
        (3_600.0, "1 h"),
        (90.0, "90 s"),
        (120.0, "2 min"),
        (604_801.0, "604,801 s"),
        (1.5, "1.5 s"),
        (0.0, "0 s"),
        (-1.0, "-1 s"),
    ],
)
def test_an_exact_duration_is_in_the_largest_unit_without_a_fraction(seconds, text):
    assert units.format_exact_duration(seconds) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (1.0, "100 %"),
        (0.9999, "99.99 %"),
        (0.99996, "99.996 %"),
        (0.999_999_7, "99.99997 %"),
        (1.000_001, "100.0001 %"),
        (0.0, "0 %"),
        (0.001, "0.1 %"),
    ],
)
def test_only_the_whole_is_100_per_cent(ratio, text):
    assert units.format_ratio(ratio) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (1e-7, "one in 10,000,000"),
        (0.003, "one in 333"),
        (0.5, "one in 2"),
        (0.4, "40 %"),
        (0.6, "60 %"),
        (0.999_99, "99.999 %"),
    ],
)
def test_a_ratio_is_one_in_a_number_only_if_that_is_near(ratio, text):
    assert units.format_one_in(ratio) == text
