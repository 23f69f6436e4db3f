"""Searches for the critical load, the load at which the mean loss ratio is the target.

`SearchByCounts` chooses trials, and states what their counts show without any model; `load_by_counts` states the same
about trials that something else chose. Both give a `CountedLoad`:

- `stated`: the highest `verified` load or, if there is none, the load that nothing speaks against; `contradicted`: the
  lowest load above it that loses more than the target;
- `statement`: the frames behind the stated load, with a `Verdict`; `rarest_s`: how rare losses must be to remain
  unseen by them;
- `is_regular` and `reason`: whether the stated load may be wrong, and why;
- `sentences`, `batch`, `pause`, `bucket`, `changes`: how frames are lost;
- `line`: the critical load by a line through the trials that lose little, a model; `model`: with the likelihood
  ``poisson``, PLRsearch's estimate as in its draft (draft-vpolak-bmwg-plrsearch-02);
- `stopped_by`: a `StopReason`, None if the search is not finished.

`CsitSearch` chooses loads as FD.io CSIT's code does, and `csit_estimates` computes what that code reports.
`why_set_aside` says why a trial whose generator did not offer the load is no evidence.
"""

import lazy_loader

# Imported when somebody asks for a name: a run needs a part of the room only.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
