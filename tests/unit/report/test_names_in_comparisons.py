"""A comparison over the change of names: results of earlier versions are of the tests that they are of."""

import pytest
from report_examples import mrr

from lossratio.errors import ReportError
from lossratio.report.comparison import compare
from lossratio.report.run import Run
from lossratio.results.model import TestIdentity


def run(*names, long_name=None):
    results = []
    for name in names:
        suite, _, test = name.rpartition(".")
        identity = TestIdentity(name=test, suite=suite, long_name=long_name)
        results.append(mrr().model_copy(update={"test": identity}))
    return Run(f"run of {names}", tuple(results))


@pytest.mark.parametrize("earlier", ["Ip4.64B-mrr", "Core.Ip4.64B-mrr", "Ip4 & Ip6.Ip4.64B-mrr"])
def test_a_name_of_an_earlier_version_is_the_test_that_it_fits(earlier):
    now = run("Tests.Core.Ip4.64B-mrr", "Tests.Core.Ip6.64B-mrr", long_name="Night.Ip4.64B-mrr")
    compared = {one.test: one.note for one in compare([run(earlier)], [now]).quantities}
    assert set(compared) == {"Tests.Core.Ip4.64B-mrr", "Tests.Core.Ip6.64B-mrr"}
    assert compared["Tests.Core.Ip6.64B-mrr"] == "not in A"


def test_a_name_that_fits_two_tests_is_not_guessed():
    now = run("Core.Ip4.64B-mrr", "Edge.Ip4.64B-mrr", long_name="Ip4.64B-mrr")
    with pytest.raises(ReportError, match="no test in common"):
        compare([run("Ip4.64B-mrr")], [now])
