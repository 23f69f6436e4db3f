import math
import random
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from hypothesis import given, strategies as st
from report_examples import conditions, mrr, throughput

from lossratio.commands.report import compare as compare_command
from lossratio.errors import ReportError
from lossratio.report.comparison import (
    Sample,
    Verdict,
    adjusted,
    compare,
    comparison_cases,
    comparison_markdown,
    comparison_table,
    difference,
)
from lossratio.report.run import Run
from lossratio.results import INTERRUPTED, TERMINATED
from lossratio.results.run_directory import RunDirectory
from lossratio.simulation.constant_capacity import SharpKnee


def with_rate(per_interface, *, name="64B-mrr", stdev=0.0):
    """An MRR result with a given mean."""
    base = mrr()
    rates = {"mean": conditions().rate(per_interface), "stdev": conditions().rate(stdev)}
    test = base.test.model_copy(update={"name": name})
    return base.model_copy(update={"test": test, "mrr": base.mrr.model_copy(update=rates)})


def runs(*rates, **more):
    return [Run(f"run-{rate}", (with_rate(rate, **more),)) for rate in rates]


def verdict_of(before, after, **options):
    (quantity,) = compare(before, after, **options).quantities
    return quantity.verdict


def test_a_drop_beyond_the_spread_is_a_regression():
    assert verdict_of(runs(100.0e3, 100.5e3, 99.7e3), runs(95.0e3, 95.2e3, 94.9e3)) is Verdict.REGRESSION


def test_a_rise_beyond_the_spread_is_a_progression():
    assert verdict_of(runs(95.0e3, 95.2e3, 94.9e3), runs(100.0e3, 100.5e3, 99.7e3)) is Verdict.PROGRESSION


def test_a_drop_within_the_spread_is_none():
    assert verdict_of(runs(100.0e3, 90.0e3, 107.0e3), runs(95.0e3, 88.0e3, 104.0e3)) is Verdict.UNCHANGED


def test_a_certain_but_tiny_drop_is_none_unless_asked_for():
    before, after = runs(100_000.0, 100_001.0, 100_002.0), runs(99_800.0, 99_801.0, 99_802.0)
    assert verdict_of(before, after) is Verdict.UNCHANGED
    assert verdict_of(before, after, least_change=0.001) is Verdict.REGRESSION


def test_one_run_on_both_sides_gives_no_verdict():
    comparison = compare(runs(100e3), runs(50e3))
    assert comparison.quantities[0].verdict is Verdict.TOO_FEW
    assert not comparison.has_verdict
    assert "there are too few results. Repeat the runs" in comparison_table(comparison)


def test_one_new_run_is_compared_with_the_spread_of_earlier_ones():
    assert verdict_of(runs(100.0e3, 100.5e3, 99.7e3), runs(90e3)) is Verdict.REGRESSION
    assert verdict_of(runs(100.0e3, 104.5e3, 95.7e3), runs(97e3)) is Verdict.UNCHANGED


def test_a_test_that_has_no_value_any_more_is_a_regression():
    failed = [Run("failed", (mrr(error="agent lost").model_copy(update={"test": with_rate(1.0).test}),))]
    (quantity,) = compare(runs(100e3), failed).quantities
    assert (quantity.verdict, quantity.note) == (Verdict.REGRESSION, "B has no value: agent lost")


@pytest.mark.parametrize("error", [INTERRUPTED, TERMINATED], ids=["by force", "by Robot Framework"])
def test_an_interrupted_test_is_no_regression(error):
    name = {"test": with_rate(1.0).test}
    interrupted = [Run("b", (mrr(error=error).model_copy(update=name),))]
    comparison = compare(runs(100e3), interrupted)
    (quantity,) = comparison.quantities
    assert quantity.verdict is Verdict.NOT_COMPARABLE
    assert quantity.note == "B was interrupted: resume it with lossratio run --resume"
    assert (*comparison.worse, *comparison.broken) == ()
    # Another run of the test that failed by itself still counts.
    failed = Run("c", (mrr(error="agent lost").model_copy(update=name),))
    (quantity,) = compare(runs(100e3), [*interrupted, failed]).quantities
    assert quantity.verdict is Verdict.REGRESSION


