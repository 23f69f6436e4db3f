#!/usr/bin/env python3
"""Compares our MLRsearch with its peer and with older searches, on simulated SUTs: `python benchmarks/search_arena.py`.

The same as `lossratio study`; --help lists the options.
"""

from lossratio.commands.study import study

if __name__ == "__main__":
    study()
