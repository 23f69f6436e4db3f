from __future__ import annotations

from robot.api import ExecutionResult
from runner_examples import SIMULATED, write_suite

# A test that is not stopped goes on until pytest ends it.
HANGS = "    Sleep    1 h\n"


def run(lossratio, tmp_path, tests, *options, settings=""):
    file = write_suite(tmp_path, tests, settings=settings)
    done = lossratio("run", "--topology", SIMULATED, *options, file, "--", "--outputdir", tmp_path / "out")
    result = ExecutionResult(str(tmp_path / "out" / "output.xml"))
    return done, {test.name: test.message for test in result.suite.all_tests}


def test_a_test_that_hangs_is_stopped_and_the_next_one_runs(lossratio, tmp_path):
    # The alarm of its limit, which comes at once, so that the limit can be long enough for the test that passes.
    alarm = "os.kill(os.getpid(), signal.SIGALRM)"
    hangs = f"    Evaluate    [{alarm}, time.sleep(3600)]    modules=os,signal,time\n"
    tests = f"Hangs\n{hangs}Has Less Time\n    [Timeout]    0.2 s\n{HANGS}Passes\n    No Operation\n"
    done, messages = run(lossratio, tmp_path, tests, "--test-timeout", "15 min")
    assert done.status == 1
    assert messages == {
        "Hangs": "Test timeout 15 minutes exceeded.",
        "Has Less Time": "Test timeout 200 milliseconds exceeded.",
        "Passes": "",
    }
