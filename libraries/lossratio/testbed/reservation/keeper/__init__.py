# SPDX-License-Identifier: Apache-2.0
"""The program that keeps a reservation on the TG node. It needs only Python 3.8 or later on Linux.

`lossratio.testbed.reservation.lease` sends it there, and starts it.
"""