def test_markdown_has_the_regressions_first():
    before = [Run(f"a{n}", (with_rate(100e3 + n), with_rate(50e3 + n, name="a|b"))) for n in range(3)]
    after = [Run(f"b{n}", (with_rate(100e3 + n), with_rate(40e3 + n, name="a|b"))) for n in range(3)]
    lines = comparison_markdown(compare(before, after)).splitlines()
    assert lines[0] == ("B is worse than A in 1 of 2 quantities: Performance.Linux Bridge.a\\|b, MRR, fell by 20.00 %.")
    assert lines[2].startswith("Testbed simulated: 1 regression, 1 unchanged.")
    table = [line for line in lines if line.startswith("|")]
    assert table[0].startswith("| test | goal | A | B |")
    assert table[2].startswith("| Performance.Linux Bridge.a\\|b | MRR |")
    assert table[2].endswith("| regression |")
    assert table[3].endswith("| no change |")


def test_no_interval_goes_below_minus_100_per_cent():
    before, after = runs(100e3, 101e3, 99e3), runs(1.0, 1.0, 2.0)
    lines = comparison_table(compare(before, after)).splitlines()
    assert "-99.999 %  -100.00 to -" in lines[3]
    assert "-100.00 %" not in lines[3]


def test_several_regressions_are_counted_in_the_plural():
    before = [Run(f"a{n}", (with_rate(100e3 + n), with_rate(50e3 + n, name="other"))) for n in range(3)]
    after = [Run(f"b{n}", (with_rate(90e3 + n), with_rate(40e3 + n, name="other"))) for n in range(3)]
    worse = compare(before, after)
    assert "Testbed simulated: 2 regressions. " in comparison_table(worse)
    assert "Testbed simulated: 2 progressions. " in comparison_table(compare(after, before))


def first_line(before, after):
    return comparison_table(compare(before, after)).splitlines()[0]


def test_a_comparison_begins_with_what_it_proves():
    name = "Performance.Linux Bridge.64B-mrr, MRR,"
    usual = runs(100.0e3, 100.5e3, 99.5e3)
    slow = runs(95.0e3, 95.2e3, 94.8e3)
    assert first_line(usual, slow) == f"B is worse than A in 1 of 1 quantity: {name} fell by 5.00 %."
    assert first_line(slow, usual) == f"B is better than A in 1 of 1 quantity: {name} rose by 5.26 %."
    assert first_line(usual, runs(99.9e3, 100.4e3, 99.8e3)) == (
        "No difference between A and B is proved: each is too small, or chance may explain it."
    )
    assert first_line(usual[:1], slow[:1]) == (
        "Undecided: there are too few results. Repeat the runs at least twice on both sides, or three times on one "
        "side."
    )


def test_the_first_line_counts_quantities_without_a_verdict():
    usual = runs(100.0e3, 100.5e3, 99.5e3)
    assert first_line([*usual, *runs(50e3, name="gone")], runs(99.9e3, 100.4e3, 99.8e3)) == (
        "No difference between A and B is proved in 1 of 2 quantities: each is too small, or chance may explain it. "
        "There is no verdict on 1 more."
    )


def test_a_rise_from_zero_has_no_share_and_is_no_lower_bound():
    comparison = compare(runs(0.0, 0.0, 0.0), runs(95.0e3, 95.2e3, 94.8e3))
    sentence, _, _, row, *_ = comparison_table(comparison).splitlines()
    assert sentence.endswith("rose from zero.")
    assert " from zero  –  " in row
    assert "inf" not in row
    assert "lower bounds" not in row


def test_the_first_line_names_the_largest_change_and_counts_lost_values():
    def side(*rates):
        return [Run(f"{n}", tuple(with_rate(rate + n, name=f"t{k}") for k, rate in enumerate(rates))) for n in range(3)]

    failed = [mrr(error="agent lost").model_copy(update={"test": with_rate(1.0, name="lost").test})]
    before = [*side(1e5, 1e5, 1e5), *runs(1e5, name="lost")]
    after = [*side(9e4, 8e4, 1e5), Run("failed", tuple(failed))]
    assert first_line(before, after) == (
        "B is worse than A in 2 of 4 quantities: Performance.Linux Bridge.t1, MRR, fell by 20.00 %, and 1 more; "
        "it no longer has a value for 1 more."
    )
    assert first_line(before[2:], after[3:]) == (
        "B no longer has a value for 1 of 4 quantities: Performance.Linux Bridge.lost, MRR."
    )


