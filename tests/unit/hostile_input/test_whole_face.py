"""Every name of the Python API and every keyword, given nonsense for each argument: no answer is an error of Python.

Nothing is listed by hand: a new function, class, keyword or argument is tested, too.
"""

import datetime
import inspect
import math
import re
from abc import ABC
from functools import partial
from pathlib import Path
from typing import Protocol, is_typeddict

import pytest
from at_least_one import at_least_one
from robot import running

import lossratio
from lossratio import LossRatioError, RunDirectory, TestIdentity, TestPlace, load_profile, open_testbed
from lossratio.keywords import LossRatio
from lossratio.measurements import Request
from lossratio.simulation import SimulatedMeasurer
from lossratio.values.checked_arguments import MADE_BY, checked


class Nonsense:
    """What no argument accepts."""


RAW = re.compile(
    r"Traceback|AttributeError|TypeError|KeyError|has no attribute|not iterable|not subscriptable|not supported between"
    r"|unsupported operand|valid dictionary|[Ii]nput should|validation error"
)
"""What Python and pydantic say, and no user understands."""
KINDS = {
    "none": None,
    "an empty text": "",
    "a blank": " ",
    "a word": "maybe",
    "below zero": -1,
    "not a number": math.nan,
    "infinity": math.inf,
    "400 digits": 10**400,
    "a truth value": True,
    "an empty list": [],
    "a list": [1],
    "a dictionary": {"a": 1},
    "bytes": b"64B",
    "a path": Path("nope"),
    "a complex number": 1j,
    "a time": datetime.timedelta(-1),
    "a class": int,
    "a function": len,
}


def parameters_of(target):
    """The arguments of a function or a class that have names."""
    if inspect.isclass(target) and issubclass(target, Request):
        return [*target.model_fields]
    known = inspect.signature(target).parameters.values()
    return [each.name for each in known if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]


def is_called_by_users(target):
    """Whether scripts call it: a protocol, an abstract class and an error are only named, and others open a testbed."""
    if not inspect.isclass(target):
        return callable(target)
    is_only_named = is_typeddict(target) or Protocol in target.__bases__ or issubclass(target, ABC | Exception)
    return not is_only_named


CALLED = {name: getattr(lossratio, name) for name in lossratio.__all__ if is_called_by_users(getattr(lossratio, name))}
CALLED["SimulatedMeasurer"] = SimulatedMeasurer
ARGUMENTS = [(name, parameter) for name, target in CALLED.items() for parameter in parameters_of(target)]


@pytest.fixture(scope="module")
def right(tmp_path_factory):
    """A right value of arguments that a function needs, by name."""
    directory = tmp_path_factory.mktemp("results")
    profile = load_profile("ethip4-udp", frame_size=64)
    with open_testbed("simulated", results=directory) as testbed:
        yield {
            "testbed": testbed._testbed,
            "place": TestPlace(TestIdentity(name="a", suite="b"), RunDirectory(directory)),
            "profile": profile,
            "topology": "simulated",
            "name_or_path": "ethip4-udp",
            "frame_size": 64,
        }


def request_for(target, profile):
    """A request that a function takes which measures."""
    if isinstance(target, partial):
        kind = target.args[0].request
    else:
        kind = getattr(lossratio, inspect.signature(target).parameters["request"].annotation)
    needed = {"points": ("1 kfps",), "goals": (lossratio.NDR,)}
    return kind(profile=profile, **{name: value for name, value in needed.items() if name in kind.model_fields})


def called_with(target, parameter, value, right):
    """The answer to a call with one wrong argument; the others are right, or left out if the check needs none."""
    names = parameters_of(target)
    given = {name: right[name] for name in names if name in right and name != parameter}
    if target is lossratio.load_by_counts:
        given = {"results": [], "target_loss_ratio": 1e-3, "min_load": 1.0, "max_load": 1e6}
    if "request" in names:
        given["request"] = request_for(target, right["profile"])
    return target(**{**given, parameter: value})


