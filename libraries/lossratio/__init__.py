"""Benchmarks the data plane throughput of software networking with MLRsearch (RFC 9971) and PLRsearch.

The package is a Robot Framework keyword library (`lossratio.keywords`) and the Python API below it. Start at
`lossratio.trials.trial` for the types that everything else speaks in.
"""

__version__ = "0.2.0"
