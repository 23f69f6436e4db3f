"""Wrong arguments of keywords and functions, one of each kind: each is refused with its name and the way out."""

import datetime
import re
from enum import Enum

import pytest
from hypothesis import given, strategies as st
from robot import running

from lossratio import MLRsearch, goal_from, load_profile, open_testbed
from lossratio.errors import JobError, LossRatioError
from lossratio.measurements.throughput import goal_set_from
from lossratio.mlrsearch import NDR, SearchGoal
from lossratio.runs import load_job
from lossratio.topology import load_topology

NDR_PDR = ("Find NDR And PDR", "64B")
KEYWORDS = {
    "a word for a truth value that has a default": (*NDR_PDR, "must_find=maybe", "must_find.* neither yes nor no"),
    "the same of a kind's own argument": ("Find Critical Load", "64B", "warm_start=maybe", "warm_start.* neither yes"),
    "a fraction for a whole number": (
        *NDR_PDR,
        "search_every=1.5",
        "search_every.*'1.5' is not a whole number; write it like",
    ),
    "a comma in a whole number": (*NDR_PDR, "search_every=1,000", "'1,000' is not a whole number.* without commas"),
    "a number that no counter has": ("Measure MRR", "64B", "trials=1e308", "trials.* is too large; the largest number"),
    "repetitions without end": (
        "Measure MRR",
        "64B",
        "trials=9_000_000",
        "9000000 is too large; the largest number is 1,000,000",
    ),
    "nothing to try": ("Find Connection Table Capacity", "64B", "most=0", "most must be at least 1, not 0"),
    "a list for a duration": (*NDR_PDR, "ramp=${{[1]}}", r"\[1\] is not a duration, such as '2 min'"),
    "a truth value for a duration": (*NDR_PDR, "ramp=${True}", "True is not a duration, such as '2 min'"),
    "a duration beyond any clock": (*NDR_PDR, "ramp=1e308", "'1e308' is longer than 31 years"),
    "a ramp that nobody can mean": (*NDR_PDR, "ramp=1 week", "ramp must be at least 0 s and at most 1 h, not"),
    "a rest that nobody can mean": (*NDR_PDR, "rest=2 h", "rest must be at least 0 s and at most 1 h, not"),
    "a trial that nobody can mean": (
        "Measure MRR",
        "64B",
        "trial_duration=30 days",
        "trial_duration must be above 0 s and at most 7 days, not",
    ),
    "a warm-up beyond a week": (*NDR_PDR, "warm_up=100 days", "warm_up must be above 0 s and at most 7 days, not"),
    "a warm-up without time": (
        "Find Critical Load",
        "64B",
        "warm_up=0 s",
        "warm_up must be above 0 s and at most 7 days, not 0 s",
    ),
    "the time of a search by another name": (
        "Find Critical Load",
        "64B",
        "duration=1 min",
        r"There is no argument 'duration'\. Did you mean 'timeout'\?",
    ),
    "an argument that nothing resembles": (
        "Find Critical Load",
        "64B",
        "frobnicate=1",
        r"There is no argument 'frobnicate'\. The arguments include (?!.*\bwarm_up,.*\bwarm_up,)",
    ),
    "a goal whose trials nobody can mean": (
        "Find Conditional Throughput",
        '{"name": "LONG", "loss_ratio": 0, "final_trial_duration": "8 days", "duration_sum": "8 days"}',
        "frame_size=64B",
        "final_trial_duration must be a positive number of seconds, at most 604,800 .7 days., not",
    ),
    "the longest duration of Python": (*NDR_PDR, "rest=${{datetime.timedelta.max}}", "is longer than 31 years"),
    "a duration for a number": (
        "Measure MRR",
        "64B",
        "trials=${{datetime.timedelta(seconds=-1)}}",
        "-1 s is not a whole",
    ),
    "a number of nights": (
        *NDR_PDR,
        "search_every=0",
        "at least 1, not 0. The documentation .*: With 'as_before', one night",
    ),
    "a duration below zero": (*NDR_PDR, "rest=-2 s", "rest must be at least 0 s and at most 1 h, not -2 s"),
    "a rate beyond any wire": (*NDR_PDR, "max_load=1e308", "'1e308' is too large for a frame rate"),
    "a small fraction without its unit": (*NDR_PDR, "max_load=1.5", "1.5 has no unit; write '1.5 kfps' or"),
    "bytes for a rate": (*NDR_PDR, "max_load=${{b'10 kpps'}}", "is not a frame rate, such as '10 kfps'"),
    "an empty path": (*NDR_PDR, "hints=", "hints.* The path is empty. Name a file or a folder, or leave"),
    "a word that an enumeration does not have": (
        *NDR_PDR,
        "doubts=wran",
        "warn or fail, not 'wran'. Did you mean 'warn'",
    ),
    "a number for a word": (*NDR_PDR, "integrity=${3}", "integrity.* must be doubt or fail or off, not 3"),
    "a test that RFC 2544 does not have": (
        "Run RFC 2544",
        "latancy",
        "tests.* frame loss or .* not 'latancy'. Did you mean 'latency'",
    ),
    "a list that is not closed": ("Run RFC 2544", "frame_sizes=[64", r"sizes.* is not a list; .* as in \['a', 'b'\]"),
    "a word in a list of shares": (
        "Measure Latency",
        "shares=1, most",
        "shares.* 'most' is not a ratio; write it like",
    ),
    "a path that is too long": (*NDR_PDR, f"resume={'x' * 300}", "resume.* File name too long. Give a shorter path"),
}
"""A keyword, its arguments, and what the answer says."""
FUNCTIONS = {
    "an empty name of a goal": (
        lambda: goal_from({"loss_ratio": 0, "name": ""}),
        "The name of a search goal must be a text",
    ),
    "a name that no report shows": (
        lambda: goal_from({"loss_ratio": 0, "name": "a\0"}),
        "The name of a search goal must be a",
    ),
    "a text for a number of a goal": (lambda: SearchGoal("0", 0.5, 1, 21, 0.005), "loss_ratio must be a number"),
    "a goal without end": (lambda: SearchGoal(0, 0.5, 1, 1e300, 0.005), "duration_sum must be a positive"),
    "goals that are a number": (lambda: goal_set_from(3), "A set of search goals is a text such as 'csit', not 3"),
    "a load of 400 digits": (lambda: MLRsearch([NDR], 10**400, 2000.0), "must be a number with fewer digits, not 1000"),
    "a search in texts": (lambda: MLRsearch([NDR], "1000", 2000.0), "min_load must be a number, not '1000'"),
    "a search for one goal": (lambda: MLRsearch(NDR, 1000.0, 2000.0), "goals must be a list of SearchGoal objects"),
    "an empty name of a topology": (lambda: load_topology(""), "An empty name also means this directory"),
    "a number for a topology": (lambda: load_topology(3), "A topology is given by its name or path, not by 3"),
    "none for a profile": (lambda: load_profile(None, frame_size="64B"), "given by its name or path, not by empty"),
    "a blank name of a topology": (lambda: open_testbed(" "), "topology must be the name .*, but is empty"),
    "a run with too long a name": (lambda: open_testbed("simulated", resume="x" * 300), "There is no run to continue"),
}
"""A call of the Python API, and what the answer says."""
MEASUREMENTS = {
    "a list for the name": ({"name": ["a"]}, r"name must be the name of the result, not \['a'\]"),
    "a truth value for the device": ({"dut": True}, "dut must be the name of a kind of DUT, such as 'linux_bridge'"),
    "an infinite load": ({"max_load": float("inf")}, "max_load: .*inf is not a frame rate"),
    "a load below zero": ({"max_load": -1}, "max_load: .*-1 is not a frame rate; write it like '10 kfps'"),
    "a load of 400 digits": ({"max_load": 10**400}, "max_load: .* is not a frame rate|is too large"),
    "a duration of 400 digits": ({"rest": 10**400}, "rest: .* is longer than 31 years"),
    "the longest duration of Python": ({"rest": datetime.timedelta.max}, "rest: .* is longer than 31 years"),
}
"""Arguments of a measuring method, and what the answer says."""

