"""The message of a Robot test is what it measured."""

from robot_runs import run_suite, write_suite


def test_the_message_of_a_test_has_all_its_measurements(tmp_path):
    tests = "Both\n    Measure MRR    64B    trials=2\n    Measure MRR    128B    trials=2\n"
    (test,) = run_suite(write_suite(tmp_path, tests)).tests.values()
    assert test.message.count("MRR (2 trials") == 2
    text = " ".join(test.message.split())
    assert ["frames of 64 bytes" in text, "frames of 128 bytes" in text] == [True, True]