def test_a_rise_from_zero_has_no_size():
    zero, some = runs(0.0), runs(1e5, 1.001e5, 0.999e5)
    assert first_line(zero, some).endswith("rose from zero.")


def test_tests_of_one_side_only_are_said_and_prove_nothing():
    both = [Run("a", (with_rate(1e3), with_rate(1e3, name="old")))]
    quantities = compare(both, runs(1e3)).quantities
    assert [(item.test, item.note) for item in quantities] == [
        ("Performance.Linux Bridge.64B-mrr", ""),
        ("Performance.Linux Bridge.old", "not in B"),
    ]


def test_results_of_two_testbeds_are_refused():
    other = with_rate(1e3)
    testbed = other.conditions.testbed.model_copy(update={"name": "lab-2"})
    moved = other.model_copy(update={"conditions": other.conditions.model_copy(update={"testbed": testbed})})
    with pytest.raises(ReportError, match=r"Only results from one testbed can be compared.*lab-2, simulated"):
        compare(runs(1e3), [Run("b", (moved,))])


def test_runs_without_a_test_in_common_are_refused_with_those_that_measure_the_same():
    pair = r"Performance\.Linux Bridge\.64B-mrr in A and Performance\.Linux Bridge\.other in B\. Give both suites"
    with pytest.raises(ReportError, match=rf"no test in common\. These measure the same thing: {pair}"):
        compare(runs(1e3), runs(1e3, name="other"))


def test_other_traffic_is_another_test_whatever_its_name_is():
    result = with_rate(1e3)
    traffic = result.conditions.traffic.model_copy(update={"frame_format": "Ethernet II, IPv6, UDP"})
    other = result.model_copy(update={"conditions": result.conditions.model_copy(update={"traffic": traffic})})
    comparison = compare(runs(1e3, 1e3), [Run("b", (other,))] * 2)
    (quantity,) = comparison.quantities
    assert (quantity.verdict, quantity.note) == (Verdict.NOT_COMPARABLE, "the runs differ in traffic profile")
    # More runs of what cannot be compared would not help.
    assert "repeat the runs" not in comparison_table(comparison)


def by(generator, *rates):
    for rate in rates:
        (result,) = runs(rate)[0].results
        changed = result.conditions.model_copy(update={"generator": {"kind": generator}})
        yield Run(f"run-{rate}", (result.model_copy(update={"conditions": changed}),))


def test_generators_that_differ_are_no_secret():
    before = [*by("afpacket", 1000.0, 1001.0, 1002.0)]
    (quantity,) = compare(before, [*by("xdp", 3000.0, 3001.0, 3002.0)]).quantities
    assert quantity.verdict is Verdict.PROGRESSION
    assert quantity.note == "the traffic generators differ (A: afpacket; B: xdp), which may explain the difference"
    (quantity,) = compare(before, [*by("afpacket", 1000.0), *by("xdp", 1001.0)]).quantities
    assert "(A: afpacket; B: afpacket and xdp)" in quantity.note
    (quantity,) = compare(before, [*by("afpacket", 3000.0, 3001.0, 3002.0)]).quantities
    assert quantity.note == ""


@pytest.mark.whole
def test_unchanged_tests_are_seldom_called_regressions_however_many_there_are():
    randomness = random.Random(3)

    def run():
        return Run("run", tuple(with_rate(randomness.gauss(1e5, 2e3), name=f"t{number}") for number in range(100)))

    comparison = compare([run() for _ in range(3)], [run() for _ in range(3)])
    assert sum(quantity.verdict is not Verdict.UNCHANGED for quantity in comparison.quantities) <= 1


