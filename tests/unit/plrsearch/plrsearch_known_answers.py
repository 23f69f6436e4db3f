"""The known answers, computed apart from this implementation (60-digit arithmetic and slow quadrature)."""

import json
from pathlib import Path

KNOWN = json.loads((Path(__file__).parent / "data" / "known-answers.json").read_text())
CASES = {case["name"]: case for case in KNOWN["cases"]}
