"""The examples of a run are those of the run before, however much code was written and loaded meanwhile."""

import importlib
import sys

import pytest
from hypothesis import given, settings, strategies as st

MODULE = "NUMBERS = {numbers}\nTEXTS = {texts}\n"


def examples():
    """What hypothesis draws for a test."""
    drawn = []

    @settings(settings.get_profile("lossratio"), max_examples=300, database=None)
    @given(st.integers(), st.floats(), st.text())
    def draws(number, real, text):
        drawn.append(repr((number, real, text)))

    draws()
    return drawn


@pytest.mark.whole
def test_a_module_with_other_numbers_changes_no_example(tmp_path, monkeypatch):
    before = examples()
    numbers = [*range(10_001, 10_501)]
    texts = [f"text {number}" for number in numbers]
    (tmp_path / "much_more.py").write_text(MODULE.format(numbers=numbers, texts=texts))
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("much_more")
    try:
        assert examples() == before
    finally:
        del sys.modules["much_more"]