def test_the_statistics_are_the_textbook_ones():
    # t = 2 / sqrt(1/3 + 1/3) = 2.449 with 4 degrees of freedom; one of the C(10, 5) = 252 ways to share ranks.
    few = difference(Sample((1.0, 2.0, 3.0)), Sample((3.0, 5.0, 4.0)))
    assert (few.test, few.change) == ("Welch", 1.0)
    assert few.p_value == pytest.approx(0.0705, abs=1e-3)
    many = difference(Sample((1, 2, 3, 4, 5)), Sample((6, 7, 8, 9, 10)))
    assert (many.test, many.p_value) == ("Mann-Whitney", pytest.approx(2 / 252))
    level = difference(Sample((2.0, 2.0)), Sample((1.0, 1.0)))
    # There is nothing that a t test could compare the difference with.
    assert (level.test, level.p_value, level.interval) == ("no spread", 0.0, None)


@pytest.mark.parametrize("repeats", [2, 5])
def test_equal_values_claim_no_interval(repeats):
    def table(before, after):
        sides = ([Run("run", (with_rate(rate, stdev=n),)) for n in range(repeats)] for rate in (before, after))
        return comparison_table(compare(*sides))

    assert "none: the values do not vary" in table(1e5, 2e5)
    assert "none: the values do not vary" not in table(0.0, 1e5)
    assert "none: the values do not vary" not in comparison_table(compare(runs(1e5), runs(2e5)))


# Squares of rates below a frame in 30 years would vanish.
RATES = st.lists(st.just(0.0) | st.floats(1e-9, 1e9), min_size=1, max_size=8)


@pytest.mark.whole
@given(RATES, RATES)
def test_the_two_sides_are_treated_alike(before, after):
    there, back = (
        difference(Sample(tuple(before)), Sample(tuple(after))),
        difference(Sample(tuple(after)), Sample(tuple(before))),
    )
    assert there.test == back.test
    if there.p_value is not None:
        assert 0.0 <= there.p_value <= 1.0
        assert math.isclose(there.p_value, back.p_value, rel_tol=1e-6, abs_tol=1e-12)
    assert there.change * back.change <= 0.0


def test_values_without_spread_differ_or_not():
    assert difference(Sample((5.0, 5.0)), Sample((5.0, 5.0))).p_value == 1.0
    assert difference(Sample((5.0, 5.0)), Sample((4.0, 4.0))).p_value == 0.0
    assert difference(Sample((0.0, 0.0)), Sample((4.0, 4.0))).change == math.inf


def test_many_tests_at_once_make_each_less_certain():
    assert adjusted([]) == []
    assert adjusted([0.01, 0.04, 0.5]) == pytest.approx([0.03, 0.06, 0.5])


def write_runs(folder, rates):
    for number, rate in enumerate(rates):
        RunDirectory(folder / f"run-{number}").write(mrr(SharpKnee(capacity=2 * rate)))
    return str(folder)


@pytest.mark.whole
@pytest.mark.parametrize(
    ("after", "status"), [((95e3, 95.1e3, 95.2e3), 3), ((100e3, 101e3, 99e3), 0), ((110e3, 111e3, 112e3), 0)]
)
def test_a_slower_run_is_a_regression_for_the_command(tmp_path, after, status):
    junit = tmp_path / "junit.xml"
    folders = [write_runs(tmp_path / "a", (100e3, 100.1e3, 100.2e3)), write_runs(tmp_path / "b", after)]
    answer = CliRunner().invoke(compare_command, [*folders, f"--junit={junit}"])
    assert answer.exit_code == status, answer.output
    (suite,) = ElementTree.parse(junit).getroot()  # noqa: S314 (our own)
    assert suite.get("failures") == str(int(status == 3))


def test_what_only_seems_better_or_worse_proves_nothing():
    def sides(before, after):
        return (
            [
                Run("run", tuple(with_rate(rate, stdev=number, name=name) for name, rate in side.items()))
                for number in range(2)
            ]
            for side in (before, after)
        )

    usual = {"t0": 1e5, "t1": 1e5}
    better = compare(*sides(usual, {"t0": 2e5, "t1": 1e5}))
    assert [one.verdict for one in better.quantities] == [Verdict.SEEMS_BETTER, Verdict.UNCHANGED]
    assert not better.is_undecided
    assert comparison_table(better).startswith("B seems better than A in 1 of 2 quantities: ")
    worse = compare(*sides(usual, {"t0": 5e4, "t1": 1e5}))
    assert (worse.has_verdict, worse.is_undecided) == (True, True)