VARIABLES = {
    "GOALS": ("csti", "There is no set of search goals 'csti'"),
    "LATENCY": ("maybe", "'maybe' is neither yes nor no"),
    "DOUBTS": ("warm", "must be warn or fail, not 'warm'. Did you mean 'warn'?"),
    "NIGHTLY": ("asbefore", "Did you mean 'as_before'?"),
    "MIN_LOAD": ("100 Mbit/s", "is not a frame rate but a bit rate"),
    "SEARCH_EVERY": ("often", "'often' is not a whole number"),
    "HINTS": ("", "The path is empty"),
}
"""A variable of suites, a wrong value, and what the answer says."""


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """The messages of tests that call one keyword each, by kind of mistake."""
    suite = running.TestSuite("Mistakes")
    suite.resource.imports.library("LossRatio", ["quick"])
    suite.setup.config(name="Set Up Testbed", args=["simulated"])
    for mistake, (keyword, *arguments, _) in KEYWORDS.items():
        suite.tests.create(mistake).body.create_keyword(keyword, arguments)
    quiet = {"console": "none", "output": None, "outputdir": str(tmp_path_factory.mktemp("run"))}
    return {test.name: test.message for test in suite.run(**quiet).suite.tests}


@pytest.fixture(scope="module")
def testbed(tmp_path_factory):
    """A simulated testbed."""
    with open_testbed("simulated", results=tmp_path_factory.mktemp("results")) as opened:
        yield opened


