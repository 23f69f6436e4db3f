"""Runs suites on a testbed of a shared lab: reserved before, released afterwards, resumed after an interruption."""