def test_what_seems_worse_is_said_beside_what_is_worse():
    before = [Run("a", (with_rate(1e5 + n, name="t0"), with_rate(1e5, stdev=n, name="t1"))) for n in range(3)]
    after = [Run("b", (with_rate(9e4 + n, name="t0"), with_rate(8e4, stdev=n, name="t1"))) for n in range(3)]
    comparison = compare(before, after)
    assert [one.verdict for one in comparison.quantities] == [Verdict.REGRESSION, Verdict.SEEMS_WORSE]
    assert comparison_table(comparison).splitlines()[0] == (
        "B is worse than A in 1 of 2 quantities: Performance.Linux Bridge.t0, MRR, fell by 10.00 %. B seems worse in "
        "1 more, whose values are all equal on each side: repeat the runs to be sure."
    )


def test_a_test_that_only_seems_worse_is_undecided_for_the_command(tmp_path):
    for side, rate in (("a", 100e3), ("b", 50e3)):
        for number in range(2):
            equal = mrr(SharpKnee(capacity=2 * rate), trials=2 + number)
            RunDirectory(tmp_path / side / f"run-{number}").write(equal)
    folders = [str(tmp_path / side) for side in "ab"]
    junit = tmp_path / "junit.xml"
    answer = CliRunner().invoke(compare_command, [*folders, f"--junit={junit}"])
    assert (answer.exit_code, answer.output.startswith("B seems worse")) == (4, True), answer.output
    (suite,) = ElementTree.parse(junit).getroot()  # noqa: S314 (our own)
    assert (suite.get("failures"), suite.get("skipped")) == ("0", "1")


def test_too_few_runs_are_undecided_for_the_command(tmp_path):
    folders = [write_runs(tmp_path / "a", (100e3,)), write_runs(tmp_path / "b", (50e3,))]
    answer = CliRunner().invoke(compare_command, folders)
    assert answer.exit_code == 4
    assert "-50.00 %" in answer.output
    assert "too few results" in answer.output


@pytest.mark.whole
def test_a_search_is_compared_goal_by_goal():
    comparison = compare([Run("a", (throughput(),))], [Run("b", (throughput(seed=2),))])
    assert [quantity.quantity for quantity in comparison.quantities] == ["NDR", "PDR"]


def test_a_comparison_of_quick_goals_says_so():
    comparison = compare(runs(100e3), runs(50e3))
    (quantity,) = comparison.quantities
    quick = replace(comparison, quantities=(replace(quantity, quantity="QUICK_NDR (linux_bridge)"), quantity))
    assert "Quick goals: QUICK_NDR. Their searches collect a tenth of the evidence." in comparison_table(quick)
    assert "Quick goals" in comparison_markdown(quick)
    assert "Quick goals" not in comparison_table(comparison)


def test_equal_values_only_seem_to_be_worse():
    def sides(before, after):
        return (
            [Run("run", (with_rate(rate, stdev=number),)) for number, rate in enumerate(side)]
            for side in (before, after)
        )

    level = compare(*sides((1e5, 1e5), (5e4, 5e4)))
    assert [one.verdict for one in level.quantities] == [Verdict.SEEMS_WORSE]
    assert (level.worse, level.has_verdict, level.is_undecided) == ((), False, True)
    assert [case.state for case in comparison_cases(level)] == ["skipped"]
    table = comparison_table(level)
    assert table.startswith("B seems worse than A in 1 of 1 quantity: ")
    assert "nothing shows how much they vary by chance: repeat the runs" in table
    assert "not known (no spread)" in table
    spread = comparison_table(compare(*sides((1e5, 1.001e5, 0.999e5), (5e4, 5.001e4, 4.999e4))))
    assert spread.startswith("B is worse than A in 1 of 1 quantity: ")
    assert "repeat the runs" not in spread
