# SPDX-License-Identifier: Apache-2.0
"""Processes that the agent forks."""

from __future__ import annotations

import ctypes
import os
import signal

_PR_SET_PDEATHSIG = 1


def die_with(parent: int) -> None:
    """Lets the kernel kill this process when its parent ends, however it ends; it may have ended already.

    Args:
        parent: The pid of the process that has forked this one.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
