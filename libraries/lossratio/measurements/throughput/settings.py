"""The names of search settings in journals and results, as far as other modules read them."""

from collections.abc import Mapping
from typing import Any

ALGORITHM = "MLRsearch"
"""The search algorithm whose bounds follow from the trials alone, as RFC 9971 defines them."""
EARLY_VERDICT = "early_verdict"
"""The setting of searches whose trials end as soon as their verdict is certain; other searches do not have it."""
END_AT_COIN = "end_at_coin"
"""The setting of searches that give up a goal if only chance would decide; other searches do not have it."""
NIGHTLY = "nightly"
"""The setting of searches that ask first whether the SUT is as before; other searches do not have it."""


def warm_ups_in(settings: Mapping[str, Any]) -> int:
    """Number of warm-up trials at the beginning, by the settings in a journal or a result."""
    if settings.get("warm_up_duration_s") is None:
        return 0
    return 1
