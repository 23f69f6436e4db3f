"""Calls of programs of others: what they may not do to us."""

import sys

import pytest

from lossratio.files.callouts import CallError, run_program, without_secrets


def test_a_text_loses_the_secrets_of_its_addresses_only():
    text = "PUT https://ann:pa@ss@host:1/a/b?token=x: no (s3://key:secret@bucket/p), why? ann@host"
    assert without_secrets(text) == "PUT https://host:1/a/b no (s3://bucket/p), why? ann@host"


def test_a_program_that_prints_without_end_or_takes_too_long_is_killed():
    def run(code, **options):
        return run_program([sys.executable, "-c", code], **{"stdin": b"in", "timeout": 120.0, "most": 10**6, **options})

    done = run("import sys; print(input()); print('x', file=sys.stderr); sys.exit(3)")
    assert (done.returncode, done.stdout, done.stderr) == (3, b"in\n", b"x\n")
    for stream in ("stdout", "stderr"):
        with pytest.raises(CallError, match="printed more than 1,000,000 bytes"):
            run(f"import sys\nwhile True: sys.{stream}.write('x' * 9999)")
    for code in ("import time; time.sleep(99)", "import os, time; os.close(1); os.close(2); time.sleep(99)"):
        with pytest.raises(CallError, match=r"took longer than 0\.3 s"):
            run(code, timeout=0.3)
    with pytest.raises(CallError, match="cannot be run on this machine: No such file"):
        run_program(["/no/such/program"], stdin=b"", timeout=1.0, most=1)
