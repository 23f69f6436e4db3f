"""The local testbed: network namespaces on this machine with a real sshd each."""

from lossratio.testbed.local.local import LocalTestbed, describe, status

__all__ = [
    "LocalTestbed",
    "describe",
    "status",
]