@pytest.mark.parametrize("mistake", KEYWORDS)
def test_a_wrong_argument_of_a_keyword(mistake, answers):
    assert re.search(KEYWORDS[mistake][-1], answers[mistake]), answers[mistake]
    assert re.match("ValueError: Argument|SearchError|UnknownArgumentError", answers[mistake])


# No word of an enumeration has a digit.
@pytest.mark.whole
@given(word=st.text().map("{}0".format) | st.integers() | st.floats() | st.booleans() | st.lists(st.text()))
def test_a_keyword_takes_each_word_of_an_enumeration_and_names_them_for_any_other_value(word):
    from lossratio.keywords import LossRatio

    converters = LossRatio.ROBOT_LIBRARY_CONVERTERS
    enumerations = [kind for kind in converters if issubclass(kind, Enum)]
    assert len(enumerations) > 5
    for kind in enumerations:
        for member in kind:
            assert converters[kind](member.value.upper().replace(" ", "_")) is member
        with pytest.raises(ValueError, match=r"^must be ") as refused:
            converters[kind](word)
        assert all(member.value in str(refused.value) for member in kind)


@pytest.mark.parametrize(("call", "answer"), FUNCTIONS.values(), ids=list(FUNCTIONS))
def test_a_wrong_argument_of_a_function(call, answer):
    with pytest.raises(LossRatioError, match=answer):
        call()


@pytest.mark.parametrize(("arguments", "answer"), MEASUREMENTS.values(), ids=list(MEASUREMENTS))
def test_a_wrong_argument_of_a_method_that_measures(testbed, arguments, answer):
    with pytest.raises(LossRatioError, match=answer):
        testbed.mrr("64B", **arguments)


def test_wrong_variables_of_a_job_are_named_with_their_lines(tmp_path):
    job = tmp_path / "job.yaml"
    lines = "".join(f"  {name}: '{value}'\n" for name, (value, _) in VARIABLES.items())
    tests = "tests:\n- suites: [linux_bridge]\n"
    job.write_text(f"format: lossratio-job/1\nname: night\ntopologies: [simulated]\n{tests}variables:\n{lines}")
    with pytest.raises(JobError) as refused:
        load_job(job)
    for number, (name, (_, answer)) in enumerate(VARIABLES.items(), start=7):
        assert re.search(rf":{number}: variables.{name}: .*{re.escape(answer)}", str(refused.value)), refused.value


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (
            ["run", "--topology", "local", "--variable", "LATENCY:maybe", "linux_bridge"],
            "--variable LATENCY:maybe: 'maybe' is neither",
        ),
        (["run", "--topology", "simulated", ""], "it is empty. Give a value, or leave it out"),
        (["check", "simulated", "--nic", ""], "Invalid value for '--nic': it is empty"),
        (["archive", "ack", "history", ""], "Invalid value for 'WHY': it is empty. Give a value.\n"),
        (["check", "simulated", "--nic", "a", "--nic", "b"], "--nic takes one value"),
        (["report", "run", "--format=md", "--format", "csv"], "--format takes one value, but was given more than once"),
        (["archive", "fetch", __file__, "--results", "archive", "--testbed", "lab1"], "is a file. Name another "),
        (
            ["compare", "a", "b", "--html", "x", "--junit", "./x"],
            "--html and --junit name the same file, x. Name two f",
        ),
        (["trend", "history", "--json", "-"], "--json -: only 'lossratio report' writes to the standard output."),
        (["report", "run", "--output", "reports/page.html"], "There is no directory reports. Create it, or name"),
        (["report", "run", "--output", f"{__file__}/page.html"], "cannot be written: Not a directory. Name another"),
        (["compare", "a", "b", "--html", "reports/a.html"], "'--html': There is no directory reports. Create it, or"),
        (["trend", "history", "--json", "/"], "'--json': File '/' is a directory. Name another file."),
        (["builds", "ab", "--markdown", "reports/a.md"], "'--markdown': There is no directory reports. Create it, or"),
        (["between", "a", "b", "--save", "labs/a.yaml"], "'--save': There is no directory labs. Create it, or name"),
        (
            ["lab", "import", "containerlab", "a", "--output", "labs/a.yaml"],
            "'--output': There is no directory labs. Create",
        ),
        (["check", "simulated", "--frame-size", "1,5"], "frame size: '1,5' are several frame sizes"),
    ],
)
def test_a_wrong_value_at_the_command_line(lossratio, words, answer):
    status, out, err = lossratio(*words)
    assert (status, out) == (2, "")
    assert answer in err
