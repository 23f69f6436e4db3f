"""What trends are looked for with, unless said otherwise: a module of its own, as trends take long to import."""

FRESH = 5
"""A change that began among this many newest values is fresh."""

LEAST_CHANGE = 0.01
"""Smaller relative changes raise no alarm."""

LAST = 250
"""How many of the newest results of a series are looked at."""
