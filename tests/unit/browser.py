"""The browser of the benchmarks, for tests: `browser` starts it, and `needs_browser` skips a test without it."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

_FILE = Path(__file__).parents[2] / "benchmarks" / "browser.py"
# The folder of benchmarks is no path of imports: names of its modules are also those of libraries.
_SPEC = spec_from_file_location("browser_of_benchmarks", _FILE)
_MODULE = module_from_spec(_SPEC)
sys.modules[_SPEC.name] = _MODULE
_SPEC.loader.exec_module(_MODULE)

browser = _MODULE.browser
CHROMIUM = _MODULE.CHROMIUM
needs_browser = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")


def faults_for_readers(chromium, *rules):
    """What axe-core finds on the open page that is serious or critical; skips the test where there is no axe-core.

    Args:
        chromium: The browser.
        rules: Only these rules; none: all.
    """
    axe = pytest.importorskip("axe_core_python", reason="axe-core-python is not installed")
    chromium.run((Path(axe.__file__).parent / "axe.min.js").read_text())
    options = f"{{ runOnly: {list(rules)} }}" if rules else "{}"
    seen = chromium.run(
        f"axe.run({options}).then(seen => [seen.passes.length, seen.violations"
        ".filter(fault => ['serious', 'critical'].includes(fault.impact))"
        ".map(fault => [fault.id, fault.nodes.map(node => node.html.slice(0, 200))])])"
    )
    passed, faults = seen
    assert passed >= (len(rules) or 15)
    return faults