@pytest.mark.parametrize(("name", "parameter"), ARGUMENTS, ids=[".".join(each) for each in ARGUMENTS])
def test_nonsense_is_refused_by_the_name_of_its_argument(name, parameter, right, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(LossRatioError) as refused:
        called_with(CALLED[name], parameter, Nonsense(), right)
    # An answer that does not name the argument says what it is: a goal, or what is called after each trial.
    other_words = {"description": "search goal", "on_latency": "on_progress"}.get(parameter, name)
    words = f"{parameter}|{parameter.replace('_', ' ')}|{other_words}"
    assert re.search(rf"\b({words})\b", str(refused.value))
    assert not RAW.search(str(refused.value))


def answer_to(*call):
    """The class and the words of the error that a call raises; None: it raises none."""
    try:
        called_with(*call)
    except Exception as error:  # noqa: BLE001 (the caller judges it)
        return error
    return None


@pytest.mark.parametrize("name", [name for name, target in CALLED.items() if "testbed" not in parameters_of(target)])
def test_no_kind_of_wrong_value_ends_in_an_error_of_python(name, right, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    wrong = []
    for parameter in parameters_of(CALLED[name]):
        for kind, value in KINDS.items():
            error = answer_to(CALLED[name], parameter, value, right)
            # Where Python names what else a call needs, it has accepted this value.
            needs_more = isinstance(error, TypeError) and "missing" in str(error)
            is_raw = RAW.search(str(error)) or not isinstance(error, LossRatioError | None)
            if is_raw and not needs_more:
                wrong.append((parameter, kind, error))
    assert wrong == []


def test_each_way_to_make_an_object_begins_with_a_name_of_the_library():
    for way in at_least_one(MADE_BY.values()):
        made = way.partition("(")[0]
        assert hasattr(lossratio, made) or made in ("SharpKnee", "Step", "read_run")


def test_an_iterator_is_read_once_and_all_of_it_is_checked():
    @checked(LossRatioError)
    def total(*numbers: float, more: "list[int] | None" = None) -> float:
        return sum(numbers) + sum(more or ())

    assert total(1, 2.5, more=[3]) == 6.5
    with pytest.raises(LossRatioError, match=r"numbers must be a number, not 'x'"):
        total(1, "x")
    with pytest.raises(LossRatioError, match=r"more must be a list of whole numbers or None, not \[1.5\]"):
        total(more=[1.5])
    trial = lossratio.TrialResult(lossratio.TrialInput(1.0, 10.0), lossratio.TrialOutput(0.0))
    assert lossratio.classify(lossratio.NDR, (trial for _ in range(21))) is lossratio.classify(
        lossratio.NDR, [trial] * 21
    )
    with pytest.raises(LossRatioError, match=r"results must be a list of TrialResult objects, not \[0, 1\]"):
        lossratio.classify(lossratio.NDR, iter(range(2)))


WRONG = ("${{object()}}", "maybe", "${{[1]}}", "${{float('nan')}}")


def keyword_calls():
    """Each argument of each keyword, with nonsense; arguments that it needs besides are given.

    The first of several arguments with the same name and type gets a value of each kind. The options of DUTs have no
    types, because none of them is known before the kind of DUT is.
    """
    known_arguments = set()
    for name in dir(LossRatio):
        method = getattr(LossRatio, name)
        if not hasattr(method, "robot_name"):
            continue
        known = [each for each in inspect.signature(method).parameters.values() if each.name != "self"]
        needed = [each.name for each in known if each.default is each.empty and each.kind is each.POSITIONAL_OR_KEYWORD]
        for each in known:
            if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
                continue
            others = [f"{other}=simulated" for other in needed if other != each.name]
            argument = (each.annotation is each.empty or each.name, str(each.annotation))
            values = WRONG[:1] if argument in known_arguments else WRONG
            known_arguments.add(argument)
            for value in values:
                title = method.robot_name or name.replace("_", " ").title()
                yield title, each.name, [*others, f"{each.name}={value}"]


@pytest.mark.whole
def test_no_keyword_answers_nonsense_with_an_error_of_python(tmp_path):
    suite = running.TestSuite("Nonsense")
    suite.resource.imports.library("LossRatio", ["quick"])
    calls = list(keyword_calls())
    for number, (keyword, _, arguments) in enumerate(calls):
        suite.tests.create(f"{number}").body.create_keyword(keyword, arguments)
    quiet = {"console": "none", "output": None, "outputdir": str(tmp_path)}
    answers = [test.message for test in suite.run(**quiet).suite.tests]
    assert len(answers) > 450
    wrong = [(call, answer) for call, answer in zip(calls, answers, strict=True) if RAW.search(answer)]
    assert not wrong


def test_an_open_testbed_is_a_testbed(tmp_path):
    with open_testbed("simulated", results=tmp_path) as testbed:
        assert isinstance(testbed, lossratio.Testbed)
        request = lossratio.MrrRequest(profile=load_profile("ethip4-udp", frame_size=64), trials=1)
        place = TestPlace(TestIdentity(name="a", suite="b"), RunDirectory(tmp_path))
        assert lossratio.measure_mrr(testbed, request, place).mrr is not None
