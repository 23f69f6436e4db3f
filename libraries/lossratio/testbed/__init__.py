"""The local testbed: network namespaces on this machine with a real sshd each; see `lossratio.testbed.local`.

This file stays empty: the holder process (`lossratio.testbed.holder`) imports through it, and starts in a few
milliseconds only as long as it loads nothing but the standard library.
"""
